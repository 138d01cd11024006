"""Where an operation folds nothing but its monoid's zero, and where nobody reads what it writes.

    wrap (%x: f32) { ... %y = arith.select %seen, %x, %lowest   loom.yield %y }      by @max

folds the zero of `@max` wherever `%seen` fails. Maps before the fold, and what earlier folds do
with their result, are looked through: a mask may stand where the scores are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat

from tapestry.algebra.contraction import find_contractions
from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom.derivation.planning import always_folds
from tapestry.passes.loom.derivation.terms import Inliner, Term, Terms
from tapestry.passes.loom.masks.conditions import Fact, Row, condition_rows, rows_of
from tapestry.passes.loom.masks.folding import Folding
from tapestry.passes.loom.masks.heights import is_moderate
from tapestry.passes.loom.masks.specials import Nature, Specials, number_of, special
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.zspace import AffineMap, Range
from tapestry.zspace.origins import origin


class Expressions:
    """What the body of a fold yields, written out; leaves are cells and results of folds."""

    def __init__(self, op: loom.OperationOp) -> None:
        self.op = op
        self.terms = Terms(op.index)
        self._named: dict[tuple[loom.OperationOp, int, AffineMap], str] = {}
        self._of_leaves: dict[Term, Specials] = {}
        self.states: set[Term] = set()
        self.inputs: list[Term] = []
        # One for all that is looked through, so that what it has come through is counted.
        self._inline = Inliner(self.terms, self._result)

    def wrapped(self) -> list[Term]:
        """What wrap yields at a point."""
        self.inputs = [self._inline(read) for read in self.op.in_reads]
        return self.terms.body(self.op.wrap_block, self.inputs)

    def folding(self, facts: Sequence[Fact], lowest: float = -inf) -> Folding:
        """Simplifies expressions where some facts hold."""
        return Folding(self.terms, self.op.index, self.nature, facts, lowest)

    @property
    def nature(self) -> Nature:
        """Says of expressions whether they are finite."""
        return Nature(self._of_leaves)

    def state(self, monoid: Monoid) -> list[Term]:
        """A state of which nothing is known."""
        parts = [
            self._leaf(self.terms.result(f"part {part}", kind), monoid, part)
            for part, kind in enumerate(monoid.state)
        ]
        self.states.update(parts)
        return parts

    def is_sum_of_products(self, name: str) -> bool:
        """Whether the result of that name is a sum of products, as of a contraction."""
        found = (op for (op, _, _), known in self._named.items() if known == name)
        return any(find_contractions(op, monoid_of(op)) is not None for op in found)

    def _result(self, op: loom.OperationOp, place: int, read: Read) -> Term | None:
        """What a read of a fold's output is, in terms of the folded state."""
        written, monoid = op.out_maps[place].map, monoid_of(op)
        kept = origin(written, op.kept_range(op.index), read.projection.map, self.op.index)
        if kept is None or monoid is None or op.parent is not self.op.parent:
            return None
        state = [
            self._leaf(self.terms.result(self._name(op, part, kept), kind), monoid, part)
            for part, kind in enumerate(op.state_types)
        ]
        for part, leaf in enumerate(state):
            if self._of_leaves.get(leaf) and _is_found(op, monoid, part):
                self._of_leaves[leaf] = frozenset()
        if op.unwrap_block is None:
            return state[place]
        extras = [self._inline(extra.compose(kept)) for extra in op.extra_reads]
        return self.terms.body(op.unwrap_block, [*state, *extras], _points(op, kept))[place]

    def _leaf(self, term: Term, monoid: Monoid, part: int) -> Term:
        zero = monoid.zero[part]
        if isinstance(zero, float):
            self._of_leaves[term] = special(zero)
        return term

    def _name(self, op: loom.OperationOp, part: int, kept: AffineMap) -> str:
        key = (op, part, kept)
        if key not in self._named:
            taken, label = set(self._named.values()), op.label.data
            names = (label, *(f"{label}.{n}" for n in range(len(taken) + 1)))
            self._named[key] = next(name for name in names if name not in taken)
        return self._named[key]


