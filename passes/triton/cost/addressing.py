"""Arithmetic of addresses: what is computed for each vector of cells, and not for each cell.

    %o = %base + %k            128 x 64 offsets, of which a lane needs one for 8 cells
    load %x_ptr[%o]            that it moves at once

A compiler computes offsets and masks of the first cell of a vector, and drops the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, Use

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.cost.kinds import Kinds

_ELEMENTWISE = Kinds(
    arith.AddiOp,
    arith.AndIOp,
    arith.DivSIOp,
    arith.ExtSIOp,
    arith.MuliOp,
    arith.OrIOp,
    arith.RemSIOp,
    arith.SubiOp,
    arith.TruncIOp,
    triton.BroadcastOp,
    triton.CompareOp,
    triton.ExpandDimsOp,
)
_MOVES = Kinds(triton.LoadOp, triton.StoreOp)


def cells_at_once(kernel: triton.KernelOp, moved: Mapping[Operation, int]) -> dict[Operation, int]:
    """For how many cells each operation of a kernel is done once, where that is more than one.

    `moved` has the cells that a lane moves at once by each load and store.
    """
    found: dict[Operation, int] = {}
    for op in reversed(list(kernel.walk())):
        if _ELEMENTWISE[type(op)] and isinstance(element_of(op.results[0]), IntegerType):
            found[op] = min((_cells(use, found, moved) for use in op.results[0].uses), default=1)
    return {op: cells for op, cells in found.items() if cells > 1}


def _cells(use: Use, found: Mapping[Operation, int], moved: Mapping[Operation, int]) -> int:
    """For how many cells a value is needed once, where it is used."""
    op = use.operation
    if _MOVES[type(op)]:
        assert isinstance(op, triton.LoadOp | triton.StoreOp)
        value = op.operands[use.index]
        return moved.get(op, 1) if value in (op.offsets, op.mask) else 1
    return found.get(op, 1)
