"""Integer operations on tiles, total as everywhere: see `tapestry.algebra.scalars`.

Triton's `//` and `%` truncate like C, as `arith.divsi` and `arith.remsi` do, but leave division by
zero undefined. What a divisor or a shift may not be is chosen away, where it is not known:

    %q = arith.divsi %a, %b : i32     tl.where(b == 0, 0, tl.where(b == -1, 0 - a, a // safe))

An i1 is an integer of one bit: it computes in i32 and keeps the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.algebra.dtypes import integer_width
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.tiles.builder import TileBuilder, constant_value
from tapestry.passes.triton.tiles.narrow import narrow_operands, narrowed

_Write = Callable[..., SSAValue]


def zero(tiles: TileBuilder, like: SSAValue) -> SSAValue:
    """Zero in the type of a value."""
    return tiles.constant(0, element_of(like))


def minus(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    """An integer negated."""
    return tiles.subtract(zero(tiles, x), x)


def lowest_bit(tiles: TileBuilder, x: SSAValue) -> SSAValue:
    """An integer as an i1: its lowest bit."""
    low = tiles.value(arith.AndIOp(*tiles.pair(x, tiles.constant(1, element_of(x)))))
    return tiles.compare("!=", low, zero(tiles, low))


def zero_extended(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """The unsigned integer that the bits of `x` are, in a wider type."""
    source = element_of(x)
    if source == result:
        return x
    if source == i1:
        return tiles.cast(x, result)
    low = (1 << integer_width(source)) - 1
    wide = tiles.cast(x, result)
    return tiles.value(arith.AndIOp(*tiles.pair(wide, tiles.constant(low, result))))


def sign_extended(tiles: TileBuilder, x: SSAValue, result: Attribute) -> SSAValue:
    """The signed integer that the bits of `x` are, in a wider type; a true i1 is -1."""
    wide = tiles.cast(x, result)
    return minus(tiles, wide) if element_of(x) == i1 else wide


def write_integer(tiles: TileBuilder, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """An integer operation of `INTEGERS`."""
    kind, result = type(op), op.results[0].type
    narrow = narrow_operands(tiles, op, operands)
    if narrow is not None:
        operands, bounds = narrow
        made = INTEGERS[kind](tiles, *operands)
        tiles.bounds[made] = bounds
        return tiles.cast(made, i64)
    if result != i1 or kind in _TRUTH:
        return INTEGERS[kind](tiles, *operands)
    extend = zero_extended if kind in _UNSIGNED else sign_extended
    wide = [extend(tiles, operand, i32) for operand in operands]
    if kind in _COUNTS:
        # A bit has no zeros when it is set, and one otherwise.
        return operands[0] if kind is math.CtPopOp else tiles.negated(operands[0])
    return lowest_bit(tiles, INTEGERS[kind](tiles, *wide))


def _plain(op: Callable[..., Operation]) -> _Write:
    """An operation that tiles have as it is."""

    def write(tiles: TileBuilder, *operands: SSAValue) -> SSAValue:
        return tiles.value(op(*tiles.join(*operands)))

    return write


_and, _xor = _plain(arith.AndIOp), _plain(arith.XOrIOp)


def _divided(op: Callable[..., Operation], at_zero: int, at_minus_one: _Write | None) -> _Write:
    """A division or remainder; `at_minus_one` makes what it is by -1, when that may overflow."""

    def write(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
        element = element_of(b)
        known = constant_value(b)
        signed = at_minus_one is not None
        if known is not None and known != 0 and not (signed and known == -1):
            return tiles.value(op(*tiles.pair(a, b)))
        none = tiles.compare("==", b, tiles.constant(0, element))
        opposite = tiles.compare("==", b, tiles.constant(-1, element)) if signed else none
        apart = tiles.either(none, opposite) if signed else none
        safe = tiles.where(apart, tiles.constant(1, element), b)
        result = tiles.value(op(*tiles.pair(a, safe)))
        if at_minus_one is not None:
            result = tiles.where(opposite, at_minus_one(tiles, a), result)
        return tiles.where(none, tiles.constant(at_zero, element), result)

    return write


_quotient = _divided(arith.DivSIOp, 0, minus)
_remainder = _divided(arith.RemSIOp, 0, zero)
_unsigned_quotient = _divided(arith.DivUIOp, 0, None)
_unsigned_remainder = _divided(arith.RemUIOp, 0, None)


def _divide_down(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    inexact, negative = _division(tiles, a, b)
    wrong = tiles.cast(_and(tiles, inexact, negative), element_of(a))
    return tiles.subtract(_quotient(tiles, a, b), wrong)


def _divide_up(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    inexact, negative = _division(tiles, a, b)
    wrong = tiles.cast(_and(tiles, inexact, tiles.negated(negative)), element_of(a))
    return tiles.add(_quotient(tiles, a, b), wrong)


def _divide_up_unsigned(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    rest = _unsigned_remainder(tiles, a, b)
    inexact = tiles.cast(tiles.compare("!=", rest, zero(tiles, rest)), element_of(a))
    return tiles.add(_unsigned_quotient(tiles, a, b), inexact)


def _division(tiles: TileBuilder, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where a division leaves a remainder, and where its exact result is negative."""
    rest = _remainder(tiles, a, b)
    inexact = tiles.compare("!=", rest, zero(tiles, rest))
    negative = _xor(
        tiles, tiles.compare("<", a, zero(tiles, a)), tiles.compare("<", b, zero(tiles, b))
    )
    return inexact, negative