def _is_found(op: loom.OperationOp, monoid: Monoid, part: int) -> bool:
    """Whether a part of a state is an extremum of finite numbers, of which there always is one."""
    if op.index.is_empty or not always_folds(op):
        return False
    *_, end = monoid.merge.ops
    merge = end.operands[part].owner
    both = {monoid.merge.args[part], monoid.merge.args[part + len(monoid.state)]}
    if not isinstance(merge, arith.MaximumfOp | arith.MinimumfOp) or {*merge.operands} != both:
        return False
    expressions = Expressions(op)
    wrapped = expressions.wrapped()[part]
    folding = expressions.folding([Fact(row, True) for row in rows_of(op.inside)])
    return not expressions.nature(folding(wrapped))


def _points(op: loom.OperationOp, kept: AffineMap) -> AffineMap:
    """The points of an operation at some kept ones: the first along what it folds."""
    rows = dict(zip(op.kept_dims, zip(kept.matrix, kept.offset, strict=True), strict=True))
    first = ((0,) * kept.inputs, 0)
    matrix, offset = zip(*(rows.get(dim, first) for dim in range(op.index.rank)), strict=True)
    return AffineMap(matrix, offset, kept.inputs)


@dataclass(frozen=True)
class Masked:
    """A row outside of which a fold folds its zero, under assumptions on what it reads."""

    row: Row
    assumes: frozenset[str]


def masked(op: loom.OperationOp, lowest: float = -inf) -> Iterator[Masked]:
    """The rows that a fold's domain may have besides those that it has.

    Numbers not above the `lowest` are taken for -inf.
    """
    monoid = monoid_of(op)
    if monoid is None or op.scan_dim is not None or op.index.is_empty:
        return
    expressions = Expressions(op)
    wrapped = expressions.wrapped()
    facts = [Fact(row, True) for row in rows_of(op.inside)]
    found: set[Row] = set()
    for outside in _candidates(expressions, wrapped):
        inside = outside.negated
        low, high = inside.bounds(op.index)
        known = [*facts, *(Fact(row, True) for row in found)]
        if low >= 0 or high < 0 or any(fact.decides(inside) for fact in known):
            continue
        folding = expressions.folding([*facts, Fact(outside, True)], lowest)
        if _is_zero(expressions, folding, monoid, wrapped):
            found.add(inside)
            finite = (f"finite({_said(leaf)})" for leaf in folding.finite - expressions.states)
            divisors = (f"nonzero({_said(leaf)})" for leaf in folding.nonzero)
            cells = _finite_inputs(expressions, folding)
            yield Masked(inside, frozenset((*finite, *divisors, *cells)))


def sees_scores(op: loom.OperationOp, rows: Sequence[Row], lowest: float) -> bool:
    """Whether a fold sees what is far above the `lowest` where some rows hold (`heights.py`).

    The rows are such outside of which it folds numbers not above that. A fold that knows those by
    an earlier one's maximum is not looked through.
    """
    expressions = Expressions(op)
    wrapped = expressions.wrapped()
    known = [Fact(row, True) for row in rows_of(op.inside)]
    low: set[Term] = set()
    for row in rows:
        outside = expressions.folding([*known, Fact(row.negated, True)], lowest)
        low.update(term for term in wrapped if number_of(outside(term)) == -inf)
    inside = expressions.folding([*known, *(Fact(row, True) for row in rows)])
    seen = [inside(term) for term in low]
    return bool(seen) and all(is_moderate(term, expressions.is_sum_of_products) for term in seen)


def _finite_inputs(expressions: Expressions, folding: Folding) -> Iterator[str]:
    """Says of what an operation reads that it is finite, where all that it is made of is."""
    for read, term in zip(expressions.op.in_reads, expressions.inputs, strict=True):
        leaves = {one for one in term.below() if one.op is None and isinstance(one.kind, AnyFloat)}
        known = leaves and leaves <= folding.finite and not expressions.nature(folding(term))
        if known and read.value.name_hint is not None:
            yield f"finite({read.value.name_hint})"


def _candidates(expressions: Expressions, wrapped: Sequence[Term]) -> Iterator[Row]:
    """The rows of conditions that what wrap yields is computed of, and those that they fail."""
    seen: set[Row] = set()
    below = set[Term]().union(*(value.below() for value in wrapped))
    for term in [term for term in expressions.terms.made.values() if term in below]:
        found = condition_rows(term, expressions.op.index)
        for row in () if found is None else found[0]:
            for outside in (row.negated, row):
                if outside not in seen:
                    seen.add(outside)
                    yield outside


