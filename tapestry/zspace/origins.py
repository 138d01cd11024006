"""Where what is read was written: one map's points as a function of another's.

    >>> from tapestry.zspace import AffineMap, Range
    >>> written = AffineMap.of([[4, 1]])                    # (i, j) -> (4 * i + j)
    >>> read = AffineMap.of([[0, 4, -1]], [3])              # (a, b, c) -> (4 * b - c + 3)
    >>> print(origin(written, Range.of((6, 4)), read, Range.of((2, 6, 4))))
    (d0, d1, d2) -> (d1, -d2 + 3)

A row such as `4 * i + j` has no affine inverse: `i` is a quotient of the cell. But where what is
read is such a sum too, its terms go to the digits that they are multiples of.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.zspace.affine import AffineMap
from tapestry.zspace.ranges import Range


def origin(written: AffineMap, index: Range, read: AffineMap, over: Range) -> AffineMap | None:
    """The point of `index` that writes the cell which each point of `over` reads, if affine.

    `written` must be injective on `index`, and what is read must be among its images. The result
    takes every point of `over` to a point of `index`, and `written` after it is `read` there.
    """
    inverse = written.inverse_on(index)
    if inverse is not None:
        return inverse.compose(read)
    if over.is_empty or index.is_empty:
        return None
    settled = settle(read, over)
    rows: list[tuple[int, ...]] = [(0,) * over.rank] * index.rank
    offset = list(index.start)
    known: set[int] = set()
    for row, shift in enumerate(written.offset):
        terms = [(c, dim) for c, dim in written.terms[row] if index.shape[dim] > 1]
        if any(dim in known for _, dim in terms):
            return None
        known.update(dim for _, dim in terms)
        fixed = sum(c * index.start[d] for c, d in written.terms[row] if index.shape[d] == 1)
        part = settled.select_outputs([row]).translate([-shift - fixed])
        digits = _digits(terms, index, part, over)
        if digits is None:
            return None
        for (_, dim), (factors, constant) in zip(terms, digits, strict=True):
            rows[dim], offset[dim] = factors, constant
    return AffineMap(tuple(rows), tuple(offset), over.rank)


def settle(mapping: AffineMap, index: Range) -> AffineMap:
    """The same map on `index`, without the dimensions that have one coordinate there.

    >>> from tapestry.zspace import AffineMap, Range
    >>> print(settle(AffineMap.of([[2, 1]]), Range((3, 0), (4, 8))))
    (d0, d1) -> (d1 + 6)
    """
    still = [dim for dim, extent in enumerate(index.shape) if extent == 1]
    if not any(row[dim] for row in mapping.matrix for dim in still):
        return mapping
    matrix = tuple(
        tuple(0 if dim in still else x for dim, x in enumerate(row)) for row in mapping.matrix
    )
    offset = tuple(
        shift + sum(row[dim] * index.start[dim] for dim in still)
        for row, shift in zip(mapping.matrix, mapping.offset, strict=True)
    )
    return AffineMap(matrix, offset, mapping.inputs)


def _digits(
    terms: Sequence[tuple[int, int]], index: Range, read: AffineMap, over: Range
) -> list[tuple[tuple[int, ...], int]] | None:
    """Each dimension of `terms` as factors of those of `over` and a constant.

    `read` has one row, which the sum of the terms equals. Digits are found from the largest factor
    on: each takes the multiples of its factor, and of the constant what leaves the rest in range.
    """
    # What is left of the row, from the first point of `over` on: constant, and factor by dimension.
    (constant,) = read.apply(over.start)
    left = {dim: factor for factor, dim in read.terms[0]}
    for factor, dim in terms:
        constant -= factor * (index.start[dim] if factor > 0 else index.end[dim] - 1)
    ordered = sorted(range(len(terms)), key=lambda n: -abs(terms[n][0]))
    found: list[tuple[tuple[int, ...], int]] = [((), 0)] * len(terms)
    for place in ordered:
        factor, dim = terms[place]
        size, sign = abs(factor), 1 if factor > 0 else -1
        taken = {d: f // size for d, f in left.items() if f % size == 0}
        left = {d: f for d, f in left.items() if d not in taken}
        lowest = sum(f * (over.shape[d] - 1) for d, f in left.items() if f < 0)
        # What smaller digits are left to make is never negative.
        digit = (constant + lowest) // size
        constant -= digit * size
        ends = [(f * (over.shape[d] - 1), 0) for d, f in taken.items()]
        least = digit + sum(map(min, ends))
        most = digit + sum(map(max, ends))
        if least < 0 or most >= index.shape[dim]:
            return None
        first = index.start[dim] if sign > 0 else index.end[dim] - 1
        start = first + sign * (digit - sum(f * over.start[d] for d, f in taken.items()))
        found[place] = (tuple(sign * taken.get(d, 0) for d in range(over.rank)), start)
    return found if constant == 0 and not left else None
