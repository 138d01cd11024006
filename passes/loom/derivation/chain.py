"""Which folds one fold depends on along its own dimensions, in its own index space.

    %m = max of %s along j     %l = sum of exp(%s - %m) along j

For `@l` the chain is `@m, @l`: a dimension that `@m` folds is the one that `@l` folds, because both
read `%s` alike along it. A result that is read *along* the folded dimension is no part of a chain:
it differs from point to point, like any other cell. That is all the difference between attention
and a softmax over the wrong dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from xdsl.ir import Operation

from tapestry.algebra.monoids import BUILTIN_MONOIDS, monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom._bodies import in_group
from tapestry.passes.loom.derivation.terms import Inliner, Term, Terms
from tapestry.zspace import AffineMap, Domain


@dataclass(frozen=True)
class Member:
    """A fold of a chain: its name there, its body, its outputs, and its points in the last one's.

    `points` takes the index space of the chain's last fold to that of this one.
    """

    name: str
    op: loom.OperationOp
    points: AffineMap
    body: Term
    outs: tuple[Term, ...]


_Excluded = set[tuple[loom.OperationOp, AffineMap]]


def find_chain(last: loom.OperationOp) -> Chain:
    """The chain of a fold: just itself, where it depends on no other along its dimensions."""
    excluded: _Excluded = set()
    while True:
        chain = Chain(last, excluded)
        apart = chain.apart()
        if not apart:
            return chain
        excluded |= apart


class Chain:
    """A fold with those that it depends on along its dimensions, earlier ones first."""

    def __init__(self, last: loom.OperationOp, excluded: _Excluded) -> None:
        self.last = last
        self.terms = Terms()
        self.members: list[Member] = []
        self.folded = frozenset(last.fold_dims)
        self._excluded = excluded
        self._inline = Inliner(self.terms, self._result)
        self._found: dict[tuple[loom.OperationOp, AffineMap], Member | None] = {}
        self._append(last, AffineMap.identity(last.index.rank))

    def apart(self) -> _Excluded:
        """The members that read nothing along the fold which another member reads too."""
        reads = [self._cells(member.body) for member in self.members]
        found: _Excluded = set()
        for at, member in enumerate(self.members[:-1]):
            others = set[Read]().union(*(r for n, r in enumerate(reads) if n != at))
            if reads[at].isdisjoint(others):
                found.add((member.op, member.points))
        return found

    def producers(self) -> set[Operation]:
        """What writes the tensors that an operation for the chain may read."""
        owners = {read.value.owner for read in self.terms.reads()}
        return {owner for owner in owners if isinstance(owner, Operation)}

    def _cells(self, term: Term) -> set[Read]:
        """What a term reads along the fold."""
        return {read for read in term.leaves() if self._moves(read.projection.map)}

    def _moves(self, mapping: AffineMap) -> bool:
        """Whether a map from the index space moves along a folded dimension."""
        return any(dim in self.folded for row in mapping.terms for _, dim in row)

    def _append(self, op: loom.OperationOp, points: AffineMap) -> Member:
        args = [self._inline(read.compose(points)) for read in op.in_reads]
        (body,) = self.terms.body(op.wrap_block, args, points)
        name = op.label.data or "fold"
        taken = {member.name for member in self.members}
        name = next(n for n in (name, *(f"{name}.{k}" for k in range(99))) if n not in taken)
        raw = self.terms.result(name, op.state_types[0])
        outs = (raw,)
        if op.unwrap_block is not None:
            kept = points.select_outputs(op.kept_dims)
            extras = [self._inline(read.compose(kept)) for read in op.extra_reads]
            outs = tuple(self.terms.body(op.unwrap_block, [raw, *extras], points))
        member = Member(name, op, points, body, outs)
        self.members.append(member)
        return member

    def _result(self, op: loom.OperationOp, place: int, read: Read) -> Term | None:
        """What a read of a fold's output is, if the fold is along the same dimensions."""
        if not is_plain_fold(op) or op.parent is not self.last.parent:
            return None
        written = op.out_maps[place].map.inverse_on(op.kept_range(op.index))
        if written is None:
            return None
        kept = written.compose(read.projection.map)
        if self._moves(kept):
            return None
        for points in self._alignments(op, kept):
            key = (op, points)
            if key not in self._found:
                self._found[key] = self._member(op, points)
            member = self._found[key]
            if member is not None:
                return member.outs[place]
        return None

    def _alignments(self, op: loom.OperationOp, kept: AffineMap) -> list[AffineMap]:
        """The ways in which the dimensions that a fold folds can be those of the chain."""
        rank = self.last.index.rank
        found: list[AffineMap] = []
        if len(op.fold_dims) != len(self.folded):
            return found
        start, shape = self.last.index.start, self.last.index.shape
        for order in permutations(self.last.fold_dims):
            pairs = list(zip(op.fold_dims, order, strict=True))
            if any(op.index.shape[own] != shape[dim] for own, dim in pairs):
                continue
            rows = dict(zip(op.kept_dims, zip(kept.matrix, kept.offset, strict=True), strict=True))
            for own, dim in pairs:
                unit = tuple(int(d == dim) for d in range(rank))
                rows[own] = (unit, op.index.start[own] - start[dim])
            matrix, offset = zip(*(rows[d] for d in range(op.index.rank)), strict=True)
            found.append(AffineMap(matrix, offset, rank))
        return found

    def _member(self, op: loom.OperationOp, points: AffineMap) -> Member | None:
        """A fold as a member, if it is over the same points."""
        inside = None if op.inside is None else op.inside.compose(points)
        if (op, points) in self._excluded or _rows(inside) != _rows(self.last.inside):
            return None
        return self._append(op, points)


def is_plain_fold(op: loom.OperationOp) -> bool:
    """Whether an operation folds whole, one value by a built-in monoid, and is in no group."""
    if op.scan_dim is not None or not op.fold_dims or op.partition is not None or in_group(op):
        return False
    monoid = monoid_of(op)
    return monoid is not None and monoid.name in BUILTIN_MONOIDS and monoid.primitive is not None


def _rows(domain: Domain | None) -> frozenset[object]:
    if domain is None:
        return frozenset()
    return frozenset(zip(domain.rows.matrix, domain.rows.offset, strict=True))
