"""Positions in a block, to be delinearized: divided by what dimensions inside of one have.

    k_start % 384 + k_lanes         k % 384, in blocks of 32: no run of 384 ends inside of one
    k_start // 128                  k // 128: a number, the same for all lanes
    k_lanes % 4                     k % 4: the same in all blocks, known outside of a loop

Blocks start at multiples of their size: by what divides it, or is a multiple of it, the start of a
block and its lanes are divided on their own. By another length each position is, and outside of a
loop by what divides the size: `p // 4` says it in one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.passes.triton.tiles.builder import Sizes, TileBuilder


@dataclass(frozen=True)
class Linear:
    """Positions along an axis, or runs of `inner` of them.

    Of a block, the value is the sum of `first` and `lanes`: a multiple of n, and numbers below n,
    which is the size of the block over `inner`.
    """

    tiles: TileBuilder
    value: SSAValue
    first: SSAValue | None = None
    lanes: SSAValue | None = None
    block: str = ""
    inner: int = 1
    repeats: bool = False

    @staticmethod
    def of_block(
        tiles: TileBuilder, first: SSAValue, lanes: SSAValue, block: str, *, repeats: bool
    ) -> Linear:
        """The positions of a block that starts at a multiple of its size.

        Where a loop goes from block to block, what `repeats` is divided outside of it.
        """
        if first == tiles.position(0):
            return Linear(tiles, lanes)
        return Linear(tiles, tiles.add(first, lanes), first, lanes, block, repeats=repeats)

    def quotient(self, length: int | SSAValue) -> Linear:
        """The positions divided by a length, rounded down."""
        tiles, by = self.tiles, self._length(length)
        if self.first is None or self.lanes is None or isinstance(length, SSAValue):
            return Linear(tiles, tiles.quotient(self.value, by))
        if self._is_in_one_run(length):
            return Linear(tiles, tiles.quotient(self.first, by))
        if not self._has_whole_runs(length):
            return Linear(tiles, tiles.quotient(self.value, by))
        first, lanes = tiles.quotient(self.first, by), tiles.quotient(self.lanes, by)
        value = tiles.add(first, lanes)
        return replace(self, value=value, first=first, lanes=lanes, inner=self.inner * length)

    def remainder(self, length: int | SSAValue) -> SSAValue:
        """What `quotient` leaves."""
        tiles, by = self.tiles, self._length(length)
        if self.first is not None and self.lanes is not None and isinstance(length, int):
            if self._is_in_one_run(length):
                rest = tiles.remainder(self.first, by)
                self._tell_multiple(rest)
                return tiles.add(rest, self.lanes)
            if self._has_whole_runs(length):
                return tiles.remainder(self.lanes, by)
        return tiles.remainder(self.value, by)

    def _tell_multiple(self, rest: SSAValue) -> None:
        """Say of what the remainder of a start is a multiple, which Triton 3.6 does not see.

        Where neighbours start at such a place, 16 bytes are loaded at once.
        """
        block = self.block
        if self.inner == 1 and self.tiles.holds(lambda sizes: sizes[block] > 1):
            assert isinstance(rest.owner, Operation)
            rest.owner.attributes[triton.MULTIPLE_OF] = StringAttr(block)

    def _length(self, length: int | SSAValue) -> SSAValue:
        return self.tiles.position(length) if isinstance(length, int) else length

    def _is_in_one_run(self, length: int) -> bool:
        """Whether a run of some length has blocks as a whole: none ends inside a block."""
        block, inner = self.block, self.inner
        return self.tiles.holds(lambda sizes: length % _lanes(sizes, block, inner) == 0)

    def _has_whole_runs(self, length: int) -> bool:
        """Whether blocks that repeat have runs of some length as a whole."""
        block, inner = self.block, self.inner
        if not self.repeats:
            return False
        return self.tiles.holds(lambda sizes: _lanes(sizes, block, inner) % length == 0)


def _lanes(sizes: Sizes, block: str, inner: int) -> int:
    return sizes[block] // inner
