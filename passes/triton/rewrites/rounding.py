"""Which divisions and roots need every bit, and which may be the hardware's approximations.

    %q = arith.divf %a, %b : ..., f32              %q = arith.divf %a, %b fastmath<afn> : ..., f32
    %y = triton.cast %q : ..., f16                 %y = triton.cast %q : ..., f16

A GPU divides float32 by a reciprocal, two units in the last place off: `49 / 49` is less than 1,
and its floor is 0. So divisions are printed as those of IEEE 754 unless they are marked `afn`
(approximate functions), where what follows rounds the error away, or what is divided has as large a
one. Divisions by powers of two are products, which are exact.
"""

from __future__ import annotations

from math import frexp

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.dtypes import is_half
from tapestry.dialects import triton
from tapestry.dialects.triton import APPROXIMATE, element_of, is_approximate, shape_of
from tapestry.passes.triton.rewrites.exact_products import SumOfExactProduct
from tapestry.passes.triton.rewrites.functions import (
    ComplementOfErrorFunction,
    ExponentialInBaseTwo,
    moves_halves,
)
from tapestry.passes.triton.tiles.builder import constant_of_cells, number

_LEAST = 1e-30
"""Far above float32's denormals, whose inverse root a GPU takes for that of zero."""
_KEEPING = (
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    math.AbsFOp,
    triton.WhereOp,
    triton.BroadcastOp,
    triton.ExpandDimsOp,
    triton.TransposeOp,
)
"""Operations whose relative error is that of their operands, about: no sums, which cancel."""


class PowerOfTwoDivisor(RewritePattern):
    """`x / 2^k` is `x * 2^-k`.

    Legal where both powers are normal numbers: each is the nearest number to the same quotient.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.DivfOp, rewriter: PatternRewriter) -> None:
        divisor, element = constant_of_cells(op.rhs), element_of(op.result)
        if divisor is None or element not in (f32, f64):
            return
        size, exponent = frexp(abs(divisor))
        if size != 0.5 or abs(exponent) > 100:
            return
        reciprocal = arith.ConstantOp(number(1.0 / divisor, element))
        rewriter.insert(reciprocal)
        factor: SSAValue = reciprocal.result
        if shape_of(op.result):
            spread = triton.BroadcastOp(factor, shape_of(op.result))
            rewriter.insert(spread)
            factor = spread.result
        product = arith.MulfOp(op.lhs, factor)
        product.result.name_hint = op.result.name_hint
        rewriter.replace(op, product)


class RoundedQuotient(RewritePattern):
    """A quotient of float32 that only ends in 16 bits may be approximate.

    Legal where rounding in other places is: its error of two units is 2^-11 of one of 16 bits.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.DivfOp, rewriter: PatternRewriter) -> None:
        if element_of(op.result) == f32 and not is_approximate(op) and _ends_in_halves(op.result):
            op.properties["fastmath"] = APPROXIMATE
            rewriter.notify_op_modified(op)


class ExponentialQuotient(RewritePattern):
    """A quotient of an exponential may be approximate, as the weights of a row are.

    Legal where rounding in other places is: a GPU's exponential is two units in the last place off,
    and so is the quotient, for every divisor.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.DivfOp, rewriter: PatternRewriter) -> None:
        exponential = isinstance(op.lhs.owner, math.ExpOp | math.Exp2Op)
        if exponential and element_of(op.result) == f32 and not is_approximate(op):
            op.properties["fastmath"] = APPROXIMATE
            rewriter.notify_op_modified(op)


class BoundedRoot(RewritePattern):
    """`rsqrt(x + c)` may be approximate for a normal c > 0.

    Legal for every x: the sum is smaller than the smallest normal number only as the difference of
    numbers of one size, and these differ by more unless they are equal.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math.RsqrtOp, rewriter: PatternRewriter) -> None:
        total = op.operand.owner
        if is_approximate(op) or not isinstance(total, arith.AddfOp):
            return
        known = [
            n for n in (constant_of_cells(total.lhs), constant_of_cells(total.rhs)) if n is not None
        ]
        if any(n >= _LEAST for n in known):
            op.properties["fastmath"] = APPROXIMATE
            rewriter.notify_op_modified(op)


def round_where_needed(kernel: triton.KernelOp, *, strict: bool) -> None:
    """Mark what may be approximate, and use cheaper operations (`functions`, `exact_products`).

    With `strict` quotients are those of IEEE 754 everywhere, and functions those of the program.
    """
    exact = SumOfExactProduct(strict)
    patterns: list[RewritePattern] = [PowerOfTwoDivisor(), BoundedRoot(), exact]
    if not strict:
        patterns += [RoundedQuotient(), ExponentialQuotient(), ComplementOfErrorFunction()]
        patterns += [ExponentialInBaseTwo()] if moves_halves(kernel) else []
    PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_region(kernel.body)


def _ends_in_halves(value: SSAValue) -> bool:
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        is_half(element_of(user.results[0]))
        if isinstance(user, triton.CastOp)
        else isinstance(user, _KEEPING) and _ends_in_halves(user.results[0])
        for user in users
    )
