"""Rows that are folded at computed places, as a function in LLVM IR.

    text = scatter_text("arith.addf", "float")      # out[place[p], :] += rows[p, :], one p by one

The arguments are how many rows there are and how long these are, then the addresses of the places,
of the rows and of what is folded to; by how many bytes rows are apart; the first place, and how
many there are. Rows elsewhere count nowhere; each is dense, and those with the same place are
folded in order.
"""

from __future__ import annotations

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import BYTES, WIDTH


def scatter_text(primitive: str, kind: str) -> str:
    """A module with the function `loop`; `primitive` is one of `FOLDS`, of numbers of a kind."""
    write = Function()

    def address(number: int) -> str:
        return write.made(f"inttoptr i64 {write.argument(number)} to ptr", "ptr", wide=False).name

    def moved(pointer: str, by: str) -> str:
        return write.made(f"getelementptr i8, ptr {pointer}, i64 {by}", "ptr", wide=False).name

    count, length, (places, rows, to) = (
        write.argument(0),
        write.argument(1),
        [address(number) for number in (2, 3, 4)],
    )
    apart, first, there = (write.argument(number) for number in (5, 6, 7))
    size = write.arithmetic("mul", length, str(BYTES[kind]))
    whole = write.arithmetic("and", length, str(-WIDTH))
    with write.loop(count, 1) as at:
        place = write.load(moved(places, write.arithmetic("mul", at, "8")), "i64", wide=False)
        number = write.arithmetic("sub", place.name, first)
        # What is negative is a large number without a sign.
        with write.when(f"icmp ult i64 {number}, {there}"):
            own = moved(to, write.arithmetic("mul", number, size))
            row = moved(rows, write.arithmetic("mul", at, apart))
            for start, end, step in (("0", whole, WIDTH), (whole, length, 1)):
                with write.loop(end, step, start) as cell:
                    offset = write.arithmetic("mul", cell, str(BYTES[kind]))
                    cells = [moved(pointer, offset) for pointer in (own, row)]
                    both = [write.load(pointer, kind, wide=step > 1) for pointer in cells]
                    write.store(combined(primitive, write, *both), cells[0], kind)
    return write.text()
