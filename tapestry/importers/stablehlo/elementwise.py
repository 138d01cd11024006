"""Operations cell by cell: most are one metakernel of the library.

%2 = stablehlo.add %0, %1 : tensor<4xf32>      weft.apply @add(%0, %1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Operation, SSAValue

from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.stablehlo.attributes import word
from tapestry.importers.stablehlo.complexes import converted, is_complex, pointwise_complex
from tapestry.importers.stablehlo.pointwise import pointwise
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Spec, Value

_SAME = {
    "stablehlo.abs": "abs",
    "stablehlo.add": "add",
    "stablehlo.and": "bitwise_and",
    "stablehlo.atan2": "atan2",
    "stablehlo.ceil": "ceil",
    "stablehlo.cosine": "cos",
    "stablehlo.exponential": "exp",
    "stablehlo.exponential_minus_one": "expm1",
    "stablehlo.floor": "floor",
    "stablehlo.is_finite": "isfinite",
    "stablehlo.log": "log",
    "stablehlo.log_plus_one": "log1p",
    "stablehlo.logistic": "sigmoid",
    "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum",
    "stablehlo.multiply": "mul",
    "stablehlo.negate": "neg",
    "stablehlo.not": "bitwise_not",
    "stablehlo.or": "bitwise_or",
    "stablehlo.power": "pow",
    "stablehlo.remainder": "fmod",
    "stablehlo.round_nearest_even": "round",
    "stablehlo.rsqrt": "rsqrt",
    "stablehlo.select": "where",
    "stablehlo.shift_left": "shift_left",
    "stablehlo.sign": "sign",
    "stablehlo.sine": "sin",
    "stablehlo.sqrt": "sqrt",
    "stablehlo.subtract": "sub",
    "stablehlo.tan": "tan",
    "stablehlo.tanh": "tanh",
    "stablehlo.xor": "bitwise_xor",
    "chlo.acos": "acos",
    "chlo.acosh": "acosh",
    "chlo.asin": "asin",
    "chlo.asinh": "asinh",
    "chlo.atan": "atan",
    "chlo.atanh": "atanh",
    "chlo.cosh": "cosh",
    "chlo.erf": "erf",
    "chlo.is_inf": "isinf",
    "chlo.sinh": "sinh",
    "chlo.square": "square",
    "chlo.tan": "tan",
}
"""Operations that a metakernel computes as it is."""

_TRUTH = {
    "stablehlo.add": "bitwise_or",
    "stablehlo.maximum": "bitwise_or",
    "stablehlo.multiply": "bitwise_and",
    "stablehlo.minimum": "bitwise_and",
}
"""What they are for truth values."""

_SCALAR: dict[str, type[Operation]] = {
    "stablehlo.cbrt": math.CbrtOp,
    "stablehlo.count_leading_zeros": math.CountLeadingZerosOp,
    "stablehlo.popcnt": math.CtPopOp,
    "stablehlo.round_nearest_afz": math.RoundOp,
    "stablehlo.shift_right_arithmetic": arith.ShRSIOp,
    "stablehlo.shift_right_logical": arith.ShRUIOp,
}
"""Operations that one scalar operation computes; an arithmetic shift keeps the first bit of numbers
without a sign too.
"""


def _same(program: Program, op: Op) -> Value:
    if is_complex(op):
        return pointwise_complex(program, op)
    (result,) = op.results
    if result.dtype == "i1" and op.name in _TRUTH:
        return program.apply(_TRUTH[op.name], *op.operands)
    return _absorbed(op) or program.apply(_SAME[op.name], *op.operands)


def _absorbed(op: Op) -> Value | None:
    """The other operand of a maximum with -inf, or a minimum with inf: JAX guards folds so."""
    least = {"stablehlo.maximum": -np.inf, "stablehlo.minimum": np.inf}.get(op.name)
    if least is None or not op.results[0].is_float:
        return None
    for one, other in (op.operands, op.operands[::-1]):
        if one.splat is not None and float(one.splat) == least:
            return other
    return None


def _scalar(program: Program, op: Op) -> Value:
    kind = _SCALAR[op.name]

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        return body.add(kind(*cells))

    return pointwise(program, op.name.partition(".")[2], op.operands, op.results[0], build)


def _divide(program: Program, op: Op) -> Value:
    if is_complex(op):
        return pointwise_complex(program, op)
    return program.apply("div" if op.results[0].is_float else "trunc_divide", *op.operands)


def _clamp(program: Program, op: Op) -> Value:
    low, x, high = op.operands
    return program.apply("minimum", program.apply("maximum", x, low), high)


def _compare(program: Program, op: Op) -> Value:
    if is_complex(op):
        return pointwise_complex(program, op)
    operands: Sequence[Value] = op.operands
    total = op.has("compare_type") and word(op.attributes["compare_type"]) == "TOTALORDER"
    if total and operands[0].spec.is_float:
        operands = [total_order(program, value) for value in operands]
    return program.apply(word(op.attributes["comparison_direction"]).lower(), *operands)


def total_order(program: Program, x: Value) -> Value:
    """Integers in the order that IEEE 754 gives all floats: -NaN, -inf, ..., -0, 0, ..., NaN."""
    width = x.spec.width
    bits = Spec(x.spec.shape, f"i{width}")

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        kind = IntegerType(width)
        found = body.add(arith.BitcastOp(cells[0], kind))
        sign = body.add(arith.ShRSIOp(found, body.number(width - 1, kind)))
        rest = body.add(arith.ShRUIOp(sign, body.number(1, kind)))
        return body.add(arith.XOrIOp(found, rest))

    return pointwise(program, "total_order", [x], bits, build)


def _convert(program: Program, op: Op) -> Value:
    (x,) = op.operands
    if x.spec == op.results[0]:
        return x
    if is_complex(op) or op.results[0].is_complex:
        return converted(program, x, op.results[0])
    if x.spec.width == 8 and x.spec.is_float:
        x = _rounded(program, x, "f32")
    if op.results[0].width == 8 and op.results[0].is_float:
        return _rounded(program, _cast(program, x, "f32"), op.results[0].dtype)
    return _cast(program, x, op.results[0].dtype)


def _cast(program: Program, x: Value, dtype: str) -> Value:
    return x if x.spec.dtype == dtype else program.apply("cast", x, parameters={"dtype": dtype})


def _rounded(program: Program, x: Value, dtype: str) -> Value:
    """8-bit floats, which metakernels do not know, from f32 or to it."""
    kind = cast(AnyFloat, cell_type(dtype))
    change = arith.ExtFOp if dtype == "f32" else arith.TruncFOp

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        return body.add(change(cells[0], kind))

    return pointwise(program, "convert", [x], x.spec.of(dtype=dtype), build)


def _reduce_precision(program: Program, op: Op) -> Value:
    """A float rounded to fewer bits: by way of the type that has them."""
    (x,), (result,) = op.operands, op.results
    exponent, mantissa = (int(op.attributes[name]) for name in ("exponent_bits", "mantissa_bits"))
    narrow = {(5, 10): "f16", (8, 7): "bf16", (8, 23): "f32", (11, 52): "f64"}
    if (exponent, mantissa) not in narrow:
        raise program.error(
            f"there is no float of {exponent} exponent and {mantissa} mantissa bits"
        )
    rounded = program.apply("cast", x, parameters={"dtype": narrow[exponent, mantissa]})
    return program.apply("cast", rounded, parameters={"dtype": result.dtype})


TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_SCALAR, _scalar),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _divide,
    "stablehlo.reduce_precision": _reduce_precision,
}

POINTWISE = frozenset((*TRANSLATIONS, "stablehlo.bitcast_convert"))
"""The operations of which each cell of the result is made of the operands' cells there alone."""
