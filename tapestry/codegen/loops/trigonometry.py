r"""Sines and arcs as polynomials, in LLVM IR.

Sines are those of what is left of a number by whole quarters of a turn (`angle_reduction`);
arctangents those of numbers up to tan(pi/8), which others are taken to by addition theorems.
Coefficients interpolate at Chebyshev nodes. All of it is in float64, so that what is left is exact
enough. Of normal numbers, results are within, in units in the last place:

| function | by | float32 | float64 |
|---|---|---|---|
| sin, cos | a polynomial in `r^2`, `\|x\| = n pi/2 + r` | 1 | 2.5 |
| tan | sin / cos | 1 | 4.5 |
| atan | `c + u + u^3 A(u^2)`, `u` a quotient of numbers linear in x | 1 | 2 |
| atan2 | as atan, of the smaller by the larger | 1 | 3 |
| asin, acos | atan2 of x and `sqrt((1 - x) (1 + x))`, or of these the other way round | 1 | 3 |

Infinities, NaN and signed zeros are as IEEE 754-2019 recommends (9.2.1).
"""

from __future__ import annotations

from math import nan, pi

from tapestry.codegen.loops.angle_reduction import Turn, turned
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import Value

_SIN = (
    -0.16666666666666666,
    0.008333333333333331,
    -0.0001984126984126402,
    2.7557319218542833e-06,
    -2.5052105961377e-08,
    1.605848950955874e-10,
    -7.584263996034166e-13,
)
"""`(sin(r) - r) / r^3` in `r^2`, for |r| <= 1.02 pi/4: off by 7e-18 of sin."""

_SIN_SHORT = (
    -0.16666666663373741,
    0.008333331691203202,
    -0.000198399895773847,
    2.7237577241177232e-06,
)
"""The same, off by 3e-11."""

_COS = (
    0.041666666666666664,
    -0.001388888888888707,
    2.4801587298282115e-05,
    -2.755731702592346e-07,
    2.0876096058995368e-09,
    -1.1379086634729336e-11,
)
"""`(cos(r) - 1 + r^2 / 2) / r^4`: off by 2e-18 of cos."""

_COS_SHORT = (0.04166666440691311, -0.0013888254915538885, 2.4537750767027806e-05)
"""The same, off by 2e-9."""

_ATAN = (
    -0.3333333333333333,
    0.19999999999999804,
    -0.14285714285659729,
    0.11111111105145725,
    -0.09090908753017178,
    0.07692296361048218,
    -0.06666424634599337,
    0.05878926110528101,
    -0.052304330074828924,
    0.0455149623749493,
    -0.034568068014968874,
    0.016282993238924487,
)
"""`(atan(u) - u) / u^3` in `u^2`, for |u| <= tan(pi/8): off by 4e-18 of atan."""

_ATAN_SHORT = (
    -0.3333333327919426,
    0.1999997723777395,
    -0.1428415006563401,
    0.11071344117900768,
    -0.08624520273456275,
    0.05047736342027177,
)
"""The same, off by 9e-11."""

_EIGHTH = 0.41421356237309503
"""tan(pi/8), which is the reciprocal of tan(3 pi/8) too."""

_LOW = 6.123233995736766e-17
"""pi/2, less the float64 that is nearest to it."""


def sin(write: Function, x: Value) -> Value:
    turn = _turned(write, x)
    return _given(write, _sine(write, turn, x, 0, odd=True), x)


def cos(write: Function, x: Value) -> Value:
    turn = _turned(write, x)
    return _given(write, _sine(write, turn, x, 1, odd=False), x)


def tan(write: Function, x: Value) -> Value:
    turn = _turned(write, x)
    over = _sine(write, turn, x, 0, odd=True)
    return _given(write, write.binary("fdiv", over, _sine(write, turn, x, 1, odd=False)), x)


def atan(write: Function, x: Value) -> Value:
    wide = _double(write, x)
    one = write.number(1.0, "double")
    return _given(write, _arc(write, wide, one, short=_is_short(x)), x)


def atan2(write: Function, y: Value, x: Value) -> Value:
    found = _arc(write, _double(write, y), _double(write, x), short=_is_short(x))
    return _given(write, found, x)


def asin(write: Function, x: Value) -> Value:
    wide = _double(write, x)
    return _given(write, _arc(write, wide, _other_side(write, wide), short=_is_short(x)), x)


def acos(write: Function, x: Value) -> Value:
    wide = _double(write, x)
    return _given(write, _arc(write, _other_side(write, wide), wide, short=_is_short(x)), x)


def _is_short(x: Value) -> bool:
    """Whether the digits of float32 are enough."""
    return x.kind == "float"


def _double(write: Function, x: Value) -> Value:
    return write.cast("fpext", x, "double")


def _given(write: Function, found: Value, x: Value) -> Value:
    return write.cast("fptrunc", found, x.kind)


def _turned(write: Function, x: Value) -> Turn:
    return turned(write, write.call("fabs", _double(write, x)))