def _is_zero(
    expressions: Expressions, folding: Folding, monoid: Monoid, wrapped: Sequence[Term]
) -> bool:
    """Whether merging what is wrapped with any state is to merge the monoid's zero with it.

    It is the zero itself, or both merges simplify to one expression: of a weighted sum relative to
    a maximum, the weight is zero where the maximum is -inf, whatever is weighted.
    """
    values = [folding(term) for term in wrapped]
    numbers = [number_of(value) for value in values]
    if all(n == zero for n, zero in zip(numbers, monoid.zero, strict=True)):
        return True
    if any(isinstance(zero, complex) for zero in monoid.zero):
        return False
    parts = zip(monoid.real_zero, monoid.state, strict=True)
    zeros = [folding.number(zero, kind) for zero, kind in parts]
    state = expressions.state(monoid)

    def merged(first: Sequence[Term], second: Sequence[Term]) -> list[Term]:
        made = expressions.terms.body(monoid.merge, [*first, *second])
        return [folding(term) for term in made]

    return merged(state, values) == merged(state, zeros) and merged(values, state) == merged(
        zeros, state
    )


def _said(leaf: Term) -> str:
    """A leaf as people call it."""
    if leaf.read is not None:
        return leaf.read.value.name_hint or "a cell"
    return leaf.result or "a result"


_DEPTH = 3
"""Through how many operations it is followed where a cell is read."""


def rows_read(op: loom.OperationOp, depth: int = _DEPTH) -> list[Row]:
    """Rows over an operation's index space that hold wherever a cell that it writes is read.

    They mix kept dimensions alone. None are known where something reads all of a tensor. A domain
    says which points of a fold count, so wrap's inputs are read there only; and a cell that nobody
    reads needs nothing.
    """
    views: list[_View] = []
    for place, out in enumerate(op.outs):
        written = op.out_maps[place].map
        for use in out.uses:
            reader = use.operation
            if not isinstance(reader, loom.OperationOp) or in_group(reader):
                return []
            view = _viewed(op, written, reader, use.index, depth)
            if view is None:
                return []
            views.append(view)
    candidates = dict.fromkeys(row for view in views for row in view.rows())
    return [
        row.over(op.kept_dims, op.index.rank)
        for row in candidates
        if all(view.holds(row) for view in views)
    ]


def _viewed(
    op: loom.OperationOp, written: AffineMap, reader: loom.OperationOp, operand: int, depth: int
) -> _View | None:
    """Where a reader reads what an operation writes, if not everywhere."""
    in_wrap = operand < len(reader.in_maps)
    needed = rows_read(reader, depth - 1) if depth and reader.scan_dim is None else []
    rows = [*(rows_of(reader.inside) if in_wrap else ()), *needed]
    read = [*reader.in_reads, *reader.extra_reads][operand]
    if not rows or not read.is_plain:
        return None
    over = reader.index if in_wrap else reader.kept_range(reader.index)
    points = origin(written, op.kept_range(op.index), read.projection.map, over)
    if points is None:
        return None
    every = points if in_wrap else points.insert_inputs(reader.fold_dims)
    return _View(reader.index, every, tuple(rows))


@dataclass(frozen=True)
class _View:
    """Where a reader needs cells: the kept point that computes the one which each of its points
    reads, and the rows that hold at the points which need one.
    """

    index: Range
    points: AffineMap
    known: tuple[Row, ...]

    def rows(self) -> Iterator[Row]:
        """The rows of the reader's domain, over the kept dimensions where those tell them."""
        place: dict[int, tuple[int, int]] = {}
        for kept in range(self.points.outputs):
            dim = self.points.unit_row(kept)
            if dim is not None:
                place[dim] = (kept, self.points.offset[kept])
        for row in self.known:
            coefficients = [0] * self.points.outputs
            constant = row.constant
            for dim, factor in enumerate(row.coefficients):
                if factor and dim in place:
                    kept, shift = place[dim]
                    coefficients[kept] += factor
                    constant -= factor * shift
            if all(dim in place for dim, factor in enumerate(row.coefficients) if factor):
                yield Row(tuple(coefficients), constant)

    def holds(self, row: Row) -> bool:
        """Whether a row over the kept dimensions holds at all points that count."""
        seen = row.through(self.points)
        if self.index.is_empty or seen.bounds(self.index)[0] >= 0:
            return True
        return any(Fact(known, True).decides(seen) for known in self.known)
