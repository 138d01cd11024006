"""Affine maps `x -> A x + b` between integer lattices.

    >>> f = AffineMap.of([[64, 1]], [-3])
    >>> print(f, f.apply((2, 5)))
    (d0, d1) -> (64 * d0 + d1 - 3) (130,)
    >>> rows = Range.of((10, 64))
    >>> f.is_injective(), f.is_injective_on(rows), f.is_injective_on(Range.of((10, 65)))
    (False, True, False)
    >>> print(f.image(rows), "|", f.preimage(Range((61,), (125,)), rows))
    [-3] : [637] | [1, 0] : [2, 64]

A map with no rows still has a number of inputs: it forgets a point of that rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import add
from typing import TypeAlias

from tapestry.zspace import matrices, systems
from tapestry.zspace.errors import DimMismatchError
from tapestry.zspace.matrices import Matrix
from tapestry.zspace.points import (
    Point,
    as_point,
    format_point,
    require_rank,
    resolve_dim,
    resolve_dims,
    resolve_permutation,
)
from tapestry.zspace.ranges import Range, unchecked

Terms: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class AffineMap:
    """`x -> matrix x + offset`; `matrix` has one row per output and `inputs` columns.

    `terms` lists, for each output, the (coefficient, input) pairs that are not zero: projections
    are sparse, and applying one is the inner loop of planning.
    """

    matrix: Matrix
    offset: Point
    inputs: int
    terms: tuple[Terms, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        matrix = tuple(as_point(row) for row in self.matrix)
        offset = as_point(self.offset)
        for row in matrix:
            if len(row) != self.inputs:
                raise DimMismatchError(
                    f"row {format_point(row)} has {len(row)} coefficients where the map has "
                    f"{self.inputs} inputs"
                )
        if len(offset) != len(matrix):
            raise DimMismatchError(
                f"offset {format_point(offset)} has {len(offset)} dimensions where the map has "
                f"{len(matrix)} rows"
            )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "offset", offset)
        terms = tuple(tuple((c, dim) for dim, c in enumerate(row) if c) for row in matrix)
        object.__setattr__(self, "terms", terms)

    @staticmethod
    def of(
        matrix: Sequence[Sequence[int]],
        offset: Sequence[int] | None = None,
        inputs: int | None = None,
    ) -> AffineMap:
        """A map from rows; the offset defaults to zero, `inputs` to the first row's length or 0."""
        rows = tuple(map(tuple, matrix))
        if inputs is None:
            inputs = len(rows[0]) if rows else 0
        return AffineMap(rows, (0,) * len(rows) if offset is None else tuple(offset), inputs)

    @staticmethod
    def identity(rank: int) -> AffineMap:
        """The map of `rank` coordinates onto themselves."""
        return AffineMap.diagonal(*(1,) * rank)

    @staticmethod
    def diagonal(*factors: int) -> AffineMap:
        """The map that multiplies coordinate i by `factors[i]`."""
        rank = len(factors)
        return AffineMap.of(
            [[f if r == c else 0 for c in range(rank)] for r, f in enumerate(factors)], inputs=rank
        )

    @property
    def outputs(self) -> int:
        return len(self.matrix)

    def __str__(self) -> str:
        names = ", ".join(f"d{dim}" for dim in range(self.inputs))
        rows = ", ".join(map(format_row, self.terms, self.offset))
        return f"({names}) -> ({rows})"

    def apply(self, point: Sequence[int]) -> Point:
        """`matrix point + offset`."""
        require_rank(point, self.inputs, "point")
        x = as_point(point)
        return tuple(
            sum([c * x[dim] for c, dim in terms], b)
            for terms, b in zip(self.terms, self.offset, strict=True)
        )

    def broadcast_apply(self, point: Sequence[int]) -> Point:
        """`apply` to the last coordinates; extra leading ones pass through unchanged."""
        extra = leading_rank(point, self.inputs)
        return (*as_point(point[:extra]), *self.apply(point[extra:]))

    def compose(self, inner: AffineMap) -> AffineMap:
        """This map after `inner`: `x -> self(inner(x))`."""
        if inner.outputs != self.inputs:
            raise DimMismatchError(
                f"{self} cannot follow {inner}: it reads {self.inputs} coordinates, "
                f"not {inner.outputs}"
            )
        matrix = tuple(_combine(terms, inner) for terms in self.terms)
        return AffineMap(matrix, self.apply(inner.offset), inner.inputs)

    def translate(self, offset: Sequence[int]) -> AffineMap:
        """This map with its results moved by `offset`."""
        require_rank(offset, self.outputs, "offset")
        return AffineMap(self.matrix, tuple(map(add, self.offset, as_point(offset))), self.inputs)

    def permute_input(self, permutation: Sequence[int]) -> AffineMap:
        """The map whose input i is input `permutation[i]` of this one."""
        return self.select_inputs(resolve_permutation(permutation, self.inputs))

    def permute_output(self, permutation: Sequence[int]) -> AffineMap:
        """The map whose output i is output `permutation[i]` of this one."""
        return self.select_outputs(resolve_permutation(permutation, self.outputs))

    def select_inputs(self, dims: Sequence[int]) -> AffineMap:
        """The map of the given inputs only, in that order; the inputs left out are held at 0."""
        kept = resolve_dims(dims, self.inputs)
        matrix = tuple(tuple(row[dim] for dim in kept) for row in self.matrix)
        return AffineMap(matrix, self.offset, len(kept))

    def select_outputs(self, dims: Sequence[int]) -> AffineMap:
        """The map to the given outputs only, in that order."""
        kept = resolve_dims(dims, self.outputs)
        matrix = tuple(self.matrix[dim] for dim in kept)
        return AffineMap(matrix, tuple(self.offset[dim] for dim in kept), self.inputs)

    def insert_inputs(self, positions: Sequence[int]) -> AffineMap:
        """The map with further inputs, which it ignores, at `positions` of the result's inputs."""
        inputs = self.inputs + len(positions)
        new = frozenset(resolve_dims(positions, inputs))
        old = [dim for dim in range(inputs) if dim not in new]
        matrix = tuple(
            tuple(dict(zip(old, row, strict=True)).get(dim, 0) for dim in range(inputs))
            for row in self.matrix
        )
        return AffineMap(matrix, self.offset, inputs)

    def unit_row(self, output: int) -> int | None:
        """The input that output `output` copies up to a constant, if it does."""
        terms = self.terms[resolve_dim(output, self.outputs)]
        if len(terms) == 1 and terms[0][0] == 1:
            return terms[0][1]
        return None

    def is_injective(self) -> bool:
        """Whether no two points at all have the same image: full column rank."""
        alone = {terms[0][1] for terms in self.terms if len(terms) == 1}
        return len(alone) == self.inputs or matrices.rank(self.matrix) == self.inputs

    def is_injective_on(self, index: Range) -> bool:
        """Whether no two points of `index` have the same image; exact, mixed rows included."""
        self._require_index(index)
        return not systems.boxes_collide(self.matrix, index.shape, (1,) * self.outputs)

    def inverse(self) -> AffineMap | None:
        """The map back, when every point of the output lattice has exactly one origin."""
        if self.outputs != self.inputs:
            return None
        matrix = self._inverse_permutation() or matrices.inverse(self.matrix)
        if matrix is None:
            return None
        back = AffineMap(matrix, (0,) * self.inputs, self.inputs)
        return back.translate([-x for x in back.apply(self.offset)])

    @property
    def embeds_boxes(self) -> bool:
        """Whether it plainly maps every box onto a box, one to one.

        Each output is one input up to sign and offset, or constant; each input occurs once.
        """
        moving = [terms for terms in self.terms if terms]
        return (
            len(moving) == self.inputs
            and all(len(terms) == 1 and abs(terms[0][0]) == 1 for terms in moving)
            and len({terms[0][1] for terms in moving}) == self.inputs
        )

    def _inverse_permutation(self) -> Matrix | None:
        """The inverse matrix when every output is one input up to sign, as it mostly is."""
        place: dict[int, int] = {}
        for output, terms in enumerate(self.terms):
            if len(terms) != 1 or abs(terms[0][0]) != 1:
                return None
            place[terms[0][1]] = output
        if len(place) != self.inputs:
            return None
        return tuple(
            tuple(
                self.matrix[place[row]][row] if place[row] == column else 0
                for column in range(self.inputs)
            )
            for row in range(self.inputs)
        )

    def inverse_on(self, index: Range) -> AffineMap | None:
        """A map that takes the image of every point of `index` back to it, if a simple one does.

        Dimensions of one coordinate are constants, and outputs that then do not move are ignored;
        what is left must be invertible over the integers.

            >>> kept = AffineMap.of([[1], [0]])                 # i -> (i, 0)
            >>> str(kept.inverse_on(Range((0,), (8,))))
            '(d0, d1) -> (d0)'
        """
        self._require_index(index)
        everywhere = self.inverse()
        if everywhere is not None:
            return everywhere
        moving = [dim for dim, extent in enumerate(index.shape) if extent != 1]
        matrix = [[int(dim == column) for column in moving] for dim in range(self.inputs)]
        offset = [0 if dim in moving else start for dim, start in enumerate(index.start)]
        points = AffineMap.of(matrix, offset, inputs=len(moving))
        images = self.compose(points)
        rows = [output for output, row in enumerate(images.matrix) if any(row)]
        back = images.select_outputs(rows).inverse()
        if back is None:
            return None
        return points.compose(back).compose(AffineMap.identity(self.outputs).select_outputs(rows))

    def image(self, index: Range) -> Range:
        """The tight box of the images of `index`; an empty one at the image of an empty start."""
        self._require_index(index)
        if index.is_empty:
            point = self.apply(index.start)
            return unchecked(point, point)
        return image_box(self, index, (1,) * self.outputs)

    def preimage(self, target: Range, within: Range) -> Range:
        """The tight box of the points of `within` whose image lies in `target`.

        Empty, at the start of `within`, when there is no such point. Exact for rows that are units,
        strides, reversals or mixed radix; several rows that mix the same dimensions may give a box
        that is larger than the tight one, never smaller.
        """
        self._require_index(within)
        if target.rank != self.outputs:
            raise DimMismatchError(f"{self} has {self.outputs} outputs, but the target is {target}")
        low = tuple(a - b for a, b in zip(target.start, self.offset, strict=True))
        high = tuple(a - b - 1 for a, b in zip(target.end, self.offset, strict=True))
        last = tuple(x - 1 for x in within.end)
        found = systems.solution_box(self.matrix, low, high, within.start, last)
        if found is None:
            return unchecked(within.start, within.start)
        return unchecked(found[0], tuple(x + 1 for x in found[1]))

    def _require_index(self, index: Range) -> None:
        if index.rank != self.inputs:
            raise DimMismatchError(
                f"{self} reads {self.inputs} dimensions, but range {index} has {index.rank}"
            )


