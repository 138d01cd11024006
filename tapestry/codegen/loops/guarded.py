"""Vectors of arrays that tiles read: of neighbours, of every few cells, and zero outside.

    vectors = Vectors(write, tiles, known)
    value = vectors.read(array, kind, pointer, places)      # `places` per dimension

Guards make masks: a lane is on if all its coordinates are inside. Memory is not touched for others,
so an address may be anywhere there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.tiles import SCATTERED, Guard, Tiles
from tapestry.codegen.loops.vectors import Value


class Vectors:
    """What is read along the last kept dimension; `known` are arguments of the function."""

    def __init__(
        self, write: Function, tiles: Tiles, known: Mapping[tuple[str, int, int], str]
    ) -> None:
        self._write, self._tiles, self._known = write, tiles, known

    def read(self, array: int, kind: str, pointer: str, mask: Value | None) -> Value:
        """A vector of an array, or the number that all its lanes have."""
        write, step = self._write, self._tiles.arrays[array].step
        if step > 1:
            return self._every(pointer, kind, step, mask)
        write.mask = mask if step else None
        if step == SCATTERED:
            stride = Value(self._known["stride", array, self._tiles.vector], "i64")
            steps = write.binary("mul", self._lanes("i64", 1), stride)
            text = f"getelementptr i8, ptr {pointer}, <{write.lanes} x i64> {steps.name}"
            value = write.gathered(write.made(text, "ptr", wide=True).name, kind)
        else:
            value = write.load(pointer, kind, wide=step == 1)
        write.mask = None
        return value

    def rest(self, extent: str) -> Value | None:
        """The lanes that there are, where they are less than a vector."""
        if not self._tiles.short:
            return None
        count = self._write.made(f"trunc i64 {extent} to i32", "i32", wide=False)
        return self._write.compared("ult", self._lanes("i32", 1), count)

    def inside(self, array: int, places: Sequence[str], rest: Value | None) -> Value | None:
        """The lanes whose coordinates are inside, of the first that a vector begins at."""
        write, guards = self._write, self._tiles.arrays[array].guards
        along: tuple[Value, str, int] | None = None
        outer: list[Value] = []
        for number, guard in enumerate(guards):
            where, factor = self._coordinate(guard, places)
            limit = self._known["limit", array, number]
            if factor:
                along = where, limit, factor
            else:
                outer.append(write.compared("ult", where, Value(limit, "i64")))
        if along is None:
            for one in outer:
                wide = write.widened(one)
                rest = wide if rest is None else write.binary("and", rest, wide)
            return rest
        where, limit, factor = along
        for one in outer:
            text = f"select i1 {one.name}, i64 {limit}, i64 0"
            limit = write.made(text, "i64", wide=False).name
        first = write.widened(write.cast("trunc", where, "i32"))
        lanes = write.binary("add", first, self._lanes("i32", factor))
        return write.compared("ult", lanes, write.cast("trunc", Value(limit, "i64"), "i32"))

    def _coordinate(self, guard: Guard, places: Sequence[str]) -> tuple[Value, int]:
        """Where a vector begins, and by how much each lane is further."""
        where, along = str(guard.offset), 0
        for dim, factor in guard.terms:
            step = self._write.arithmetic("mul", places[dim], str(factor))
            where = self._write.arithmetic("add", where, step)
            along = factor if dim == self._tiles.vector else along
        return Value(where, "i64"), along

    def _every(self, pointer: str, kind: str, step: int, mask: Value | None) -> Value:
        """Every so many cells of memory, none further than the last that counts."""
        write = self._write
        lanes, many = write.lanes, write.lanes * step
        chosen = write.widened(Value("true", "i1")) if mask is None else mask
        none = f"<{lanes} x i1> zeroinitializer"
        order = ", ".join(f"i32 {lanes if n % step else n // step}" for n in range(many))
        spread = f"shufflevector {chosen.type} {chosen.name}, {none}, <{many} x i32> <{order}>"
        masks, to = f"<{many} x i1>", f"<{many} x {kind}>"
        name = write.made(spread, "i1", wide=True).name
        full = f"@llvm.masked.load.v{many}f{32 if kind == 'float' else 64}.p0"
        write.declared[full] = f"declare {to} {full}(ptr, i32 immarg, {masks}, {to})"
        text = f"call {to} {full}(ptr {pointer}, i32 1, {masks} {name}, {to} zeroinitializer)"
        cells = write.made(text, kind, wide=True).name
        order = ", ".join(f"i32 {n * step}" for n in range(lanes))
        text = f"shufflevector {to} {cells}, {to} poison, <{lanes} x i32> <{order}>"
        return write.made(text, kind, wide=True)

    def _lanes(self, kind: str, factor: int) -> Value:
        elements = ", ".join(f"{kind} {n * factor}" for n in range(self._write.lanes))
        return Value(f"<{elements}>", kind, wide=True, lanes=self._write.lanes)
