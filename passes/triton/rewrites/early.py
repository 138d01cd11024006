"""Tensor descriptors made before the loops that they follow.

for k in ...                                 y_blocks = triton.describe %y ...
    %acc = triton.dot ...                    for k in ...
y_blocks = triton.describe %y ...                %acc = triton.dot ...
triton.store_block %acc, %y_blocks           triton.store_block %acc, %y_blocks

A program writes a descriptor to memory and waits until the hardware that reads it sees that: in
front of a loop this happens while its first cells are on their way.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.dialects import triton


class DescribeBeforeLoops(RewritePattern):
    """A descriptor moves in front of the loops and the loads of its block that stand before it.

    Legal for the loops behind everything that it is made of: it reads nothing else.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: triton.DescribeOp, rewriter: PatternRewriter) -> None:
        first: Operation | None = None
        before = op.prev_op
        while before is not None and not any(one.owner is before for one in op.operands):
            if isinstance(before, scf.ForOp | scf.WhileOp | triton.LoadOp):
                first = before
            before = before.prev_op
        if first is not None:
            op.detach()
            rewriter.insert(op, InsertPoint.before(first))


def describe_early(kernel: triton.KernelOp) -> None:
    """Apply the rewrite to a kernel."""
    if any(isinstance(op, triton.DescribeOp) for op in kernel.body.walk()):
        walker = PatternRewriteWalker(DescribeBeforeLoops(), apply_recursively=False)
        walker.rewrite_region(kernel.body)
