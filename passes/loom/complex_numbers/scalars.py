"""Scalar operations on complex numbers in real arithmetic, as `algebra.scalars` means them.

    %p = complex.mul %a, %b : complex<f32>

of `a + b i` and `c + d i` is `(a c - b d) + (a d + b c) i`, operation by operation. Sums,
products and comparisons are exactly those of the reference executor; quotients (Smith's) and
functions are up to rounding, because NumPy may use fused products. Near the ends of the range,
where a part of the result is finite although a step on the way overflows, functions give the
infinity or NaN of that step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.literals import float_attr

Complex = tuple[SSAValue, SSAValue]
"""The real and the imaginary part of a number."""


@dataclass
class Reals:
    """Real operations on numbers of one type, written one after another."""

    element: AnyFloat
    ops: list[Operation] = field(default_factory=list[Operation])

    def write(self, op: Operation) -> SSAValue:
        """The value of an operation that is written here."""
        self.ops.append(op)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        return self.write(arith.ConstantOp(float_attr(value, self.element)))

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.AddfOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.SubfOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.MulfOp(a, b))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.DivfOp(a, b))

    def neg(self, a: SSAValue) -> SSAValue:
        return self.write(arith.NegfOp(a))

    def of(self, function: Callable[[SSAValue], Operation], a: SSAValue) -> SSAValue:
        """A function of one number."""
        return self.write(function(a))

    def half(self, a: SSAValue) -> SSAValue:
        return self.mul(a, self.number(0.5))

    def square(self, a: SSAValue) -> SSAValue:
        return self.mul(a, a)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.write(arith.CmpfOp(a, b, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self.write(arith.SelectOp(condition, yes, no))

    def choose(self, condition: SSAValue, yes: Complex, no: Complex) -> Complex:
        return self.select(condition, yes[0], no[0]), self.select(condition, yes[1], no[1])


def add(r: Reals, x: Complex, y: Complex) -> Complex:
    return r.add(x[0], y[0]), r.add(x[1], y[1])


def subtract(r: Reals, x: Complex, y: Complex) -> Complex:
    return r.sub(x[0], y[0]), r.sub(x[1], y[1])


def multiply(r: Reals, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return r.sub(r.mul(a, c), r.mul(b, d)), r.add(r.mul(a, d), r.mul(b, c))


def divide(r: Reals, x: Complex, y: Complex) -> Complex:
    """Smith's quotient: nothing overflows that need not; by zero, each part is."""
    (a, b), (c, d) = x, y
    big, small = r.of(math.AbsFOp, c), r.of(math.AbsFOp, d)
    swap = r.compare("olt", big, small)
    pivot, other = r.select(swap, d, c), r.select(swap, c, d)
    first, second = r.select(swap, b, a), r.select(swap, a, b)
    ratio = r.div(other, pivot)
    scale = r.div(r.number(1.0), r.add(pivot, r.mul(other, ratio)))
    real = r.mul(r.add(first, r.mul(second, ratio)), scale)
    product = r.mul(first, ratio)
    imaginary = r.select(swap, r.sub(product, second), r.sub(second, product))
    none = r.compare("oeq", pivot, r.number(0.0))
    return r.choose(none, (r.div(a, big), r.div(b, big)), (real, r.mul(imaginary, scale)))


def negate(r: Reals, x: Complex) -> Complex:
    return r.neg(x[0]), r.neg(x[1])


def conjugate(r: Reals, x: Complex) -> Complex:
    return x[0], r.neg(x[1])


def _scaled(r: Reals, x: Complex) -> tuple[SSAValue, SSAValue]:
    """The larger part's size, and how much the smaller one's is of it: 1 where they are equal."""
    a, b = r.of(math.AbsFOp, x[0]), r.of(math.AbsFOp, x[1])
    most = r.write(arith.MaxnumfOp(a, b))
    least = r.write(arith.MinimumfOp(a, b))
    alike = r.compare("oeq", least, most)
    return most, r.select(alike, r.number(1.0), r.div(least, most))


def size(r: Reals, x: Complex) -> SSAValue:
    """The absolute value, which is infinite where one part is, whatever the other."""
    most, ratio = _scaled(r, x)
    found = r.mul(most, r.of(math.SqrtOp, r.add(r.number(1.0), r.square(ratio))))
    endless = r.compare("oeq", most, r.number(float("inf")))
    return r.select(endless, most, found)


