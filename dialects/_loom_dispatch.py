"""Rules of kernels, of their applications to shards, and of merges of what shards folded.

    loom.application @sum: operand 0 records <[0] : [4]>, but its projection selects <[0] : [8]>

A recorded selection or result must be exactly what the kernel's projections make of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from tapestry.algebra.dtypes import body_type
from tapestry.dialects._loom_blocks import argument_type, element_of
from tapestry.dialects._loom_bodies import signature_bodies, yielded_types
from tapestry.dialects._loom_geometry import accesses, domain_problems
from tapestry.dialects._loom_merging import merged_states
from tapestry.dialects._loom_parts import part_problems, stored_ranges, varying_outputs
from tapestry.dialects._loom_reads import Fill, fill_problems
from tapestry.dialects._loom_types import TensorType, tensor_type
from tapestry.dialects._loom_writes import tilings
from tapestry.issues import Problem
from tapestry.zspace import Projection, Range

if TYPE_CHECKING:
    from tapestry.dialects import loom


def kernel_problems(op: loom.KernelOp) -> list[Problem]:
    """A kernel's bodies and ranks; its ranges are checked at each application."""
    problems: list[Problem] = []
    for what, projections, inputs in (
        ("input", op.in_maps, len(op.kinds)),
        ("extra input", op.extra_maps, len(op.kept_dims)),
        ("output", op.out_maps, len(op.kept_dims)),
    ):
        problems += [
            Problem(
                "projection-rank",
                f"{what} {position} is projected from {projection.inputs} dimensions, but there "
                f"are {inputs} here",
                projection=projection,
            )
            for position, projection in enumerate(projections)
            if projection.inputs != inputs
        ]
    if op.inside is not None and op.inside.rank != len(op.kinds):
        message = f"the domain has {op.inside.rank} dimensions, but there are {len(op.kinds)} here"
        problems.append(Problem("domain-rank", message, domain=op.inside))
    bodies = signature_bodies(op, None, None, None)
    problems += bodies or part_problems(op)
    problems += _inputs(op)
    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is not None and len(wrap.args) != len(op.in_maps):
        message = f"wrap takes {len(wrap.args)} cells, but there are {len(op.in_maps)} inputs"
        problems.append(Problem("body-arguments", message, inputs=op.in_maps))
    extra_cells = 0 if unwrap is None else len(unwrap.args) - len(op.state_types)
    if op.monoid_name is not None and extra_cells != len(op.extra_maps):
        message = f"unwrap takes {extra_cells} extra cells of {len(op.extra_maps)} extra inputs"
        problems.append(Problem("body-arguments", message, extras=op.extra_maps))
    return problems


def _inputs(op: loom.KernelOp) -> list[Problem]:
    """Fills and blocks fit what the bodies take."""
    wrap = op.wrap.first_block
    ins = [] if wrap is None else [argument.type for argument in wrap.args]
    extras = _extra_cells(op)
    return [
        *fill_problems("input", op.in_clips, [element_of(cell) for cell in ins]),
        *fill_problems("extra input", op.extra_clips, [element_of(cell) for cell in extras]),
        *_arguments("wrap", op.in_maps, ins),
        *_arguments("unwrap", op.extra_maps, extras),
    ]


def _arguments(
    name: str, projections: Sequence[Projection], cells: Sequence[Attribute]
) -> list[Problem]:
    """A body takes a block of each input that selects a box, of its shape."""
    problems: list[Problem] = []
    for projection, cell in zip(projections, cells, strict=False):
        wanted = argument_type(projection, element_of(cell))
        if cell != wanted:
            message = f"{name} takes {cell}, but {projection} selects {wanted}"
            problems.append(Problem("body-arguments", message, projection=projection, cell=cell))
    return problems


def _kernel_of(op: loom.Dispatch) -> tuple[loom.KernelOp | None, list[Problem]]:
    """The kernel that runs, or why it cannot: no rule is checked against a kernel that is wrong."""
    from tapestry.dialects import loom

    kernel = loom.find_kernel(op, op.kernel_name)
    if kernel is None:
        message = f"there is no loom.kernel @{op.kernel_name}"
        return None, [Problem("kernel-unknown", message, kernel=op.kernel_name)]
    if not kernel.is_formed:
        return None, []
    rank = len(kernel.kept_dims if op.over_kept else kernel.kinds)
    if op.index.rank != rank:
        message = f"<{op.index}> has rank {op.index.rank}, but the kernel runs over rank {rank}"
        return None, [Problem("kernel-rank", message, over=op.index, iterators=kernel.kinds)]
    if op.needs_fold and kernel.monoid is None:
        message = "the kernel folds nothing, so it has no states; apply it, not `partial`"
        return None, [Problem("kernel-fold", message, kernel=op.kernel_name)]
    return kernel, []


def _extra_cells(kernel: loom.KernelOp) -> list[Attribute]:
    unwrap = kernel.unwrap_block
    return [] if unwrap is None else [a.type for a in unwrap.args[len(kernel.state_types) :]]


def _written_elements(kernel: loom.KernelOp) -> list[Attribute]:
    return yielded_types(kernel.unwrap_block or kernel.wrap_block)


