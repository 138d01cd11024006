"""Integer points in a box under linear rows: do any exist, and how far do they reach?

    >>> solution_box(((64, 1),), (70,), (90,), (0, 0), (9, 63))      # 70 <= 64 x + y <= 90
    ((1, 6), (1, 26))
    >>> boxes_collide(((64, 1),), (10, 64), (1,)), boxes_collide(((64, 1),), (10, 65), (1,))
    (False, True)

Bounds are first propagated through the rows one variable at a time, which settles the rows that
programs have (units, strides, reversals, mixed radix). What is left goes to `lattice`. Sizes do not
matter to either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from tapestry.zspace.lattice import has_point
from tapestry.zspace.matrices import Matrix
from tapestry.zspace.points import Point

Bounds: TypeAlias = tuple[int, int]
"""Least and greatest value, both included."""

_ROUNDS = 16
"""Propagation stops after this many sweeps: bounds may creep towards their limit for ever."""

_CANDIDATES = 1000
"""How many lattice points are tried for one bound of a solution box before it is left as it is."""


@dataclass(frozen=True, slots=True)
class _Row:
    """`bounds[0] <= sum of coefficient * x[dim] <= bounds[1]`; no coefficient is zero."""

    terms: tuple[tuple[int, int], ...]
    bounds: Bounds


def boxes_collide(matrix: Matrix, extents: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether two points of a box with `extents` get overlapping boxes `[A x : A x + shape)`.

    They do when a difference `d` of two points, not zero, has `|A d| < shape` in every row. Both
    conditions are symmetric, so a bound on `|d|` per dimension is all the propagation needs.
    """
    if 0 in extents or 0 in shape:
        return False
    reach = [extent - 1 for extent in extents]
    for _ in range(_ROUNDS):
        before = tuple(reach)
        for row, size in zip(matrix, shape, strict=True):
            _limit_reach(row, size - 1, reach)
        if tuple(reach) == before:
            break
    moving = [dim for dim, limit in enumerate(reach) if limit]
    widths = [size - 1 for size in shape]
    for dim in moving:
        if all(abs(row[dim]) <= width for row, width in zip(matrix, widths, strict=True)):
            return True
    if len(moving) < 2:
        return False
    columns = tuple(tuple(row[dim] for dim in moving) for row in matrix)
    bounds = [(-reach[dim], reach[dim]) for dim in moving]
    rows = [(-width, width) for width in widths]
    return has_point(columns, bounds, rows, nonzero=True)


def solution_box(
    matrix: Matrix, low: Sequence[int], high: Sequence[int], first: Point, last: Point
) -> tuple[Point, Point] | None:
    """The tight box, as its first and last point, of the `x` with `first <= x <= last` and
    `low <= A x <= high`; None when there is no such x.

    Two or more rows that each mix several variables may exhaust the search; then the box contains
    the tight one.
    """
    rows = _rows(matrix, low, high)
    if rows is None or any(a > b for a, b in zip(first, last, strict=True)):
        return None
    box = _tight_box(rows, list(zip(first, last, strict=True)))
    return None if box is None else (tuple(x for x, _ in box), tuple(x for _, x in box))


def has_solution(
    matrix: Matrix, low: Sequence[int], high: Sequence[int], first: Point, last: Point
) -> bool:
    """Whether some `x` has `first <= x <= last` and `low <= A x <= high`; exact."""
    rows = _rows(matrix, low, high)
    if rows is None or any(a > b for a, b in zip(first, last, strict=True)):
        return False
    bounds = list(zip(first, last, strict=True))
    open_rows = _propagate(rows, bounds)
    return open_rows is not None and _has_solution(open_rows, bounds, limit=None)


