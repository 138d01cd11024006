"""How an index space is cut into parts that fit the cache.

    cuts = Cuts(index, accesses, threads=2)
    cuts.steps((0, 1))          # {0: 64, 1: 1024}: how long a part is along what is cut

What a part touches follows from projections. Dimensions are cut from the one with the longest
stride on, so that parts are long runs of memory; one that leaves much to be read again for each
part, as the rows of a product leave its other factor, is cut last and least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

from tapestry.algebra.bodies import moving_dims
from tapestry.zspace import Projection, Range

_LEAST = 1 << 16
"""Bytes below which a part is more overhead than work."""


@dataclass(frozen=True)
class Access:
    """Cells that the points of an index space touch: a tensor, or values in between.

    `strides` has the bytes between neighbours along each dimension of the tensor; `again` says that
    the cells come from memory each time, unless they fit the cache.
    """

    projection: Projection
    strides: tuple[int, ...]
    itemsize: int
    again: bool = False

    @staticmethod
    def of(projection: Projection, shape: Sequence[int], itemsize: int, *, again: bool) -> Access:
        """A tensor that is stored row by row."""
        strides = tuple(itemsize * prod(shape[dim + 1 :]) for dim in range(len(shape)))
        return Access(projection, strides, itemsize, again)

    def bytes(self, index: Range) -> int:
        """How much a range of points touches."""
        return self.projection.apply_range(index).size * self.itemsize

    def stride(self, dim: int) -> int:
        """Bytes from what a point touches to what its neighbour does."""
        rows = zip(self.projection.map.matrix, self.strides, strict=True)
        return sum(abs(row[dim]) * stride for row, stride in rows)

    def moves(self, dim: int) -> bool:
        """Whether neighbours touch different cells."""
        return dim in moving_dims(self.projection)


@dataclass(frozen=True)
class Cuts:
    """An index space, what its points touch, and how many threads there are for it.

    There are `each` parts for each thread, or more: who is done early takes what is left. A part
    fits the cache unless it is `any_size`.
    """

    index: Range
    accesses: Sequence[Access]
    threads: int
    cache: int
    each: int = 4
    any_size: bool = False

    def steps(self, dims: Sequence[int]) -> dict[int, int]:
        """Extents of a part along dimensions that may be cut; those that are left out are whole."""
        total = self._bytes(self.index, dims)
        budget = total // (self.each * self.threads)
        budget = budget if self.any_size else min(self.cache, budget)
        budget = max(budget, min(_LEAST, self.cache))
        found: dict[int, int] = {}
        part, left, spent = self.index, list(dims), False
        while left and (have := self._bytes(part, dims)) > budget:
            dim = min(left, key=partial(self._order, part))
            left.remove(dim)
            again = self._again(part, dim)
            if again and spent:
                break
            spent = spent or again > 0
            extent = self.index.shape[dim]
            fitting = extent * budget // have
            step = max(1, fitting, -(-extent // self._most(part, dim, again)))
            if step < extent:
                found[dim] = _even(extent, step)
                part = part.split(dim, found[dim])[0]
            if step == fitting:
                break  # other dimensions would make the runs of memory shorter
        return found

    def parts(self, steps: dict[int, int]) -> list[Range]:
        """The parts, row by row along the dimensions that are cut."""
        index = self.index
        ranges = [
            range(low, high, steps.get(dim, max(1, high - low)))
            for dim, (low, high) in enumerate(zip(index.start, index.end, strict=True))
        ]
        found: list[Range] = []
        for start in product(*ranges):
            ends = [
                min(high, at + steps[dim]) if dim in steps else high
                for dim, (at, high) in enumerate(zip(start, index.end, strict=True))
            ]
            found.append(Range(start, tuple(ends)))
        return found

    def bytes(self, part: Range) -> int:
        """What a part touches."""
        return sum(access.bytes(part) for access in self.accesses)

    def _bytes(self, part: Range, dims: Sequence[int]) -> int:
        """What a part touches of what is not the same for all parts."""
        return sum(a.bytes(part) for a in self.accesses if any(a.moves(d) for d in dims))

    def _order(self, part: Range, dim: int) -> tuple[int, int]:
        stride = max((access.stride(dim) for access in self.accesses), default=0)
        return self._again(part, dim), -stride

    def _again(self, part: Range, dim: int) -> int:
        """Bytes that parts of this one along a dimension read again, as no cache holds them."""
        fixed = (a.bytes(part) for a in self.accesses if a.again and not a.moves(dim))
        return sum(size for size in fixed if size > self.cache)

    def _most(self, part: Range, dim: int, again: int) -> int:
        """Into how many parts to cut this one, for them to read at most twice as much.

        They are the same number for each thread: of three, two threads wait for the last one.
        """
        if again == 0:
            return part.shape[dim]
        moving = sum(a.bytes(part) for a in self.accesses if a.again and a.moves(dim))
        return self.threads * max(1, (2 + moving // again) // self.threads)


def _even(extent: int, step: int) -> int:
    """A step that makes as many parts as `step`, or fewer, of like extents."""
    count = -(-extent // step)
    even = -(-extent // count)
    return even if even <= 64 else min(extent, -(-even // 16) * 16)
