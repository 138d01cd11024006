"""Operations cell by cell: each is one metakernel of the library.

%2 = stablehlo.add %0, %1 : tensor<4xf32>      weft.apply @add(%0, %1)
"""

from __future__ import annotations

from tapestry.importers.stablehlo.folding import word
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value

_SAME = {
    "stablehlo.abs": "abs",
    "stablehlo.add": "add",
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
    "stablehlo.and": "bitwise_and",
    "stablehlo.or": "bitwise_or",
    "stablehlo.xor": "bitwise_xor",
    "stablehlo.not": "bitwise_not",
    "stablehlo.power": "pow",
    "stablehlo.remainder": "fmod",
    "stablehlo.round_nearest_even": "round",
    "stablehlo.rsqrt": "rsqrt",
    "stablehlo.shift_left": "shift_left",
    "stablehlo.shift_right_arithmetic": "shift_right",
    "stablehlo.sign": "sign",
    "stablehlo.sine": "sin",
    "stablehlo.sqrt": "sqrt",
    "stablehlo.subtract": "sub",
    "stablehlo.tan": "tan",
    "stablehlo.tanh": "tanh",
    "stablehlo.select": "where",
    "chlo.erf": "erf",
    "chlo.asin": "asin",
    "chlo.acos": "acos",
    "chlo.atan": "atan",
    "chlo.sinh": "sinh",
    "chlo.cosh": "cosh",
    "chlo.tan": "tan",
    "chlo.asinh": "asinh",
    "chlo.acosh": "acosh",
    "chlo.atanh": "atanh",
}
"""Operations that a metakernel computes as it is."""

_TRUTH = {
    "stablehlo.add": "bitwise_or",
    "stablehlo.maximum": "bitwise_or",
    "stablehlo.multiply": "bitwise_and",
    "stablehlo.minimum": "bitwise_and",
}
"""What they are for truth values."""


def _same(program: Program, op: Op) -> Value:
    if op.results[0].dtype == "i1" and op.name in _TRUTH:
        return program.apply(_TRUTH[op.name], *op.operands)
    return program.apply(_SAME[op.name], *op.operands)


def _divide(program: Program, op: Op) -> Value:
    return program.apply("div" if op.results[0].is_float else "trunc_divide", *op.operands)


def _clamp(program: Program, op: Op) -> Value:
    low, x, high = op.operands
    return program.apply("minimum", program.apply("maximum", x, low), high)


def _compare(program: Program, op: Op) -> Value:
    return program.apply(word(op.attributes["comparison_direction"]).lower(), *op.operands)


def _convert(program: Program, op: Op) -> Value:
    (x,) = op.operands
    if x.spec == op.results[0]:
        return x
    return program.apply("cast", x, parameters={"dtype": op.results[0].dtype})


TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(_SAME, _same),
    "stablehlo.divide": _divide,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
}
