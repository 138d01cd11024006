"""Where the dimensions of operations are in a group, as far as that is known.

Dimensions are numbered as they are found. Two that turn out to be one are joined: what reads two
tensors at one point says so, of what two members that share nothing wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from tapestry.zspace import AffineMap, Range


@dataclass(frozen=True)
class Place:
    """A coordinate as one dimension of the group, shifted."""

    dim: int
    shift: int

    def less(self, shift: int) -> Place:
        """This coordinate, less a number."""
        return Place(self.dim, self.shift - shift)


Scale = tuple[tuple[tuple[int, int, int], ...], int]
"""Of the digits of a row, from the largest on, what each is times and where it runs; the shift."""


@dataclass(frozen=True)
class Written:
    """A row of several digits: what they are times, and where they are in the group."""

    scale: Scale
    places: tuple[Place, ...]

    def moved(self, where: Callable[[Place], Place]) -> Written:
        """The same row, its digits elsewhere."""
        return Written(self.scale, tuple(where(place) for place in self.places))


@dataclass
class Alignment:
    """The dimensions of a group as far as they are known, and what tensors are on them.

    `folded` and `kept` are those that some member folds, or does not. Unless `mixed`, none is both
    because two members read one tensor: what a matrix product folds of its factor, another keeps.

    `written` and `read` say, per tensor and row, where its coordinate is in the group; None for a
    row that is not one dimension. `digits` and `read_digits` say it of rows that are several, as
    `2 * d0 + d1` is. `totals` are dimensions along which a member folds all that it has.
    """

    mixed: bool = True
    folded: set[int] = field(default_factory=set[int])
    kept: set[int] = field(default_factory=set[int])
    bounds: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    members: list[list[Place]] = field(default_factory=list[list[Place]])
    written: dict[SSAValue, list[Place | None]] = field(
        default_factory=dict[SSAValue, "list[Place | None]"]
    )
    digits: dict[SSAValue, list[Written | None]] = field(
        default_factory=dict[SSAValue, "list[Written | None]"]
    )
    read: dict[tuple[SSAValue, int], Place] = field(
        default_factory=dict[tuple[SSAValue, int], Place]
    )
    read_digits: dict[tuple[SSAValue, int], Written] = field(
        default_factory=dict[tuple[SSAValue, int], "Written"]
    )
    totals: set[int] = field(default_factory=set[int])

    @property
    def index(self) -> Range:
        """The group's index space."""
        return Range.of_sides(self.bounds)

    @property
    def maps(self) -> list[AffineMap]:
        """Per member, its index point as a function of the group's."""
        rank = len(self.bounds)
        return [
            AffineMap.of(
                [[int(dim == place.dim) for dim in range(rank)] for place in places],
                [place.shift for place in places],
                inputs=rank,
            )
            for places in self.members
        ]

    def join(self, kept: Place, gone: Place, places: dict[int, Place]) -> bool:
        """Let two dimensions be one, where the first coordinate is the second; whether they can.

        They run alike, and no member has both: `places` are those of a member that is not one yet.
        """
        shift = kept.shift - gone.shift
        start, end = self.bounds[kept.dim]
        both = {kept.dim, gone.dim}
        members = [*self.members, list(places.values())]
        if self.bounds[gone.dim] != (start + shift, end + shift) or any(
            both <= {place.dim for place in member} for member in members
        ):
            return False

        def moved(place: Place) -> Place:
            if place.dim == gone.dim:
                place = Place(kept.dim, place.shift + shift)
            return Place(place.dim - (place.dim > gone.dim), place.shift)

        def moved_all(rows: Iterable[Place]) -> list[Place]:
            return [moved(place) for place in rows]

        for member in self.members:
            member[:] = moved_all(member)
        for row in self.written.values():
            row[:] = [None if place is None else moved(place) for place in row]
        for row in self.digits.values():
            row[:] = [None if at is None else at.moved(moved) for at in row]
        self.read = {key: moved(place) for key, place in self.read.items()}
        self.read_digits = {key: at.moved(moved) for key, at in self.read_digits.items()}
        for dims in (self.folded, self.kept, self.totals):
            now = {moved(Place(dim, 0)).dim for dim in dims}
            dims.clear()
            dims |= now
        places |= {dim: moved(place) for dim, place in places.items()}
        del self.bounds[gone.dim]
        return True
