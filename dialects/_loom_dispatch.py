"""Rules of kernels, of their applications to shards, and of merges of what shards folded.

    loom.application @sum: operand 0 records <[0] : [4]>, but its projection selects <[0] : [8]>

A recorded selection or result must be exactly what the kernel's projections make of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._loom_bodies import signature_bodies, yielded
from tapestry.dialects._loom_geometry import accesses, fail, tilings
from tapestry.dialects._loom_types import TensorType, tensor_type
from tapestry.zspace import Partition, Range, ZSpaceError, bounding

if TYPE_CHECKING:
    from tapestry.dialects import loom


def verify_kernel(op: loom.KernelOp) -> None:
    """A kernel's bodies and ranks; its ranges are checked at each application."""
    problems: list[str] = []
    for what, projections, inputs in (
        ("input", op.in_maps, len(op.kinds)),
        ("extra input", op.extra_maps, len(op.kept_dims)),
        ("output", op.out_maps, len(op.kept_dims)),
    ):
        problems += [
            f"{what} {position} is projected from {projection.inputs} dimensions, but there are "
            f"{inputs} here"
            for position, projection in enumerate(projections)
            if projection.inputs != inputs
        ]
    problems += signature_bodies(op, None, None, None)
    wrap, unwrap = op.wrap.first_block, op.unwrap.first_block
    if wrap is not None and len(wrap.args) != len(op.in_maps):
        problems.append(
            f"wrap takes {len(wrap.args)} cells, but there are {len(op.in_maps)} inputs"
        )
    extra_cells = 0 if unwrap is None else len(unwrap.args) - len(op.state_types)
    if op.monoid_name is not None and extra_cells != len(op.extra_maps):
        problems.append(
            f"unwrap takes {extra_cells} extra cells of {len(op.extra_maps)} extra inputs"
        )
    fail(f"@{op.sym_name.data}", problems)


def _kernel_of(op: loom.Dispatch) -> loom.KernelOp:
    from tapestry.dialects import loom

    found = loom.find_kernel(op, op.kernel_name)
    if found is None:
        raise VerifyException(f"there is no loom.kernel @{op.kernel_name}")
    return found


def _positioned(
    what: str, tensors: Sequence[TensorType], ranges: Sequence[Range], elements: Sequence[Attribute]
) -> list[str]:
    """Tensors sit exactly on the ranges they must and hold the right elements."""
    if len(tensors) != len(ranges):
        return [f"there are {len(tensors)} {what}s where the kernel has {len(ranges)}"]
    problems: list[str] = []
    rows = zip(tensors, ranges, elements, strict=True)
    for position, (tensor, box, element) in enumerate(rows):
        if tensor.box != box or tensor.element_type != element:
            problems.append(f"{what} {position} is {tensor}, but must be <{box}> of {element}")
    return problems


def verify_application(op: loom.ApplicationOp) -> None:
    """Recorded selections and results are what the kernel's projections make of the range."""
    kernel = _kernel_of(op)
    if op.index.rank != len(kernel.kinds):
        fail(f"@{op.kernel_name}", [f"<{op.index}> has the wrong rank for the kernel"])
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
    problems: list[str] = []
    if len(reads) != len(op.args):
        problems.append(f"it has {len(op.args)} operands where the kernel reads {len(reads)}")
    for position, (value, recorded) in enumerate(zip(op.args, op.selections, strict=False)):
        if position < len(reads) and recorded.data != reads[position]:
            problems.append(
                f"operand {position} records <{recorded.data}>, but its projection selects "
                f"<{reads[position]}>"
            )
        if not tensor_type(value).box.contains_range(recorded.data):
            problems.append(f"operand {position} selects <{recorded.data}>, outside its tensor")
    outs = [tensor_type(value) for value in op.outs]
    written = _positioned("result", outs, writes, elements)
    if not written and not op.is_partial:
        written = tilings(kernel.out_projections.data, outs, kept_range)
    fail(f"@{op.kernel_name}", [*problems, *written])


def verify_merge(op: loom.MergeOp) -> None:
    """States lie inside the merged range, of shards that tile; results sit where they must."""
    kernel = _kernel_of(op)
    if op.index.rank != len(kernel.kept_dims):
        fail(f"@{op.kernel_name}", [f"<{op.index}> has the wrong rank for the kernel's map"])
    parts = len(kernel.state_types)
    problems: list[str] = []
    if len(op.states) == 0 or len(op.states) % parts:
        problems.append(f"{len(op.states)} states do not make states of {parts} parts")
    for position, value in enumerate(op.states):
        state = tensor_type(value)
        if not op.index.contains_range(state.box):
            problems.append(f"state {position} is on <{state.box}>, outside <{op.index}>")
        if state.element_type != kernel.state_types[position % parts]:
            problems.append(f"state {position} holds {state.element_type}")
    writes = [p.apply_range(op.index) for p in kernel.out_maps]
    elements = yielded(kernel.unwrap_block or kernel.wrap_block)
    outs = [tensor_type(value) for value in op.outs]
    written = _positioned("result", outs, writes, elements)
    problems += written or tilings(kernel.out_projections.data, outs, op.index)
    problems += _shards_folded(op, kernel)
    problems += accesses(
        "extra input",
        kernel.extra_projections.data,
        [tensor_type(v) for v in op.extras],
        op.index,
    )
    fail(f"@{op.kernel_name}", problems)


def _shards_folded(op: loom.MergeOp, kernel: loom.KernelOp) -> list[str]:
    """The shards whose states meet leave no gap and do not overlap, where they can be seen."""
    from tapestry.dialects import loom

    shards: list[Range] = []
    for value in list(op.states)[:: len(kernel.state_types)]:
        shard = value.owner
        if not isinstance(shard, loom.ApplicationOp) or shard.kernel != op.kernel:
            return []
        shards.append(shard.index)
    folded = bounding([kernel.fold_range(shard) for shard in shards])
    start, end = [0] * len(kernel.kinds), [0] * len(kernel.kinds)
    for dims, part in ((kernel.kept_dims, op.index), (kernel.fold_dims, folded)):
        for dim, low, high in zip(dims, part.start, part.end, strict=True):
            start[dim], end[dim] = low, high
    try:
        Partition.explicit(shards).check(Range(tuple(start), tuple(end)))
    except ZSpaceError as error:
        return [f"the merged shards do not tile: {error}"]
    return []
