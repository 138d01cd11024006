"""What loops carry and nothing needs: it is dropped.

n = tl.full([BLOCK_M], 0.0, tl.float32)
for k_start in range(0, 1024, BLOCK_K):             for k_start in range(0, 1024, BLOCK_K):
    ...                                                 ...
    n = ...
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import triton
from tapestry.passes.triton.tiles.builder import remove_unused


class CarryWhatIsNeeded(RewritePattern):
    """A loop carries no value that no step reads, and nothing after it.

    Always legal: such a value is only overwritten.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter) -> None:
        carried, end = op.body.block.args[1:], op.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        needed = _needed(op)
        if len(needed) == len(carried):
            return
        rewriter.replace(end, scf.YieldOp(*(end.operands[place] for place in needed)))
        for place in reversed(range(len(carried))):
            if place not in needed:
                rewriter.erase_block_argument(carried[place])
        body = op.detach_region(op.body)
        new = scf.ForOp(op.lb, op.ub, op.step, [op.iter_args[place] for place in needed], body)
        new.attributes |= op.attributes
        results = iter(new.res)
        kept = [next(results) if place in needed else None for place in range(len(carried))]
        for result, old in zip(kept, op.res, strict=True):
            if result is not None:
                result.name_hint = old.name_hint
        rewriter.replace(op, [new], kept)


def carry_what_is_needed(kernel: triton.KernelOp) -> None:
    """Apply the rewrite to a kernel."""
    block: Block = kernel.body.block
    loops = [op for op in kernel.body.walk() if isinstance(op, scf.ForOp)]
    if any(len(_needed(loop)) < len(loop.iter_args) for loop in loops):
        PatternRewriteWalker(CarryWhatIsNeeded()).rewrite_region(kernel.body)
        remove_unused(block)


def _needed(loop: scf.ForOp) -> list[int]:
    """Which of the values that a loop carries some step reads, or something after it."""
    pairs = enumerate(zip(loop.body.block.args[1:], loop.res, strict=True))
    return [place for place, (argument, result) in pairs if argument.uses or result.uses]