def _written(
    tensors: Sequence[TensorType],
    ranges: Sequence[Range],
    elements: Sequence[Attribute],
    *,
    states: bool,
) -> list[Problem]:
    """Results sit exactly on the ranges that are written and hold the right elements.

    States are kept in the types of bodies; outputs hold cells that bodies compute in those types.
    """
    if len(tensors) != len(ranges):
        message = f"it has {len(tensors)} results where the kernel writes {len(ranges)}"
        return [Problem("result-count", message, tensors=tensors, ranges=ranges)]
    problems: list[Problem] = []
    for position, (tensor, box, element) in enumerate(zip(tensors, ranges, elements, strict=False)):
        have = tensor.element_type if states else body_type(tensor.element_type)
        if tensor.box != box or have != element:
            message = f"result {position} is {tensor}, but must be <{box}> of {element}"
            problems.append(
                Problem("result-type", message, tensor=tensor, written=box, element=element)
            )
    return problems


def application_problems(op: loom.ApplicationOp) -> list[Problem]:
    """Recorded selections and results are what the kernel's projections make of the range."""
    kernel, problems = _kernel_of(op)
    if kernel is None:
        return problems
    problems += domain_problems(kernel.inside, op.index, kernel.kinds)
    kept_range = kernel.kept_range(op.index)
    reads = [p.apply_range(op.index) for p in kernel.in_maps]
    fills = [*kernel.in_fills]
    cells = [argument.type for argument in kernel.wrap_block.args]
    outs = [tensor_type(value) for value in op.outs]
    if op.is_partial:
        ranges = _state_ranges(op, kernel, kept_range)
        problems += _written(outs, ranges, kernel.state_types, states=True)
    else:
        reads += [p.apply_range(kept_range) for p in kernel.extra_maps]
        fills += kernel.extra_fills
        cells += _extra_cells(kernel)
        writes = [p.apply_range(kept_range) for p in kernel.out_maps]
        written = _written(outs, writes, _written_elements(kernel), states=False)
        problems += written or _tilings(kernel, outs, kept_range)
    return _operands(op, reads, fills, cells) + problems


def _tilings(kernel: loom.KernelOp, outs: Sequence[TensorType], kept_range: Range) -> list[Problem]:
    """Each cell is written once, or with one value."""
    varying = varying_outputs(kernel, kept_range)
    return tilings(kernel.out_projections.data, outs, kept_range, varying=varying)


def _operands(
    op: loom.ApplicationOp,
    reads: Sequence[Range],
    fills: Sequence[Fill | None],
    cells: Sequence[Attribute],
) -> list[Problem]:
    """Every operand holds the kernel's cells and records what the kernel's projection selects."""
    counts = (len(op.args), len(op.selections), len(reads))
    if len(set(counts)) != 1:
        message = f"it has {counts[0]} operands and {counts[1]} selections; the kernel reads "
        return [Problem("operand-count", message + str(counts[2]), selections=reads)]
    problems: list[Problem] = []
    rows = zip(op.args, op.selections, reads, fills, cells, strict=False)
    for position, (value, selection, box, fill, cell) in enumerate(rows):
        tensor, recorded = tensor_type(value), selection.data
        if body_type(tensor.element_type) != element_of(cell):
            message = f"operand {position} holds {tensor.element_type}, but the kernel takes {cell}"
            problems.append(Problem("operand-type", message, tensor=tensor, cell=cell))
        if tensor.box.rank != box.rank:
            message = (
                f"operand {position} has rank {tensor.box.rank}, but its projection makes rank "
                f"{box.rank}"
            )
            problems.append(Problem("projection-rank", message, tensor=tensor, selected=box))
            continue
        read = box if fill is None else box.clip(tensor.box)
        if recorded != read:
            message = (
                f"operand {position} records <{recorded}>, but its projection selects <{read}>"
            )
            problems.append(Problem("selection", message, recorded=recorded, selected=read))
        elif not recorded.is_empty and not tensor.box.contains_range(recorded):
            message = f"operand {position} selects <{recorded}>, outside its tensor <{tensor.box}>"
            problems.append(Problem("out-of-bounds", message, selected=recorded, tensor=tensor.box))
    return problems


def merge_problems(op: loom.MergeOp) -> list[Problem]:
    """States tile the merged range and fit the kernel; results sit where they must."""
    kernel, problems = _kernel_of(op)
    if kernel is None:
        return problems
    problems += merged_states(op, kernel)
    outs = [tensor_type(value) for value in op.outs]
    if op.is_partial:
        ranges = _state_ranges(op, kernel, op.index)
        problems += _written(outs, ranges, kernel.state_types, states=True)
        if op.extras:
            message = "it is partial, and only unwrap reads extra inputs; remove them"
            problems.append(Problem("extra-unused", message))
        return problems
    writes = [p.apply_range(op.index) for p in kernel.out_maps]
    written = _written(outs, writes, _written_elements(kernel), states=False)
    problems += written or _tilings(kernel, outs, op.index)
    extras = [tensor_type(value) for value in op.extras]
    problems += accesses(
        "extra input", kernel.extra_projections.data, extras, op.index, kernel.extra_clips
    )
    for position, (extra, cell) in enumerate(zip(extras, _extra_cells(kernel), strict=False)):
        if body_type(extra.element_type) != element_of(cell):
            message = (
                f"extra input {position} holds {extra.element_type}, but the kernel takes {cell}"
            )
            problems.append(Problem("operand-type", message, tensor=extra, cell=cell))
    return problems


def _state_ranges(
    op: loom.ApplicationOp | loom.MergeOp, kernel: loom.KernelOp, kept: Range
) -> list[Range]:
    """What the parts of the state that is yielded must be stored on."""
    own = kernel.part_axes
    given = stored_ranges(kept, op.outs, own)
    return given + [kept] * (len(own) - len(given))
