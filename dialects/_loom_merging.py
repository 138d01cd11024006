"""Rules of what a merge merges: whole states that cover it, in an order that may be.

    loom.merge @total over <[0] : [4]> states(%a, %b)      // the states do not tile [0] : [4]

What a state was folded over is seen through the applications and merges that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from tapestry.dialects._loom_bodies import is_ordered
from tapestry.dialects._loom_geometry import in_order
from tapestry.dialects._loom_parts import state_boxes, state_problems
from tapestry.dialects._loom_types import tensor_type
from tapestry.issues import Problem
from tapestry.zspace import Partition, Range, ZSpaceError, bounding

if TYPE_CHECKING:
    from tapestry.dialects import loom


def merged_states(op: loom.MergeOp, kernel: loom.KernelOp) -> list[Problem]:
    """Whole states of the kernel, each on one range, that cover what is merged."""
    parts = len(kernel.state_types)
    if not op.states or parts == 0 or len(op.states) % parts:
        message = f"{len(op.states)} states do not make states of {parts} parts"
        return [Problem("state-count", message, states=len(op.states), parts=parts)]
    problems: list[Problem] = []
    tensors = [tensor_type(value) for value in op.states]
    for position, state in enumerate(tensors):
        element = kernel.state_types[position % parts]
        if state.element_type != element:
            message = f"state {position} holds {state.element_type}, but must hold {element}"
            problems.append(Problem("state-type", message, state=state, element=element))
    own = kernel.part_axes
    for first in range(0, len(tensors), parts):
        values = op.states[first : first + parts]
        ranges = [tensor.box for tensor in tensors[first : first + parts]]
        # Only a part that lacks dimensions has to say what it was folded over.
        lacking = any(box.rank < op.index.rank for box in ranges)
        made = [_made_over(value, kernel) if lacking else None for value in values]
        problems += state_problems(first, ranges, own, made, op.index)
    return problems or _states_tile(op, kernel, state_boxes(op, own))


def _states_tile(op: loom.MergeOp, kernel: loom.KernelOp, boxes: Sequence[Range]) -> list[Problem]:
    """What the states stand for leaves no gap, does not overlap, and comes in an order that may be.

    The states of a scan say by themselves which part they are of; what was folded is seen through
    the partial applications and merges that made the states. Where those cannot be seen, the ranges
    of the states themselves, `boxes`, must tile what is merged.
    """
    firsts = list(op.states)[:: len(kernel.state_types)]
    if kernel.scan_dim is not None:
        covered = list(boxes)
        whole, ordered = op.index, (kernel.scan_dim,)
    else:
        found = [_covered(value, kernel) for value in firsts]
        covered = [box for box in found if box is not None]
        if len(covered) == len(found):
            whole = _index_box(kernel, op.index, covered)
            ordered = kernel.fold_dims if is_ordered(kernel) else ()
        else:
            covered = list(dict.fromkeys(boxes))
            whole, ordered = op.index, ()
    parts = Partition.explicit(covered)
    try:
        parts.check(whole)
    except ZSpaceError as error:
        message = f"the merged states do not tile <{whole}>: {error}"
        return [Problem("merge-tiling", message, states=covered)]
    if ordered and not in_order(parts, whole, ordered):
        why = "a scan goes on" if kernel.scan_dim is not None else "the monoid does not commute"
        message = f"the merged states do not follow one another from first to last; {why}"
        return [Problem("merge-order", message, states=covered)]
    return []


def _made_over(state: SSAValue, kernel: loom.KernelOp) -> Range | None:
    """The box of the kept dimensions that a state was folded over; None where that is not seen."""
    covered = _covered(state, kernel)
    return None if covered is None else kernel.kept_range(covered)


def _covered(state: SSAValue, kernel: loom.KernelOp) -> Range | None:
    """The part of the index space that a state folds; None where that cannot be seen."""
    from tapestry.dialects import loom

    made = state.owner
    if not isinstance(made, loom.Dispatch) or made.kernel_name != kernel.sym_name.data:
        return None
    if made.index.rank != len(kernel.kept_dims if made.over_kept else kernel.kinds):
        return None
    if isinstance(made, loom.ApplicationOp):
        return made.index
    assert isinstance(made, loom.MergeOp)
    parts = [_covered(value, kernel) for value in list(made.states)[:: len(kernel.state_types)]]
    seen = [part for part in parts if part is not None]
    return _index_box(kernel, made.index, seen) if len(seen) == len(parts) else None


def _index_box(kernel: loom.KernelOp, kept: Range, folded: Sequence[Range]) -> Range:
    """The box of the index space over `kept` that what was folded makes up."""
    return kernel.whole_range(kept, bounding([kernel.fold_range(part) for part in folded]))
