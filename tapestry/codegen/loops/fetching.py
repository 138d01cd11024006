"""Cells at places that are computed, as a function in LLVM IR reads them.

    fetching = Fetching(write, strides)
    value = fetching.cell(fetch, pointer, values, wide=True)    # a gather, or a run of neighbours
    fetching.end(status)                                        # store there whether one was wrong

What is read lies inside whatever the places are: those outside are taken for the first. Neither
memory that is not there is touched, nor does a loop end early: it says at its end that it failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.graphs import Fetch
from tapestry.codegen.loops.vectors import WIDTH, Value


@dataclass(frozen=True)
class Lanes:
    """Where a box is for the elements of a vector: at a pointer, and so many bytes on for each.

    `near` says that these are neighbours; there is no `step` where all have one box.
    """

    pointer: str
    step: str | None
    near: bool


class Fetching:
    """Reads of boxes whose strides are known by the array and the dimension."""

    def __init__(self, write: Function, strides: Mapping[tuple[int, int], str]) -> None:
        self._write, self._strides = write, strides
        self._failed: str | None = None

    def prepare(self) -> None:
        """Make room for what fails, at the beginning of the function."""
        self._failed = self._write.place("i32")
        self._write.line(f"store i32 0, ptr {self._failed}")

    def end(self, status: str) -> None:
        """Store at a pointer whether something failed."""
        found = self._write.made(f"load i32, ptr {self._failed}", "i32", wide=False)
        self._write.line(f"store i64 {self._write.cast('zext', found, 'i64').name}, ptr {status}")

    def cell(
        self, fetch: Fetch, at: Lanes, values: Sequence[Value], others: Sequence[Value | None]
    ) -> Value:
        """The cells at some places; `others` are what is outside, and whether a point counts.

        They are a vector if the points are: where lanes have a step, or a place is wide.
        """
        inside, offset = self._offset(fetch, values)
        otherwise, counted = others
        if otherwise is None:
            self._check(inside, counted)
        pointer = self._moved(at.pointer, offset)
        if at.step is not None and at.near and not offset.wide:
            found = self._write.load(pointer, fetch.kind, wide=True)
        elif at.step is not None or offset.wide:
            found = self._write.gathered(
                self._spread(pointer, at.step, wide=offset.wide), fetch.kind
            )
        else:
            found = self._write.load(pointer, fetch.kind, wide=False)
        return found if otherwise is None else self._write.chosen(inside, found, otherwise)

    def _offset(self, fetch: Fetch, places: Sequence[Value]) -> tuple[Value, Value]:
        """Whether places are inside, and the bytes from the box's first cell to there, or 0."""
        write = self._write
        inside, total = Value("true", "i1"), write.number(0, "i64")
        for dim, (place, extent) in enumerate(zip(places, fetch.extents, strict=True)):
            # What is negative is a large number without a sign.
            fits = write.compared("ult", place, write.number(extent, "i64"))
            inside = fits if dim == 0 else write.binary("and", inside, fits)
            if extent > 1:
                stride = Value(self._strides[fetch.array, dim], "i64")
                total = write.binary("add", total, write.binary("mul", place, stride))
        return inside, write.chosen(inside, total, write.number(0, "i64"))

    def _check(self, inside: Value, counted: Value | None) -> None:
        """Note whether a point that counts is outside."""
        write = self._write
        wrong = write.binary("xor", inside, Value("true", "i1"))
        if counted is not None:
            wrong = write.binary("and", wrong, counted)
        if wrong.wide and write.mask is not None:
            wrong = write.binary("and", wrong, write.mask)
        if wrong.wide:
            bits = write.made(f"bitcast {wrong.type} {wrong.name} to i{WIDTH}", "i32", wide=False)
        else:
            bits = write.cast("zext", wrong, "i32")
        before = write.made(f"load i32, ptr {self._failed}", "i32", wide=False)
        write.line(f"store i32 {write.binary('or', before, bits).name}, ptr {self._failed}")

    def _moved(self, pointer: str, offset: Value) -> str:
        """A pointer some bytes further on, or a vector of them."""
        text = f"getelementptr i8, ptr {pointer}, {offset.type} {offset.name}"
        return self._write.made(text, "ptr", wide=offset.wide).name

    def _spread(self, pointer: str, step: str | None, *, wide: bool) -> str:
        """Where the elements of a vector are."""
        if step is None:
            return pointer
        write = self._write
        elements = ", ".join(f"i64 {element}" for element in range(WIDTH))
        steps = write.binary("mul", Value(f"<{elements}>", "i64", wide=True), Value(step, "i64"))
        kind = f"<{WIDTH} x ptr>" if wide else "ptr"
        text = f"getelementptr i8, {kind} {pointer}, <{WIDTH} x i64> {steps.name}"
        return write.made(text, "ptr", wide=True).name
