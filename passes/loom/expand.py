"""`loom-expand`: operations of several outputs taken apart, one output each.

    %s, %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @add_max ins(%x ...) ...

becomes

    %s = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x ...) ...
    %m = loom.operation @s_m over <[0, 0] : [4, 6]> [map, fold] by @max ins(%x ...) ...

It is what `loom-fuse{kinds=keep,beside}` undoes, so that a search can go both ways. `op` names
operations by label, all without it. With `shared=true` outputs are taken apart also where they are
made of the same parts of a state, which are then folded for each of them.

Input: any verified loom program. Output: the same values. Every rewrite leaves operations of fewer
outputs, so it terminates; once is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.outputs import parts_needed, with_outputs


@dataclass(frozen=True)
class TakeOutputsApart(RewritePattern):
    """Each output of an operation is written by an operation of its own.

    Always legal: what an output is does not depend on the others. Done where no part of a state is
    then folded twice, unless `shared`. Members of a group stay as they are.
    """

    op: str | None = None
    shared: bool = False

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or len(op.outs) == 1 or self.op not in (None, op.label.data):
            return
        outs = range(len(op.outs))
        if op.monoid_name is not None and not self.shared:
            needed = [parts_needed(op, [out]) for out in outs]
            if sum(map(len, needed)) > len({part for parts in needed for part in parts}):
                return
        new = [with_outputs(op, [out], op.label.data, rewriter) for out in outs]
        rewriter.replace(op, new, [result for one in new for result in one.outs])


@dataclass(frozen=True)
class LoomExpand(ModulePass):
    """Take operations of several outputs apart."""

    name = "loom-expand"

    op: str | None = None
    shared: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with collection_paused():
            pattern = TakeOutputsApart(self.op, self.shared)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
