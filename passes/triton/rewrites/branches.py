"""Masks of the blocks on a boundary only: a loop's step chooses in a branch.

    s = tl.where(m[:, None] - k[None, :] >= 0, x, float("-inf"))

becomes

    if m_start - (k_start + (BLOCK_K - 1)) >= 0:
        s = x
    else:
        s = tl.where(m[:, None] - k[None, :] >= 0, x, float("-inf"))

In a causal loop all blocks but those on the diagonal are inside, and then a step spends nothing on
comparing and choosing cell by cell. It stays one loop: two, of which the first has no masks
(`segments = 2`), take twice the code, and wait in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.tiles.builder import constant_value, number

_RESHAPED = (triton.BroadcastOp, triton.ExpandDimsOp)
_SUNK = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, triton.CompareOp, *_RESHAPED)
"""What a condition is made of."""


@dataclass(frozen=True)
class ChooseInBranch(RewritePattern):
    """`where(c, x, y)` is `x` in a branch where no cell of `c` can be false.

    Legal where `c` compares `positions`, whose sums along blocks are exact: their least and
    greatest are the same sums of the first and last positions of the blocks. It pays where other
    steps of the loop take the branch, so that `c` has to vary from step to step; and where the loop
    multiplies tiles, since threads of others wait for memory.
    """

    positions: Collection[SSAValue]
    """Comparisons of positions, which no sum takes out of the range of their type."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.WhereOp, rewriter: PatternRewriter) -> None:
        loop = op.parent_op()
        if not isinstance(loop, scf.ForOp) or len(shape_of(op.result)) != 2:
            return
        if not any(isinstance(other, triton.DotOp) for other in loop.body.block.ops):
            return
        if shape_of(op.lhs) != shape_of(op.result):
            return
        compared = list(_conjuncts(op.condition))
        if not all(one in self.positions for one in compared):
            return
        if not any(_varies(one, loop.body.block) for one in compared):
            return
        made: list[Operation] = []
        always = _always(compared, made)
        if always is None:
            return
        rewriter.insert(made)
        inside, boundary = Block(), Block()
        inside.add_op(scf.YieldOp(op.lhs))
        chosen = op.clone()
        boundary.add_ops([chosen, scf.YieldOp(chosen.result)])
        branch = scf.IfOp(always, [op.result.type], Region(inside), Region(boundary))
        branch.results[0].name_hint = op.result.name_hint
        rewriter.replace(op, branch)
        _sink(chosen)


def choose_in_branches(kernel: triton.KernelOp, positions: Collection[SSAValue]) -> None:
    """Apply the rewrite to a kernel, of which some values compare positions."""
    pattern = ChooseInBranch(positions)
    PatternRewriteWalker(pattern, apply_recursively=False).rewrite_region(kernel.body)


def _conjuncts(condition: SSAValue) -> Iterator[SSAValue]:
    """What has to hold for a condition to hold."""
    owner = condition.owner
    if isinstance(owner, _RESHAPED):
        yield from _conjuncts(owner.operands[0])
    elif isinstance(owner, arith.AndIOp) and element_of(condition) == i1:
        for operand in owner.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _varies(value: SSAValue, body: Block) -> bool:
    """Whether a value is made in the body of a loop, from its counter."""
    if value.owner is body:
        return value is body.args[0]
    if not isinstance(value.owner, Operation) or value.owner.parent is not body:
        return False
    return any(_varies(operand, body) for operand in value.owner.operands)


def _always(compared: list[SSAValue], made: list[Operation]) -> SSAValue | None:
    """A scalar that is true only where all cells of some comparisons are; None if one is no such.

    `made` gets the operations that it takes.
    """
    ends = _Ends(made)
    found: SSAValue | None = None
    for value in compared:
        op = value.owner
        if not isinstance(op, triton.CompareOp):
            return None
        match op.predicate.data:
            case ">=" | ">" as predicate:
                sides = ends.of(op.lhs, greatest=False), ends.of(op.rhs, greatest=True)
            case "<=" | "<" as predicate:
                sides = ends.of(op.lhs, greatest=True), ends.of(op.rhs, greatest=False)
            case _:
                return None
        if sides[0] is None or sides[1] is None:
            return None
        true = ends.value(triton.CompareOp(predicate, sides[0], sides[1]))
        found = true if found is None else ends.value(arith.AndIOp(found, true))
    return found


class _Ends:
    """The least or the greatest cell of tiles of positions, as scalars."""

    def __init__(self, made: list[Operation]) -> None:
        self._made = made

    def value(self, op: Operation) -> SSAValue:
        """The result of an operation, which is written."""
        self._made.append(op)
        return op.results[0]

    def of(self, value: SSAValue, *, greatest: bool) -> SSAValue | None:
        """The least or the greatest cell of a tile of integers, None where it is not known."""
        if not shape_of(value):
            return value
        op = value.owner
        match op:
            case triton.BroadcastOp() | triton.ExpandDimsOp():
                return self.of(op.operands[0], greatest=greatest)
            case triton.ArangeOp():
                zero = self.value(arith.ConstantOp(number(0, element_of(value))))
                if not greatest:
                    return zero
                size = self.value(triton.BlockSizeOp(op.block.data, element_of(value)))
                one = self.value(arith.ConstantOp(number(1, element_of(value))))
                return self.value(arith.SubiOp(size, one))
            case triton.CastOp():
                end = self.of(op.source, greatest=greatest)
                return None if end is None else self.value(triton.CastOp(end, element_of(value)))
            case arith.AddiOp():
                return self._both(arith.AddiOp, op, greatest, greatest)
            case arith.SubiOp():
                return self._both(arith.SubiOp, op, greatest, not greatest)
            case arith.MuliOp():
                return self._product(op, greatest)
            case _:
                return None

    def _both(
        self,
        kind: Callable[[SSAValue, SSAValue], Operation],
        op: arith.AddiOp | arith.SubiOp,
        left: bool,
        right: bool,
    ) -> SSAValue | None:
        a, b = self.of(op.lhs, greatest=left), self.of(op.rhs, greatest=right)
        if a is None or b is None:
            return None
        known = constant_value(b)
        return a if known is not None and not known else self.value(kind(a, b))

    def _product(self, op: arith.MuliOp, greatest: bool) -> SSAValue | None:
        """Of a tile times a number that is known."""
        for tile, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            factor = _repeated(factor)
            known = None if shape_of(factor) else constant_value(factor)
            if known is not None:
                end = self.of(tile, greatest=greatest == bool(known >= 0))
                return None if end is None else self.value(arith.MuliOp(end, factor))
        return None


def _repeated(value: SSAValue) -> SSAValue:
    """What a tile is another shape of."""
    while isinstance(value.owner, _RESHAPED):
        value = value.owner.operands[0]
    return value


def _sink(chosen: triton.WhereOp) -> None:
    """Move into a branch what only its condition needs."""
    branch = chosen.parent
    outer = chosen.parent_op()
    assert branch is not None
    assert outer is not None
    op = outer.prev_op
    while op is not None:
        before = op.prev_op
        uses = [use.operation for result in op.results for use in result.uses]
        if isinstance(op, _SUNK) and uses and all(use.parent is branch for use in uses):
            op.detach()
            first = branch.first_op
            assert first is not None
            branch.insert_op_before(op, first)
        op = before
