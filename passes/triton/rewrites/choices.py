"""Choices that were made before: cells that a mask left out have their fill already.

%x = triton.load %p[%i] mask %m other 0.0       %x = triton.load %p[%i] mask %m other 0.0
%w = triton.cast %x : f16 -> f32                %w = triton.cast %x : f16 -> f32
%y = triton.where %m, %w, %zero                 (%y is %w)

What is then converted back to the type that it was loaded in is what was loaded.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.tiles.builder import passes_through

_RESHAPED = (triton.BroadcastOp, triton.ExpandDimsOp)


class ChosenBefore(RewritePattern):
    """`where(c, x, f)` is `x` where `x` is `f` in all cells in which `c` is false.

    Legal where `x` is a load that is masked by `c`, and maybe more, and filled by `f`; such a load
    of zeros in another type of floats, which has the same zero; or `where(c, y, f)`.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.WhereOp, rewriter: PatternRewriter) -> None:
        fill = _number(op.rhs)
        if fill is None or op.lhs.type != op.result.type:
            return
        if _left_out(op.lhs, op.condition) == fill:
            rewriter.replace(op, [], [op.lhs])


class ConvertedBack(RewritePattern):
    """A value that was converted to a wider type and back is itself.

    Legal where the wider type has all numbers of the narrower one.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.CastOp, rewriter: PatternRewriter) -> None:
        before = op.source.owner
        if op.unsigned is not None or not isinstance(before, triton.CastOp):
            return
        if op.result.type == before.source.type and passes_through(before, element_of(op.result)):
            rewriter.replace(op, [], [before.source])


def choose_once(kernel: triton.KernelOp) -> None:
    """Apply the rewrites to a kernel."""
    if any(isinstance(op, triton.WhereOp) for op in kernel.body.walk()):
        patterns = GreedyRewritePatternApplier([ChosenBefore(), ConvertedBack()])
        PatternRewriteWalker(patterns).rewrite_region(kernel.body)


def _left_out(value: SSAValue, condition: SSAValue) -> str | None:
    """What a value is in the cells in which a condition is false, where that is known."""
    match value.owner:
        case triton.LoadOp(mask=SSAValue() as mask, other=other) if _implies(mask, condition):
            return None if other is None else _text(other)
        case triton.WhereOp(condition=mask, rhs=rhs) if _implies(mask, condition):
            return _number(rhs)
        case triton.ExpandDimsOp(source=source, axis=axis):
            turned = condition.owner
            if isinstance(turned, triton.ExpandDimsOp) and turned.axis == axis:
                return _left_out(source, turned.source)
            return None
        case triton.CastOp(source=source) if _is_float(source) and _is_float(value):
            found = _left_out(source, condition)
            return found if found == "0.0" else None
        case _:
            return None


def _implies(mask: SSAValue, condition: SSAValue) -> bool:
    """Whether a mask is false wherever a condition of the same shape is."""
    if mask == condition:
        return True
    owner, other = mask.owner, condition.owner
    if isinstance(owner, arith.AndIOp) and element_of(mask) == i1:
        return any(_implies(operand, condition) for operand in owner.operands)
    if isinstance(owner, _RESHAPED) and isinstance(other, _RESHAPED):
        same = shape_of(mask) == shape_of(condition) and type(owner) is type(other)
        return same and _implies(owner.operands[0], other.operands[0])
    return False


def _is_float(value: SSAValue) -> bool:
    return not element_of(value).name.startswith("integer")


def _number(value: SSAValue) -> str | None:
    """The number that all cells of a value are, as text."""
    while isinstance(value.owner, _RESHAPED):
        value = value.owner.operands[0]
    match value.owner:
        case arith.ConstantOp(value=number) | triton.FullOp(value=number):
            return _text(number)
        case _:
            return None


def _text(number: Attribute) -> str | None:
    """A number as text, which tells zeros apart."""
    match number:
        case FloatAttr():
            return repr(number.value.data)
        case IntegerAttr():
            return str(number.value.data)
        case _:
            return None