def angle(r: Reals, x: Complex) -> SSAValue:
    return r.write(math.Atan2Op(x[1], x[0]))


def exponential(r: Reals, x: Complex) -> Complex:
    a, b = x
    grown, zero = r.of(math.ExpOp, a), r.number(0.0)
    real, imaginary = r.mul(grown, r.of(math.CosOp, b)), r.mul(grown, r.of(math.SinOp, b))
    # Where b is 0 the result is real, even if it is infinite; of -inf nothing is left, whatever b.
    gone = r.compare("oeq", grown, zero)
    imaginary = r.select(r.compare("oeq", b, zero), b, imaginary)
    return r.select(gone, zero, real), r.select(gone, zero, imaginary)


def exponential_less_one(r: Reals, x: Complex) -> Complex:
    a, b = x
    sine = r.of(math.SinOp, r.half(b))
    real = r.mul(r.of(math.ExpM1Op, a), r.of(math.CosOp, b))
    twice = r.mul(r.number(2.0), r.square(sine))
    return r.sub(real, twice), r.mul(r.of(math.ExpOp, a), r.of(math.SinOp, b))


def logarithm(r: Reals, x: Complex) -> Complex:
    """The principal one. Near the unit circle, the size less one is what is accurate."""
    one = r.number(1.0)
    most, ratio = _scaled(r, x)
    far = r.add(r.of(math.LogOp, most), r.half(r.of(math.Log1pOp, r.square(ratio))))
    least = r.mul(most, ratio)
    beyond = r.mul(r.sub(most, one), r.add(most, one))
    near = r.half(r.of(math.Log1pOp, r.add(beyond, r.square(least))))
    low, high = (r.compare(p, most, r.number(n)) for p, n in (("ogt", 0.5), ("olt", 2.0)))
    real = r.select(r.write(arith.AndIOp(low, high)), near, far)
    endless = r.compare("oeq", most, r.number(float("inf")))
    return r.select(endless, most, real), angle(r, x)


def logarithm_of_one_more(r: Reals, x: Complex) -> Complex:
    return logarithm(r, (r.add(x[0], r.number(1.0)), x[1]))


def root(r: Reals, x: Complex) -> Complex:
    """The root whose real part is not negative."""
    a, b = x
    zero, endless = r.number(0.0), r.number(float("inf"))
    flat, tall = r.of(math.AbsFOp, a), r.of(math.AbsFOp, b)
    long = r.of(math.SqrtOp, r.add(r.half(flat), r.half(size(r, x))))
    short = r.div(tall, r.mul(r.number(2.0), long))
    short = r.select(r.compare("oeq", long, zero), tall, short)
    left = r.compare("olt", a, zero)
    real, imaginary = r.select(left, short, long), r.select(left, long, short)
    up = r.compare("oeq", tall, endless)
    imaginary = r.select(up, endless, imaginary)
    return r.select(up, endless, real), r.write(math.CopySignOp(imaginary, b))


def reciprocal_root(r: Reals, x: Complex) -> Complex:
    return divide(r, (r.number(1.0), r.number(0.0)), root(r, x))


def power(r: Reals, x: Complex, y: Complex) -> Complex:
    """exp(y log x); x to the 0 is 1, and 0 to what has a positive real part is 0, else NaN."""
    zero = r.number(0.0)
    found = exponential(r, multiply(r, y, logarithm(r, x)))
    positive = r.compare("ogt", y[0], zero)
    nothing = r.select(positive, zero, r.number(float("nan")))
    found = r.choose(_is_zero(r, x), (nothing, nothing), found)
    return r.choose(_is_zero(r, y), (r.number(1.0), zero), found)


def _is_zero(r: Reals, x: Complex) -> SSAValue:
    zero = r.number(0.0)
    return equal(r, x, (zero, zero))


def sign(r: Reals, x: Complex) -> Complex:
    """The number of size 1 in the same direction, of an axis if one part is infinite; 0 for 0."""
    zero, length = r.number(0.0), size(r, x)
    none = r.compare("oeq", length, zero)
    real, imaginary = _share(r, x[0], x[1], length), _share(r, x[1], x[0], length)
    return r.choose(none, (zero, zero), (real, imaginary))


