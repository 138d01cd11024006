"""Sums of products as nests of loops, with vectors along what is folded.

    define void @loop(ptr %arguments)       # as in `products`

Both factors are vectors then, which meet lane by lane: a tile is sums of as many numbers as a
vector has, that are added up at its end. So no window is copied of a gradient of a convolution to
its kernel, whose results are few, and whose sums are long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tapestry.codegen.loops.graphs import Graph
from tapestry.codegen.loops.products import Pointers, Products
from tapestry.codegen.loops.tiles import At, Tiles
from tapestry.codegen.loops.vectors import Value


def dot_text(wrap: Graph, unwrap: Graph, tiles: Tiles) -> str:
    """A module with the function `loop`, as `product_text` says; the tiles are `summed`."""
    return _Dots(wrap, unwrap, tiles).text()


class _Dots(Products):
    def _fold(
        self,
        number: int,
        first: Pointers,
        second: Pointers,
        flat: str,
        taps: Sequence[str],
        sums: Mapping[At, str],
    ) -> None:
        write, tiles = self._write, self._tiles
        if number < len(tiles.folded) - 1:
            super()._fold(number, first, second, flat, taps, sums)
            return
        extent = self._extents[tiles.vector]
        with write.loop(extent, tiles.lanes) as at:
            rest = write.arithmetic("sub", extent, at)
            where = [*taps, at]
            near, far = (self._along(some, tiles.vector, at) for some in (first, second))
            lefts, rights = self._read(0, near, where, rest), self._read(1, far, where, rest)
            for own, place in sums.items():
                a = lefts[tiles.own(own, self._sides[0])]
                b = rights[tiles.own(own, self._sides[1])]
                self._keep(write.fused(a, b, self._held(place)), place)

    def _read(
        self, side: int, pointers: Pointers, taps: Sequence[str], rest: str
    ) -> dict[At, Value]:
        """A factor at each place of a tile; zero in lanes that are not among the `rest`."""
        write, tiles, wrap = self._write, self._tiles, self._wrap
        seen: dict[tuple[int, At], Value] = {}
        found: dict[At, Value] = {}
        slot = wrap.stores[side]
        zeros = slot < len(wrap.inputs) and tiles.arrays[slot].step > 0
        for at in tiles.places(self._sides[side]):

            def read(array: int, at: At = at) -> Value:
                where = tiles.own(at, [array])
                if (array, where) not in seen:
                    places = [own[n] for own, n in zip(self._places, where, strict=True)]
                    mask = self._vectors.inside(array, [*places, *taps], rest)
                    kind, pointer = self._kinds[array], pointers[array, where]
                    seen[array, where] = self._vectors.read(array, kind, pointer, mask)
                return seen[array, where]

            made, there = write.widened(self._factor(side, read)), self._vectors.rest(rest)
            if there is not None and not zeros:
                made = write.chosen(there, made, write.number(0.0, self._kind))
            found[at] = made
        return found

    def _finish(self, at: At, value: Value, pointers: Pointers) -> None:
        write = self._write
        name = f"@llvm.vector.reduce.fadd.v{value.lanes}f32"
        write.declared[name] = f"declare {value.kind} {name}({value.kind}, {value.type})"
        said = f"{value.kind} {write.number(-0.0, value.kind).name}, {value.type} {value.name}"
        total = write.made(f"call reassoc {value.kind} {name}({said})", value.kind, wide=False)
        for array, one in self._ends(at, total):
            write.store(one, pointers[array, at], self._kinds[array])
