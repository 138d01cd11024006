"""A function in LLVM IR: loops, conditions, and memory of its own.

write = Function()
with write.loop("%end", 32) as at:      # at = 0, 32, ... while less than %end
    ...
module = write.text()                   # define void @loop(ptr %arguments) { ... }
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tapestry.codegen.loops.vectors import BYTES, WIDTH, Value, Writer, held_as

_MASKED = 4
"""Bytes of numbers from which processors load some elements of a vector as fast as all."""

_ORDER = "@llvm.x86.sse.sfence"


class Function(Writer):
    """The function `loop` of an address."""

    def __init__(self, lanes: int = WIDTH) -> None:
        super().__init__(lanes)
        self._places: list[str] = []
        self._labels = 0
        self._left: str | None = None
        """How many elements there are under the mask: those that are left, or a vector's."""

    def text(self) -> str:
        """A module with the function."""
        head = ["define void @loop(ptr %arguments) {", "entry:", *self._places]
        end = ["  ret void", "}", *self.declared.values(), "!0 = !{i32 1}", ""]
        return "\n".join([*head, *self.lines, *end])

    def ordered(self) -> None:
        """What was stored as `passing` is there before what is stored after this."""
        self.declared[_ORDER] = f"declare void {_ORDER}()"
        self.line(f"call void {_ORDER}()")

    def arithmetic(self, operation: str, left: str, right: str) -> str:
        """An instruction on two numbers of 64 bits."""
        return self.made(f"{operation} i64 {left}, {right}", "i64", wide=False).name

    def argument(self, number: int) -> str:
        """An argument of the function, of 64 bits."""
        return self.made(f"load i64, ptr {self.argument_at(number)}", "i64", wide=False).name

    def argument_at(self, number: int) -> str:
        """Where an argument is."""
        place = f"getelementptr i64, ptr %arguments, i64 {number}"
        return self.made(place, "ptr", wide=False).name

    def moved(self, pointer: str, number: str, stride: str) -> str:
        """A pointer so many strides of bytes further on."""
        offset = self.arithmetic("mul", number, stride)
        text = f"getelementptr i8, ptr {pointer}, i64 {offset}"
        return self.made(text, "ptr", wide=False).name

    def least(self, one: str, other: str) -> str:
        """The less of two numbers of 64 bits that have no sign."""
        inside = self.made(f"icmp ult i64 {one}, {other}", "i1", wide=False).name
        text = f"select i1 {inside}, i64 {one}, i64 {other}"
        return self.made(text, "i64", wide=False).name

    def place(self, kind: str) -> str:
        """Memory of the function's own, which LLVM makes registers of."""
        name = f"%place{len(self._places)}"
        self._places.append(f"  {name} = alloca {kind}")
        return name

    def counter(self, start: str = "0") -> str:
        """Memory of a number of 64 bits, which is `start` first."""
        place = self.place("i64")
        self.count(place, start)
        return place

    def count(self, counter: str, number: str) -> None:
        """Have a counter be a number."""
        self.line(f"store i64 {number}, ptr {counter}")

    def counted(self, counter: str) -> str:
        """The number that a counter is."""
        return self.made(f"load i64, ptr {counter}", "i64", wide=False).name

    @contextmanager
    def going(self, counter: str, end: str) -> Generator[str]:
        """Instructions inside are repeated while a counter is less than `end`; they change it."""
        number = self._label()
        self.line(f"br label %head{number}")
        self.label(f"head{number}")
        at = self.counted(counter)
        more = self.made(f"icmp slt i64 {at}, {end}", "i1", wide=False).name
        self.line(f"br i1 {more}, label %body{number}, label %end{number}")
        self.label(f"body{number}")
        yield at
        self.line(f"br label %head{number}")
        self.label(f"end{number}")

    @contextmanager
    def loop(self, end: str, step: int | str, start: str = "0") -> Generator[str]:
        """Instructions inside are repeated from `start` on, while less than `end`."""
        counter = self.counter(start)
        with self.going(counter, end) as at:
            yield at
            self.count(counter, self.arithmetic("add", at, str(step)))

    def first(self, end: str, step: int, start: str, found: Callable[[str], str]) -> str:
        """The first number from `start` on, in steps, for which what `found` writes holds.

        That is no less than `end` if there is none before.
        """
        counter, number = self.counter(start), self._label()
        with self.going(counter, end) as at:
            self.line(f"br i1 {found(at)}, label %found{number}, label %next{number}")
            self.label(f"next{number}")
            self.count(counter, self.arithmetic("add", at, str(step)))
        self.line(f"br label %found{number}")
        self.label(f"found{number}")
        return self.counted(counter)

    @contextmanager
    def when(self, condition: str) -> Generator[None]:
        """Instructions inside are skipped without the condition."""
        number = self._label()
        holds = self.made(condition, "i1", wide=False).name
        self.line(f"br i1 {holds}, label %body{number}, label %end{number}")
        self.label(f"body{number}")
        yield
        self.line(f"br label %end{number}")
        self.label(f"end{number}")

    @contextmanager
    def rest(self, whole: str, extent: str) -> Generator[str]:
        """Instructions inside are for the first elements of a vector, as many as are left.

        They are skipped where none are; gives how many there are.
        """
        with self.when(f"icmp ult i64 {whole}, {extent}"):
            left = self.arithmetic("sub", extent, whole)
            count = self.made(f"trunc i64 {left} to i32", "i32", wide=False)
            elements = ", ".join(f"i32 {element}" for element in range(self.lanes))
            lanes = Value(f"<{elements}>", "i32", True, self.lanes)
            self.mask = self.compared("ult", lanes, count)
            self._left = self.least(left, str(self.lanes))
            yield left
            self.mask = self._left = None

    def load(self, pointer: str, kind: str, *, wide: bool) -> Value:
        if not wide or self._left is None or BYTES[kind] >= _MASKED:
            return super().load(pointer, kind, wide=wide)
        held = held_as(kind)
        vector = f"<{self.lanes} x {held}>"
        room = self.place(vector)
        self.line(f"store {vector} zeroinitializer, ptr {room}")
        for lanes, offset, has in self._pieces(self._left, self.lanes, BYTES[kind]):
            source, to = (self._after(one, offset) for one in (pointer, room))
            with self.when(has), self.of(lanes):
                piece = self.made(
                    f"load <{lanes} x {held}>, ptr {source}, align 1", held, wide=True
                )
                self.line(f"store {piece.type} {piece.name}, ptr {to}, align 1")
        return self._opened(self.made(f"load {vector}, ptr {room}", held, wide=True), kind)

    def store(self, value: Value, pointer: str, kind: str, *, passing: bool = False) -> None:
        if not value.wide or self._left is None:
            super().store(value, pointer, kind, passing=passing)
            return
        value = self._closed(value, kind)
        for lanes, offset, has in self._pieces(self._left, self.lanes, BYTES[kind]):
            first = self.some(value, 0, lanes)
            second = self.some(value, lanes, lanes) if lanes < value.lanes else first
            to = self._after(pointer, offset)
            with self.when(has):
                self.line(f"store {first.type} {first.name}, ptr {to}, align 1")
            there = self.made(has, "i1", wide=False).name
            text = f"select i1 {there}, {first.type} {second.name}, {first.type} {first.name}"
            with self.of(lanes):
                value = self.made(text, value.kind, wide=True)

    def _pieces(self, left: str, most: int, size: int) -> Generator[tuple[int, str, str]]:
        """How the first elements of a vector are touched: so many, if there are as many, and then
        half of that, and so on. Gives the lanes of each, where they begin, and the condition.

        Processors take tens of cycles for what they store under a mask, some of them, and most have
        no masks for numbers of less than 32 bits.
        """
        lanes, offset = most, "0"
        while lanes:
            some = self.arithmetic("and", left, str(lanes))
            yield lanes, offset, f"icmp ne i64 {some}, 0"
            offset = self.arithmetic("add", offset, self.arithmetic("mul", some, str(size)))
            lanes //= 2

    def _after(self, pointer: str, offset: str) -> str:
        text = f"getelementptr i8, ptr {pointer}, i64 {offset}"
        return self.made(text, "ptr", wide=False).name

    def _label(self) -> int:
        self._labels += 1
        return self._labels
