"""Rules of kernels, of their applications to shards, and of merges of what shards folded.

    loom.application @sum: operand 0 records <[0] : [4]>, but its projection selects <[0] : [8]>

A recorded selection or result must be exactly what the kernel's projections make of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from tapestry.dialects._loom_bodies import is_ordered, signature_bodies, yielded
from tapestry.dialects._loom_geometry import accesses, in_order, tilings
from tapestry.dialects._loom_types import TensorType, tensor_type
from tapestry.issues import Problem
from tapestry.zspace import Partition, Range, ZSpaceError, bounding

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
    problems += signature_bodies(op, None, None, None)
    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is not None and len(wrap.args) != len(op.in_maps):
        message = f"wrap takes {len(wrap.args)} cells, but there are {len(op.in_maps)} inputs"
        problems.append(Problem("body-arguments", message, inputs=op.in_maps))
    extra_cells = 0 if unwrap is None else len(unwrap.args) - len(op.state_types)
    if op.monoid_name is not None and extra_cells != len(op.extra_maps):
        message = f"unwrap takes {extra_cells} extra cells of {len(op.extra_maps)} extra inputs"
        problems.append(Problem("body-arguments", message, extras=op.extra_maps))
    return problems


def _kernel_of(op: loom.Dispatch) -> loom.KernelOp | Problem:
    """The kernel that runs, or that there is none."""
    from tapestry.dialects import loom

    found = loom.find_kernel(op, op.kernel_name)
    if found is None:
        message = f"there is no loom.kernel @{op.kernel_name}"
        return Problem("kernel-unknown", message, kernel=op.kernel_name)
    return found


def _positioned(
    what: str, tensors: Sequence[TensorType], ranges: Sequence[Range], elements: Sequence[Attribute]
) -> list[Problem]:
    """Tensors sit exactly on the ranges they must and hold the right elements."""
    if len(tensors) != len(ranges):
        message = f"there are {len(tensors)} {what}s where the kernel has {len(ranges)}"
        return [Problem("result-count", message, tensors=tensors, ranges=ranges)]
    problems: list[Problem] = []
    rows = zip(tensors, ranges, elements, strict=True)
    for position, (tensor, box, element) in enumerate(rows):
        if tensor.box != box or tensor.element_type != element:
            message = f"{what} {position} is {tensor}, but must be <{box}> of {element}"
            problems.append(Problem("result", message, tensor=tensor, written=box, element=element))
    return problems


def application_problems(op: loom.ApplicationOp) -> list[Problem]:
    """Recorded selections and results are what the kernel's projections make of the range."""
    kernel = _kernel_of(op)
    if isinstance(kernel, Problem):
        return [kernel]
    if op.index.rank != len(kernel.kinds):
        message = f"<{op.index}> has the wrong rank for the kernel"
        return [Problem("kernel-rank", message, over=op.index, iterators=kernel.kinds)]
    kept_range = kernel.kept_range(op.index)
    reads = [p.apply_range(op.index) for p in kernel.in_maps]
    writes = [p.apply_range(kept_range) for p in kernel.out_maps]
    end = kernel.unwrap_block or kernel.wrap_block
    elements = yielded(end)
    if op.is_partial:
        writes = [kept_range] * len(kernel.state_types)
        elements = list(kernel.state_types)
    else:
        reads += [p.apply_range(kept_range) for p in kernel.extra_maps]
    problems: list[Problem] = []
    if len(reads) != len(op.args):
        message = f"it has {len(op.args)} operands where the kernel reads {len(reads)}"
        problems.append(Problem("operand-count", message, selections=reads))
    for position, (value, recorded) in enumerate(zip(op.args, op.selections, strict=False)):
        if position < len(reads) and recorded.data != reads[position]:
            message = (
                f"operand {position} records <{recorded.data}>, but its projection selects "
                f"<{reads[position]}>"
            )
            problems.append(
                Problem("selection", message, recorded=recorded.data, selected=reads[position])
            )
        if not tensor_type(value).box.contains_range(recorded.data):
            message = f"operand {position} selects <{recorded.data}>, outside its tensor"
            problems.append(
                Problem("out-of-bounds", message, selected=recorded.data, tensor=value.type)
            )
    outs = [tensor_type(value) for value in op.outs]
    written = _positioned("result", outs, writes, elements)
    if not written and not op.is_partial:
        written = tilings(kernel.out_projections.data, outs, kept_range)
    return [*problems, *written]


