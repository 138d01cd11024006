"""Does a box under linear rows contain an integer point? Exact, whatever the sizes.

    >>> has_point(((6, 10, 15),), [(-9, 9)] * 3, [(1, 1)])         # 6 x + 10 y + 15 z = 1
    True
    >>> has_point(((2, 2, 4),), [(-(2**40), 2**40)] * 3, [(1, 1)])   # parity forbids it
    False

The pairs `(x, A x)` form a lattice, and the question is whether it has a point in a box. Its basis
is reduced (Lenstra, Lenstra and Lovasz 1982) after scaling every coordinate to the width of the
box, and the lattice points in the ball around the box are enumerated, nearest first (Fincke and
Pohst 1985; Schnorr and Euchner 1994). Arithmetic is on fractions, so nothing is rounded.

For a box around zero the candidates before the first that fits are bounded by the number of
variables, whatever the sizes. A box that the lattice only touches with a corner may take many,
hence `limit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor

from tapestry.zspace.matrices import Matrix

_LOVASZ = Fraction(3, 4)


def has_point(
    matrix: Matrix,
    bounds: Sequence[tuple[int, int]],
    rows: Sequence[tuple[int, int]],
    *,
    nonzero: bool = False,
    limit: int | None = None,
) -> bool:
    """Whether an integer `x` within `bounds` has `matrix x` within `rows`; all bounds inclusive.

    With `nonzero`, an `x` other than zero. With `limit`, the answer is True, whatever the truth,
    once that many candidates did not fit.
    """
    limits = [*bounds, *rows]
    n = len(bounds)
    basis = [[*(int(i == k) for i in range(n)), *(row[k] for row in matrix)] for k in range(n)]
    # Powers of two are as good as the exact widths, and keep the numbers small. A coordinate that
    # has one value only must be met exactly: its scale puts any other outside the ball.
    bits = [(high - low).bit_length() for low, high in limits]
    top = max(bits, default=0)
    scales = [1 << (top - b) if b else (len(limits) + 1) << top for b in bits]
    reduced = _reduce([[x * s for x, s in zip(v, scales, strict=True)] for v in basis])
    centre = [Fraction((low + high) * s, 2) for (low, high), s in zip(limits, scales, strict=True)]
    radius = sum(
        Fraction((high - low) * s, 2) ** 2 for (low, high), s in zip(limits, scales, strict=True)
    )
    for tried, vector in enumerate(_near(reduced, centre, Fraction(radius))):
        inside = all(
            low * s <= x <= high * s
            for x, (low, high), s in zip(vector, limits, scales, strict=True)
        )
        if (inside and (any(vector) or not nonzero)) or tried == limit:
            return True
    return False


def _reduce(basis: list[list[int]]) -> list[list[int]]:
    """An LLL-reduced basis of the same lattice."""
    k = 1
    while k < len(basis):
        for j in reversed(range(k)):
            _, factors, _ = _orthogonalize(basis[: k + 1])
            q = round(factors[k][j])
            if q:
                basis[k] = [x - q * y for x, y in zip(basis[k], basis[j], strict=True)]
        _, factors, norms = _orthogonalize(basis[: k + 1])
        if norms[k] >= (_LOVASZ - factors[k][k - 1] ** 2) * norms[k - 1]:
            k += 1
        else:
            basis[k - 1], basis[k] = basis[k], basis[k - 1]
            k = max(k - 1, 1)
    return basis


def _orthogonalize(
    basis: Sequence[Sequence[int]],
) -> tuple[list[list[Fraction]], list[list[Fraction]], list[Fraction]]:
    """Gram-Schmidt: the orthogonal vectors, their factors in each basis vector, squared norms."""
    vectors: list[list[Fraction]] = []
    factors: list[list[Fraction]] = []
    norms: list[Fraction] = []
    for row in basis:
        vector = [Fraction(x) for x in row]
        mine: list[Fraction] = []
        for other, norm in zip(vectors, norms, strict=True):
            factor = _dot(row, other) / norm
            vector = [x - factor * y for x, y in zip(vector, other, strict=True)]
            mine.append(factor)
        vectors.append(vector)
        factors.append(mine)
        norms.append(_dot(vector, vector))
    return vectors, factors, norms


def _near(basis: list[list[int]], centre: list[Fraction], radius: Fraction) -> Iterator[list[int]]:
    """Every lattice point within the root of `radius` of `centre`, nearest first per coordinate."""
    vectors, factors, norms = _orthogonalize(basis)
    target = [_dot(centre, v) / norm for v, norm in zip(vectors, norms, strict=True)]
    off = _dot(centre, centre) - sum(
        (t * t * norm for t, norm in zip(target, norms, strict=True)), Fraction(0)
    )

    def extend(level: int, chosen: list[int], left: Fraction) -> Iterator[list[int]]:
        if level < 0:
            yield _combine(basis, chosen, len(centre))
            return
        middle = target[level] - sum(
            (chosen[j] * factors[j][level] for j in range(level + 1, len(basis))), Fraction(0)
        )
        for x in _outward(middle):
            rest = left - (x - middle) ** 2 * norms[level]
            if rest < 0:
                return
            chosen[level] = x
            yield from extend(level - 1, chosen, rest)

    yield from extend(len(basis) - 1, [0] * len(basis), radius - off)


def _outward(middle: Fraction) -> Iterator[int]:
    """All integers, by distance from `middle`."""
    low = floor(middle)
    high = low + 1
    while True:
        if middle - low <= high - middle:
            yield low
            low -= 1
        else:
            yield high
            high += 1


def _combine(basis: list[list[int]], coefficients: list[int], width: int) -> list[int]:
    total = [0] * width
    for c, vector in zip(coefficients, basis, strict=True):
        if c:
            total = [x + c * y for x, y in zip(total, vector, strict=True)]
    return total


def _dot(a: Sequence[int | Fraction], b: Sequence[int | Fraction]) -> Fraction:
    return sum((Fraction(x) * y for x, y in zip(a, b, strict=True)), Fraction(0))
