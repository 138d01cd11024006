"""Sums of products as nests of loops whose innermost sums are registers.

    define void @loop(ptr %arguments)       # extents, and what `Tiles.arguments` says

Of each kept dimension a few places are computed at once, vectors of them along the last: a tile.
All sums of a tile grow together while the folded dimensions are gone along, so what is read for one
factor meets all that is read for the other. The first factor is vectors; the other one numbers,
packed one after another in the order in which they are met, where tiles meet them often. What is
computed of sums comes before they are written: nothing in between is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Cell, Graph
from tapestry.codegen.loops.guarded import Vectors
from tapestry.codegen.loops.tiles import At, Tiles
from tapestry.codegen.loops.vectors import BYTES, Value

Pointers = Mapping[tuple[int, At], str]
"""Where arrays are, for each place of a tile."""


@dataclass(frozen=True)
class Point:
    """A point of the folded dimensions: those that are unrolled, and all of them as they are named.

    `pointers` are of the first factor; of what tiles meet there `seen` and `masks` are known.
    """

    unrolled: At
    places: Sequence[str]
    pointers: Pointers
    seen: dict[object, Value]
    masks: dict[object, Value | None]


def product_text(wrap: Graph, unwrap: Graph, tiles: Tiles) -> str:
    """A module with the function `loop`.

    What `wrap` stores are the two factors; the first input of `unwrap` is their sum.
    """
    return Products(wrap, unwrap, tiles).text()


class Products:
    """What writes the function; sums are of some kind, in registers."""

    def __init__(self, wrap: Graph, unwrap: Graph, tiles: Tiles) -> None:
        self._wrap, self._unwrap, self._tiles = wrap, unwrap, tiles
        self._write = Function(tiles.lanes)
        self._kind = unwrap.inputs[0]
        """That of sums."""
        self._kinds = [
            *wrap.inputs,
            *unwrap.inputs[1:],
            *(unwrap.kinds[slot] for slot in unwrap.stores),
        ]
        """What memory holds, per array."""
        self._sides = [sorted(_needed(wrap, slot)) for slot in wrap.stores]
        """Per factor, the arrays that it is computed of."""
        self._seconds = tiles.places(self._sides[1])
        kept = range(len(tiles.kept))
        self._packs_at = max(
            (d for d in kept if any(tiles.arrays[a].moves[d] for a in self._sides[1])), default=-1
        )
        self._varies = self._dimensions()
        self._extents: list[str] = []
        self._known: dict[tuple[str, int, int], str] = {}
        self._vectors = Vectors(self._write, tiles, self._known)
        self._places: list[list[str]] = []
        """Per kept dimension, the places of a tile."""
        self._values: dict[tuple[int, At], Value] = {}
        """What is computed outside of sums."""
        self._totals: dict[At, str] = {}

    def _dimensions(self) -> list[tuple[int, ...]]:
        """Per slot of what is computed of sums, the kept dimensions that it varies along."""
        graph, kept = self._unwrap, range(len(self._tiles.kept))
        extras = self._tiles.arrays[len(self._wrap.inputs) :][: len(graph.inputs) - 1]
        found = [tuple(kept), *(tuple(d for d in kept if one.moves[d]) for one in extras)]
        found += [()] * len(graph.numbers)
        for cell in graph.cells:
            found.append(tuple(sorted({dim for slot in cell.ins for dim in found[slot]})))
        return found

    def text(self) -> str:
        write, tiles = self._write, self._tiles
        self._extents = [write.argument(n) for n in range(tiles.rank)]
        for number, one in enumerate(tiles.arguments(), tiles.rank):
            self._known[one] = write.argument(number)
        pointers: dict[tuple[int, At], str] = {}
        for array in range(len(tiles.arrays)):
            where = self._pointer(self._known["address", array, 0])
            pointers[array, ()] = write.moved(where, self._known["start", array, 0], "1")
        self._compute(-1, pointers)
        self._level(0, pointers)
        return write.text()

    def _pointer(self, number: str) -> str:
        return self._write.made(f"inttoptr i64 {number} to ptr", "ptr", wide=False).name

    def _stride(self, array: int, dim: int) -> str:
        step = self._tiles.arrays[array].step
        if dim == self._tiles.vector and step > 0:
            return str(step * BYTES[self._kinds[array]])
        return self._known["stride", array, dim]

    def _level(self, dim: int, pointers: Pointers) -> None:
        """The loops from a kept dimension on, and what is inside of them."""
        tiles = self._tiles
        if tiles.packed and dim == self._packs_at + 1:
            self._pack(pointers)
        if dim == len(tiles.kept):
            self._tile(pointers)
            return
        self._tiled(dim, self._extents[dim], pointers)

    def _tiled(self, dim: int, extent: str, pointers: Pointers) -> None:
        """The tiles along a kept dimension, of so many places."""
        write, tiles = self._write, self._tiles
        tile = tiles.kept[dim]
        if dim == tiles.vector and tiles.short:
            self._inside(dim, ["0"], pointers)
            return
        unit = tiles.lanes if dim == tiles.vector else 1
        with write.loop(extent, tile * unit) as at:
            # The last places end where the dimension does: some are computed twice.
            if unit > 1:
                last = write.arithmetic("sub", extent, str(unit))
                after = [write.arithmetic("add", at, str(n * unit)) for n in range(tile)]
                places = [self._least_signed(one, last) for one in after]
            else:
                places = self._numbered(at, extent, tile)
            self._inside(dim, places, pointers)

    def _numbered(self, at: str, extent: str, tile: int) -> list[str]:
        """The places of a tile from one on, or the last ones."""
        write, first = self._write, at
        if tile > 1:
            first = self._least_signed(at, write.arithmetic("sub", extent, str(tile)))
        return [first, *(write.arithmetic("add", first, str(n)) for n in range(1, tile))]

    def _least_signed(self, a: str, b: str) -> str:
        less = self._write.made(f"icmp slt i64 {a}, {b}", "i1", wide=False).name
        return self._write.made(f"select i1 {less}, i64 {a}, i64 {b}", "i64", wide=False).name

    def _inside(self, dim: int, places: list[str], pointers: Pointers) -> None:
        """What is inside of the loop along a kept dimension, at the places of a tile."""
        self._places[dim:] = [places]
        self._enter(dim, self._spread(dim, places, pointers))

    def _spread(
        self, dim: int, places: Sequence[str], pointers: Pointers
    ) -> dict[tuple[int, At], str]:
        """Where arrays are at each place of a tile along one more dimension."""
        moved: dict[tuple[int, At], str] = {}
        for (array, at), pointer in pointers.items():
            if not self._moves(array, dim):
                moved[array, (*at, 0)] = pointer
                continue
            for n, place in enumerate(places):
                moved[array, (*at, n)] = self._write.moved(pointer, place, self._stride(array, dim))
        return moved

    def _enter(self, dim: int, pointers: Pointers) -> None:
        """The next kept dimension, from where arrays are at each place of a tile."""
        self._compute(dim, pointers)
        self._level(dim + 1, pointers)

    def _compute(self, dim: int, pointers: Pointers) -> None:
        """What is the same inside of a kept dimension, and not outside."""
        graph, first = self._unwrap, len(self._wrap.inputs) - 1
        depths = [max(dims, default=-1) for dims in self._varies]
        self._values = {key: value for key, value in self._values.items() if depths[key[0]] < dim}
        numbers = len(graph.inputs)
        for slot, dims in enumerate(self._varies):
            if slot == 0 or depths[slot] != dim or 0 in _needed(graph, slot):
                continue
            for at in self._tiles.every(dims):
                if slot < numbers:
                    where = tuple(at[dims.index(d)] if d in dims else 0 for d in range(dim + 1))
                    pointer = pointers[first + slot, where]
                    extent, kind = self._extents[self._tiles.vector], graph.inputs[slot]
                    mask = self._vectors.inside(first + slot, (), extent)
                    made = self._vectors.read(first + slot, kind, pointer, mask)
                else:
                    made = self._made(
                        graph,
                        slot,
                        lambda one, at=at, dims=dims: self._values[
                            one, tuple(at[dims.index(d)] for d in self._varies[one])
                        ],
                    )
                self._values[slot, at] = made

    def _made(self, graph: Graph, slot: int, found: Callable[[int], Value]) -> Value:
        """A number, or the result of a cell."""
        place = slot - len(graph.inputs)
        if place < len(graph.numbers):
            number = graph.numbers[place]
            return self._write.number(number.value, number.kind)
        cell = graph.cells[place - len(graph.numbers)]
        assert isinstance(cell, Cell)  # nothing is read at computed places
        return cell.emit(self._write, [found(one) for one in cell.ins])

    def _factor(self, side: int, read: Callable[[int], Value]) -> Value:
        """A factor, of what is read of arrays."""
        known: dict[int, Value] = {}

        def found(slot: int) -> Value:
            if slot not in known:
                inner = slot < len(self._wrap.inputs)
                known[slot] = read(slot) if inner else self._made(self._wrap, slot, found)
            return known[slot]

        return found(self._wrap.stores[side])

    def _of(self, side: int, pointers: Pointers) -> dict[tuple[int, At], str]:
        """Where the arrays of a factor are."""
        own = self._sides[side]
        return {(array, at): p for (array, at), p in pointers.items() if array in own}

    def _moves(self, array: int, dim: int) -> bool:
        return self._tiles.arrays[array].moves[dim]

    def _along(self, pointers: Pointers, dim: int, at: str) -> dict[tuple[int, At], str]:
        return {
            (array, one): self._write.moved(p, at, self._stride(array, dim))
            if self._moves(array, dim)
            else p
            for (array, one), p in pointers.items()
        }

    def _number(self, at: At, pointers: Pointers) -> Value:
        """The second factor at a place, as one number."""
        last = len(next(iter(pointers))[1])

        def read(array: int) -> Value:
            where = self._tiles.own(at, [array])[:last]
            return self._write.load(pointers[array, where], self._kinds[array], wide=False)

        return self._factor(1, read)

    def _pack(self, pointers: Pointers) -> None:
        """Write the second factor's numbers for a tile, one after another."""
        write, tiles = self._write, self._tiles
        room, size = self._room(), BYTES[self._kind]
        kept = len(tiles.kept)

        def along(number: int, flat: str, moved: Pointers) -> None:
            if number == len(tiles.folded):
                to = self._write.moved(room, flat, str(len(self._seconds) * size))
                for n, at in enumerate(self._seconds):
                    value = self._number(at, moved)
                    write.store(value, self._write.moved(to, str(n), str(size)), self._kind)
                return
            end = self._end(number)
            with write.loop(end, 1) as at:
                further = write.arithmetic("add", write.arithmetic("mul", flat, end), at)
                along(number + 1, further, self._along(moved, kept + number, at))

        along(0, "0", self._of(1, pointers))

    def _room(self) -> str:
        """Where the second factor's numbers for a tile are."""
        return self._pointer(self._known["room", 0, 0])

    def _end(self, number: int) -> str:
        """The extent of a folded dimension."""
        taps = self._tiles.folded[number]
        return str(taps) if taps else self._extents[len(self._tiles.kept) + number]

    def _tile(self, pointers: Pointers) -> None:
        """The sums of a tile, and what becomes of them."""
        write, tiles = self._write, self._tiles
        kept = range(len(tiles.kept))
        zero = write.widened(write.number(0.0, self._kind))
        sums = {at: write.place(zero.type) for at in tiles.every(kept)}
        self._totals = {at: write.place(zero.type) for at in sums} if tiles.apart else sums
        for place in self._totals.values():
            self._keep(zero, place)
        self._fold(0, self._of(0, pointers), self._of(1, pointers), "0", [], sums)
        for at, place in self._totals.items():
            self._finish(at, self._held(place), pointers)

    def _held(self, place: str) -> Value:
        text = f"load <{self._write.lanes} x {self._kind}>, ptr {place}"
        return self._write.made(text, self._kind, wide=True)

    def _keep(self, value: Value, place: str) -> None:
        self._write.line(f"store {value.type} {value.name}, ptr {place}")

    def _fold(
        self,
        number: int,
        first: Pointers,
        second: Pointers,
        flat: str,
        taps: Sequence[str],
        sums: Mapping[At, str],
    ) -> None:
        """The folded dimensions from one on; `flat` numbers the points of those outside of it."""
        write, tiles = self._write, self._tiles
        if number and number == tiles.apart:
            zero = write.widened(write.number(0.0, self._kind))
            for place in sums.values():
                self._keep(zero, place)
        if number == len(tiles.folded) or tiles.folded[number]:
            self._points(number, first, second, flat, taps, sums)
        else:
            dim, end = len(tiles.kept) + number, self._end(number)
            with write.loop(end, 1) as at:
                further = write.arithmetic("add", write.arithmetic("mul", flat, end), at)
                near, far = (self._along(some, dim, at) for some in (first, second))
                self._fold(number + 1, near, far, further, [*taps, at], sums)
        if number and number == tiles.apart:
            for at, place in sums.items():
                total = write.binary("fadd", self._held(self._totals[at]), self._held(place))
                self._keep(total, self._totals[at])

    def _points(
        self,
        number: int,
        first: Pointers,
        second: Pointers,
        flat: str,
        taps: Sequence[str],
        sums: Mapping[At, str],
    ) -> None:
        """All products of a tile inside of the loops, at each point that is unrolled."""
        write, tiles = self._write, self._tiles
        unrolled, size, packs = tiles.folded[number:], BYTES[self._kind], len(self._seconds)
        base = ""
        if tiles.packed:
            base = self._write.moved(self._room(), flat, str(packs * prod(unrolled) * size))
        seen: dict[object, Value] = {}
        masks: dict[object, Value | None] = {}
        for order, point in enumerate(product(*map(range, unrolled))):
            near, far = first, second
            for dim, n in enumerate(point, len(tiles.kept) + number):
                if n:
                    near, far = (self._along(some, dim, str(n)) for some in (near, far))
            if packs > 1:
                seen = {}  # registers are for sums
            met = Point(point, [*taps, *map(str, point)], near, seen, masks)
            vectors = {
                at: write.widened(self._vector(at, met)) for at in tiles.places(self._sides[0])
            }
            numbers: dict[At, Value] = {}
            for n, at in enumerate(self._seconds):
                if tiles.packed:
                    place = self._write.moved(base, str(order * packs + n), str(size))
                    one = write.load(place, self._kind, wide=False)
                else:
                    one = self._number(at, far)
                numbers[at] = write.widened(one)
            for at, place in sums.items():
                a, b = (
                    vectors[tiles.own(at, self._sides[0])],
                    numbers[tiles.own(at, self._sides[1])],
                )
                self._keep(write.fused(a, b, self._held(place)), place)

    def _vector(self, at: At, point: Point) -> Value:
        """The first factor at a place."""
        tiles, seen, masks = self._tiles, point.seen, point.masks

        def read(array: int) -> Value:
            where = tiles.own(at, [array])
            key = tiles.cell(array, where, point.unrolled)
            if key in seen:
                return seen[key]
            if key not in masks:
                places = [own[n] for own, n in zip(self._places, where, strict=True)]
                extent = self._extents[tiles.vector]
                masks[key] = self._vectors.inside(array, [*places, *point.places], extent)
            pointer, mask = point.pointers[array, where], masks[key]
            seen[key] = self._vectors.read(array, self._kinds[array], pointer, mask)
            return seen[key]

        return self._factor(0, read)

    def _finish(self, at: At, value: Value, pointers: Pointers) -> None:
        """Write what is computed of a sum."""
        write = self._write
        write.mask = None
        made = [(array, write.widened(one)) for array, one in self._ends(at, value)]
        write.mask = self._vectors.rest(self._extents[self._tiles.vector])
        for array, one in made:
            self._vectors.write(one, array, self._kinds[array], pointers[array, at])
        write.mask = None

    def _ends(self, at: At, value: Value) -> list[tuple[int, Value]]:
        """The arrays that are written, and what is computed of a sum for each."""
        graph = self._unwrap
        own: dict[int, Value] = {0: value}

        def found(slot: int) -> Value:
            if slot not in own:
                known = self._values.get((slot, tuple(at[d] for d in self._varies[slot])))
                own[slot] = self._made(graph, slot, found) if known is None else known
            return own[slot]

        first = len(self._tiles.arrays) - len(graph.stores)
        return [(array, found(slot)) for array, slot in enumerate(graph.stores, first)]


def _needed(graph: Graph, slot: int) -> set[int]:
    """The inputs that a slot is computed of."""
    first = len(graph.inputs) + len(graph.numbers)
    if slot < first:
        return {slot} if slot < len(graph.inputs) else set()
    return {one for of in graph.cells[slot - first].ins for one in _needed(graph, of)}
