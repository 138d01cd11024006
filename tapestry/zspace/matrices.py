"""Exact integer linear algebra on small matrices, as tuples of rows of Python integers.

>>> rank(((1, 2), (2, 4)))
1
>>> inverse(((1, 1), (0, 1))), inverse(((2,),))
(((1, -1), (0, 1)), None)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

Matrix: TypeAlias = tuple[tuple[int, ...], ...]


def rank(matrix: Matrix) -> int:
    """The number of linearly independent rows, by Bareiss's fraction-free elimination."""
    rows = [list(row) for row in matrix]
    found, previous = 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        head = rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column]
            rows[r] = [
                (head[column] * x - factor * y) // previous
                for x, y in zip(rows[r], head, strict=True)
            ]
        previous = head[column]
        found += 1
    return found


def inverse(matrix: Matrix) -> Matrix | None:
    """The inverse of a square matrix when it has integer entries (determinant 1 or -1)."""
    n = len(matrix)
    rows = [
        [Fraction(x) for x in row] + [Fraction(int(r == c)) for c in range(n)]
        for r, row in enumerate(matrix)
    ]
    for column in range(n):
        pivot = next((r for r in range(column, n) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = [x / rows[column][column] for x in rows[column]]
        rows[column] = head
        for r in range(n):
            factor = rows[r][column]
            if r != column and factor:
                rows[r] = [x - factor * y for x, y in zip(rows[r], head, strict=True)]
    right = [row[n:] for row in rows]
    if any(x.denominator != 1 for row in right for x in row):
        return None
    return _integers(right)


def _integers(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(int(x) for x in row) for row in rows)
