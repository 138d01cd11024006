"""Whether a fold is derived with the folds before it, and what becomes of the program then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.derivation.cascade import derive
from tapestry.algebra.derivation.model import Derivation, NotDerivableError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.derivation.algebra import Algebra
from tapestry.passes.loom.derivation.chain import Chain, Member, Placed, is_plain_fold
from tapestry.passes.loom.derivation.repeating import why_not_repeated
from tapestry.passes.loom.derivation.replacing import Replacing, plan_replacing
from tapestry.passes.loom.derivation.siblings import siblings
from tapestry.zspace import AffineMap, Domain, Projection


@dataclass(frozen=True)
class Found:
    """A chain that is derived: its algebra, its derivation, and what becomes of the program.

    `left_out` says why not all folds that the last one reads are part of it, where that is so.
    """

    chain: Chain
    algebra: Algebra
    derivation: Derivation
    plan: Replacing
    members: dict[Operation | Block, Member]
    may_be_empty: bool
    left_out: str | None = None


def find_derivation(op: loom.OperationOp, *, separate: bool = False) -> Found | str | None:
    """The derivation of a fold with all that fits into its pass, or why there is none.

    None for what is no fold that reads others along its dimensions. `separate` is as in `derive`.
    """
    if not is_plain_fold(op) or op.index.is_empty:
        return None
    found = _find(op, (), separate)
    if not isinstance(found, Found):
        return found
    joined: list[Placed] = []
    for sibling in siblings(found.chain):
        more = _find(op, [sibling, *joined], separate)
        if isinstance(more, Found) and set(more.plan.dead) >= {*found.plan.dead, sibling[0]}:
            joined.insert(0, sibling)
            found = more
    return found


_FAILURES = 3
"""How many earlier folds that do not fit are tried, nearest first, before the rest is left out."""


def _find(op: loom.OperationOp, joined: Sequence[Placed], separate: bool) -> Found | str | None:
    """The derivation of a fold with as many earlier ones as fit, those that it reads first.

    All that the chain reads is tried at once; then one by one, nearest first. What does not fit is
    read like any other tensor: it may be a pass before.
    """
    tries = _Tries(op, joined, separate)
    chain, best = Chain(op, set(joined), joined), None
    while True:
        new = chain.others - tries.left_out
        if not new:
            break
        taken = {(member.op, member.points) for member in chain.members}
        found = tries.once(taken | new)
        if found is None and len(new) > 1:
            found = tries.one_by_one(taken, new)
        if found is None:
            break
        chain, best = found.chain, found
    return tries.reason if best is None else replace(best, left_out=tries.reason)


@dataclass
class _Tries:
    """Derivations of a fold with different earlier ones, and why the first did not succeed."""

    op: loom.OperationOp
    joined: Sequence[Placed]
    separate: bool
    left_out: set[Placed] = field(default_factory=set[Placed])
    reason: str | None = None

    def once(self, allowed: set[Placed]) -> Found | None:
        """The derivation with some earlier folds."""
        chain = Chain(self.op, allowed, self.joined)
        apart = chain.apart()
        self.left_out |= apart
        if apart:
            return self.once(allowed - apart) if allowed - apart != allowed else None
        if len(chain.members) == 1:
            return None
        found = _attempt(chain, self.separate)
        if isinstance(found, Found):
            return found
        self.reason = self.reason or str(found)
        return None

    def one_by_one(self, taken: set[Placed], new: set[Placed]) -> Found | None:
        """The derivation with those of `new` that fit, nearest first."""
        best: Found | None = None
        failures = 0
        for placed in _nearest(self.op, new):
            found = self.once(taken | {placed})
            if found is None:
                self.left_out.add(placed)
                failures += 1
                if failures == _FAILURES:
                    self.left_out |= new - taken
                    break
            else:
                best = found
                taken = taken | {placed}
        return best


def _nearest(op: loom.OperationOp, placed: set[Placed]) -> Iterator[Placed]:
    """Folds of one block in the order in which they are met on the way back from an operation."""
    waiting = set(placed)
    before: Operation | None = op
    while before is not None and waiting:
        for found in [one for one in waiting if one[0] is before]:
            waiting.discard(found)
            yield found
        before = before.prev_op


def _attempt(chain: Chain, separate: bool) -> Found | NotDerivableError:
    """The derivation of a chain, or what is in its way."""
    op = chain.last
    may_be_empty = not always_folds(op)
    try:
        algebra = Algebra(chain)
        derivation = derive(
            algebra.folds,
            algebra.cells.keys(),
            finished=algebra.finished.keys() | algebra.truths,
            may_be_empty=may_be_empty,
            separate=separate,
        )
    except NotDerivableError as error:
        return error
    if not _is_moved(chain, derivation):
        why = why_not_repeated(chain, algebra, derivation)
        if why is not None:
            return NotDerivableError(f"{chain.members[-1].name} {why}")
    members: dict[Operation | Block, Member] = {}
    for member in chain.members:
        members.setdefault(member.op, member)
    earlier = {member.op for member in chain.members} - {op}
    plan = plan_replacing(
        op,
        set(earlier),
        chain.producers(),
        lambda out: _is_written(chain, members[out.owner], out),
    )
    if earlier.isdisjoint(plan.dead[1:]):
        return NotDerivableError("all folds that it depends on are needed before it")
    return Found(chain, algebra, derivation, plan, members, may_be_empty)


def _is_moved(chain: Chain, derivation: Derivation) -> bool:
    """Whether the last fold of a chain is a sum that moves with an extremum.

    Where it does not, as in a matrix product of rows that are scaled by their norm, the earlier
    results are factors that could as well be applied to a fold of its own. Sums relative to a mean
    need others beside them, and would be no matrix product any more.
    """
    symbols = derivation.results[chain.members[-1].name].value.symbols
    extrema = {centre.name for centre in derivation.centres if centre.kind != "mean"}
    return any(
        part.symbol in symbols and not extrema.isdisjoint(part.centres) for part in derivation.parts
    )


def always_folds(op: loom.OperationOp, inside: Domain | None = None) -> bool:
    """Whether each point of the kept dimensions folds something.

    A corner of the fold does, or the points at the edge of a row. `inside` is a domain to ask about
    instead of the operation's.
    """
    inside = op.inside if inside is None else inside
    if inside is None:
        return True
    ends = {dim: (op.index.end[dim] - 1, op.index.end[dim]) for dim in op.fold_dims}
    corners = op.index.at_start(op.fold_dims), op.index.with_sides(ends)
    if any(map(inside.covers, corners)):
        return True
    return any(_folds_along(op, inside, row) for row in range(inside.rows.outputs))


def _folds_along(op: loom.OperationOp, inside: Domain, row: int) -> bool:
    """Whether the points where a row is zero, one for each point that is kept, are inside."""
    factors, rank = inside.rows.matrix[row], inside.rank
    if len(op.fold_dims) != 1 or abs(factors[op.fold_dims[0]]) != 1:
        return False
    (dim,) = op.fold_dims
    sign = -factors[dim]
    matrix = [[int(d == e) for e in range(rank)] for d in range(rank)]
    matrix[dim] = [0 if d == dim else sign * factor for d, factor in enumerate(factors)]
    offset = [sign * inside.rows.offset[row] if d == dim else 0 for d in range(rank)]
    edge = AffineMap.of(matrix, offset, rank)
    kept = op.index.at_start([dim])
    return op.index.contains_range(edge.image(kept)) and inside.compose(edge).covers(kept)


def kept_points(chain: Chain, member: Member) -> AffineMap:
    """The kept dimensions of a member as a function of those of its chain."""
    kept = member.points.select_outputs(member.op.kept_dims)
    return kept.select_inputs(chain.last.kept_dims)


def _is_written(chain: Chain, member: Member, out: SSAValue) -> bool:
    """Whether the derived operation can write a member's output: it visits each cell of it.

    Along dimensions that the member lacks, a cell is visited again, with the same value.
    """
    points = kept_points(chain, member)
    axes = sorted(moving_dims(Projection.cells(points)))
    kept = chain.last.kept_range(chain.last.index).select(axes)
    return kept.size == tensor_type(out).box.size and points.select_inputs(axes).is_injective_on(
        kept
    )
