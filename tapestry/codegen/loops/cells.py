"""What scalar operations are in LLVM IR: for numbers and vectors what `tapestry.algebra.scalars`
says of arrays.

    if is_known(scalar):
        result = written(scalar, write, operands)       # `%v3 = fadd <32 x float> %v1, %v2`

Additions, quotients, roots, comparisons and casts are the same bits; exponentials and the like are
within what `elementary` states. Integers divide by zero to zero, and shift out every bit, without
what LLVM leaves undefined. What is of 16-bit floats is that of their values in float32, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import elementary, powers, trigonometry
from tapestry.codegen.loops.vectors import BYTES, HALVES, Value, Writer, kind_of, register

_Made = Callable[..., Value]

Cast = Callable[[Writer, Value], Value]
"""What writes a value in another type."""


def is_known(op: Scalar) -> bool:
    """Whether `written` knows an operation on its types."""
    kinds = [kind_of(dtype) for dtype in (*op.operands, op.result)]
    if None in kinds:
        return False
    if op.name in _SINGLE:
        return register(str(kinds[0])) == "float"
    if op.name in _NO_BITS:
        return "i1" not in kinds and not (op.name == "arith.bitcast" and HALVES & {*kinds})
    return op.name in _ALL


def written(op: Scalar, write: Writer, operands: Sequence[Value]) -> Value:
    """The result of an operation that is known."""
    result = kind_of(op.result)
    assert result is not None
    made = _written(op, write, operands, register(result))
    return write.rounded(made, result) if result in HALVES and op.name not in _KEPT else made


def _written(op: Scalar, write: Writer, operands: Sequence[Value], result: str) -> Value:
    """The result in the type that it is computed in."""
    if op.name in _PLAIN:
        return write.binary(_PLAIN[op.name], *operands)
    if op.name in _INTRINSICS:
        return write.call(_INTRINSICS[op.name], *operands)
    if op.name in _FUNCTIONS:
        return _FUNCTIONS[op.name](write, *operands)
    if op.name in _CASTS:
        # Between 16 and 32 bits, values stay what they are, or are rounded afterwards.
        return write.cast(_CASTS[op.name], operands[0], result)
    match op.name:
        case "arith.cmpf":
            return write.compared(_FLOAT_ORDER[op.predicate], *operands)
        case "arith.cmpi":
            return write.compared(_INTEGER_ORDER[op.predicate], *operands)
        case "arith.select":
            return write.chosen(*operands)
        case "arith.fptosi" | "arith.fptoui":
            return write.saturated(operands[0], result, signed=op.name == "arith.fptosi")
        case _:
            (value,) = operands
            wider = BYTES[result] > BYTES[value.kind]
            return write.cast("sext" if wider else "trunc", value, result)


def cast_between(have: np.dtype[Any], want: np.dtype[Any]) -> Cast | None:
    """What writes what NumPy's `astype` does; None where it is more than an instruction."""
    source, target = kind_of(have), kind_of(want)
    if source is None or target is None or want == np.bool_:
        return None
    if target in HALVES:
        if source not in ("float", *HALVES):
            return None  # it would be rounded twice
        return lambda write, value: write.rounded(value, target)
    if source in HALVES:
        if target not in ("float", "double"):
            return None
        return lambda write, value: write.cast("fpext", value, target)
    instruction = _instruction_between(have, want)
    if instruction is None:
        return None
    return lambda write, value: write.cast(instruction, value, target)


def _instruction_between(have: np.dtype[Any], want: np.dtype[Any]) -> str | None:
    match have.kind, want.kind:
        case ("f", "f"):
            return "fpext" if want.itemsize > have.itemsize else "fptrunc"
        case ("i", "i"):
            return "sext" if want.itemsize > have.itemsize else "trunc"
        case ("i", "f"):
            return "sitofp"
        case ("b", "i"):
            return "zext"
        case ("b", "f"):
            return "uitofp"
        case _:
            return None


