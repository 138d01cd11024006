"""A function in LLVM IR: loops, conditions, and memory of its own.

write = Function()
with write.loop("%end", 32) as at:      # at = 0, 32, ... while less than %end
    ...
module = write.text()                   # define void @loop(ptr %arguments) { ... }
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tapestry.codegen.loops.vectors import WIDTH, Value, Writer

_ORDER = "@llvm.x86.sse.sfence"


class Function(Writer):
    """The function `loop` of an address."""

    def __init__(self, lanes: int = WIDTH) -> None:
        super().__init__(lanes)
        self._places: list[str] = []
        self._labels = 0

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

    @contextmanager
    def loop(self, end: str, step: int | str, start: str = "0") -> Generator[str]:
        """Instructions inside are repeated from `start` on, while less than `end`."""
        number, counter = self._label(), self.place("i64")
        self.line(f"store i64 {start}, ptr {counter}")
        self.line(f"br label %head{number}")
        self.label(f"head{number}")
        at = self.made(f"load i64, ptr {counter}", "i64", wide=False).name
        more = self.made(f"icmp slt i64 {at}, {end}", "i1", wide=False).name
        self.line(f"br i1 {more}, label %body{number}, label %end{number}")
        self.label(f"body{number}")
        yield at
        self.line(f"store i64 {self.arithmetic('add', at, str(step))}, ptr {counter}")
        self.line(f"br label %head{number}")
        self.label(f"end{number}")

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
            yield left
            self.mask = None

    def _label(self) -> int:
        self._labels += 1
        return self._labels
