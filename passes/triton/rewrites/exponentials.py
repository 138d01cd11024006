"""Fewer operations per score of an attention: scales move past maxima, exponentials are base 2.

    s = tl.where(mask, x * 0.125, float("-inf"))        s = tl.where(mask, x, float("-inf"))
    m = tl.maximum(m, tl.max(s, 1))                     m = tl.maximum(m, tl.max(s, 1) * 0.125)
    p = tl.exp(s - m[:, None])                          p = tl.exp2(tl.fma(s, 0.18, c[:, None]))

A GPU computes powers of two, so `exp` multiplies by log2(e) first, for each score; folded into the
scale, both take one fused operation. Every rewrite needs only what it sees: nothing here is about
attention. The first and the last give other zeros and round in other places, so that
`numerics = strict` does without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.dtypes import is_half
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.rewrites.functions import LOG2_E
from tapestry.passes.triton.tiles.builder import constant_of_cells, number, remove_unused

_LARGE = 2.0**126
"""What is less is finite times log2(e)."""

_SMALL_RATE = 2.0**-20
"""What any number is finite times, and far apart ones are far apart."""


class NothingAdded(RewritePattern):
    """`x + 0` is `x`: so it is where a mask that is added is zero, once it is part of a domain.

    Legal up to the sign of a zero: -0 + 0 is 0.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddfOp, rewriter: PatternRewriter) -> None:
        for term, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if constant_of_cells(other) == 0 and term.type == op.result.type:
                rewriter.replace(op, [], [term])
                return


class ScaleAfterChoice(RewritePattern):
    """`where(c, x * k, -inf)` is `where(c, x, -inf) * k`.

    Legal for a finite k > 0, which an infinity times is itself; the other side may be either one.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.WhereOp, rewriter: PatternRewriter) -> None:
        scaled, other = _scaled(op.lhs), constant_of_cells(op.rhs)
        if scaled is None or scaled[1] == 1.0 or other not in (inf, -inf):
            return
        if len(list(op.lhs.uses)) != 1:
            return
        value, factor = scaled
        chosen = triton.WhereOp(op.condition, value, op.rhs)
        chosen.result.name_hint = op.result.name_hint
        _replace_by_product(op, chosen, chosen.result, factor, rewriter)


class ScaleAfterFold(RewritePattern):
    """The maximum (or minimum) of `x * k` along an axis is that of `x`, times k.

    Legal for a finite k > 0: rounding keeps the order, so the greatest product is that of the
    greatest; NaN stays NaN.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.ReduceOp, rewriter: PatternRewriter) -> None:
        first, end = op.combiner.block.first_op, op.combiner.block.last_op
        if len(op.tiles) != 1 or not isinstance(first, arith.MaximumfOp | arith.MinimumfOp):
            return
        if end is None or end is not first.next_op or tuple(end.operands) != tuple(first.results):
            return
        scaled = _scaled(op.tiles[0])
        if scaled is None or scaled[1] == 1.0:
            return
        value, factor = scaled
        folded = triton.ReduceOp(op.label.data, [value], op.axis.value.data, op.combiner.clone())
        folded.outs[0].name_hint = op.outs[0].name_hint
        _replace_by_product(op, folded, folded.outs[0], factor, rewriter)


