"""Integers of bodies that are numbers, or what they are computed of.

    %i = loom.index 1 : i64
    %k = arith.muli %one, %i : i64        becomes        %i
    %a = arith.addi %zero, %k : i64

Ranges of numbers come with a start and a step, which are mostly these. Where a coordinate is
compared with an index, a one-hot fold is seen by it (`tapestry.algebra.one_hot`).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.transforms.canonicalization_patterns.arith import (
    SignlessIntegerBinaryOperationConstantProp,
    SignlessIntegerBinaryOperationZeroOrUnitRight,
)

from tapestry.dialects import loom


class ComputeIntegers(RewritePattern):
    """A sum, difference or product of numbers is a number; with 0 or 1 it is the other operand.

    Legal because integers wrap around, in bodies as in what xDSL computes. Divisions are not
    computed: what they are by zero is not what xDSL says.
    """

    _PATTERNS = (
        SignlessIntegerBinaryOperationConstantProp(),
        SignlessIntegerBinaryOperationZeroOrUnitRight(),
    )

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: arith.AddiOp | arith.SubiOp | arith.MuliOp, rewriter: PatternRewriter
    ) -> None:
        if not _is_in_body(op):
            return
        for pattern in self._PATTERNS:
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return


def _is_in_body(op: Operation) -> bool:
    return isinstance(op.parent_op(), loom.OperationOp | loom.KernelOp | loom.MonoidOp)