def _shift(op: Callable[..., Operation], *, signed: bool) -> _Write:
    """A shift: by the width or more, nothing is left but the sign of a signed one."""

    def write(tiles: TileBuilder, a: SSAValue, by: SSAValue) -> SSAValue:
        element = element_of(a)
        width = integer_width(element)
        known = constant_value(by)
        if known is not None and 0 <= known < width:
            return tiles.value(op(*tiles.pair(a, by)))
        inside = compare_integers(tiles, _ULT, by, tiles.constant(width, element))
        most = tiles.constant(width - 1, element)
        shifted = tiles.value(op(*tiles.pair(a, tiles.where(inside, by, most))))
        return shifted if signed else tiles.where(inside, shifted, tiles.constant(0, element))

    return write


def _counted(op: Callable[..., Operation]) -> _Write:
    """A count of the bits of an integer, made of that of 64 bits."""

    def write(tiles: TileBuilder, x: SSAValue) -> SSAValue:
        element = element_of(x)
        width = integer_width(element)
        count = tiles.value(op(zero_extended(tiles, x, i64)))
        if op is math.CountLeadingZerosOp:
            count = tiles.subtract(count, tiles.constant(64 - width, i64))
        if op is math.CountTrailingZerosOp:
            count = tiles.value(arith.MinSIOp(*tiles.pair(count, tiles.constant(width, i64))))
        return tiles.cast(count, element)

    return write


_COUNTS = {
    kind: _counted(kind)
    for kind in (math.CtPopOp, math.CountLeadingZerosOp, math.CountTrailingZerosOp)
}
_UNSIGNED: dict[type[Operation], _Write] = {
    arith.DivUIOp: _unsigned_quotient,
    arith.RemUIOp: _unsigned_remainder,
    arith.CeilDivUIOp: _divide_up_unsigned,
    arith.MaxUIOp: _plain(arith.MaxUIOp),
    arith.MinUIOp: _plain(arith.MinUIOp),
    arith.ShLIOp: _shift(arith.ShLIOp, signed=False),
    arith.ShRUIOp: _shift(arith.ShRUIOp, signed=False),
}
_TRUTH: dict[type[Operation], _Write] = {
    arith.AndIOp: _and,
    arith.OrIOp: _plain(arith.OrIOp),
    arith.XOrIOp: _xor,
}
"""Operations that truth values have as they are."""

INTEGERS: dict[type[Operation], _Write] = {
    **_TRUTH,
    **_UNSIGNED,
    **_COUNTS,
    arith.AddiOp: _plain(arith.AddiOp),
    arith.SubiOp: _plain(arith.SubiOp),
    arith.MuliOp: _plain(arith.MuliOp),
    arith.DivSIOp: _quotient,
    arith.RemSIOp: _remainder,
    arith.FloorDivSIOp: _divide_down,
    arith.CeilDivSIOp: _divide_up,
    arith.MaxSIOp: _plain(arith.MaxSIOp),
    arith.MinSIOp: _plain(arith.MinSIOp),
    arith.ShRSIOp: _shift(arith.ShRSIOp, signed=True),
    math.AbsIOp: _plain(math.AbsIOp),
}

_ORDER = ("==", "!=", "<", "<=", ">", ">=")
_ULT = 6


def compare_integers(tiles: TileBuilder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    """`arith.cmpi` by the number of its predicate."""
    element = element_of(a)
    unsigned = predicate >= _ULT
    predicate -= 4 if unsigned else 0
    truth = _as_truth(tiles, _ORDER[predicate], a, b)
    if truth is not None:
        return truth
    if element == i1:
        a, b = tiles.cast(a, i32), tiles.cast(b, i32)
        if not unsigned and predicate >= 2:
            # A signed truth value is 0 or -1.
            a, b = b, a
    elif unsigned:
        # Flipping the sign bit turns the unsigned order into the signed one.
        sign = tiles.constant(-(1 << (cast(IntegerType, element).width.data - 1)), element)
        a, b = _xor(tiles, a, sign), _xor(tiles, b, sign)
    narrow = [narrowed(tiles, a), narrowed(tiles, b)]
    if not unsigned and narrow[0] is not None and narrow[1] is not None:
        a, b = narrow[0], narrow[1]
    return tiles.compare(_ORDER[predicate], a, b)


def _as_truth(tiles: TileBuilder, sign: str, a: SSAValue, b: SSAValue) -> SSAValue | None:
    """A truth value that is compared, as a number, with zero: the value itself, or negated."""
    owner, known = a.owner, constant_value(b)
    if sign not in ("==", "!=") or known is None or known != 0:
        return None
    if not isinstance(owner, triton.CastOp) or element_of(owner.source) != i1:
        return None
    return owner.source if sign == "!=" else tiles.negated(owner.source)
