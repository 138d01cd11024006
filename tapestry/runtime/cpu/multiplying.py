"""Products of matrices as compiled functions of integers, which call BLAS.

    found = product_step(a, b, out)         # `np.matmul(a, b, out=out)`, if BLAS reads such arrays
    found.function(arguments)               # with addresses at found.addresses

So what NumPy multiplies, or another host, can be multiplied where no interpreter is
(`tapestry.runtime.cpu.steps`).
Matrices are those that BLAS reads in place: dense along one of their two axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tapestry.runtime.cpu.blas import NUMPY, Blas
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.executor import Array

_ROW_MAJOR, _COLUMN_MAJOR, _PLAIN, _TURNED = 101, 102, 111, 112
"""What CBLAS calls how matrices lie."""

_TEXT = """
define void @loop(ptr %arguments) {{
entry:
{loads}
  %product = inttoptr i64 %a{function} to ptr
  %first = trunc i64 %a7 to i32
  %second = trunc i64 %a8 to i32
{sizes}
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %n, %a3
  br i1 %more, label %body, label %done
body:
  %step_a = mul i64 %n, %a4
  %step_b = mul i64 %n, %a5
  %step_c = mul i64 %n, %a6
  %at_a = add i64 %a0, %step_a
  %at_b = add i64 %a1, %step_b
  %at_c = add i64 %a2, %step_c
  %p = inttoptr i64 %at_a to ptr
  %q = inttoptr i64 %at_b to ptr
  %r = inttoptr i64 %at_c to ptr
  call void %product({given})
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}}
"""
"""Arguments are addresses of a, b, c; how many pairs, and the bytes between those of a, b and c;
two numbers that say how they lie; and then, in an order of each function's own, that and sizes.
"""

_MATRICES = (
    f"i32 {_ROW_MAJOR}, i32 %first, i32 %second, {{int}} %s9, {{int}} %s10, {{int}} %s11, "
    "{kind} 1.0, ptr %p, {int} %s12, ptr %q, {int} %s14, {kind} 0.0, ptr %r, {int} %s15"
)
"""How a and b lie; rows, columns and terms; the step of a, the function, the steps of b and c."""

_VECTOR = (
    "i32 %first, i32 %second, {int} %s10, {int} %s11, "
    "{kind} 1.0, ptr %p, {int} %s12, ptr %q, {int} %s13, {kind} 0.0, ptr %r, {int} %s14"
)
"""How a matrix lies, and that it is turned; the function; rows and columns; the three steps."""

_CALLS = {
    "gemm": (_MATRICES, 13, (9, 10, 11, 12, 14, 15)),
    "gemv": (_VECTOR, 9, (10, 11, 12, 13, 14)),
}
"""Per function of BLAS's what it is given, and which arguments are the function, and the sizes."""

_OF_FORTRAN = {
    "gemm": ("8", "7", "10", "9", "11", "one", "q", "14", "p", "12", "zero", "r", "15"),
    "gemv": ("7", "m", "n", "one", "p", "12", "q", "13", "zero", "r", "14"),
}
"""The same as places of numbers, or the addresses of matrices. Fortran's matrices lie by columns:
row by row the product of two is that of the turned ones, the other way round.
"""

_LAID = {
    "gemm": f"""
  %turned_7 = icmp eq i64 %a7, {_TURNED}
  %turned_8 = icmp eq i64 %a8, {_TURNED}
""",
    "gemv": f"""
  %turned_7 = icmp eq i64 %a7, {_COLUMN_MAJOR}
  %m = select i1 %turned_7, i64 %a10, i64 %a11
  %n_long = select i1 %turned_7, i64 %a11, i64 %a10
  store i64 %m, ptr %at_m
  store i64 %n_long, ptr %at_n
""",
}
"""Whether matrices are turned for Fortran; and, of one and a vector, its rows and columns."""


@dataclass(frozen=True)
class ProductStep:
    """A compiled function, what it takes, and where the addresses of a, b and the result go."""

    function: Any
    arguments: tuple[int, ...]
    addresses: tuple[int, int, int] = (0, 1, 2)


SMALL = 1 << 18
"""Multiplications of two matrices up to which OpenBLAS starts no threads."""

FEW = 9215
"""The same, of a matrix and a vector."""


def is_shared(a: Array, b: Array) -> bool:
    """Whether OpenBLAS may start threads for a product, or one of a stack."""
    most = FEW if 1 in (a.shape[-2], b.shape[-1]) else SMALL
    return a.shape[-2] * a.shape[-1] * b.shape[-1] > most


def product_step(a: Array, b: Array, out: Array, by: Blas = NUMPY) -> ProductStep | None:
    """The product of two matrices, or of each pair of two stacks, into an array."""
    letter = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}.get(out.dtype)
    if letter is None or not a.dtype == b.dtype == out.dtype or 0 in (a.size, b.size):
        return None
    if not a.ndim == b.ndim == out.ndim or out.ndim not in (2, 3):
        return None
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    lies_a, lies_b, lies_out = map(_lying, (a, b, out))
    if lies_a is None or lies_b is None or lies_out is None or lies_out[0] != _PLAIN:
        return None
    if 1 in (rows, columns):
        return _vector_step(a, b, out, letter, by)
    if (found := _function(letter, "gemm", by)) is None:
        return None
    function, address, most = found
    (turn_a, step_a), (turn_b, step_b), (_, step_out) = lies_a, lies_b, lies_out
    count = len(out) if out.ndim == 3 else 1
    apart = [one.strides[0] if one.ndim == 3 and len(one) > 1 else 0 for one in (a, b, out)]
    sizes = (turn_a, turn_b, rows, columns, terms, step_a)
    if max(*sizes, step_b, step_out) > most:
        return None
    arguments = (0, 0, 0, count, *apart, *sizes, address, step_b, step_out)
    return ProductStep(function, arguments)


