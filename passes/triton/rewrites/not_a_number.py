"""Values that differ only where a result is NaN anyway: what was computed before is used again.

    c = tl.where(m == float("-inf"), 0.0, m)            e = tl.exp(x - c[:, None])
    l = tl.sum(tl.exp(x - c[:, None]), axis=1)          l = tl.sum(e, axis=1)
    t = tl.where(m == float("-inf"), float("nan"), l)   t = ...
    y = tl.exp(x - m[:, None]) / t[:, None]             y = e / t[:, None]

A row without any finite number has no softmax: its sum is chosen to be NaN. So its exponentials may
be those of the sum, which are of numbers, and in all other rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.traits import Pure

from tapestry.dialects import triton
from tapestry.passes.triton.tiles.builder import remove_unused

_ACROSS = (triton.CombineOp, triton.DotOp, triton.TransposeOp)
"""What moves numbers from cell to cell."""

_KEEPING = (arith.NegfOp, math.ExpOp, math.Exp2Op, math.LogOp, math.Log2Op, math.SqrtOp)
"""Functions that are NaN of NaN."""


class UseWhatWasComputed(RewritePattern):
    """`f(v) / where(c, NaN, t)` is `f(w) / where(c, NaN, t)` for `w = where(c, u, v)`.

    Legal for every cell by cell f, and for products, sums and differences: where c holds both are
    NaN, and elsewhere w is v. It pays where f(w) was computed before in the same block.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: arith.DivfOp | arith.MulfOp | arith.AddfOp | arith.SubfOp,
        rewriter: PatternRewriter,
    ) -> None:
        for place, other in ((0, op.rhs), (1, op.lhs)):
            axes: set[int] = set()
            spoilt = _spoilt(other, axes)
            if spoilt is None:
                continue
            for chosen in _choices(spoilt.condition):
                again = _Again(op, chosen)
                found = again.of(op.operands[place])
                if found is None or found is op.operands[place] or again.axes != axes:
                    continue
                op.operands[place] = found
                rewriter.notify_op_modified(op)
                return


def use_what_was_computed(kernel: triton.KernelOp) -> None:
    """Apply the rewrite to a kernel."""
    if any(isinstance(op, triton.WhereOp) and _is_nan(op.lhs) for op in kernel.body.walk()):
        PatternRewriteWalker(UseWhatWasComputed()).rewrite_region(kernel.body)
        remove_unused(kernel.body.block)


@dataclass(frozen=True)
class _Again:
    """What stands in front of an operation, with `chosen` in place of what that chooses from.

    `axes` are those that tiles were given on the way.
    """

    before: Operation
    chosen: triton.WhereOp
    axes: set[int] = field(default_factory=set[int])
    _known: dict[SSAValue, SSAValue | None] = field(default_factory=dict[SSAValue, SSAValue | None])

    def of(self, value: SSAValue) -> SSAValue | None:
        """A value itself, if it does not depend on that; None where there is no such."""
        if value is self.chosen.rhs:
            return self.chosen.result
        if value not in self._known:
            self._known[value] = self._of(value)
        return self._known[value]

    def _of(self, value: SSAValue) -> SSAValue | None:
        op = value.owner
        if not isinstance(op, Operation) or not op.operands:
            return value
        operands = [self.of(operand) for operand in op.operands]
        if operands == list(op.operands):
            return value
        if None in operands or not op.has_trait(Pure) or isinstance(op, _ACROSS):
            return None
        if isinstance(op, triton.ExpandDimsOp):
            self.axes.add(op.axis.value.data)
        users = {use.operation for operand in operands if operand for use in operand.uses}
        for one in users:
            same = type(one) is type(op) and one.properties == op.properties
            if same and list(one.operands) == operands and self._stands_before(one):
                return one.results[0]
        return None

    def _stands_before(self, op: Operation) -> bool:
        return op.parent is self.before.parent and op.is_before_in_block(self.before)


def _choices(condition: SSAValue) -> Iterator[triton.WhereOp]:
    """What is chosen by a condition, and not chosen to be NaN."""
    for use in condition.uses:
        op = use.operation
        if isinstance(op, triton.WhereOp) and use.index == 0 and not _is_nan(op.lhs):
            yield op


def _spoilt(value: SSAValue, axes: set[int]) -> triton.WhereOp | None:
    """Where a value is chosen to be NaN, seen through functions; adds the axes it was given."""
    owner = _unshaped(value, axes).owner
    if isinstance(owner, _KEEPING):
        return _spoilt(owner.operands[0], axes)
    return owner if isinstance(owner, triton.WhereOp) and _is_nan(owner.lhs) else None


def _unshaped(value: SSAValue, axes: set[int]) -> SSAValue:
    """The value that a tile repeats; adds the axes that it was given."""
    owner = value.owner
    if isinstance(owner, triton.ExpandDimsOp):
        axes.add(owner.axis.value.data)
        return _unshaped(owner.source, axes)
    return _unshaped(owner.source, axes) if isinstance(owner, triton.BroadcastOp) else value


def _is_nan(value: SSAValue) -> bool:
    """Whether all cells of a value are known to be NaN."""
    match _unshaped(value, set()).owner:
        case arith.ConstantOp(value=FloatAttr() as number):
            return isnan(number.value.data)
        case triton.FullOp(value=FloatAttr() as number):
            return isnan(number.value.data)
        case _:
            return False
