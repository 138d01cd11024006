"""Whether numbers are finite, as a compiled function of integers says it.

    found = finite_step(matrix)         # for a matrix of floats, or a stack, that lies like this
    found.function(arguments)           # with its address at found.address; the last argument is
                                        # 0 afterwards if all of its numbers are finite

So what must be known before zeros stand for what does not count is known where no interpreter is
(`tapestry.runtime.cpu.stealing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import BYTES, WIDTH
from tapestry.runtime.cpu.native import compiled
from tapestry.runtime.executor import Array

_INFINITY = {"i32": 0x7F800000, "i64": 0x7FF << 52}
"""The bits of infinity, of floats as integers; those of NaN are more."""

_KINDS = {np.dtype(np.float32): "i32", np.dtype(np.float64): "i64"}


@dataclass(frozen=True)
class FiniteStep:
    """A compiled function, what it takes, and where the address of the numbers goes."""

    function: Any
    arguments: tuple[int, ...]
    address: int = 0


def finite_step(matrix: Array) -> FiniteStep | None:
    """What looks at a matrix or a stack of them; None for other arrays, or where none compiles."""
    kind = _KINDS.get(matrix.dtype)
    if kind is None or matrix.ndim not in (2, 3):
        return None
    axes = sorted(zip(matrix.strides, matrix.shape, strict=True), reverse=True)
    if matrix.ndim == 2:
        axes.insert(0, (0, 1))
    (apart, count), (step, rows), (near, columns) = axes
    if columns > 1 and near != matrix.itemsize:
        return None
    function = compiled(_text(kind), "that looks for what is not finite")
    arguments = (0, count, apart, rows, step, columns, 0)
    return None if function is None else FiniteStep(function, arguments)


@cache
def _text(kind: str) -> str:
    """The compiled function: an address; extents and strides, outermost first; what it found."""
    write, size = Function(), BYTES[kind]

    address, count, apart, rows, step, columns = map(write.argument, range(6))
    first = write.made(f"inttoptr i64 {address} to ptr", "ptr", wide=False).name
    most = write.place(f"<{WIDTH} x {kind}>")
    nothing = write.widened(write.number(0, kind))
    write.line(f"store {nothing.type} {nothing.name}, ptr {most}")
    infinity = write.number(_INFINITY[kind], kind)

    def look(pointer: str, at: str) -> None:
        bits = write.load(write.moved(pointer, at, str(size)), kind, wide=True)
        # Without the sign; the larger, the larger the number is.
        bits = write.binary("and", bits, write.number((1 << (8 * size - 1)) - 1, kind))
        before = write.made(f"load {bits.type}, ptr {most}", kind, wide=True)
        largest = write.call("smax", before, bits)
        write.line(f"store {largest.type} {largest.name}, ptr {most}")

    whole = write.arithmetic("and", columns, str(-WIDTH))
    with write.loop(count, 1) as matrix:
        of_matrix = write.moved(first, matrix, apart)
        with write.loop(rows, 1) as row:
            of_row = write.moved(of_matrix, row, step)
            with write.loop(whole, WIDTH) as at:
                look(of_row, at)
            with write.rest(whole, columns):
                look(of_row, whole)
    largest = write.made(f"load <{WIDTH} x {kind}>, ptr {most}", kind, wide=True)
    found = write.compared("sge", largest, infinity)
    bits = write.made(f"bitcast {found.type} {found.name} to i{WIDTH}", "i32", wide=False)
    said = write.cast("zext", bits, "i64")
    write.line(f"store i64 {said.name}, ptr {write.argument_at(6)}")
    return write.text()
