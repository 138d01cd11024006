"""How sums of products are gone along: in tiles, a few places of each kept dimension at once.

    Tiles(lanes=16, kept=(8, 1, 2), folded=(0, 3, 3), arrays=(...))

is of eight places of the first kept dimension, and of two vectors along the last; what is folded is
a loop, and a window that is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

At = tuple[int, ...]
"""A place of a tile, or of what is read for it: 0 along dimensions that it does not move along."""

SCATTERED = -1
"""The step of an array whose cells are anywhere along a vector."""


@dataclass(frozen=True)
class Guard:
    """A coordinate: the sum of factors times places, and an offset.

    Below 0, and at its limit or above, what is read is zero.
    """

    terms: tuple[tuple[int, int], ...]
    """Dimensions and factors."""
    offset: int


@dataclass(frozen=True)
class Access:
    """How an array is read or written, along the kept dimensions and then the folded ones."""

    moves: tuple[bool, ...]
    step: int = 0
    """Cells from one of a vector to the next; 0 where it is the same one."""
    guards: tuple[Guard, ...] = ()
    shared: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Per dimension all coordinates of a cell that it moves, and by how much: so cells are known
    that several places of a tile meet. A dimension moves several where a diagonal is read."""


@dataclass(frozen=True)
class Panel:
    """Memory that the first factor is copied to for a block of places, as it is met there.

    A block is of kept dimensions from `outer` on that the first factor moves along, `dims`. Cells
    of the panel are at `coordinates`, each a sum of dimensions times factors, of which the last
    one's cells are neighbours: it has the dimension of vectors. `arrays` are what the factor is
    computed of, along the places of the block's first cell for each kept dimension, and then along
    coordinates.
    """

    outer: int
    dims: tuple[int, ...]
    coordinates: tuple[tuple[tuple[int, int], ...], ...]
    arrays: tuple[Access, ...]

    def factor(self, dim: int) -> tuple[int, int] | None:
        """The coordinate that a dimension moves, and by how much."""
        for number, terms in enumerate(self.coordinates):
            for one, by in terms:
                if one == dim:
                    return number, by
        return None


@dataclass(frozen=True)
class Tiles:
    """How a sum of products is gone along.

    `kept` has the places that are computed at once, vectors of so many `lanes` along the last; the
    extent of every other one is that at least. `folded` has the extents of dimensions that are
    unrolled, which come last, and 0 for loops. `arrays` are what factors are computed of, what is
    read beside the sums, and what is written.
    """

    lanes: int
    kept: tuple[int, ...]
    folded: tuple[int, ...]
    arrays: tuple[Access, ...]
    packed: bool = False
    """Whether numbers of the second factor are copied, in the order in which they are met."""
    short: bool = False
    """Whether there is less than one vector along the last kept dimension, or less than a whole one
    at the end of what is summed."""
    apart: int = 0
    """Outer folded dimensions at each place of which there are sums of their own, which are added
    to those before: so errors grow slowly."""
    summed: bool = False
    """Whether vectors are along the last folded dimension, and lanes of sums are added up. Then all
    folded dimensions are loops, and what is kept has no vectors."""
    panel: Panel | None = None
    """Where the first factor is copied, too: then all numbers of the second one are, at once."""

    @property
    def rank(self) -> int:
        return len(self.kept) + len(self.folded)

    @property
    def vector(self) -> int:
        """The dimension that vectors are along."""
        return (self.rank if self.summed else len(self.kept)) - 1

    def arguments(self) -> list[tuple[str, int, int]]:
        """What comes after the extents: where arrays are, and how many bytes from there they are
        read first, strides, and limits of guards.

        Then where factors are copied to, how many places a block has, and by how many bytes each
        coordinate of a panel moves.
        """
        found: list[tuple[str, int, int]] = []
        for array, access in enumerate(self.arrays):
            found += [("address", array, 0), ("start", array, 0)]
            for dim, moving in enumerate(access.moves):
                if moving and not (dim == self.vector and access.step > 0):
                    found.append(("stride", array, dim))
            found += [("limit", array, number) for number in range(len(access.guards))]
        if self.packed:
            found.append(("room", 0, 0))
        if self.panel is not None:
            found.append(("panel", 0, 0))
            found += [("block", 0, dim) for dim in self.panel.dims]
            found += [("pace", 0, n) for n in range(len(self.panel.coordinates) - 1)]
        return found

    def places(self, arrays: Sequence[int]) -> list[At]:
        """The places of what is read of some arrays for a tile."""
        return list(
            product(
                *(
                    range(tile if any(self.arrays[one].moves[dim] for one in arrays) else 1)
                    for dim, tile in enumerate(self.kept)
                )
            )
        )

    def every(self, dims: Sequence[int]) -> Iterator[At]:
        """The places of a tile along some dimensions."""
        return product(*(range(self.kept[dim]) for dim in dims))

    def own(self, at: At, arrays: Sequence[int]) -> At:
        """The place of what is read of some arrays for a place of a tile."""
        return tuple(
            n if any(self.arrays[one].moves[dim] for one in arrays) else 0
            for dim, n in enumerate(at)
        )

    def cell(self, array: int, at: At, point: At) -> object:
        """What is the same where an array has the same cells: at a place of a tile, and of the
        folded dimensions that are unrolled.
        """
        shared = self.arrays[array].shared
        found: dict[int, int] = {}
        # Vectors need not be a vector's length apart.
        for dim, n in (*enumerate(at[:-1]), *enumerate(point, self.rank - len(point))):
            for coordinate, by in shared[dim]:
                found[coordinate] = found.get(coordinate, 0) + by * n
        return (array, at[-1], *sorted(found.items()))