def combined(name: str, write: Writer, left: Value, right: Value) -> Value:
    """Two values by an operation on two of one type, which is their only argument."""
    if name in _PLAIN:
        return write.binary(_PLAIN[name], left, right)
    return write.call(_INTRINSICS[name], left, right)


def _number_of_two(name: str) -> _Made:
    """A maximum or minimum that takes the other operand for NaN."""

    def made(write: Writer, a: Value, b: Value) -> Value:
        both = write.call(name, a, b)
        other = write.chosen(write.compared("uno", b, b), a, both)
        return write.chosen(write.compared("uno", a, a), b, other)

    return made


def _rounded(write: Writer, x: Value) -> Value:
    """Halves away from zero; what truncation leaves is exact."""
    whole = write.call("trunc", x)
    left = write.call("fabs", write.binary("fsub", x, whole))
    half, one, zero = (write.number(value, x.kind) for value in (0.5, 1.0, 0.0))
    more = write.chosen(write.compared("oge", left, half), one, zero)
    return write.call("copysign", write.binary("fadd", write.call("fabs", whole), more), x)


def _reciprocal_root(write: Writer, x: Value) -> Value:
    return write.binary("fdiv", write.number(1.0, x.kind), write.call("sqrt", x))


def _signed(write: Writer, a: Value, b: Value) -> tuple[Value, Value]:
    """The quotient of signed integers, its fraction cut off, and the remainder."""
    zero, one = write.number(0, b.kind), write.number(1, b.kind)
    none = write.compared("eq", b, zero)
    # The least integer has no opposite: LLVM leaves its quotient by -1 undefined.
    less = write.compared("eq", b, write.number(-1, b.kind))
    by = write.chosen(write.binary("or", none, less), one, b)
    quotient = write.chosen(less, write.binary("sub", zero, a), write.binary("sdiv", a, by))
    return write.chosen(none, zero, quotient), write.binary("srem", a, by)


def _below(write: Writer, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """The quotient of signed integers, whether it is inexact, and whether it is negative."""
    quotient, rest = _signed(write, a, b)
    zero = write.number(0, b.kind)
    inexact = write.compared("ne", rest, zero)
    negative = write.compared("slt", write.binary("xor", a, b), zero)
    return quotient, inexact, negative


def _divided_down(write: Writer, a: Value, b: Value) -> Value:
    quotient, inexact, negative = _below(write, a, b)
    less = write.cast("zext", write.binary("and", inexact, negative), b.kind)
    return write.binary("sub", quotient, less)


def _divided_up(write: Writer, a: Value, b: Value) -> Value:
    quotient, inexact, negative = _below(write, a, b)
    positive = write.compared("eq", negative, write.number(0, "i1"))
    more = write.cast("zext", write.binary("and", inexact, positive), b.kind)
    return write.binary("add", quotient, more)


def _unsigned(write: Writer, a: Value, b: Value) -> tuple[Value, Value]:
    zero, one = write.number(0, b.kind), write.number(1, b.kind)
    none = write.compared("eq", b, zero)
    by = write.chosen(none, one, b)
    quotient, rest = write.binary("udiv", a, by), write.binary("urem", a, by)
    return write.chosen(none, zero, quotient), rest


def _divided_up_unsigned(write: Writer, a: Value, b: Value) -> Value:
    quotient, rest = _unsigned(write, a, b)
    more = write.compared("ne", rest, write.number(0, b.kind))
    return write.binary("add", quotient, write.cast("zext", more, b.kind))


def _shifted(name: str) -> _Made:
    """A shift that leaves nothing of what is shifted as far as there are bits."""

    def made(write: Writer, a: Value, by: Value) -> Value:
        width = write.number(8 * BYTES[a.kind], a.kind)
        inside = write.compared("ult", by, width)
        zero = write.number(0, a.kind)
        found = write.binary(name, a, write.chosen(inside, by, zero))
        return write.chosen(inside, found, zero)

    return made


def _shifted_right(write: Writer, a: Value, by: Value) -> Value:
    most = write.number(8 * BYTES[a.kind] - 1, a.kind)
    by = write.chosen(write.compared("ult", by, most), by, most)
    return write.binary("ashr", a, by)


def _flagged(name: str) -> _Made:
    """An intrinsic that may be asked to leave something undefined, and is not."""

    def made(write: Writer, x: Value) -> Value:
        return write.call(name, x, flag=False)

    return made


def _part(pair: Callable[[Writer, Value, Value], tuple[Value, Value]], number: int) -> _Made:
    """The quotient, or the remainder."""

    def made(write: Writer, a: Value, b: Value) -> Value:
        return pair(write, a, b)[number]

    return made


_PLAIN: dict[str, str] = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}