class ExponentialOfDifference(RewritePattern):
    """`exp(x * k - y)` is `exp2(fma(x, k * log2(e), -log2(e) * y))`, where y is along fewer axes.

    Legal up to rounding, in float32: the product is exact in the sum, and what y's is off by is the
    same for all x beside it, as of the weights of a row. Where x is y the result may be more than 1
    by |y| units of 2^-24.

    A y near the end of the type, as a row that is masked by the least float has, would be infinite
    times log2(e). Numbers of that size are the same or far apart, and any other base tells these
    from those: it is 2^(2^-20) there. A k keeps its base, for such an x times it is infinite.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math.ExpOp, rewriter: PatternRewriter) -> None:
        minus = op.operand.owner
        if not isinstance(minus, arith.SubfOp) or element_of(op.result) != f32:
            return
        if (
            not isinstance(minus.rhs.owner, triton.BroadcastOp)
            or constant_of_cells(minus.rhs) is not None
        ):
            return
        scaled = _scaled(minus.lhs)
        if scaled is None and not _is_of_f16(minus.lhs):
            scale, centre = _repeated(minus.rhs, rewriter, _guarded)
            inner = math.FmaOp(minus.lhs, scale, centre)
        else:
            value, factor = (minus.lhs, 1.0) if scaled is None else scaled
            (centre,) = _repeated(minus.rhs, rewriter, _shifted)
            scale = _constant(factor * LOG2_E, shape_of(value), rewriter)
            inner = math.FmaOp(value, scale, centre)
        power = math.Exp2Op(inner.result)
        power.result.name_hint = op.result.name_hint
        rewriter.replace(op, [inner, power])


def fold_scales(kernel: triton.KernelOp) -> None:
    """Apply the rewrites to a kernel that multiplies 16-bit factors, as attention does.

    Elsewhere what is subtracted may be as large as floats are, which times log2(e) is more.
    """
    dots = [op for op in kernel.body.walk() if isinstance(op, triton.DotOp)]
    if not any(is_half(element_of(op.a)) for op in dots):
        return
    patterns: list[RewritePattern] = [
        NothingAdded(),
        ScaleAfterChoice(),
        ScaleAfterFold(),
        ExponentialOfDifference(),
    ]
    PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_region(kernel.body)
    remove_unused(kernel.body.block)


def _scaled(value: SSAValue) -> tuple[SSAValue, float] | None:
    """A tile and the finite positive number that it is multiplied with, in float32."""
    owner = value.owner
    if not isinstance(owner, arith.MulfOp) or element_of(value) != f32:
        return None
    for tile, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
        factor = constant_of_cells(other)
        if factor is not None and factor > 0 and isfinite(factor):
            return tile, factor
    return None


def _constant(value: float, shape: tuple[int, ...], rewriter: PatternRewriter) -> SSAValue:
    made = arith.ConstantOp(number(value, f32))
    rewriter.insert(made)
    if not shape:
        return made.result
    spread = triton.BroadcastOp(made.result, shape)
    rewriter.insert(spread)
    return spread.result


def _replace_by_product(
    op: Operation, made: Operation, value: SSAValue, factor: float, rewriter: PatternRewriter
) -> None:
    """Replace an operation by what another one makes, times a number."""
    rewriter.insert(made)
    product = arith.MulfOp(value, _constant(factor, shape_of(value), rewriter))
    product.result.name_hint = op.results[0].name_hint
    rewriter.replace(op, product)


def _repeated(
    value: SSAValue,
    rewriter: PatternRewriter,
    make: Callable[[SSAValue, PatternRewriter], Sequence[SSAValue]],
) -> list[SSAValue]:
    """What is made of a tile that repeats a smaller one: made of that one, and repeated."""
    owner = value.owner
    if isinstance(owner, triton.BroadcastOp):
        blocks = None if owner.blocks is None else [block.data for block in owner.blocks]
        ops: list[Operation] = [
            triton.BroadcastOp(source, shape_of(value), blocks)
            for source in _repeated(owner.source, rewriter, make)
        ]
    elif isinstance(owner, triton.ExpandDimsOp):
        axis = owner.axis.value.data
        sources = _repeated(owner.source, rewriter, make)
        ops = [triton.ExpandDimsOp(source, axis) for source in sources]
    else:
        return list(make(value, rewriter))
    for op in ops:
        rewriter.insert(op)
    return [op.results[0] for op in ops]


def _shifted(value: SSAValue, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """A tile times -log2(e)."""
    return (_product(value, _constant(-LOG2_E, shape_of(value), rewriter), "shift", rewriter),)


def _guarded(value: SSAValue, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The base two's exponent of each number of a tile, and the tile times minus that."""
    shape = shape_of(value)
    size = math.AbsFOp(value)
    rewriter.insert(size)
    large = triton.CompareOp(">", size.result, _constant(_LARGE, shape, rewriter))
    rewriter.insert(large)
    rates = _constant(_SMALL_RATE, shape, rewriter), _constant(LOG2_E, shape, rewriter)
    rate = triton.WhereOp(large.result, *rates)
    rate.result.name_hint = "rate"
    rewriter.insert(rate)
    negated = arith.NegfOp(rate.result)
    rewriter.insert(negated)
    return rate.result, _product(value, negated.result, "shift", rewriter)


def _product(a: SSAValue, b: SSAValue, hint: str, rewriter: PatternRewriter) -> SSAValue:
    made = arith.MulfOp(a, b)
    made.result.name_hint = hint
    rewriter.insert(made)
    return made.result


def _is_of_f16(value: SSAValue) -> bool:
    """Whether a tile's numbers are those of float16, which are far from the end of float32."""
    owner = value.owner
    return isinstance(owner, triton.CastOp) and element_of(owner.source) == f16
