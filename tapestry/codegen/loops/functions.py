"""A function in LLVM IR: loops, conditions, and memory of its own.

write = Function()
with write.loop("%end", 32) as at:      # at = 0, 32, ... while less than %end
    ...
module = write.text()                   # define void @loop(ptr %arguments) { ... }
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tapestry.codegen.loops.vectors import WIDTH, Writer


class Function(Writer):
    """The function `loop` of an address."""

    def __init__(self, lanes: int = WIDTH) -> None:
        super().__init__(lanes)
        self._places: list[str] = []
        self._labels = 0

    def text(self) -> str:
        """A module with the function."""
        head = ["define void @loop(ptr %arguments) {", "entry:", *self._places]
        return "\n".join([*head, *self.lines, "  ret void", "}", *self.declared.values(), ""])

    def arithmetic(self, operation: str, left: str, right: str) -> str:
        """An instruction on two numbers of 64 bits."""
        return self.made(f"{operation} i64 {left}, {right}", "i64", wide=False).name

    def place(self, kind: str) -> str:
        """Memory of the function's own, which LLVM makes registers of."""
        name = f"%place{len(self._places)}"
        self._places.append(f"  {name} = alloca {kind}")
        return name

    @contextmanager
    def loop(self, end: str, step: int, start: str = "0") -> Generator[str]:
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

    def _label(self) -> int:
        self._labels += 1
        return self._labels