_INTRINSICS: dict[str, str] = {
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.maxsi": "smax",
    "arith.minsi": "smin",
    "arith.maxui": "umax",
    "arith.minui": "umin",
    "math.absf": "fabs",
    "math.ceil": "ceil",
    "math.copysign": "copysign",
    "math.ctpop": "ctpop",
    "math.floor": "floor",
    "math.fma": "fma",
    "math.roundeven": "roundeven",
    "math.sqrt": "sqrt",
    "math.trunc": "trunc",
}

_FUNCTIONS: dict[str, _Made] = {
    "arith.negf": Writer.negated,
    "arith.maxnumf": _number_of_two("maximum"),
    "arith.minnumf": _number_of_two("minimum"),
    "arith.divsi": _part(_signed, 0),
    "arith.remsi": _part(_signed, 1),
    "arith.floordivsi": _divided_down,
    "arith.ceildivsi": _divided_up,
    "arith.divui": _part(_unsigned, 0),
    "arith.remui": _part(_unsigned, 1),
    "arith.ceildivui": _divided_up_unsigned,
    "arith.shli": _shifted("shl"),
    "arith.shrui": _shifted("lshr"),
    "arith.shrsi": _shifted_right,
    "math.absi": _flagged("abs"),
    "math.ctlz": _flagged("ctlz"),
    "math.cttz": _flagged("cttz"),
    "math.round": _rounded,
    "math.rsqrt": _reciprocal_root,
    "math.exp": elementary.exp,
    "math.expm1": elementary.expm1,
    "math.tanh": elementary.tanh,
    "math.erf": elementary.erf,
    "math.log": elementary.log,
    "math.log1p": elementary.log1p,
    "math.exp2": elementary.exp2,
    "math.log2": powers.log2,
    "math.log10": powers.log10,
    "math.powf": powers.power,
    "math.cbrt": powers.cbrt,
    "math.sinh": powers.sinh,
    "math.cosh": powers.cosh,
    "math.asinh": powers.asinh,
    "math.acosh": powers.acosh,
    "math.atanh": powers.atanh,
    "math.sin": trigonometry.sin,
    "math.cos": trigonometry.cos,
    "math.tan": trigonometry.tan,
    "math.asin": trigonometry.asin,
    "math.acos": trigonometry.acos,
    "math.atan": trigonometry.atan,
    "math.atan2": trigonometry.atan2,
}

_CASTS: dict[str, str] = {
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
    "arith.extf": "fpext",
    "arith.truncf": "fptrunc",
    "arith.bitcast": "bitcast",
}

_FLOAT_ORDER = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_INTEGER_ORDER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_SINGLE = {"math.erf", "math.powf"}
"""Functions of float32 alone."""

_KEPT = {"arith.select", "arith.negf", "math.absf", "math.copysign"}
"""What gives a value that has as many bits as an operand, which has the result's type."""

_NO_BITS = {
    *("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"),
    *("arith.divui", "arith.remui", "arith.ceildivui"),
    *("arith.shli", "arith.shrui", "arith.shrsi"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
    *("math.absi", "math.ctpop", "math.ctlz", "math.cttz"),
    *("arith.fptosi", "arith.fptoui", "arith.bitcast"),
}
"""What is not for truth values."""

_ALL = {
    *(*_PLAIN, *_INTRINSICS, *_FUNCTIONS, *_CASTS),
    *("arith.cmpf", "arith.cmpi", "arith.select", "arith.index_cast"),
    *("arith.fptosi", "arith.fptoui"),
}
