"""`loom-derive`: folds that read earlier folds over the same cells become one pass.

    %m = loom.operation @max over <[0, 0] : [4, 64]> [map, fold] by @max ins(%x ...) ...
    %s = loom.operation @sum over <[0, 0] : [4, 64]> [map, fold] by @add ins(%x ..., %m ...)
           wrap (%c: f32, %r: f32) { %d = arith.subf %c, %r : f32  %e = math.exp %d : f32 ... }

becomes one operation, whose monoid is added to the module:

    loom.monoid @max_sum commutative zero [0xFF800000 : f32, 0.0 : f32] merge (...) {...}
    %m, %s = loom.operation @max_sum over <[0, 0] : [4, 64]> [map, fold] by @max_sum ins(%x ...)
               wrap (%c: f32) { ... loom.yield %c, %one : f32, f32 } ...

The merge is found by algebra (`tapestry.algebra.derivation`), not by name: softmax, layer norm,
cross entropy and attention are all such chains. What is derived folds like anything else, so it
splits along the fold too.

Whether any cell is not -inf is asked of a maximum of the same cells, before all else
(`derivation/truths.py`).

Sums that may cancel are taken apart only under `loom-derive{separate=true}`: the variance of a
softmax, say, as the mean square less the squared mean. Without it they stay folds of their own.

Input: any verified loom program, best simplified. Output: the same values up to reassociation, the
steps of each derivation in its operation's attribute `derivation`, and in `not_derived` why a fold
that reads earlier ones is not in one pass with them. Each rewrite removes an
operation, so it terminates.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.derivation.model import Derivation
from tapestry.dialects import loom
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.derivation.algebra import Algebra
from tapestry.passes.loom.derivation.chain import Chain, Member
from tapestry.passes.loom.derivation.emission import (
    REFUSED,
    Output,
    derived_monoid,
    joined_name,
    written,
)
from tapestry.passes.loom.derivation.planning import Found, find_derivation, kept_points
from tapestry.passes.loom.derivation.truths import AskExtremum
from tapestry.passes.loom.rebuilding.monoids import defined_once
from tapestry.passes.loom.rebuilding.operations import writes_of


@dataclass
class DeriveFold(RewritePattern):
    """A fold and the folds that it depends on along its dimensions become one.

    Legal when all are whole, fold by built-in monoids, are over the same points, and a derivation
    exists; and at least one of the earlier folds is then needed no more, because nothing else reads
    it or because the derived operation writes it too. Folds beside them that read the same results
    join where they are needed no more either. Sums that may cancel are taken apart only where
    `separate` says so.
    """

    separate: bool = False

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        found = find_derivation(op, separate=self.separate)
        if isinstance(found, str):
            op.attributes[REFUSED] = StringAttr(found)
        if not isinstance(found, Found):
            return
        chain, plan = found.chain, found.plan
        replaced = [*op.outs, *reversed(plan.kept)]
        outputs = [_output(chain, found.members[out.owner], out) for out in replaced]
        monoid = _in_module(op, found.derivation, found.algebra, rewriter)
        new = written(found, monoid, outputs)
        rewriter.insert(new, InsertPoint.before(op))
        place = InsertPoint.after(op)
        for later in plan.later:
            later.detach()
            rewriter.insert(later, place)
            place = InsertPoint.after(later)
        for old, result in zip(replaced, new.outs, strict=True):
            result.name_hint = old.name_hint
            rewriter.replace_all_uses_with(old, result)
        for dead in plan.dead:
            rewriter.erase(dead)


def _output(chain: Chain, member: Member, out: SSAValue) -> Output:
    """What is to be written instead of a member's output, and where."""
    place = member.op.outs.index(out)
    projection, kind = writes_of(member.op)[place]
    return Output(member.outs[place], (projection.compose(kept_points(chain, member)), kind))


def _in_module(
    op: loom.OperationOp, derivation: Derivation, algebra: Algebra, rewriter: PatternRewriter
) -> loom.MonoidOp:
    """The monoid of a derivation, defined in the module unless an equal one is there."""
    name = joined_name([part.name for part in derivation.parts])
    return defined_once(op, derived_monoid(derivation, algebra, name), rewriter)


@dataclass(frozen=True)
class LoomDerive(ModulePass):
    """Derive one pass for folds that read earlier ones."""

    name = "loom-derive"

    separate: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with collection_paused():
            asking = PatternRewriteWalker(AskExtremum(), apply_recursively=False)
            asking.rewrite_module(op)
            # From the end on: the last fold of a chain takes all of it.
            pattern = DeriveFold(self.separate)
            walker = PatternRewriteWalker(pattern, walk_reverse=True, apply_recursively=False)
            walker.rewrite_module(op)