def _vector_step(a: Array, b: Array, out: Array, letter: str, by: Blas) -> ProductStep | None:
    """The product of a matrix and a vector, as NumPy has BLAS multiply them; None for two vectors.

    One with one row is that of the other one, turned.
    """
    turned = a.shape[-2] == 1
    matrix, vector = (b.swapaxes(-1, -2), a) if turned else (a, b.swapaxes(-1, -2))
    rows, terms = matrix.shape[-2:]
    found = _function(letter, "gemv", by)
    if 1 in (rows, terms) or found is None:
        return None
    function, address, most = found
    (down, along), size = matrix.strides[-2:], matrix.itemsize
    order, step = (
        (_COLUMN_MAJOR, down) if along == size and down >= terms * size else (_ROW_MAJOR, along)
    )
    if order == _ROW_MAJOR and (down != size or along < rows * size):
        return None
    steps = (step, vector.strides[-1], out.strides[-1 if turned else -2])
    if any(one % size or one <= 0 for one in steps):
        return None
    sizes = (terms, rows, *(one // size for one in steps))
    if max(sizes) > most:
        return None
    count = len(out) if out.ndim == 3 else 1
    apart = [
        one.strides[0] if one.ndim == 3 and len(one) > 1 else 0 for one in (matrix, vector, out)
    ]
    arguments = (0, 0, 0, count, *apart, order, _TURNED, address, *sizes)
    places = (1, 0, 2) if turned else (0, 1, 2)
    return ProductStep(function, arguments, places)


def _lying(matrix: Array) -> tuple[int, int] | None:
    """Whether rows or columns are dense, and the cells from one to the next; None if neither."""
    (rows, columns), (down, along), size = matrix.shape[-2:], matrix.strides[-2:], matrix.itemsize
    if (along == size or columns == 1) and down % size == 0 and down >= columns * size:
        return _PLAIN, down // size
    if (down == size or rows == 1) and along % size == 0 and along >= rows * size:
        return _TURNED, along // size
    return None


def _function(letter: str, name: str, by: Blas) -> tuple[Any, int, int] | None:
    """A compiled function that calls BLAS's of a name, where that is, and its largest size."""
    found = by.find(letter + name)
    if found is None:
        return None
    function, wide = found
    text = _text_of_fortran(letter, name) if by.is_fortran else _text(letter, name, wide=wide)
    made = compiled(text, "that multiplies matrices")
    most = (1 << (63 if wide else 31)) - 1
    return None if made is None else (made, address_of(function), most)


@cache
def _text(letter: str, name: str, *, wide: bool) -> str:
    """The compiled function, for floats of a letter and sizes of 64 bits or 32."""
    given, function, whole = _CALLS[name]
    sizes = [
        f"  %s{n} = " + (f"add i64 %a{n}, 0" if wide else f"trunc i64 %a{n} to i32") for n in whole
    ]
    return _TEXT.format(
        loads=_loads(max(whole)),
        sizes="\n".join(sizes),
        function=function,
        given=given.format(int="i64" if wide else "i32", kind=_FLOAT[letter]),
    )


@cache
def _text_of_fortran(letter: str, name: str) -> str:
    """The same for a function that is given where numbers are, of whatever bits.

    Those that it reads of a number are the lower ones, which come first.
    """
    _, function, whole = _CALLS[name]
    kind, given = _FLOAT[letter], _OF_FORTRAN[name]
    places = [one for one in given if one not in ("p", "q", "r")]
    kept = [f"  %at_{n} = alloca {kind if n in ('one', 'zero') else 'i64'}" for n in places]
    kept += [f"  store {kind} {number}, ptr %at_{n}" for n, number in (("one", 1.0), ("zero", 0.0))]
    kept += [f"  store i64 %a{n}, ptr %at_{n}" for n in places if n in set(map(str, whole))]
    kept.append(_LAID[name])
    for n in ("7", "8"):
        if n in places:
            letters = f"i64 {ord('T')}, i64 {ord('N')}"
            kept.append(f"  %letter_{n} = select i1 %turned_{n}, {letters}")
            kept.append(f"  store i64 %letter_{n}, ptr %at_{n}")
    return _TEXT.format(
        loads=_loads(max(whole)),
        sizes="\n".join(kept),
        function=function,
        given=", ".join(f"ptr %{n}" if n in ("p", "q", "r") else f"ptr %at_{n}" for n in given),
    )


_FLOAT = {"s": "float", "d": "double"}


def _loads(last: int) -> str:
    """All that is given up to the last argument."""
    return "\n".join(
        f"  %p{n} = getelementptr i64, ptr %arguments, i64 {n}\n  %a{n} = load i64, ptr %p{n}"
        for n in range(last + 1)
    )
