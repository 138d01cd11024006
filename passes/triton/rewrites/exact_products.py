"""Sums of products that are exact: one operation each.

acc += x.to(tl.float32) * w.to(tl.float32)
acc = tl.fma(x.to(tl.float32), w.to(tl.float32), acc)       # of 16-bit x and w
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float16Type, f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.algebra.dtypes import is_half
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of


@dataclass(frozen=True)
class SumOfExactProduct(RewritePattern):
    """`c + a * b` is `fma(a, b, c)` for widened 16-bit floats a and b.

    Legal as the product is exact in float32, and so rounds once either way: float16 has 11 digits
    and 2^-24 to 2^16. Bfloat16 has 8, but its range: unless `strict`, that a product may be out of
    it is left out of account.
    """

    strict: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddfOp, rewriter: PatternRewriter) -> None:
        if element_of(op.result) != f32:
            return
        for value, other in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
            product = value.owner
            if isinstance(product, arith.MulfOp) and is_exact(product, strict=self.strict):
                fused = math.FmaOp(product.lhs, product.rhs, other)
                fused.result.name_hint = op.result.name_hint
                rewriter.replace(op, fused)
                return


def is_exact(product: arith.MulfOp, *, strict: bool) -> bool:
    """Whether a product of float32 is one of widened 16-bit floats, and so needs no rounding."""
    return all(_is_widened(factor, strict=strict) for factor in product.operands)


def is_joined(op: Operation) -> bool:
    """Whether an operation is a product that is added in one instruction."""
    if not isinstance(op, arith.MulfOp) or not is_exact(op, strict=False):
        return False
    return all(isinstance(use.operation, arith.AddfOp) for use in op.result.uses)


def _is_widened(value: SSAValue, *, strict: bool) -> bool:
    owner = value.owner
    while isinstance(owner, triton.BroadcastOp | triton.ExpandDimsOp):
        owner = owner.source.owner
    if not isinstance(owner, triton.CastOp) or element_of(owner.result) != f32:
        return False
    kind = element_of(owner.source)
    return isinstance(kind, Float16Type) or (is_half(kind) and not strict)
