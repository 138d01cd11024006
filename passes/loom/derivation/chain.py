"""Which folds one fold depends on along its own dimensions, in its own index space.

    %m = max of %s along j     %l = sum of exp(%s - %m) along j

For `@l` the chain is `@m, @l`: a dimension that `@m` folds is the one that `@l` folds, because both
read `%s` alike along it. A result that is read *along* the folded dimension is no part of a chain:
it differs from point to point, like any other cell. That is all the difference between attention
and a softmax over the wrong dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from xdsl.ir import Operation

from tapestry.algebra.monoids import BUILTIN_MONOIDS, monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom.derivation.terms import Inliner, Term, Terms
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.zspace import AffineMap, Domain
from tapestry.zspace.origins import origin


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


Placed: TypeAlias = tuple[loom.OperationOp, AffineMap]
"""A fold, and its points as a function of those of another."""


class Chain:
    """A fold with some of those that it depends on along its dimensions, earlier ones first.

    Results of `allowed` folds are looked into; those of others are read like any other tensor, and
    `others` says which they are. `joined` are folds that are part of it besides.
    """

    def __init__(
        self,
        last: loom.OperationOp,
        allowed: AbstractSet[Placed] = frozenset(),
        joined: Sequence[Placed] = (),
    ) -> None:
        self.last = last
        self.terms = Terms(last.index)
        self.members: list[Member] = []
        self.others: set[Placed] = set()
        self.folded = frozenset(last.fold_dims)
        self._allowed = allowed
        self._inline = Inliner(self.terms, self._result)
        self._found: dict[Placed, Member] = {}
        for op, points in joined:
            self._known(op, points)
        self._append(last, AffineMap.identity(last.index.rank))

    def apart(self) -> set[Placed]:
        """The members that read nothing along the fold which another member reads too."""
        reads = [self._cells(member.body) for member in self.members]
        found: set[Placed] = set()
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
        kept = points.select_outputs(op.kept_dims)
        # All that may append members comes before this one has a name, which is to be its own.
        extras = [self._inline(read.compose(kept)) for read in op.extra_reads]
        name = op.label.data or "fold"
        taken = {member.name for member in self.members}
        name = next(
            n for n in (name, *(f"{name}.{k}" for k in range(len(taken)))) if n not in taken
        )
        raw = self.terms.result(name, op.state_types[0])
        outs = (raw,)
        if op.unwrap_block is not None:
            outs = tuple(self.terms.body(op.unwrap_block, [raw, *extras], points))
        member = Member(name, op, points, body, outs)
        self.members.append(member)
        return member

    def _result(self, op: loom.OperationOp, place: int, read: Read) -> Term | None:
        """What a read of a fold's output is, if the fold is along the same dimensions."""
        if not is_plain_fold(op) or op.parent is not self.last.parent:
            return None
        written, index = op.out_maps[place].map, self.last.index
        kept = origin(written, op.kept_range(op.index), read.projection.map, index)
        if kept is None or self._moves(kept):
            return None
        for points in self._alignments(op, kept):
            if (op, points) in self._allowed:
                return self._known(op, points).outs[place]
            self.others.add((op, points))
        return None

    def _known(self, op: loom.OperationOp, points: AffineMap) -> Member:
        """The member that a fold is at some points."""
        if (op, points) not in self._found:
            self._found[op, points] = self._append(op, points)
        return self._found[op, points]

    def _alignments(self, op: loom.OperationOp, kept: AffineMap) -> list[AffineMap]:
        """The ways in which the dimensions that a fold folds, and its points, are the chain's."""
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
            points = AffineMap(matrix, offset, rank)
            inside = None if op.inside is None else op.inside.compose(points)
            if _rows(inside) == _rows(self.last.inside):
                found.append(points)
        return found


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
