"""What scalar operations are in LLVM IR: for numbers and vectors what `tapestry.algebra.scalars`
says of arrays.

    if is_known(op):
        result = written(op, write, operands)       # `%v3 = fadd <32 x float> %v1, %v2`

Additions, quotients, roots, comparisons and casts are the same bits; exponentials and the like are
within what `elementary` states. Integers divide by zero to zero, and shift out every bit, without
what LLVM leaves undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.codegen.loops import elementary
from tapestry.codegen.loops.vectors import BYTES, Value, Writer, kind_of

_Made = Callable[..., Value]


def kind_of_type(element: Attribute) -> str | None:
    """The type of an IR type's numbers; None for those that no loop takes."""
    try:
        return kind_of(numpy_dtype(element))
    except KeyError:
        return None


def is_known(op: Operation) -> bool:
    """Whether `written` knows an operation on its types."""
    kinds = [kind_of_type(value.type) for value in (*op.operands, *op.results)]
    if None in kinds or len(op.results) != 1:
        return False
    if type(op) in _SINGLE:
        return kinds[0] == "float"
    if type(op) in _NO_BITS:
        return "i1" not in kinds
    return type(op) in _ALL


def written(op: Operation, write: Writer, operands: Sequence[Value]) -> Value:
    """The result of an operation that is known."""
    kind = type(op)
    result = kind_of_type(op.results[0].type)
    assert result is not None
    if kind in _PLAIN:
        return write.binary(_PLAIN[kind], *operands)
    if kind in _INTRINSICS:
        return write.call(_INTRINSICS[kind], *operands)
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind](write, *operands)
    if kind in _CASTS:
        return write.cast(_CASTS[kind], operands[0], result)
    match op:
        case arith.CmpfOp():
            return write.compared(_FLOAT_ORDER[op.predicate.value.data], *operands)
        case arith.CmpiOp():
            return write.compared(_INTEGER_ORDER[op.predicate.value.data], *operands)
        case arith.SelectOp():
            return write.chosen(*operands)
        case arith.FPToSIOp() | arith.FPToUIOp():
            return write.saturated(operands[0], result, signed=kind is arith.FPToSIOp)
        case _:
            (value,) = operands
            wider = BYTES[result] > BYTES[value.kind]
            return write.cast("sext" if wider else "trunc", value, result)


def cast_between(have: np.dtype[Any], want: np.dtype[Any]) -> str | None:
    """The instruction that does what NumPy's `astype` does; None where there is not one."""
    if kind_of(have) is None or kind_of(want) is None or want == np.bool_:
        return None
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


def combined(kind: type[Operation], write: Writer, left: Value, right: Value) -> Value:
    """Two values by an operation on two of one type, which is their only argument."""
    if kind in _PLAIN:
        return write.binary(_PLAIN[kind], left, right)
    return write.call(_INTRINSICS[kind], left, right)


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


_PLAIN: dict[type[Operation], str] = {
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
}

_INTRINSICS: dict[type[Operation], str] = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxSIOp: "smax",
    arith.MinSIOp: "smin",
    arith.MaxUIOp: "umax",
    arith.MinUIOp: "umin",
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.CtPopOp: "ctpop",
    math.FloorOp: "floor",
    math.FmaOp: "fma",
    math.RoundEvenOp: "roundeven",
    math.SqrtOp: "sqrt",
    math.TruncOp: "trunc",
}

_FUNCTIONS: dict[type[Operation], _Made] = {
    arith.NegfOp: Writer.negated,
    arith.MaxnumfOp: _number_of_two("maximum"),
    arith.MinnumfOp: _number_of_two("minimum"),
    arith.DivSIOp: _part(_signed, 0),
    arith.RemSIOp: _part(_signed, 1),
    arith.FloorDivSIOp: _divided_down,
    arith.CeilDivSIOp: _divided_up,
    arith.DivUIOp: _part(_unsigned, 0),
    arith.RemUIOp: _part(_unsigned, 1),
    arith.CeilDivUIOp: _divided_up_unsigned,
    arith.ShLIOp: _shifted("shl"),
    arith.ShRUIOp: _shifted("lshr"),
    arith.ShRSIOp: _shifted_right,
    math.AbsIOp: _flagged("abs"),
    math.CountLeadingZerosOp: _flagged("ctlz"),
    math.CountTrailingZerosOp: _flagged("cttz"),
    math.RoundOp: _rounded,
    math.RsqrtOp: _reciprocal_root,
    math.ExpOp: elementary.exp,
    math.ExpM1Op: elementary.expm1,
    math.TanhOp: elementary.tanh,
    math.ErfOp: elementary.erf,
    math.LogOp: elementary.log,
    math.Log1pOp: elementary.log1p,
}

_CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    arith.ExtFOp: "fpext",
    arith.TruncFOp: "fptrunc",
    arith.BitcastOp: "bitcast",
}

_FLOAT_ORDER = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_INTEGER_ORDER = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_SINGLE = {math.ErfOp}
"""Functions of float32 alone."""

_NO_BITS = {
    *(arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp),
    *(arith.DivUIOp, arith.RemUIOp, arith.CeilDivUIOp),
    *(arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp),
    *(arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp),
    *(math.AbsIOp, math.CtPopOp, math.CountLeadingZerosOp, math.CountTrailingZerosOp),
    *(arith.FPToSIOp, arith.FPToUIOp, arith.BitcastOp),
}
"""What is not for truth values."""

_ALL = {
    *(*_PLAIN, *_INTRINSICS, *_FUNCTIONS, *_CASTS),
    *(arith.CmpfOp, arith.CmpiOp, arith.SelectOp, arith.IndexCastOp),
    *(arith.FPToSIOp, arith.FPToUIOp),
}
