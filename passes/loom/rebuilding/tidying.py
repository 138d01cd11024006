"""Operations that read, compute and write no more than is used."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import drop_unused, in_group, share_equal
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.passes.loom.rebuilding.outputs import drop_unread, with_outputs


class ShareScalars(RewritePattern):
    """A body computes equal values once. Legal because scalar operations are pure."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        shared = share_equal(op.wrap_block, rewriter)
        if op.unwrap_block is not None:
            shared |= share_equal(op.unwrap_block, rewriter)
        if shared:
            rewriter.notify_op_modified(op)


class DropUnusedOutputs(RewritePattern):
    """What nothing reads is not written, and parts of a state that only it needs are not folded.

    Always legal: what an output is does not depend on the others. An operation of which nothing is
    read goes as a whole, elsewhere.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        used = [n for n, out in enumerate(op.outs) if out.first_use is not None]
        if in_group(op) or not used or len(used) == len(op.outs):
            return
        new = with_outputs(op, used, op.label.data, rewriter)
        rewriter.insert(new)
        for number, result in zip(used, new.outs, strict=True):
            rewriter.replace_all_uses_with(op.outs[number], result)
        rewriter.erase(op)


class DropUnread(RewritePattern):
    """A body computes what it yields alone, and reads what it computes with. Always legal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        ins, extras = reads_of(op)
        before = len(op.wrap_block.args)
        drop_unused(op.wrap_block, rewriter)
        kept, kept_extras = drop_unread(op.wrap_block, ins, 0), extras
        unwrap = op.unwrap_block
        if unwrap is not None:
            drop_unused(unwrap, rewriter)
            kept_extras = drop_unread(unwrap, extras, len(unwrap.args) - len(extras))
        if len(op.wrap_block.args) != before or len(kept_extras) != len(extras):
            rebuild(op, rewriter, ins=kept, extras=kept_extras)
