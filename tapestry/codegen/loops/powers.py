"""Powers, logarithms to other bases, and hyperbolic functions, in LLVM IR.

They are made of what `elementary` has. Of normal numbers, results are within, in units in the last
place:

| function | by | float32 | float64 |
|---|---|---|---|
| exp2 | `2^n exp(r ln 2)`, `r = x - n` | 1.5 | 1.5 |
| log2 | `k + log(1 + f) / ln 2`, as log | 2 | 2 |
| log10 | `k log10(2) + log(1 + f) / ln 10`, in float64 | 1 | 2 |
| pow | `exp2(y log2(x))` in float64 | 1 | |
| cbrt | `exp2(log2(x) / 3)`, and a step of Newton's method | 1.5 | 1.5 |
| sinh, cosh | `(t + t / (t + 1)) / 2`, `t = expm1(x)`; squares of `exp(x / 2)` | 3 | 3 |
| asinh, acosh | log1p of less than the double, or log of the double | 2.5 | 2.5 |
| atanh | `log1p(2 x / (1 - x)) / 2` | 2.5 | 2.5 |

Infinities, NaN and signed zeros are as IEEE 754-2019 recommends (9.2.1).
"""

from __future__ import annotations

from math import inf, nan

from tapestry.codegen.loops.elementary import exp, exp2, expm1, log, log1p, log_to
from tapestry.codegen.loops.vectors import Value, Writer

_LN2 = 0.6931471805599453
_LARGE = {"float": 2.0**13, "double": 2.0**28}
"""From here on, 1 beside a square is less than its last place."""

_GROWN = {"float": 10.0, "double": 20.0}
"""From here on, exp(-x) beside exp(x) is."""


def log2(write: Writer, x: Value) -> Value:
    return log_to(write, x, 2)


def log10(write: Writer, x: Value) -> Value:
    return write.cast("fptrunc", log_to(write, write.cast("fpext", x, "double"), 10), x.kind)


def power(write: Writer, x: Value, y: Value) -> Value:
    """Of float32, as C has it: 1 for an exponent of 0, and for a base of 1."""
    kind = x.kind
    zero, one = write.number(0.0, kind), write.number(1.0, kind)
    size = write.call("fabs", x)
    wide, exponent = (write.cast("fpext", value, "double") for value in (size, y))
    found = exp2(write, write.binary("fmul", exponent, log2(write, wide)))
    found = write.cast("fptrunc", found, kind)
    whole = write.compared("oeq", write.call("trunc", y), y)
    half = write.binary("fmul", y, write.number(0.5, kind))
    odd = write.binary("and", whole, write.compared("une", write.call("trunc", half), half))
    found = write.chosen(odd, write.call("copysign", found, x), found)
    endless = write.number(inf, kind)
    negative = write.binary(
        "and", write.compared("olt", x, zero), write.compared("une", size, endless)
    )
    none = write.binary("and", negative, write.compared("une", write.call("trunc", y), y))
    found = write.chosen(none, write.number(nan, kind), found)
    # The logarithm of 1 times infinity is NaN.
    far = write.compared("oeq", write.call("fabs", y), endless)
    still = write.binary("and", far, write.compared("oeq", size, one))
    trivial = write.binary("or", write.compared("oeq", x, one), write.compared("oeq", y, zero))
    return write.chosen(write.binary("or", trivial, still), one, found)


def cbrt(write: Writer, x: Value) -> Value:
    kind = x.kind
    size = write.call("fabs", x)
    third = write.binary("fmul", log2(write, size), write.number(1 / 3, kind))
    root = exp2(write, third)
    # root - (root^3 - size) / (3 root^2), the difference rounded little.
    square = write.binary("fmul", root, root)
    lost = write.fused(root, root, write.negated(square))
    over = write.fused(square, root, write.negated(size))
    over = write.fused(lost, root, over)
    step = write.binary("fdiv", over, write.binary("fmul", square, write.number(3.0, kind)))
    better = write.binary("fsub", root, step)
    # Of 0, infinity and NaN the root is the number.
    least, most = write.number(0.0, kind), write.number(inf, kind)
    plain = write.binary(
        "and", write.compared("ogt", size, least), write.compared("olt", size, most)
    )
    return write.chosen(plain, write.call("copysign", better, x), x)


def sinh(write: Writer, x: Value) -> Value:
    kind = x.kind
    one, half = write.number(1.0, kind), write.number(0.5, kind)
    size = write.call("fabs", x)
    t = expm1(write, size)
    both = write.binary("fadd", t, write.binary("fdiv", t, write.binary("fadd", t, one)))
    near = write.binary("fmul", half, both)
    grown = write.compared("ogt", size, write.number(_GROWN[kind], kind))
    found = write.chosen(grown, _half_exp(write, size), near)
    # Halves of the least numbers are not exact; those are what they make.
    tiny = write.compared("olt", size, write.number(2.0**-30, kind))
    return write.chosen(tiny, x, write.call("copysign", found, x))


def cosh(write: Writer, x: Value) -> Value:
    size = write.call("fabs", x)
    power = exp(write, size)
    half = write.number(0.5, x.kind)
    near = write.fused(half, power, write.binary("fdiv", half, power))
    grown = write.compared("ogt", size, write.number(_GROWN[x.kind], x.kind))
    return write.chosen(grown, _half_exp(write, size), near)


def asinh(write: Writer, x: Value) -> Value:
    one = write.number(1.0, x.kind)
    size = write.call("fabs", x)
    square = write.binary("fmul", size, size)
    root = write.call("sqrt", write.binary("fadd", square, one))
    more = write.binary("fdiv", square, write.binary("fadd", one, root))
    near = log1p(write, write.binary("fadd", size, more))
    return write.call("copysign", _or_of_double(write, size, near), x)


def acosh(write: Writer, x: Value) -> Value:
    kind = x.kind
    less = write.binary("fsub", x, write.number(1.0, kind))
    root = write.call("sqrt", write.fused(less, less, write.binary("fadd", less, less)))
    found = _or_of_double(write, x, log1p(write, write.binary("fadd", less, root)))
    below = write.compared("ult", x, write.number(1.0, kind))
    return write.chosen(below, write.number(nan, kind), found)


def atanh(write: Writer, x: Value) -> Value:
    kind = x.kind
    size = write.call("fabs", x)
    rest = write.binary("fsub", write.number(1.0, kind), size)
    ratio = write.binary("fdiv", write.binary("fadd", size, size), rest)
    found = write.binary("fmul", write.number(0.5, kind), log1p(write, ratio))
    tiny = write.compared("olt", size, write.number(2.0**-30, kind))
    return write.chosen(tiny, x, write.call("copysign", found, x))


def _half_exp(write: Writer, x: Value) -> Value:
    """A half of exp, also where exp is infinite and that is not."""
    half = write.number(0.5, x.kind)
    root = exp(write, write.binary("fmul", x, half))
    return write.binary("fmul", write.binary("fmul", half, root), root)


def _or_of_double(write: Writer, size: Value, near: Value) -> Value:
    """The logarithm of the double of a large number."""
    far = write.binary("fadd", log(write, size), write.number(_LN2, size.kind))
    large = write.compared("ogt", size, write.number(_LARGE[size.kind], size.kind))
    return write.chosen(large, far, near)
