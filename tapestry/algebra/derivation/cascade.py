"""Folds that read the results of earlier folds over the same points, derived into one pass.

The sum of exponentials relative to the largest cell, as it is written:

    >>> x, m = symbol("x"), symbol("m")
    >>> found = derive([Fold("m", "max", x), Fold("l", "add", exp(x - m))], cells={"x"})
    >>> for part in found.parts:
    ...     print(part.name, part.monoid, "| a point:", part.point, "| moved:", part.moved)
    m max | a point: x | moved: None
    l add | a point: 1 | moved: [l]*exp(to m)

What a state holds for some points is a fold of each kind, seen from the state's own *centre* (here
the largest cell so far). Merging two states moves both to their common centre, by `to m`, and adds.
Cells may be multiplied in, so that `exp(x - m) * v` is one more part of the same kind, and scaled
by anything that does not vary along the fold: attention is nothing else. For squares relative to a
mean, the closure finds the merge that is known from computing variances.

Only what is stable is accepted: sums are seen from an extremum or a mean of the cells they are of.
Writing exp(x - m) as exp(x) / exp(m) is never done; writing a variance as the mean square less the
squared mean, sums that may cancel (`cancellation`), only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

from tapestry.algebra.derivation.cancellation import CancelsError, check_cancellation
from tapestry.algebra.derivation.closure import Rows, closure
from tapestry.algebra.derivation.model import (
    LN2,
    Centre,
    Derivation,
    Fold,
    NotDerivableError,
    Part,
    Result,
    mean_of,
    value_of,
)
from tapestry.algebra.derivation.polynomials import (
    Monomial,
    OutsideClassError,
    Polynomial,
    constant,
    exp,
    of_monomial,
    symbol,
)

_COUNT = Monomial()
"""The element whose sum counts the points."""


def derive(
    folds: Sequence[Fold],
    cells: AbstractSet[str],
    *,
    finished: AbstractSet[str] = frozenset(),
    may_be_empty: bool = False,
    separate: bool = False,
) -> Derivation:
    """The one pass that computes folds over the same points, earlier ones first.

    `cells` vary from point to point. `finished` are symbols computed of earlier results, of which
    nothing is known; all others are the same for all points and states. `may_be_empty` says that
    there may be no points. `separate` takes sums apart even where they may cancel, if nothing else
    is found. Raises `NotDerivableError`.
    """
    work = _Work(frozenset(cells), frozenset(finished), frozenset(finished), separate)
    for fold in folds:
        try:
            work.add(fold)
        except (OutsideClassError, NotDerivableError) as error:
            raise NotDerivableError(str(error), fold.name) from error
    guarded = any(result.guards for result in work.results.values())
    if guarded and may_be_empty:
        work.count()
    centres = tuple(work.used_centres())
    return Derivation(
        tuple(work.parts),
        centres,
        work.results,
        work.elements.get(_COUNT),
        tuple(work.steps),
    )


@dataclass
class _Work:
    """What is derived so far."""

    cells: frozenset[str]
    finished: frozenset[str]
    running: frozenset[str]
    separate: bool
    parts: list[Part] = field(default_factory=list[Part])
    centres: list[Centre] = field(default_factory=list[Centre])
    elements: dict[Monomial, str] = field(default_factory=dict[Monomial, str])
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    steps: list[str] = field(default_factory=list[str])

    def add(self, fold: Fold) -> None:
        """One more fold."""
        if fold.body.symbols.isdisjoint(self.running):
            self._plain(fold)
        elif fold.monoid == "add":
            self._sum(fold)
        elif fold.monoid in ("max", "min"):
            self._extremum(fold)
        else:
            raise NotDerivableError(
                f"{fold.name} folds by {fold.monoid} what depends on an earlier fold"
            )
        self.running |= {fold.name, mean_of(fold.name)}

    def count(self) -> str:
        """The part that counts points."""
        if _COUNT not in self.elements:
            self._new(Part("n", "add", constant(1)), _COUNT)
        return self.elements[_COUNT]

    def used_centres(self) -> Iterator[Centre]:
        """The centres that parts are seen from or that results are computed of."""
        used = {name for part in self.parts for name in part.centres}
        for result in self.results.values():
            used |= result.value.symbols | {*result.guards, *result.finite}
        for centre in self.centres:
            if centre.name in used:
                more = (self.count(),) if centre.kind == "mean" else ()
                yield replace(centre, parts=(*centre.parts, *more))

    def _new(self, part: Part, element: Monomial | None = None) -> str:
        """Another part of the state, by a name that is free; `element` is what it sums."""
        taken = {other.name for other in self.parts}
        names = (part.name, *(f"{part.name}{k}" for k in range(1, len(taken) + 1)))
        name = next(name for name in names if name not in taken)
        self.parts.append(replace(part, name=name))
        if element is not None:
            self.elements[element] = name
        return name

    def _plain(self, fold: Fold) -> None:
        """A fold of cells alone is a part as it is; sums of one thing are one part."""
        terms = list(fold.body.terms)
        single = fold.monoid == "add" and len(terms) == 1 and terms[0][1] == 1
        element = terms[0][0] if single else None
        if element in self.elements:
            name = self.elements[element]
        else:
            name = self._new(Part(fold.name, fold.monoid, fold.body), element)
            self.steps.append(f"{fold.name} = {fold.said} of {fold.body}: a part of the state")
        self.results[fold.name] = Result(symbol(value_of(name)))
        cell = next((c for c in self.cells if fold.body == symbol(c)), None)
        if cell is not None and fold.monoid in ("max", "min"):
            kind: Literal["max", "min"] = "max" if fold.monoid == "max" else "min"
            self.centres.append(Centre(fold.name, kind, cell, (name,)))
        if cell is not None and fold.monoid == "add":
            self.centres.append(Centre(mean_of(fold.name), "mean", cell, (name,)))

    def _is_local(self, name: str) -> bool:
        """Whether a symbol varies from point to point: a cell, or its distance from a centre."""
        return name in self.cells or any(name == c.distance for c in self.centres)

    def _sum(self, fold: Fold) -> None:
        self.steps.append(f"{fold.name} = sum of {fold.body}")
        reasons: list[Exception] = []
        pairings = list(self._pairings(fold.body))
        exact = [(shifts, False) for shifts in pairings]
        for shifts, separate in exact + [(s, True) for s in pairings if self.separate]:
            try:
                outer = self._parted(fold.body, shifts)
                if not separate:
                    check_cancellation(outer, {c.distance for c in shifts})
                rows = closure(list(outer), {c.distance: c.shift for c in shifts}, self._is_local)
                for element in rows:
                    _check_stable(element, shifts)
            except (OutsideClassError, NotDerivableError) as error:
                reasons.append(error)
                continue
            self._take(fold, outer, rows, shifts)
            return
        why = str(reasons[-1])
        if isinstance(reasons[0], CancelsError) and len(pairings) > 1:
            centres = " and ".join(c.name for c in pairings[-1])
            why = f"{reasons[0]}; relative to {centres}, {why}"
        raise NotDerivableError(f"{fold.name} = sum of {fold.body}: {why}")

    def _pairings(self, body: Polynomial) -> Iterator[tuple[Centre, ...]]:
        """Which centre to see each cell from: none first, then its own, exponents before powers."""
        yield ()
        exponents = [m.exponent.symbols for m, _ in body.terms if m.exponent is not None]
        choices: dict[str, list[Centre]] = {}
        for centre in self.centres:
            named = centre.name in body.symbols or self._bounds(centre, exponents)
            if named and centre.cell in body.symbols:
                choices.setdefault(centre.cell, []).append(centre)
        for found in choices.values():
            found.sort(key=lambda c: not any(c.name in symbols for symbols in exponents))
        yield from (pairing for pairing in product(*choices.values()) if pairing)

    def _bounds(self, centre: Centre, exponents: Sequence[AbstractSet[str]]) -> bool:
        """Whether an exponential is relative to something computed of results, and this centre
        bounds it: `exp(x - g)` is `exp(x - m)` times `exp(m - g)`, which is no larger than the sum.
        """
        return centre.kind != "mean" and any(
            centre.cell in symbols and not self.finished.isdisjoint(symbols)
            for symbols in exponents
        )

    def _parted(self, body: Polynomial, shifts: Sequence[Centre]) -> dict[Monomial, Polynomial]:
        """A body as elements that vary from point to point, times what is applied at the end."""
        seen = body.replaced({c.cell: symbol(c.distance) + symbol(c.name) for c in shifts})
        outer = seen.parted(self._is_local)
        for element, factor in outer.items():
            mixed = element.symbols & self.running
            if mixed:
                raise NotDerivableError(
                    f"{element} mixes cells with {', '.join(sorted(mixed))}, and does not part"
                )
            own = frozenset[str]() if element.exponent is None else element.exponent.symbols
            for monomial, _ in factor.terms:
                far = () if monomial.exponent is None else monomial.exponent.symbols
                located = {c.name for c in self.centres} | self.results.keys()
                if not own.isdisjoint(self.cells):
                    # What is computed of results says nothing of the cells.
                    located |= self.running
                elif not self.finished.isdisjoint(far):
                    located -= {c.name for c in shifts if c.name not in body.symbols}
                if not located.isdisjoint(far):
                    raise NotDerivableError(
                        f"taking {monomial} out of the sum would overflow: nothing that "
                        f"{element} is relative to bounds it"
                    )
        return outer

    def _take(
        self,
        fold: Fold,
        outer: dict[Monomial, Polynomial],
        rows: Rows,
        shifts: Sequence[Centre],
    ) -> None:
        """Make the elements of a closure parts of the state, and the fold a sum of them."""
        zeros = {_distance(c) for c in shifts if c.kind == "mean"}
        if any(c.kind == "mean" for c in shifts):
            self.count()
        for zero in sorted(map(str, zeros & rows.keys())):
            self.steps.append(f"the sum of {zero} is zero")
        new = [e for e in rows if e not in self.elements and e not in zeros]
        for element in new:
            self._new(Part(fold.name, "add", _at_one_point(element, shifts)), element)
        for element in new:
            self._move(element, rows[element], shifts, zeros)
        value = constant(0)
        for element, factor in outer.items():
            if element not in zeros:
                value = value + factor * symbol(value_of(self.elements[element]))
        # Relative to something else, it is what that says where the extremum is the zero.
        seen = [c for c in shifts if c.name in fold.body.symbols]
        guards = tuple(c.name for c in seen if c.kind != "mean")
        means = tuple(c.name for c in shifts if c.kind == "mean")
        self.results[fold.name] = Result(value, guards, means)
        self.steps.append(f"{fold.name} = {value}")

    def _move(
        self,
        element: Monomial,
        row: dict[Monomial, Polynomial],
        shifts: Sequence[Centre],
        zeros: AbstractSet[Monomial],
    ) -> None:
        """Say how an element's part moves from one centre to another."""
        centres = tuple(c.name for c in shifts if c.distance in element.symbols)
        if not centres:
            return
        moved = constant(0)
        for other, factor in row.items():
            if other not in zeros:
                moved = moved + factor * symbol(value_of(self.elements[other]))
        name = self.elements[element]
        at = next(n for n, part in enumerate(self.parts) if part.name == name)
        self.parts[at] = replace(self.parts[at], moved=moved, centres=centres)
        self.steps.append(f"{name} is the sum of {element}; from another centre it is {moved}")

    def _extremum(self, fold: Fold) -> None:
        """The extremum of what varies; what all points have in common is added at the end."""
        self.steps.append(f"{fold.name} = {fold.monoid} of {fold.body}")
        terms = [Polynomial(frozenset([term])) for term in fold.body.terms]
        own = [term for term in terms if any(map(self._is_local, term.symbols))]
        mixed = [term for term in own if not term.symbols.isdisjoint(self.running)]
        if mixed or not own:
            why = f"{mixed[0]} does not part" if mixed else "nothing in it varies"
            raise NotDerivableError(f"{fold.name} = {fold.monoid} of {fold.body}: {why}")
        varies = Polynomial.of(t for term in own for t in term.terms)
        name = self._new(Part(fold.name, fold.monoid, varies))
        value = symbol(value_of(name)) + fold.body - varies
        own_centres = (
            c.name for c in self.centres if c.name in fold.body.symbols and c.cell in varies.symbols
        )
        self.results[fold.name] = Result(value, finite=tuple(own_centres))
        self.steps.append(f"{fold.name} = {value}")


