"""Domains: which points of an index space are folded.

    domain: ["@i >= @j", "@i - @j < $window"]

Each row compares affine expressions of coordinates. The points where some row does not hold
contribute the monoid's zero, whatever their cells are.

    >>> from tapestry.metakernels.evaluation import Scope
    >>> from tapestry.metakernels.parsing import parse_expression
    >>> scope = Scope({"w": 3}, {"i": Affine((1, 0), 0), "j": Affine((0, 1), 0)}, (8, 8))
    >>> print(domain_of(row_forms(parse_expression("@i - @j < $w"), scope), (8, 8)))
    -d0 + d1 + 2 >= 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tapestry.metakernels.errors import DomainError
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.syntax import Compare, Expr
from tapestry.metakernels.values import Affine, add, integer, negate
from tapestry.zspace import Domain, Range

_ROWS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    ">=": ((1, 0),),
    ">": ((1, -1),),
    "<=": ((-1, 0),),
    "<": ((-1, -1),),
    "==": ((1, 0), (-1, 0)),
}
"""Per comparison, the sign of `left - right` and what is added to it, to make rows `>= 0`."""


def check_row(expr: Expr) -> None:
    """Raise unless `expr` is a comparison that can be a row."""
    if not isinstance(expr, Compare):
        raise DomainError("a row of a domain is a comparison", hint="for example @i >= @j")
    if expr.operator not in _ROWS:
        raise DomainError(
            f"`{expr.operator}` leaves two pieces, and a domain is one",
            hint="write two operations, or where(...) in wrap",
        )


def row_forms(expr: Expr, scope: Scope) -> list[Affine]:
    """What must not be negative for a row to hold."""
    assert isinstance(expr, Compare)
    difference = add(evaluate(expr.left, scope), negate(evaluate(expr.right, scope)))
    if not isinstance(difference, Affine):
        # A row may be about sizes and parameters alone.
        difference = Affine((0,) * len(scope.extents), integer(difference, "a row"))
    return [
        Affine(tuple(sign * c for c in difference.coefficients), sign * difference.constant + moved)
        for sign, moved in _ROWS[expr.operator]
    ]


def domain_of(forms: Sequence[Affine], extents: Sequence[int]) -> Domain | None:
    """The points where no form is negative; None when that is everywhere in the index space."""
    if not forms:
        return None
    matrix, offset = [form.coefficients for form in forms], [form.constant for form in forms]
    return Domain.of(matrix, offset, len(extents)).within(Range.of(extents))
