"""Where the arrays of a loop are, and what is read and written there.

arrays = Arrays(write, graph, layout)
pointers, next = arrays.found(2)            # by arguments, of which the first two are extents
there = arrays.moved(0, 1, pointers[0], at) # at a place along an axis
arrays.put(2, to, arrays.vector(0, there))  # cells along the last axis
"""

from __future__ import annotations

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Graph, Layout
from tapestry.codegen.loops.transposing import TransposedTiles
from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value


class Arrays:
    """The arrays of a graph: its inputs, then its stores, then what it folds.

    `kinds` are the types that memory holds, per array; `tiles` are those of arrays that are turned.
    """

    def __init__(self, write: Function, graph: Graph, layout: Layout) -> None:
        self._write = write
        self._layout = layout
        slots = [*range(len(graph.inputs)), *graph.stores, *graph.folded]
        self.kinds = [graph.kinds[slot] for slot in slots]
        self.tiles: TransposedTiles | None = None
        self._strides: dict[tuple[int, int | None], str] = {}
        self._ahead: dict[int, str] = {}

    def found(self, first: int) -> tuple[dict[int, str], int]:
        """Where the arrays begin, by the function's arguments from one on, and the next of these.

        It is once, before anything else.
        """
        write, layout = self._write, self._layout
        pointers, number = dict[int, str](), first
        for array, axis in layout.arguments():
            value = write.argument(number)
            number += 1
            if axis is not None:
                self._strides[array, axis] = value
                continue
            pointers[array] = write.made(f"inttoptr i64 {value} to ptr", "ptr", wide=False).name
        for array in layout.ahead:
            self._ahead[array] = write.argument(number)
            number += 1
        if layout.crossed:
            kinds = {array: self.kinds[array] for array in layout.crossed}
            steps = {array: self._strides[array, layout.rank - 1] for array in layout.crossed}
            self.tiles = TransposedTiles(write, kinds, steps)
        return pointers, number

    def stride(self, array: int, axis: int) -> str:
        """The bytes from one place to the next along an axis that the array moves along."""
        return self._strides.get((array, axis)) or str(BYTES[self.kinds[array]])

    def moved(self, array: int, axis: int, pointer: str, at: str) -> str:
        """Where one array is at a place along an axis."""
        if not self._layout.moves[array][axis]:
            return pointer
        return self._write.moved(pointer, at, self.stride(array, axis))

    def at(self, pointers: dict[int, str], axis: int, at: str) -> dict[int, str]:
        """Where arrays are at a place along an axis."""
        return {array: self.moved(array, axis, one, at) for array, one in pointers.items()}

    def vector(self, array: int, pointer: str) -> Value:
        """Cells along the last axis."""
        kind = self.kinds[array]
        if self.tiles is not None and array in self.tiles:
            return self._write.load(self.tiles.pointer(array), kind, wide=True)
        if self._layout.dense[array]:
            if array in self._ahead and self._write.mask is None:
                self._write.fetch(pointer, self._ahead[array], WIDTH * BYTES[kind])
            return self._write.load(pointer, kind, wide=True)
        return self._write.gathered(self._pointers(array, pointer), kind)

    def put(self, array: int, pointer: str, value: Value) -> None:
        """Write cells along the last axis."""
        kind = self.kinds[array]
        if self._layout.dense[array]:
            passing = array == self._layout.passing
            self._write.store(value, pointer, kind, passing=passing)
        else:
            self._write.scattered(value, self._pointers(array, pointer), kind)

    def _pointers(self, array: int, pointer: str) -> str:
        """Where the elements of a vector are."""
        write, stride = self._write, self._strides[array, self._layout.rank - 1]
        elements = ", ".join(f"i64 {element}" for element in range(WIDTH))
        steps = write.binary("mul", Value(f"<{elements}>", "i64", wide=True), Value(stride, "i64"))
        text = f"getelementptr i8, ptr {pointer}, <{WIDTH} x i64> {steps.name}"
        return write.made(text, "ptr", wide=True).name