def image_box(mapping: AffineMap, index: Range, shape: Point) -> Range:
    """The tight box of `[A i + b : A i + b + shape)` over the points of a nonempty `index`.

    Each row is interval arithmetic on its own: a positive coefficient is least at the first
    coordinate and greatest at the last, a negative one the other way round.
    """
    start, end = index.start, index.end
    lows: list[int] = []
    highs: list[int] = []
    for terms, low, size in zip(mapping.terms, mapping.offset, shape, strict=True):
        high = low + size
        for coefficient, dim in terms:
            if coefficient > 0:
                low += coefficient * start[dim]
                high += coefficient * (end[dim] - 1)
            else:
                low += coefficient * (end[dim] - 1)
                high += coefficient * start[dim]
        lows.append(low)
        highs.append(high)
    return unchecked(tuple(lows), tuple(highs))


def leading_rank(point: Sequence[int], rank: int) -> int:
    """How many coordinates of `point` come before its last `rank`; DimMismatchError if too few."""
    if len(point) < rank:
        raise DimMismatchError(
            f"point {format_point(point)} has {len(point)} dimensions where at least {rank} "
            "are needed"
        )
    return len(point) - rank


def _combine(terms: Terms, inner: AffineMap) -> Point:
    """The sum of the given multiples of rows of `inner`."""
    row: Point = (0,) * inner.inputs
    for coefficient, dim in terms:
        row = tuple(x + coefficient * y for x, y in zip(row, inner.matrix[dim], strict=True))
    return row


def format_row(terms: Terms, constant: int) -> str:
    text = ""
    for coefficient, dim in terms:
        sign = (
            ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        )
        factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)} * "
        text += f"{sign}{factor}d{dim}"
    if not text:
        return str(constant)
    if constant:
        text += f" {'-' if constant < 0 else '+'} {abs(constant)}"
    return text
