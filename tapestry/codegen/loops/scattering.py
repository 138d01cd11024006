"""Rows that are folded at computed places, as a function in LLVM IR.

    text = scatter_text("arith.addf", "float")      # out[place[p], :] += rows[p, :], one p by one

Points are in rows of rows: `outer` of them, and `inner` in each. The arguments are these two, how
long rows are, the addresses of the places, of the rows and of what is folded to; by how many bytes
rows are apart, and what they are folded to: the places, points of one row, and of rows of them; the
first place, and how many there are. Rows elsewhere count nowhere; each is dense, and those with the
same place are folded in order.
"""

from __future__ import annotations

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import BYTES, WIDTH


def scatter_text(primitive: str, kind: str, *, single: bool = False) -> str:
    """A module with the function `loop`; `primitive` is one of `FOLDS`, of numbers of a kind.

    Rows are `single` numbers, or of any length.
    """
    write = Function()

    def address(number: int) -> str:
        return write.made(f"inttoptr i64 {write.argument(number)} to ptr", "ptr", wide=False).name

    def moved(pointer: str, by: str) -> str:
        return write.made(f"getelementptr i8, ptr {pointer}, i64 {by}", "ptr", wide=False).name

    def fold(to: str, cells: str, *, wide: bool) -> None:
        both = [write.load(pointer, kind, wide=wide) for pointer in (to, cells)]
        write.store(combined(primitive, write, *both), to, kind)

    outer, inner, length = (write.argument(number) for number in range(3))
    places, rows, to = (address(number) for number in range(3, 6))
    apart, *steps, first, there = (write.argument(number) for number in range(6, 12))
    size = str(BYTES[kind])
    whole = write.arithmetic("and", length, str(-WIDTH))
    with write.loop(outer, 1) as far:
        begin = write.arithmetic("mul", far, inner)
        there_far = moved(to, write.arithmetic("mul", far, steps[2]))
        with write.loop(inner, 1) as near:
            at = write.arithmetic("add", begin, near)
            place = write.load(moved(places, write.arithmetic("mul", at, "8")), "i64", wide=False)
            number = write.arithmetic("sub", place.name, first)
            # What is negative is a large number without a sign.
            with write.when(f"icmp ult i64 {number}, {there}"):
                own = moved(there_far, write.arithmetic("mul", near, steps[1]))
                own = moved(own, write.arithmetic("mul", number, steps[0]))
                row = moved(rows, write.arithmetic("mul", at, apart))
                vectors = () if single else (("0", whole, WIDTH), (whole, length, 1))
                if single:
                    fold(own, row, wide=False)
                for start, end, step in vectors:
                    with write.loop(end, step, start) as cell:
                        offset = write.arithmetic("mul", cell, size)
                        fold(moved(own, offset), moved(row, offset), wide=step > 1)
    return write.text()