def _at_one_point(element: Monomial, shifts: Sequence[Centre]) -> Polynomial:
    """An element where the one cell is its own centre.

    An exponential of the distance is one. A power stays where the centre is an extremum, because
    infinity less itself is NaN and not zero; of a mean, the result says so (`Result.finite`), and
    the power stays only where it is multiplied by other cells, which may be infinite as well.
    """
    means = {c.distance: constant(0) for c in shifts if c.kind == "mean"}
    point = of_monomial(Monomial(element.powers))
    if element.symbols <= means.keys():
        point = point.replaced(means)
    if element.exponent is None:
        return point
    return point * exp(element.exponent.replaced({c.distance: constant(0) for c in shifts}))


def _distance(centre: Centre) -> Monomial:
    return Monomial(frozenset([(centre.distance, 1)]))


def _check_stable(element: Monomial, shifts: Sequence[Centre]) -> None:
    """Refuse sums that may overflow, or that do not vanish where the cells are the zero."""
    exponent = Polynomial() if element.exponent is None else element.exponent
    for centre in shifts:
        slopes = [
            factor if monomial.symbols <= {centre.distance, LN2} else None
            for monomial, factor in exponent.terms
            if centre.distance in monomial.symbols
        ]
        if centre.kind == "mean" and slopes:
            raise NotDerivableError(f"{element}: a mean does not bound an exponential")
        if centre.kind == "mean" or centre.distance not in element.symbols:
            continue
        sign = 1 if centre.kind == "max" else -1
        if len(slopes) != 1 or slopes[0] is None or slopes[0] * sign < 0:
            raise NotDerivableError(
                f"{element} does not vanish where {centre.cell} is the zero of @{centre.kind}"
            )