def _sine(write: Function, turn: Turn, x: Value, quarters: int, *, odd: bool) -> Value:
    """The sine of the turn, so many quarters further on; with the sign of x if `odd`."""
    kind, r, short = "double", turn.rest, _is_short(x)
    square = write.binary("fmul", r, r)
    cube = write.binary("fmul", r, square)
    sine = write.fused(cube, write.polynomial(square, _SIN_SHORT if short else _SIN), r)
    fourth = write.binary("fmul", square, square)
    half = write.binary("fmul", square, write.number(-0.5, kind))
    less = write.fused(fourth, write.polynomial(square, _COS_SHORT if short else _COS), half)
    cosine = write.binary("fadd", write.number(1.0, kind), less)
    whole = turn.quarters
    if quarters:
        whole = write.binary("add", whole, write.number(quarters, "i64"))
    last = write.binary("and", whole, write.number(1, "i64"))
    found = write.chosen(write.compared("eq", last, write.number(0, "i64")), sine, cosine)
    # The other bit of the quarters is the sign.
    sign = write.binary("shl", whole, write.number(62, "i64"))
    if odd:
        bits = write.cast("bitcast", _double(write, x), "i64")
        sign = write.binary("xor", sign, bits)
    sign = write.binary("and", sign, write.number(-(2**63), "i64"))
    made = write.binary("xor", write.cast("bitcast", found, "i64"), sign)
    return write.cast("bitcast", made, kind)


def _other_side(write: Function, x: Value) -> Value:
    """Of a triangle with a right angle, whose longest side is 1; NaN where there is none."""
    one = write.number(1.0, "double")
    less, more = write.binary("fsub", one, x), write.binary("fadd", one, x)
    return write.call("sqrt", write.binary("fmul", less, more))


def _arc(write: Function, y: Value, x: Value, *, short: bool) -> Value:
    """The angle from the first axis to a point, between -pi and pi."""
    kind = "double"
    zero, one = write.number(0.0, kind), write.number(1.0, kind)
    above, along = write.call("fabs", y), write.call("fabs", x)
    steep = write.compared("ogt", above, along)
    small, large = write.chosen(steep, along, above), write.chosen(steep, above, along)
    # Equal ones are an eighth of a turn, also infinite ones, but for zeros.
    alike = write.binary(
        "and", write.compared("oeq", small, large), write.compared("ogt", large, zero)
    )
    small, large = (write.chosen(alike, one, side) for side in (small, large))
    # The sum is a number, and products with what is less than 1 are exact enough.
    huge = write.compared("ogt", large, write.number(2.0**1000, kind))
    tiny = write.compared("olt", large, write.number(2.0**-900, kind))
    factor = write.chosen(tiny, write.number(2.0**100, kind), one)
    factor = write.chosen(huge, write.number(0.5, kind), factor)
    small, large = (write.binary("fmul", side, factor) for side in (small, large))
    # Beyond an eighth of a quarter, tan(a - pi/4) = (tan a - 1) / (tan a + 1).
    limit = write.binary("fmul", large, write.number(_EIGHTH, kind))
    beyond = write.compared("ogt", small, limit)
    over = write.chosen(beyond, write.binary("fsub", small, large), small)
    under = write.chosen(beyond, write.binary("fadd", small, large), large)
    none = write.compared("oeq", under, zero)
    u = write.binary("fdiv", over, write.chosen(none, one, under))
    square = write.binary("fmul", u, u)
    cube = write.binary("fmul", u, square)
    terms = write.polynomial(square, _ATAN_SHORT if short else _ATAN)
    # The angle is `turn + low + u + rest`, of which the first is much the largest, or zero.
    quarter, nothing = write.number(pi / 4, kind), zero
    turn = write.chosen(beyond, quarter, nothing)
    low = write.chosen(beyond, write.number(_LOW / 2, kind), nothing)
    rest = write.fused(cube, terms, low)
    # From the second axis, or from the other half of the first one.
    turn, u, rest = _mirrored(write, steep, 0.5, turn, u, rest)
    behind = write.compared("slt", write.cast("bitcast", x, "i64"), write.number(0, "i64"))
    turn, u, rest = _mirrored(write, behind, 1.0, turn, u, rest)
    found = write.binary("fadd", turn, write.binary("fadd", u, rest))
    found = write.call("copysign", found, y)
    missing = write.compared("uno", y, x)
    return write.chosen(missing, write.number(nan, kind), found)


def _mirrored(
    write: Function, where: Value, half_turns: float, turn: Value, u: Value, rest: Value
) -> tuple[Value, Value, Value]:
    """`half_turns` pi, less an angle that is a sum, where that is so."""
    kind = "double"
    whole = write.number(half_turns * pi, kind)
    low = write.number(2 * half_turns * _LOW, kind)
    turn = write.chosen(where, write.binary("fsub", whole, turn), turn)
    u = write.chosen(where, write.negated(u), u)
    rest = write.chosen(where, write.binary("fsub", low, rest), rest)
    return turn, u, rest
