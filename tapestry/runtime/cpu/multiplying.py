"""Products of matrices as compiled functions of integers, which call NumPy's BLAS.

    found = product_step(a, b, out)         # `np.matmul(a, b, out=out)`, if BLAS reads such arrays
    found.function(arguments)               # with addresses at found.addresses

So what NumPy multiplies can be multiplied where no interpreter is (`tapestry.runtime.cpu.turns`).
Matrices are those that BLAS reads in place: dense along one of their two axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tapestry.runtime.cpu.blas import find_function
from tapestry.runtime.cpu.native import address_of, compiled
from tapestry.runtime.executor import Array

_ROW_MAJOR, _PLAIN, _TURNED = 101, 111, 112
"""What CBLAS calls how matrices lie."""

_TEXT = """
define void @loop(ptr %arguments) {{
entry:
{loads}
  %product = inttoptr i64 %a13 to ptr
  %turn_a = trunc i64 %a7 to i32
  %turn_b = trunc i64 %a8 to i32
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
  call void %product(i32 {order}, i32 %turn_a, i32 %turn_b, {int} %s9, {int} %s10, {int} %s11,
    {kind} 1.0, ptr %p, {int} %s12, ptr %q, {int} %s14, {kind} 0.0, ptr %r, {int} %s15)
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}}
"""
"""Addresses of a, b, c; how many pairs, and the bytes between those of a, b and c; how a and b lie;
rows, columns and terms; the step of a, the function, and the steps of b and c.
"""


@dataclass(frozen=True)
class ProductStep:
    """A compiled function, what it takes, and where the addresses of a, b and the result go."""

    function: Any
    arguments: tuple[int, ...]
    addresses: tuple[int, int, int] = (0, 1, 2)


def product_step(a: Array, b: Array, out: Array) -> ProductStep | None:
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
    if 1 in (rows, columns) or (found := _function(letter)) is None:
        return None  # NumPy has other functions for vectors
    function, address, most = found
    (turn_a, step_a), (turn_b, step_b), (_, step_out) = lies_a, lies_b, lies_out
    count = len(out) if out.ndim == 3 else 1
    apart = [one.strides[0] if one.ndim == 3 and len(one) > 1 else 0 for one in (a, b, out)]
    sizes = (turn_a, turn_b, rows, columns, terms, step_a)
    if max(*sizes, step_b, step_out) > most:
        return None
    arguments = (0, 0, 0, count, *apart, *sizes, address, step_b, step_out)
    return ProductStep(function, arguments)


def _lying(matrix: Array) -> tuple[int, int] | None:
    """Whether rows or columns are dense, and the cells from one to the next; None if neither."""
    (rows, columns), (down, along), size = matrix.shape[-2:], matrix.strides[-2:], matrix.itemsize
    if (along == size or columns == 1) and down % size == 0 and down >= columns * size:
        return _PLAIN, down // size
    if (down == size or rows == 1) and along % size == 0 and along >= rows * size:
        return _TURNED, along // size
    return None


def _function(letter: str) -> tuple[Any, int, int] | None:
    """A compiled function that calls BLAS's for products, where that is, and its largest size."""
    found = find_function(f"cblas_{letter}gemm")
    if found is None:
        return None
    function, wide = found
    made = compiled(_text(letter, wide=wide), "that multiplies matrices")
    most = (1 << (63 if wide else 31)) - 1
    return None if made is None else (made, address_of(function), most)


@cache
def _text(letter: str, *, wide: bool) -> str:
    """The compiled function, for floats of a letter and sizes of 64 bits or 32."""
    loads = [
        f"  %p{n} = getelementptr i64, ptr %arguments, i64 {n}\n  %a{n} = load i64, ptr %p{n}"
        for n in range(16)
    ]
    name = "i64" if wide else "i32"
    sizes = [
        f"  %s{n} = " + (f"add i64 %a{n}, 0" if wide else f"trunc i64 %a{n} to i32")
        for n in (9, 10, 11, 12, 14, 15)
    ]
    kind = {"s": "float", "d": "double"}[letter]
    return _TEXT.format(
        loads="\n".join(loads), sizes="\n".join(sizes), int=name, kind=kind, order=_ROW_MAJOR
    )
