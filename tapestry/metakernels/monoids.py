"""The monoids that folds and scans name: the built-in ones, and those of a template.

    monoids:
      total_and_count:
        zero: [0, 0]
        merge: ["a[0] + b[0]", "a[1] + b[1]"]
        commutative: true

`a` and `b` are the states that merge; of a single part, they are its values. The zero is given in
numbers, which take the types of the state that `wrap` makes.

    >>> parts_of("argmax", ())
    2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

from tapestry.metakernels.bodies import Body, rounds
from tapestry.metakernels.constants import Known, coerce
from tapestry.metakernels.dtypes import is_float, promote
from tapestry.metakernels.errors import DtypeMismatchError, MonoidError, nearest
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.expansion import MonoidBody
from tapestry.metakernels.scalars import Scalar
from tapestry.metakernels.syntax import Expr
from tapestry.metakernels.templates import MonoidDefinition, Source

STATISTICS: Final = {"logsumexp": 2, "welford": 3}
"""Built-in monoids whose parts are floats of one type, and how many they are."""

MONOIDS: Final = {
    **dict.fromkeys(("add", "mul", "max", "min", "and", "or"), 1),
    "argmax": 2, "argmin": 2, **STATISTICS,
}  # fmt: skip
"""The built-in monoids, and how many parts their state has."""

LEFT: Final = "a"
RIGHT: Final = "b"
"""What a merge calls the two states; the left one comes first in the order of the fold."""


def find(name: str, own: Iterable[MonoidDefinition]) -> MonoidDefinition | None:
    """The template's own monoid of that name."""
    return next((definition for definition in own if definition.name == name), None)


def parts_of(name: str, own: Iterable[MonoidDefinition]) -> int | None:
    """How many parts the state of a monoid has; None when there is no such monoid."""
    definition = find(name, own)
    return MONOIDS.get(name) if definition is None else len(definition.zero)


def check_definition(
    definition: MonoidDefinition, names: Sequence[str], check: Callable[..., None]
) -> None:
    """Raise unless `definition` is complete; `check(source, what, known)` checks an expression.

    `names` are the monoids that the template folds by.
    """
    what = f"monoids.{definition.name}"
    if definition.name in MONOIDS:
        raise MonoidError(
            f"{what}: this name is a built-in monoid", location=definition.location,
            hint="choose another",
        )  # fmt: skip
    if definition.name not in names:
        raise MonoidError(
            f"{what}: nothing folds by it", location=definition.location,
            hint=nearest(definition.name, names) if names else "name it in fold or scan",
        )  # fmt: skip
    if len(definition.zero) != len(definition.merge) or not definition.zero:
        raise MonoidError(
            f"{what}: the zero has {len(definition.zero)} parts, and merge gives "
            f"{len(definition.merge)}",
            location=definition.location,
            hint="both have a value for each part of the state",
        )
    for zero in definition.zero:
        check(zero, f"{what}.zero", ())
    for merge in definition.merge:
        check(merge, f"{what}.merge", (LEFT, RIGHT))


def widens(monoid: str | None, own: Iterable[MonoidDefinition]) -> bool:
    """Whether merging rounds floats, so that those of half precision are folded in f32."""
    if monoid is None:
        return False
    definition = find(monoid, own)
    if definition is None:
        return monoid in ("add", "mul", *STATISTICS)
    return any(rounds(merge.tree) for merge in definition.merge)


def same_float(parts: Sequence[Scalar | Known], monoid: str) -> list[Scalar]:
    """The parts of a statistic in the one float type that they meet in; numbers take it."""
    dtypes = [part.dtype for part in parts if not isinstance(part, Known)]
    if not dtypes or not is_float(dtype := reduce(promote, dtypes)):
        found = f"not {dtypes[0]}" if dtypes else "and none of its parts has a type"
        raise DtypeMismatchError(f"{monoid} folds floats, {found}", hint="cast(..., f32)")
    return [coerce(part, dtype) for part in parts]


def type_definition(
    definition: MonoidDefinition, scope: Scope, state: tuple[str, ...]
) -> MonoidBody:
    """The monoid on states whose parts have the dtypes `state`."""
    names: Mapping[str, range] = {
        LEFT: range(len(state)), RIGHT: range(len(state), 2 * len(state)),
    }  # fmt: skip
    numbers = Body(Scope(scope.names), {})
    body = Body(Scope(scope.names), {}, (*state, *state), states=names)

    def typed(
        sources: Sequence[Source[Expr]], key: str, read: Callable[..., Scalar]
    ) -> list[Scalar]:
        values: list[Scalar] = []
        for source, dtype in zip(sources, state, strict=True):
            with source.explain(f"monoids.{definition.name}.{key}"):
                values.append(read(source.tree, dtype))
        return values

    zero = tuple(typed(definition.zero, "zero", numbers.constant))
    merge = tuple(typed(definition.merge, "merge", body.read))
    return MonoidBody(definition.name, state, zero, merge, definition.commutative)