def merge_problems(op: loom.MergeOp) -> list[Problem]:
    """States lie inside the merged range, of parts that tile; results sit where they must."""
    kernel = _kernel_of(op)
    if isinstance(kernel, Problem):
        return [kernel]
    if op.index.rank != len(kernel.kept_dims):
        message = f"<{op.index}> has the wrong rank for the kernel's map"
        return [Problem("kernel-rank", message, over=op.index, iterators=kernel.kinds)]
    parts = len(kernel.state_types)
    problems: list[Problem] = []
    if len(op.states) == 0 or len(op.states) % parts:
        message = f"{len(op.states)} states do not make states of {parts} parts"
        problems.append(Problem("state-count", message, states=len(op.states), parts=parts))
    for position, value in enumerate(op.states):
        state = tensor_type(value)
        if not op.index.contains_range(state.box):
            message = f"state {position} is on <{state.box}>, outside <{op.index}>"
            problems.append(Problem("out-of-bounds", message, state=state.box, over=op.index))
        if state.element_type != kernel.state_types[position % parts]:
            message = f"state {position} holds {state.element_type}"
            problems.append(Problem("state-type", message, state=state))
    outs = [tensor_type(value) for value in op.outs]
    if op.is_partial:
        problems += _positioned("result", outs, [op.index] * parts, kernel.state_types)
        if op.extras:
            message = "it is partial, and only unwrap reads extra inputs; remove them"
            problems.append(Problem("extra-unused", message))
    else:
        writes = [p.apply_range(op.index) for p in kernel.out_maps]
        elements = yielded(kernel.unwrap_block or kernel.wrap_block)
        written = _positioned("result", outs, writes, elements)
        problems += written or tilings(kernel.out_projections.data, outs, op.index)
        problems += accesses(
            "extra input",
            kernel.extra_projections.data,
            [tensor_type(v) for v in op.extras],
            op.index,
        )
    return problems or _states_tile(op, kernel)


def _states_tile(op: loom.MergeOp, kernel: loom.KernelOp) -> list[Problem]:
    """What the states stand for leaves no gap, does not overlap, and comes in an order that may be.

    The states of a scan say by themselves which part they are of; what was folded is seen through
    the partial applications and merges that made the states, where they can be seen.
    """
    firsts = list(op.states)[:: len(kernel.state_types)]
    if kernel.scan_dim is not None:
        covered = [tensor_type(value).box for value in firsts]
        whole, ordered = op.index, (kernel.scan_dim,)
    else:
        found = [_covered(value, kernel) for value in firsts]
        covered = [box for box in found if box is not None]
        if len(covered) != len(found):
            return []
        whole = _index_box(kernel, op.index, covered)
        ordered = kernel.fold_dims if is_ordered(kernel) else ()
    parts = Partition.explicit(covered)
    try:
        parts.check(whole)
    except ZSpaceError as error:
        message = f"the merged states do not tile: {error}"
        return [Problem("merge-tiling", message, states=covered)]
    if ordered and not in_order(parts, whole, ordered):
        why = "a scan goes on" if kernel.scan_dim is not None else "the monoid does not commute"
        message = f"the merged states do not follow one another from first to last; {why}"
        return [Problem("merge-order", message, states=covered)]
    return []


def _covered(state: SSAValue, kernel: loom.KernelOp) -> Range | None:
    """The part of the index space that a state folds; None where that cannot be seen."""
    from tapestry.dialects import loom

    made = state.owner
    if not isinstance(made, loom.Dispatch) or made.kernel_name != kernel.sym_name.data:
        return None
    if isinstance(made, loom.ApplicationOp):
        return made.index
    assert isinstance(made, loom.MergeOp)
    parts = [_covered(value, kernel) for value in list(made.states)[:: len(kernel.state_types)]]
    seen = [part for part in parts if part is not None]
    return _index_box(kernel, made.index, seen) if len(seen) == len(parts) else None


def _index_box(kernel: loom.KernelOp, kept: Range, folded: Sequence[Range]) -> Range:
    """The box of the index space over `kept` that what was folded makes up."""
    start, end = [0] * len(kernel.kinds), [0] * len(kernel.kinds)
    fold = bounding([kernel.fold_range(part) for part in folded])
    for dims, part in ((kernel.kept_dims, kept), (kernel.fold_dims, fold)):
        for dim, low, high in zip(dims, part.start, part.end, strict=True):
            start[dim], end[dim] = low, high
    return Range(tuple(start), tuple(end))