def _rows(matrix: Matrix, low: Sequence[int], high: Sequence[int]) -> list[_Row] | None:
    """The rows of `low <= A x <= high` divided by what divides them; None if one cannot hold."""
    rows: list[_Row] = []
    for row, least, greatest in zip(matrix, low, high, strict=True):
        divisor = gcd(*row)
        if divisor == 0:
            if not least <= 0 <= greatest:
                return None
            continue
        terms = tuple((c // divisor, dim) for dim, c in enumerate(row) if c)
        bounds = (-(-least // divisor), greatest // divisor)
        if bounds[0] > bounds[1]:
            return None
        rows.append(_Row(terms, bounds))
    return rows


def _tight_box(rows: list[_Row], bounds: list[Bounds]) -> list[Bounds] | None:
    """The least and greatest value of each variable over the solutions; None without any."""
    open_rows = _propagate(rows, bounds)
    if open_rows is None or not _has_solution(open_rows, bounds):
        return None
    for dim in sorted({dim for row in open_rows for _, dim in row.terms}):
        low, high = bounds[dim]

        def up_to(x: int, dim: int = dim, low: int = low) -> bool:
            return _has_solution_with(open_rows, bounds, dim, (low, x))

        def down_to(x: int, dim: int = dim, high: int = high) -> bool:
            return _has_solution_with(open_rows, bounds, dim, (-x, high))

        bounds[dim] = (_first(low, high, up_to), -_first(-high, -low, down_to))
    return bounds


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first x in [low, high] with `holds(x)`, which stays true from there on, to `high`.

    The very first is asked before any other, for it nearly always is the answer.
    """
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _has_solution_with(
    rows: Sequence[_Row], bounds: Sequence[Bounds], dim: int, limit: Bounds
) -> bool:
    """Whether a solution has variable `dim` inside `limit`."""
    narrowed = [*bounds[:dim], limit, *bounds[dim + 1 :]]
    open_rows = _propagate(rows, narrowed)
    return open_rows is not None and _has_solution(open_rows, narrowed)


def _has_solution(
    rows: Sequence[_Row], bounds: Sequence[Bounds], *, limit: int | None = _CANDIDATES
) -> bool:
    """Whether rows that propagation left open can hold together; True when undecided at `limit`."""
    dims = sorted({dim for row in rows for _, dim in row.terms})
    coefficients = [{dim: c for c, dim in row.terms} for row in rows]
    matrix = tuple(tuple(row.get(dim, 0) for dim in dims) for row in coefficients)
    return not rows or has_point(
        matrix, [bounds[dim] for dim in dims], [row.bounds for row in rows], limit=limit
    )


def _propagate(rows: Sequence[_Row], bounds: list[Bounds]) -> list[_Row] | None:
    """Narrow `bounds` by the rows; the rows that may still fail, None when one cannot hold.

    With no row left, every combination of values within the bounds is a solution.
    """
    open_rows = list(rows)
    for _ in range(_ROUNDS):
        before = tuple(bounds)
        states = [_narrow(row, bounds) for row in open_rows]
        if None in states:
            return None
        open_rows = [row for row, settled in zip(open_rows, states, strict=True) if not settled]
        if tuple(bounds) == before:
            break
    return open_rows


def _narrow(row: _Row, bounds: list[Bounds]) -> bool | None:
    """Narrow `bounds` by one row; whether the row now always holds, None when it cannot hold."""
    least = greatest = 0
    for c, dim in row.terms:
        a, b = bounds[dim]
        least += c * a if c > 0 else c * b
        greatest += c * b if c > 0 else c * a
    low, high = row.bounds
    if least > high or greatest < low:
        return None
    if least >= low and greatest <= high:
        return True
    for c, dim in row.terms:
        a, b = bounds[dim]
        # The rest of the row spans [least - own least, greatest - own greatest].
        if c > 0:
            x, y = -(-(low - greatest + c * b) // c), (high - least + c * a) // c
        else:
            x, y = -(-(least - high - c * b) // -c), (greatest - low - c * a) // -c
        if x > b or y < a or max(a, x) > min(b, y):
            return None
        bounds[dim] = (max(a, x), min(b, y))
    return len(row.terms) == 1


def _limit_reach(row: Sequence[int], width: int, reach: list[int]) -> None:
    """Lower each `reach[k]` to the greatest |d_k| that `|row d| <= width` allows."""
    total = width + sum(abs(c) * limit for c, limit in zip(row, reach, strict=True))
    for dim, c in enumerate(row):
        if c:
            others = total - abs(c) * reach[dim]
            reach[dim] = min(reach[dim], others // abs(c))
