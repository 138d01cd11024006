"""What the steps of a loop that is written out share, or have in their instructions.

    for k in static_range(9):
      %o = %p + %k               a number in the instruction that loads, or that compares
      %m = 0 <= %o & %o < 56     one comparison, without a sign
      load %x[%o] mask %m

A step's number is known then: what is computed of it alone is known, and what is not computed of it
is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.cost.kinds import Kinds

_SHAPES = Kinds(triton.BroadcastOp, triton.ExpandDimsOp)
_PURE = Kinds(
    arith.AddiOp,
    arith.ConstantOp,
    arith.DivSIOp,
    arith.MuliOp,
    arith.RemSIOp,
    arith.SubiOp,
    triton.ArangeOp,
    triton.BlockSizeOp,
    triton.BroadcastOp,
    triton.CompareOp,
    triton.ExpandDimsOp,
)


def free_in_steps(loop: scf.ForOp) -> set[Operation]:
    """The operations of a loop that take a step of it no time."""
    steps: set[SSAValue] = {loop.body.block.args[0]}
    fixed: set[SSAValue] = set()
    compared: set[tuple[SSAValue, ...]] = set()
    free: set[Operation] = set()

    def is_fixed(value: SSAValue) -> bool:
        inside = value.owner is loop.body.block or value.owner.parent_op() is loop
        return value in fixed or not inside

    for op in loop.body.block.ops:
        kind = type(op)
        if kind is arith.AndIOp and element_of(op.results[0]) == i1:
            free.add(op)  # a comparison takes a mask
        if not _PURE[kind]:
            continue
        (result,) = op.results
        stepping = [value for value in op.operands if value in steps]
        others = [value for value in op.operands if value not in steps]
        if not stepping and all(map(is_fixed, others)):
            fixed.add(result)
        elif all(map(_is_number, others)) and (prod(shape_of(result)) == 1 or _SHAPES[kind]):
            steps.add(result)
        elif kind is arith.AddiOp and all(map(is_fixed, others)):
            if not all(map(_takes_number, _users(result))):
                continue
        elif kind is triton.CompareOp:
            side = _moved(op.operands[0])
            if side not in compared:
                compared.add(side)
                continue
        else:
            continue
        free.add(op)
    return free


def _is_number(value: SSAValue) -> bool:
    """Whether a value is the same number in every lane, and known: one lane's place is."""
    owner = value.owner
    if isinstance(owner, triton.BroadcastOp | triton.ExpandDimsOp):
        return _is_number(owner.source)
    lane = isinstance(owner, triton.ArangeOp) and prod(shape_of(value)) == 1
    return lane or isinstance(owner, arith.ConstantOp | triton.BlockSizeOp)


def _moved(value: SSAValue) -> tuple[SSAValue, ...]:
    """What a value is the sum of, or the value."""
    owner = value.owner
    return tuple(owner.operands) if isinstance(owner, arith.AddiOp) else (value,)


def _users(value: SSAValue) -> Iterator[Operation]:
    for use in value.uses:
        if _SHAPES[type(use.operation)]:
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _takes_number(op: Operation) -> bool:
    """Whether an instruction takes a number that is added to an operand of it."""
    return isinstance(op, triton.CompareOp | triton.LoadOp)
