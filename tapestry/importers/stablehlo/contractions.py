"""Sums of products: `dot_general`, with any batch and contracting dimensions, and `convolution`.

    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]

is an einsum, whose letters are the dimensions. A convolution's dimensions are moved to the order of
the metakernel, and back: that is views.
"""

from __future__ import annotations

from string import ascii_letters

from tapestry.importers.stablehlo.attributes import integers, integers_or, text
from tapestry.importers.stablehlo.bindings import stablehlo_dialect
from tapestry.importers.stablehlo.complexes import einsum, is_complex
from tapestry.importers.stablehlo.movement import flip, pad, reshape, transpose
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
    if is_complex(op):
        return einsum(program, op.operands, equation, op.results[0])
    wide = [cast(program, value, dtype) for value in op.operands]
    return program.apply("einsum", wide, parameters={"equation": equation})


def cast(program: Program, x: Value, dtype: str) -> Value:
    """`x` in another type."""
    if x.spec.dtype == dtype:
        return x
    return program.apply("cast", x, parameters={"dtype": dtype})


def _einsum(program: Program, op: Op) -> Value:
    return product(program, op, text(op.attributes["einsum_config"]))


def _dot(program: Program, op: Op) -> Value:
    """The product of vectors and matrices."""
    a, b = op.operands
    left, right = ("i" if a.spec.rank > 1 else "") + "k", "k" + ("j" if b.spec.rank > 1 else "")
    return product(program, op, f"{left},{right}->{(left + right).replace('k', '')}")


def _convolution(program: Program, op: Op) -> Value:
    numbers = stablehlo_dialect().ConvDimensionNumbers(op.attributes["dimension_numbers"])
    x, weight = op.operands
    spatial = list(numbers.kernel_spatial_dimensions)
    rank = len(spatial)
    ones = [1] * rank
    x_order = [numbers.input_batch_dimension, numbers.input_feature_dimension]
    x = transpose(program, x, [*x_order, *numbers.input_spatial_dimensions])
    w_order = [numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension]
    weight = transpose(program, weight, [*w_order, *spatial])
    turned = integers_or(op.attributes, "window_reversal", [0] * rank)
    weight = flip(program, weight, [2 + dim for dim, one in enumerate(turned) if one])
    spread = integers_or(op.attributes, "lhs_dilation", ones)
    if spread != ones:
        none = [0] * (rank + 2)
        zero = program.known(0, x.spec.of(shape=()))
        x = pad(program, x, zero, none, none, [0, 0, *(step - 1 for step in spread)])
    padding = integers_or(op.attributes, "padding", [0] * (2 * rank))
    batch_groups = integers(op.attributes["batch_group_count"])[0]
    parameters: dict[str, object] = {
        "stride": integers_or(op.attributes, "window_strides", ones),
        "low": padding[::2],
        "high": padding[1::2],
        "dilation": integers_or(op.attributes, "rhs_dilation", ones),
        "groups": integers(op.attributes["feature_group_count"])[0] * batch_groups,
    }
    if batch_groups > 1:
        x = _batches_as_channels(program, x, batch_groups)
    dtype = op.results[0].dtype
    x, weight = cast(program, x, dtype), cast(program, weight, dtype)
    made = program.apply("convolution", x, weight, parameters=parameters)
    order = [numbers.output_batch_dimension, numbers.output_feature_dimension]
    order += numbers.output_spatial_dimensions
    return transpose(program, made, [order.index(dim) for dim in range(rank + 2)])


def _batches_as_channels(program: Program, x: Value, groups: int) -> Value:
    """The groups of the batch as groups of channels: of group g, a kernel sees the batch alone."""
    batch, channels, *size = x.spec.shape
    apart = reshape(program, x, [groups, batch // groups, channels, *size])
    order = [1, 0, *range(2, len(size) + 3)]
    return reshape(
        program, transpose(program, apart, order), [batch // groups, groups * channels, *size]
    )


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.einsum": _einsum,
}
