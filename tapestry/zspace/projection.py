"""Projections: which box of a tensor each point of an index space selects.

A point `i` selects `[A i + b : A i + b + shape)`; a range of points selects the bounding box of
what its points select. The window of a convolution with stride 2 and padding 1:

    >>> window = Projection.of([[2]], offset=[-1], shape=[3])
    >>> print(window, "|", window.apply_point((0,)), "|", window.apply_range(Range.of((4,))))
    (d0) -> (2 * d0 - 1) :> [3] | [-1] : [2] | [-1] : [8]
    >>> window.marginal_stride(0), window.overlap(0), window.waste(0, 4)
    ((2,), 1, 0)

An operation may be split wherever its projections say what each part reads and writes; nothing else
about the operation has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import add, lt

from tapestry.zspace import systems
from tapestry.zspace.affine import AffineMap, image_box, leading_rank
from tapestry.zspace.errors import DimMismatchError, InvalidArgumentError
from tapestry.zspace.points import (
    Point,
    as_point,
    format_point,
    require_rank,
    resolve_dim,
    resolve_permutation,
)
from tapestry.zspace.ranges import Range, unchecked


@dataclass(frozen=True, slots=True)
class Projection:
    """`map` places the first corner of the box, `shape` is its size (at least 0 everywhere)."""

    map: AffineMap
    shape: Point

    def __post_init__(self) -> None:
        shape = as_point(self.shape)
        object.__setattr__(self, "shape", shape)
        if len(shape) != self.map.outputs:
            raise DimMismatchError(
                f"box shape {format_point(shape)} has {len(shape)} dimensions where the map has "
                f"{self.map.outputs} rows"
            )
        if any(size < 0 for size in shape):
            raise InvalidArgumentError(f"box shape {format_point(shape)} has a negative size")

    @staticmethod
    def of(
        matrix: Sequence[Sequence[int]],
        offset: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
        inputs: int | None = None,
    ) -> Projection:
        """A projection from rows; offset zero and a box of one cell unless given."""
        mapping = AffineMap.of(matrix, offset, inputs)
        return Projection(mapping, (1,) * mapping.outputs if shape is None else as_point(shape))

    @staticmethod
    def cells(mapping: AffineMap) -> Projection:
        """The projection that selects the one cell where `mapping` leads."""
        return Projection(mapping, (1,) * mapping.outputs)

    @staticmethod
    def identity(rank: int) -> Projection:
        """The projection of each point of a `rank`-dimensional space to its own cell."""
        return Projection.cells(AffineMap.identity(rank))

    def __str__(self) -> str:
        return str(self.map) if self.is_unit else f"{self.map} :> {format_point(self.shape)}"

    @property
    def inputs(self) -> int:
        return self.map.inputs

    @property
    def outputs(self) -> int:
        return self.map.outputs

    @property
    def is_unit(self) -> bool:
        """Whether every point selects exactly one cell."""
        return all(size == 1 for size in self.shape)

    def apply_point(self, point: Sequence[int]) -> Range:
        """The box that `point` selects."""
        start = self.map.apply(point)
        return unchecked(start, tuple(map(add, start, self.shape)))

    def broadcast_apply(self, point: Sequence[int]) -> Range:
        """`apply_point` on the last coordinates; each extra leading one selects its own cell."""
        extra = leading_rank(point, self.inputs)
        lead = as_point(point[:extra])
        return Range(lead, tuple(x + 1 for x in lead)).product(self.apply_point(point[extra:]))

    def apply_range(self, index: Range) -> Range:
        """The bounding box of what the points of `index` select.

        An empty index selects an empty box, at the place its start maps to.
        """
        mapping = self.map
        if len(index.start) != mapping.inputs:
            raise DimMismatchError(
                f"{self} reads {mapping.inputs} dimensions, but range {index} has {index.rank}"
            )
        if not all(map(lt, index.start, index.end)):
            point = mapping.apply(index.start)
            return unchecked(point, point)
        return image_box(mapping, index, self.shape)

    def compose(self, inner: AffineMap) -> Projection:
        """This projection after `inner`: a point x selects what `inner(x)` selects here."""
        return Projection(self.map.compose(inner), self.shape)

    def then(self, outer: Projection) -> Projection:
        """What `outer` selects of the cells that this projection selects, as a bounding box.

        Reading a view: `self` selects cells of the view, `outer` gives each its source cells.
        """
        composed = outer.map.compose(self.map)
        if 0 in self.shape:
            return Projection(composed, (0,) * outer.outputs)
        box = image_box(outer.map, Range.of(self.shape), outer.shape)
        moved = [low - base for low, base in zip(box.start, outer.map.offset, strict=True)]
        return Projection(composed.translate(moved), box.shape)

    def translate(self, offset: Sequence[int]) -> Projection:
        """This projection with every box moved by `offset`."""
        return Projection(self.map.translate(offset), self.shape)

    def permute_input(self, permutation: Sequence[int]) -> Projection:
        """The projection whose input i is input `permutation[i]` of this one."""
        return Projection(self.map.permute_input(permutation), self.shape)

    def permute_output(self, permutation: Sequence[int]) -> Projection:
        """The projection whose output i is output `permutation[i]` of this one."""
        return self.select_outputs(resolve_permutation(permutation, self.outputs))

    def select_inputs(self, dims: Sequence[int]) -> Projection:
        """The projection of the given inputs only, in that order; the others are held at 0."""
        return Projection(self.map.select_inputs(dims), self.shape)

    def select_outputs(self, dims: Sequence[int]) -> Projection:
        """The projection to the given tensor dimensions only, in that order."""
        return Projection(self.map.select_outputs(dims), tuple(self.shape[dim] for dim in dims))

    def insert_inputs(self, positions: Sequence[int]) -> Projection:
        """The projection with further inputs, which it ignores, at `positions` of the result."""
        return Projection(self.map.insert_inputs(positions), self.shape)

    def is_injective_on(self, index: Range) -> bool:
        """Whether no two points of `index` select a common cell; exact."""
        require_rank(index.start, self.inputs, "index")
        return not systems.boxes_collide(self.map.matrix, index.shape, self.shape)

    def tiles(self, index: Range, target: Range) -> bool:
        """Whether the boxes of the points of `index` cover each cell of `target` exactly once."""
        if (
            self.is_unit
            and self.map.embeds_boxes
            and image_box(self.map, index, self.shape) == target
        ):
            return True
        cells = index.size * prod(self.shape)
        if cells != target.size or target.rank != self.outputs:
            return False
        if cells == 0:
            return True
        return self.apply_range(index) == target and self.is_injective_on(index)

    def marginal_stride(self, dim: int) -> Point:
        """How far the box moves per step of index dimension `dim`."""
        dim = resolve_dim(dim, self.inputs)
        return tuple(row[dim] for row in self.map.matrix)

    def overlap(self, dim: int) -> int:
        """How many cells two neighbours along index dimension `dim` both select."""
        stride = self.marginal_stride(dim)
        return prod(max(0, n - abs(a)) for n, a in zip(self.shape, stride, strict=True))

    def waste(self, dim: int, extent: int = 2) -> int:
        """Cells in the bounding box of `extent` consecutive points along `dim` that none selects.

        Boxes along a line are convex, so what a box shares with any earlier one it also shares with
        the one before: each step adds a box less its overlap.
        """
        if extent < 1:
            raise InvalidArgumentError(f"the extent along dimension {dim} is {extent}, not >= 1")
        stride = self.marginal_stride(dim)
        steps = extent - 1
        bound = prod(n + steps * abs(a) for n, a in zip(self.shape, stride, strict=True))
        cells = prod(self.shape)
        return bound - cells - steps * (cells - self.overlap(dim))
