"""Parts of an index space as far as their points count.

    insides = Insides.of(group.index, group.aligned, yielded)
    insides.shrunk(part)            # of a causal attention's rows: the keys that one of them sees
    insides.kind(part)              # parts of one kind are computed alike

Where every member that folds a dimension has a domain, what all of them skip need not be computed
by those that they read either. Ends are rounded, so that parts have few shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tapestry.algebra.bodies import moving_dims
from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_writes
from tapestry.zspace import AffineMap, Domain, Interval, Range

_SHAPES = 8
"""Into how many steps the extent of a dimension is rounded."""


@dataclass(frozen=True)
class Insides:
    """The domains of members, and those of all that fold a dimension, by the dimension."""

    index: Range
    domains: tuple[Domain, ...]
    folded: dict[int, tuple[Domain, ...]]

    @staticmethod
    def of(
        index: Range,
        members: Sequence[tuple[loom.OperationOp, AffineMap]],
        yielded: Sequence[SSAValue],
    ) -> Insides:
        """The domains of members over a group's index space."""
        folded: dict[int, list[Domain | None]] = {}
        domains: list[Domain] = []
        needed: set[int] = set()
        for member, place in members:
            if member.scan_dim is not None:  # what goes on from points needs those before them
                needed.add(place.matrix[member.scan_dim].index(1))
            domain = None if member.inside is None else member.inside.compose(place)
            if domain is not None:
                domains.append(domain)
            for dim in member.fold_dims:
                folded.setdefault(place.matrix[dim].index(1), []).append(domain)
            for value, projection in member_writes(member, place):
                if value in yielded:
                    needed |= moving_dims(projection)
        found: dict[int, tuple[Domain, ...]] = {}
        for dim, own in folded.items():
            whole = tuple(domain for domain in own if domain is not None)
            if len(whole) == len(own) and dim not in needed:
                found[dim] = whole
        return Insides(index, tuple(domains), found)

    def shrunk(self, part: Range) -> Range:
        """The part that some fold counts; a point of it where none does."""
        sides: dict[int, Interval] = {}
        for dim, domains in self.folded.items():
            bounds = [found for domain in domains if (found := domain.bounds(part)) is not None]
            first = min((box.start[dim] for box in bounds), default=part.start[dim])
            last = max((box.end[dim] for box in bounds), default=first + 1)
            step = -(-self.index.shape[dim] // _SHAPES)
            base = self.index.start[dim]
            low = max(part.start[dim], base + (first - base) // step * step)
            high = min(part.end[dim], base - (base - last) // step * step)
            sides[dim] = low, high
        return part.with_sides(sides)

    def kind(self, part: Range) -> Hashable:
        """The shape of a part, and which domains all of it is in."""
        return part.shape, *(domain.covers(part) for domain in self.domains)
