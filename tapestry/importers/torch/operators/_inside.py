"""Places that must be there: what PyTorch refuses to write to is refused here too.

    inside(ctx, index, 4)                 # 0, 3 stay as they are; 4 and -1 are errors when it runs
    inside(ctx, index, 4, back=True)      # 0, -1 become 0, 3; 4 and -5 are errors when it runs

A scatter is a fold over what is written, in which each cell takes what is meant for it: a place
that is not there is no cell's, and what is meant for it would be dropped. So places are read from
the numbers of the cells that are there, and a `loom.read` outside of its block is an error on every
executor. Places that are known when a program is made are not looked up, nor are those of operators
that promise theirs (`aten._unsafe_index`).
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from tapestry.dialects import loom, weft
from tapestry.importers.torch.registry import Context

_SAME_CELLS = ("broadcast_to", "clone", "permute", "reshape", "unsqueeze")
"""What has no other cells than its first input."""

_SAME_ORDER = ("clone", "reshape", "unsqueeze")
"""What has the cells of its first input in the same order."""


def inside(ctx: Context, index: SSAValue, size: int, *, back: bool = False) -> SSAValue:
    """Places along an axis of a size; with `back`, negative ones count from its end."""
    low, high = _bounds(index)
    if low >= 0 and high < size:
        return index
    if ctx.operator.startswith("aten._unsafe"):
        return ctx.apply("count_from_front", index, size=size) if back else index
    numbers = ctx.apply("arange", stop=size)
    return ctx.apply("take", numbers, index, axis=0) if back else ctx.apply("index", numbers, index)


def _bounds(index: SSAValue) -> tuple[float, float]:
    """The least and the greatest that a cell may be."""
    op = index.owner
    if isinstance(op, loom.ConstantOp) and op.cells is not None:
        return (int(op.cells.min()), int(op.cells.max())) if op.cells.size else (0, -1)
    if isinstance(op, weft.ApplyOp) and op.metakernel_name in _SAME_CELLS:
        return _bounds(op.args[0])
    if isinstance(op, weft.ApplyOp) and op.metakernel_name == "arange":
        start, stop, step = (
            _number(op, *given) for given in (("start", 0), ("stop", 0), ("step", 1))
        )
        counted = range(start, stop, step)
        return (min(counted), max(counted)) if counted else (0, -1)
    return -math.inf, math.inf


def counts(index: SSAValue, size: int) -> bool:
    """Whether the cells of an index, in row-major order, are 0, 1, ... below a size."""
    op = index.owner
    if not isinstance(op, weft.ApplyOp):
        return False
    if op.metakernel_name in _SAME_ORDER:
        return counts(op.args[0], size)
    given = (("start", 0), ("stop", -1), ("step", 1))
    numbers = [_number(op, *one) for one in given]
    return op.metakernel_name == "arange" and numbers == [0, size, 1]


def _number(op: weft.ApplyOp, name: str, default: int) -> int:
    given = op.parameters.data.get(name)
    return given.value.data if isa(given, IntegerAttr) else default
