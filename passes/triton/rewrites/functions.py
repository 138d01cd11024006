"""Functions that take a GPU fewer operations, in place of equal ones.

    %e = math.erf %z                               %n = arith.negf %z
    %y = arith.addf %one, %e                       %y = triton.erfc %n

    %e = math.exp %x                               %p = arith.mulf %x, %log2e
                                                   %e = math.exp2 %p

An error function of float32 is two polynomials, a choice between them and a sign; its complement is
one, and a choice. A GPU's exponentials are powers of two, and `exp` is such a power of a product,
with what denormal results need around it.
"""

from __future__ import annotations

from math import e as euler
from math import log2

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.algebra.dtypes import is_half
from tapestry.dialects import triton
from tapestry.dialects.triton import PointerType, element_of, shape_of
from tapestry.passes.triton.tiles.builder import constant_of_cells, number

LOG2_E = log2(euler)

_LARGEST = 2.0**127 / LOG2_E
"""A factor that log2(e) times is a float32 yet."""


class ComplementOfErrorFunction(RewritePattern):
    """`1 + erf(x)` is `erfc(-x)`, and `1 - erf(x)` is `erfc(x)`.

    Legal up to rounding: where the sum cancels, the complement has digits that it had not. It pays
    where nothing else needs the error function.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddfOp | arith.SubfOp, rewriter: PatternRewriter) -> None:
        pairs = [(op.lhs, op.rhs)]
        if isinstance(op, arith.AddfOp):
            pairs.append((op.rhs, op.lhs))
        for one, function in pairs:
            erf = function.owner
            if not isinstance(erf, math.ErfOp) or constant_of_cells(one) != 1.0:
                continue
            if len(list(erf.result.uses)) != 1:
                continue
            argument: SSAValue = erf.operand
            if isinstance(op, arith.AddfOp):
                negated = arith.NegfOp(argument)
                rewriter.insert(negated)
                argument = negated.result
            complement = triton.ErfcOp(argument)
            complement.result.name_hint = op.result.name_hint
            rewriter.replace(op, complement)
            rewriter.erase(erf)
            return


class ExponentialInBaseTwo(RewritePattern):
    """`exp(x)` is `exp2(x * log2(e))`, and `exp(x * k)` is `exp2(x * (k * log2(e)))`.

    Legal up to rounding, in float32: a GPU's `exp` multiplies in float32 too. What would be
    denormal is zero.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math.ExpOp, rewriter: PatternRewriter) -> None:
        if element_of(op.result) != f32:
            return
        value, factor = _factored(op.operand)
        scale = arith.ConstantOp(number(factor * LOG2_E, f32))
        rewriter.insert(scale)
        by: SSAValue = scale.result
        if shape := shape_of(op.result):
            spread = triton.BroadcastOp(by, shape)
            rewriter.insert(spread)
            by = spread.result
        product = arith.MulfOp(value, by)
        power = math.Exp2Op(product.result)
        power.result.name_hint = op.result.name_hint
        rewriter.replace(op, [product, power])


def _factored(value: SSAValue) -> tuple[SSAValue, float]:
    """A value as another one times a number that is not near the end of the type."""
    owner = value.owner
    if isinstance(owner, arith.NegfOp):
        return owner.operand, -1.0
    if isinstance(owner, arith.MulfOp):
        for one, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            factor = constant_of_cells(other)
            if factor is not None and abs(factor) <= _LARGEST:
                return one, factor
    return value, 1.0


def moves_halves(kernel: triton.KernelOp) -> bool:
    """Whether a kernel reads or writes floats of 16 bits: of others, memory takes as long."""
    kinds = (argument.type for argument in kernel.body.block.args)
    return any(isinstance(kind, PointerType) and is_half(kind.element_type) for kind in kinds)
