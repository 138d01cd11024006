"""Sums of products: `dot_general`, with any batch and contracting dimensions.

    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]

is an einsum, whose letters are the dimensions.
"""

from __future__ import annotations

from string import ascii_letters

from tapestry.importers.stablehlo.bindings import stablehlo_dialect
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value


def _dot_general(program: Program, op: Op) -> Value:
    numbers = stablehlo_dialect().DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left_batch, right_batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    left_sum, right_sum = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    a, b = op.operands
    letters = iter(ascii_letters)
    left: list[str] = [next(letters) for _ in a.spec.shape]
    right: list[str] = [next(letters) for _ in b.spec.shape]
    for mine, other in zip((*left_batch, *left_sum), (*right_batch, *right_sum), strict=True):
        right[other] = left[mine]
    free_left = [i for i in range(a.spec.rank) if i not in (*left_batch, *left_sum)]
    free_right = [i for i in range(b.spec.rank) if i not in (*right_batch, *right_sum)]
    out = [left[i] for i in (*left_batch, *free_left)] + [right[i] for i in free_right]
    return product(program, op, f"{''.join(left)},{''.join(right)}->{''.join(out)}")


def product(program: Program, op: Op, equation: str) -> Value:
    """The sum of products of the operands, in the type of the result."""
    dtype = op.results[0].dtype
    made = program.apply("einsum", list(op.operands), parameters={"equation": equation})
    if made.spec.dtype == dtype:
        return made
    return program.apply("cast", made, parameters={"dtype": dtype})


TRANSLATIONS: dict[str, Translation] = {"stablehlo.dot_general": _dot_general}
