"""Vectors of arrays that tiles read and write: of neighbours, of every few cells, zero outside.

    vectors = Vectors(write, tiles, known)
    mask = vectors.inside(array, places, extent)            # `places` per dimension
    value = vectors.read(array, kind, pointer, mask)

Guards make masks: a lane is on if all its coordinates are inside. Memory is not touched for others,
so an address may be anywhere there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.tiles import SCATTERED, Guard, Tiles
from tapestry.codegen.loops.vectors import BYTES, Value


class Vectors:
    """What is read along the last kept dimension; `known` are arguments of the function."""

    def __init__(
        self, write: Function, tiles: Tiles, known: Mapping[tuple[str, int, int], str]
    ) -> None:
        self._write, self._tiles, self._known = write, tiles, known

    def read(self, array: int, kind: str, pointer: str, mask: Value | None) -> Value:
        """A vector of an array, or the number that all its lanes have; `mask` as of `inside`."""
        write, step = self._write, self._tiles.arrays[array].step
        if step > 1:
            return self._every(pointer, kind, step, mask)
        write.mask = mask if step else None
        if step == SCATTERED:
            value = write.gathered(self._pointers(array, pointer), kind)
        else:
            value = write.load(pointer, kind, wide=step == 1)
        write.mask = None
        return value

    def write(self, value: Value, array: int, kind: str, pointer: str) -> None:
        """Write a vector of an array, of which the lanes of a mask count."""
        step = self._tiles.arrays[array].step
        if step == 1:
            self._write.store(value, pointer, kind)
            return
        stride = None if step == SCATTERED else str(step * BYTES[kind])
        self._write.scattered(value, self._pointers(array, pointer, stride), kind)

    def _pointers(self, array: int, pointer: str, stride: str | None = None) -> str:
        """Where the cells of each lane are, so many bytes apart, or as arguments say."""
        write = self._write
        if stride is None:
            stride = self._known["stride", array, self._tiles.vector]
        steps = write.binary("mul", self._cells("i64", 1), Value(stride, "i64"))
        text = f"getelementptr i8, ptr {pointer}, <{write.lanes} x i64> {steps.name}"
        return write.made(text, "ptr", wide=True).name

    def rest(self, extent: str) -> Value | None:
        """The lanes that there are, where they are less than a vector."""
        return self._below(extent, 1) if self._tiles.short else None

    def inside(self, array: int, places: Sequence[str], extent: str) -> Value | None:
        """The cells that are read of an array, of which lanes may have every few: those that there
        are, whose coordinates are inside. None where that is all of them.
        """
        step = self._tiles.arrays[array].step
        if step < 2:
            return self._inside(array, places, extent, 1)
        write = self._write
        with write.of(write.lanes * step):
            mask = self._inside(array, places, extent, step)
            own = ", ".join(f"i1 {int(n % step == 0)}" for n in range(write.lanes))
            chosen = Value(f"<{own}>", "i1", wide=True, lanes=write.lanes)
            return chosen if mask is None else write.binary("and", mask, chosen)

    def whole(self, arrays: Iterable[int], places: Sequence[str], extent: str) -> str:
        """Whether all lanes are there, and inside, for some arrays; with what is read between."""
        write, tiles = self._write, self._tiles
        steps = {one: max(1, tiles.arrays[one].step) for one in arrays}
        # Of a vector of every few cells, those after the last one are read as well.
        count = str(write.lanes + int(max(steps.values()) > 1))
        found = write.made(f"icmp sge i64 {extent}, {count}", "i1", wide=False)
        for one, step in steps.items():
            for number, guard in enumerate(tiles.arrays[one].guards):
                where, factor = self._coordinate(guard, places)
                reach = factor * (write.lanes - 1) + (step - 1 if factor else 0)
                limit = Value(self._known["limit", one, number], "i64")
                last = write.binary("sub", limit, Value(str(reach), "i64"))
                least = write.compared("sge", where, Value("0", "i64"))
                most = write.compared("slt", where, last)
                found = write.binary("and", found, write.binary("and", least, most))
        return found.name

    def _inside(self, array: int, places: Sequence[str], extent: str, step: int) -> Value | None:
        write, tiles, access = self._write, self._tiles, self._tiles.arrays[array]
        found = self._below(extent, step) if tiles.short else None
        along: list[tuple[Value, str, int]] = []
        outer: list[Value] = []
        for number, guard in enumerate(access.guards):
            where, factor = self._coordinate(guard, places)
            limit = self._known["limit", array, number]
            if factor:
                along.append((where, limit, factor))
            else:
                outer.append(write.compared("ult", where, Value(limit, "i64")))
        if not along:
            for one in outer:
                wide = write.widened(one)
                found = wide if found is None else write.binary("and", found, wide)
            return found
        # Lanes that there are not are not written, but would be summed, or read anywhere.
        kept = tiles.summed or len(access.shared[tiles.vector]) > len(along)
        inside = found if kept else None
        for where, limit, factor in along:
            for one in outer:
                text = f"select i1 {one.name}, i64 {limit}, i64 0"
                limit = write.made(text, "i64", wide=False).name
            outer = []
            first = write.widened(write.cast("trunc", where, "i32"))
            cells = write.binary("add", first, self._cells("i32", factor, step))
            limits = write.cast("trunc", Value(limit, "i64"), "i32")
            own = write.compared("ult", cells, limits)
            inside = own if inside is None else write.binary("and", own, inside)
        return inside

    def _below(self, extent: str, step: int) -> Value:
        """The cells of so many lanes, which may be many more than there are."""
        few = self._write.least(extent, str(self._write.lanes * step))
        count = self._write.made(f"trunc i64 {few} to i32", "i32", wide=False)
        return self._write.compared("ult", self._cells("i32", 1, step), count)

    def _coordinate(self, guard: Guard, places: Sequence[str]) -> tuple[Value, int]:
        """Where a vector begins, and by how much each lane is further."""
        where, along = str(guard.offset), 0
        for dim, factor in guard.terms:
            step = self._write.arithmetic("mul", places[dim], str(factor))
            where = self._write.arithmetic("add", where, step)
            along = factor if dim == self._tiles.vector else along
        return Value(where, "i64"), along

    def _every(self, pointer: str, kind: str, step: int, mask: Value | None) -> Value:
        """Every so many cells of memory, of those of a mask."""
        write, lanes = self._write, self._write.lanes
        with write.of(lanes * step):
            write.mask = mask
            cells = write.load(pointer, kind, wide=True)
            write.mask = None
        return write.picked(cells, range(0, lanes * step, step))

    def _cells(self, kind: str, factor: int, step: int = 1) -> Value:
        """How far the cells of each lane are, where there are `step` for one."""
        count = self._write.lanes
        elements = ", ".join(f"{kind} {n // step * factor}" for n in range(count))
        return Value(f"<{elements}>", kind, wide=True, lanes=count)