def _share(r: Reals, part: SSAValue, other: SSAValue, length: SSAValue) -> SSAValue:
    endless = r.number(float("inf"))
    alone = r.write(
        arith.AndIOp(
            r.compare("oeq", r.of(math.AbsFOp, part), endless),
            r.compare("olt", r.of(math.AbsFOp, other), endless),
        )
    )
    one = r.write(math.CopySignOp(r.number(1.0), part))
    return r.select(alone, one, r.div(part, length))


def sine(r: Reals, x: Complex) -> Complex:
    a, b = x
    real = r.mul(r.of(math.SinOp, a), r.of(math.CoshOp, b))
    return real, r.mul(r.of(math.CosOp, a), r.of(math.SinhOp, b))


def cosine(r: Reals, x: Complex) -> Complex:
    a, b = x
    real = r.mul(r.of(math.CosOp, a), r.of(math.CoshOp, b))
    return real, r.neg(r.mul(r.of(math.SinOp, a), r.of(math.SinhOp, b)))


def hyperbolic_tangent(r: Reals, x: Complex) -> Complex:
    """With T = tanh a: T and sin b cos b / cosh(a)^2, both over cos(b)^2 + T^2 sin(b)^2."""
    a, b = x
    flat = r.of(math.TanhOp, a)
    s, c = r.of(math.SinOp, b), r.of(math.CosOp, b)
    below = r.add(r.square(c), r.square(r.mul(flat, s)))
    wide = r.of(math.CoshOp, a)
    imaginary = r.div(r.div(r.mul(s, c), wide), wide)
    return r.div(flat, below), r.div(imaginary, below)


def tangent(r: Reals, x: Complex) -> Complex:
    """-i tanh(i x)."""
    real, imaginary = hyperbolic_tangent(r, (r.neg(x[1]), x[0]))
    return imaginary, r.neg(real)


def equal(r: Reals, x: Complex, y: Complex) -> SSAValue:
    real, imaginary = (r.compare("oeq", a, b) for a, b in zip(x, y, strict=True))
    return r.write(arith.AndIOp(real, imaginary))


def unequal(r: Reals, x: Complex, y: Complex) -> SSAValue:
    real, imaginary = (r.compare("une", a, b) for a, b in zip(x, y, strict=True))
    return r.write(arith.OrIOp(real, imaginary))


def to_bits(r: Reals, x: Complex) -> SSAValue:
    """The 64 bits of two floats, the real part's the low ones."""
    low, high = (r.write(arith.ExtUIOp(r.write(arith.BitcastOp(part, i32)), i64)) for part in x)
    shift = r.write(arith.ConstantOp(IntegerAttr(32, i64)))
    return r.write(arith.OrIOp(low, r.write(arith.ShLIOp(high, shift))))


def of_bits(r: Reals, bits: SSAValue) -> Complex:
    """Two floats from 64 bits."""
    shift = r.write(arith.ConstantOp(IntegerAttr(32, i64)))
    halves = (bits, r.write(arith.ShRUIOp(bits, shift)))
    low, high = (
        r.write(arith.BitcastOp(r.write(arith.TruncIOp(half, i32)), r.element)) for half in halves
    )
    return low, high


COMPLEX: dict[type[Operation], Callable[..., Complex]] = {
    complex_dialect.AddOp: add,
    complex_dialect.ConjOp: conjugate,
    complex_dialect.CosOp: cosine,
    complex_dialect.DivOp: divide,
    complex_dialect.ExpOp: exponential,
    complex_dialect.Expm1Op: exponential_less_one,
    complex_dialect.LogOp: logarithm,
    complex_dialect.Log1pOp: logarithm_of_one_more,
    complex_dialect.MulOp: multiply,
    complex_dialect.NegOp: negate,
    complex_dialect.PowOp: power,
    complex_dialect.RsqrtOp: reciprocal_root,
    complex_dialect.SignOp: sign,
    complex_dialect.SinOp: sine,
    complex_dialect.SqrtOp: root,
    complex_dialect.SubOp: subtract,
    complex_dialect.TanOp: tangent,
    complex_dialect.TanhOp: hyperbolic_tangent,
}
"""Operations that make a complex number of complex ones."""

REAL: dict[type[Operation], Callable[..., SSAValue]] = {
    complex_dialect.AbsOp: size,
    complex_dialect.AngleOp: angle,
    complex_dialect.EqualOp: equal,
    complex_dialect.NotEqualOp: unequal,
}
"""Operations that make a number, or a truth value, of complex ones."""
