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

Input: any verified loom program, best simplified. Output: the same values up to reassociation, the
steps of each derivation in its operation's attribute `derivation`. Each rewrite removes an
operation, so it terminates.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.derivation.cascade import Derivation, NotDerivableError, derive
from tapestry.algebra.derivation.polynomials import OutsideClassError
from tapestry.algebra.monoids import BUILTIN_MONOIDS
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom._bodies import kind
from tapestry.passes.loom._rebuild import writes_of
from tapestry.passes.loom.derivation.algebra import Algebra
from tapestry.passes.loom.derivation.chain import Chain, Member, find_chain, is_plain_fold
from tapestry.passes.loom.derivation.emission import Output, derived_monoid, joined_name, written
from tapestry.passes.loom.derivation.replacing import plan_replacing
from tapestry.zspace import AffineMap, Projection, Range


class DeriveFold(RewritePattern):
    """A fold and the folds that it depends on along its dimensions become one.

    Legal when all are whole, fold by built-in monoids, are over the same points, and a derivation
    exists; and at least one of the earlier folds is then needed no more, because nothing else reads
    it or because the derived operation writes it too.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not is_plain_fold(op) or op.index.is_empty:
            return
        chain = find_chain(op)
        if len(chain.members) == 1:
            return
        may_be_empty = not _always_folds(op)
        try:
            algebra = Algebra(chain)
            derivation = derive(
                algebra.folds,
                algebra.cells.keys(),
                finished=algebra.finished.keys() | algebra.truths,
                may_be_empty=may_be_empty,
            )
        except (OutsideClassError, NotDerivableError):
            return
        by_op: dict[Operation | Block, Member] = {}
        for member in chain.members:
            by_op.setdefault(member.op, member)
        earlier = {member.op for member in chain.members} - {op}
        plan = plan_replacing(
            op,
            set(earlier),
            chain.producers(),
            lambda out: _is_written(chain, by_op[out.owner], out),
        )
        if earlier.isdisjoint(plan.dead[1:]):
            return
        replaced = [*op.outs, *reversed(plan.kept)]
        outputs = [_output(chain, by_op[out.owner], out) for out in replaced]
        monoid = _in_module(op, derivation, algebra, rewriter)
        new = written(chain, algebra, derivation, monoid, outputs, may_be_empty=may_be_empty)
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


def _always_folds(op: loom.OperationOp) -> bool:
    """Whether each point of the kept dimensions folds something: a corner of the fold does."""
    if op.inside is None:
        return True
    for at_end in (False, True):
        start, end = list(op.index.start), list(op.index.end)
        for dim in op.fold_dims:
            corner = end[dim] - 1 if at_end else start[dim]
            start[dim], end[dim] = corner, corner + 1
        if op.inside.covers(Range(tuple(start), tuple(end))):
            return True
    return False


def _kept_points(chain: Chain, member: Member) -> AffineMap:
    """The kept dimensions of a member as a function of those of its chain."""
    kept = member.points.select_outputs(member.op.kept_dims)
    return kept.select_inputs(chain.last.kept_dims)


def _is_written(chain: Chain, member: Member, out: SSAValue) -> bool:
    """Whether the derived operation can write a member's output: it visits each cell of it.

    Along dimensions that the member lacks, a cell is visited again, with the same value.
    """
    points = _kept_points(chain, member)
    axes = sorted(moving_dims(Projection.cells(points)))
    kept = chain.last.kept_range(chain.last.index).select(axes)
    return kept.size == tensor_type(out).box.size and points.select_inputs(axes).is_injective_on(
        kept
    )


def _output(chain: Chain, member: Member, out: SSAValue) -> Output:
    place = member.op.outs.index(out)
    projection, kind = writes_of(member.op)[place]
    return Output(member.outs[place], (projection.compose(_kept_points(chain, member)), kind))


def _in_module(
    op: loom.OperationOp, derivation: Derivation, algebra: Algebra, rewriter: PatternRewriter
) -> loom.MonoidOp:
    """The monoid of a derivation, defined in the module unless an equal one is there."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None
    defined = [o for o in module.body.block.ops if isinstance(o, loom.MonoidOp)]
    name = joined_name([part.name for part in derivation.parts])
    new = derived_monoid(derivation, algebra, name)
    for other in defined:
        if kind(other, without=("sym_name",)) == kind(new, without=("sym_name",)):
            return other
    taken = {other.sym_name.data for other in defined} | set(BUILTIN_MONOIDS)
    free = next(n for n in (name, *(f"{name}_{k}" for k in range(1, len(taken)))) if n not in taken)
    new.sym_name = StringAttr(free)
    new.location = op.location
    first = module.body.block.first_op
    assert first is not None
    rewriter.insert(new, InsertPoint.before(first))
    return new


@dataclass(frozen=True)
class LoomDerive(ModulePass):
    """Derive one pass for folds that read earlier ones."""

    name = "loom-derive"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with collection_paused():
            # From the end on: the last fold of a chain takes all of it.
            walker = PatternRewriteWalker(DeriveFold(), walk_reverse=True, apply_recursively=False)
            walker.rewrite_module(op)
