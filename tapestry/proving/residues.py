"""Programs over the ring Z / P^5, beside their real values: every cell of a float holds both.

The real value says which branch a comparison, a maximum or a step takes, and where a number is
infinite; the residue is exact. A cell also knows how many of the residue's digits are known, and
the degree of the rational function of the inputs that it is, which bounds how likely two different
functions are to agree by chance.

A `Residues` arithmetic runs a program on such cells, through the same evaluator as floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.proving.floats import WIDE, FloatArithmetic
from tapestry.proving.inputs import Draw
from tapestry.proving.literals import Real, meaning
from tapestry.proving.ring import DIGITS, Ring
from tapestry.runtime.executor import Array

CELL = np.dtype(
    [
        ("real", WIDE),
        ("residue", np.object_),
        ("turn", np.object_),
        ("digits", np.int64),
        ("top", np.float64),
        ("bottom", np.float64),
        ("padding", np.int64),  # NumPy's views of cells with references know no implicit one
    ]
)
"""A float: its real value; its residue; the root of unity that exp multiplies with; how many digits
of the residue are known (none: nothing is); degrees of its numerator and denominator."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The exact side of cells, as arrays that broadcast."""

    residue: Array
    digits: Any = DIGITS
    top: Any = 0.0
    bottom: Any = 0.0
    turn: Any = 1


_LARGEST_POWER = 16
"""Powers up to this are products."""

_Rule = Callable[["Residues", Sequence[Cells]], Cells]


class Residues:
    """The arithmetic of cells. `bounded` ends false when no bound on chance can be given."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.bounded = True
        self._floats = FloatArithmetic(WIDE)
        self._path = blake2b()
        self._turned = False

    @property
    def path(self) -> bytes:
        """Which branches were taken."""
        return self._path.digest()

    @property
    def overflows(self) -> int:
        """How many real values overflowed."""
        return self._floats.doubts.overflows

    def dtype(self, element: Attribute) -> np.dtype[Any]:
        return CELL if is_float(element) else numpy_dtype(element)

    def admit(self, draw: Draw) -> Array:
        """A drawn input."""
        if not draw.is_float:
            self._took(draw.numbers)  # another integer is another branch
            return draw.numbers
        scale = self.ring.fraction(Fraction(1, 1 << draw.exponent))
        residue = draw.numbers.astype(object) * scale % self.ring.modulus
        return self._pack(draw.as_floats(WIDE), Cells(residue, top=1.0))

    def constant(self, value: float, element: Attribute) -> Array:
        real = self._floats.constant(value, element)
        if not is_float(element):
            return real
        found = meaning(float(value), element)
        return self._pack(real, Cells(np.asarray(0)) if found is None else self._meant(found))

    def exact(self, data: Array) -> Array:
        """Floats as they are."""
        real = data.astype(WIDE)
        finite = np.where(np.isfinite(real), real, 0)

        def exactly(value: Any) -> int:
            return self.ring.fraction(Fraction(*value.as_integer_ratio()))

        return self._finish(real, (), Cells(_each(exactly)(finite.astype(object))))

    def _meant(self, real: Real) -> Cells:
        ring = self.ring
        number = ring.fraction(abs(real.factor))
        if real.root:
            number = ring.root(number)
        number = number if real.factor >= 0 else -number
        if real.name is None:
            return Cells(np.asarray(number, object))
        if real.name == "pi":
            return Cells(np.asarray(number * ring.scramble("pi"), object))
        factor = ring.ln2[0] if real.name == "ln2" else ring.inverse(ring.ln2[0])
        return Cells(np.asarray(number * factor, object), digits=DIGITS - 1)

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        element = op.results[0].type
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
            return self.constant(op.value.value.data, element)
        reals = [x["real"] if x.dtype == CELL else x for x in operands]
        match op:
            case arith.SelectOp():
                condition, a, b = operands
                self._took(condition)
                return np.where(condition, a, b)
            case arith.ExtFOp() | arith.TruncFOp():
                return operands[0]
            case _:
                real = self._floats.compute(op, reals)
        if not is_float(element):
            if any(x.dtype == CELL for x in operands):
                self._took(real)
            return real
        chosen = _choice(op, reals)
        if chosen is not None:
            self._took(chosen)
            return np.where(chosen, operands[0], operands[1])
        if not all(x.dtype == CELL for x in operands) or isinstance(op, _STEPS):
            self._took(real)
            return self._pack(real, self._whole(real))
        cells = [_cells(x) for x in operands]
        by_value = self._by_value(op, reals, cells)
        return self._finish(real, reals, by_value or self._rule(op)(self, cells))

    def fold(self, primitive: type[Operation], cells: Array, axes: tuple[int, ...]) -> Array | None:
        """The fold of cells by a primitive in one step; None where it takes merging one by one."""
        if primitive is not arith.AddfOp or not cells.size:
            return None
        real = cells["real"].sum(axis=axes)
        bottoms = cells["bottom"].sum(axis=axes)
        above = np.max(cells["top"] - cells["bottom"], axis=axes, initial=-np.inf)
        turn: Any = np.multiply.reduce(cells["turn"], axis=axes) if self._turned else 1
        folded = Cells(
            cells["residue"].sum(axis=axes),
            cells["digits"].min(axis=axes),
            np.maximum(above, 0) + bottoms,
            bottoms,
            turn,
        )
        finite = np.isfinite(cells["real"]).all(axis=axes)
        return self._finish(real, [np.where(finite, 0, np.inf)], folded)

    def _took(self, outcome: Array) -> None:
        self._path.update(np.ascontiguousarray(outcome).tobytes())

    def _whole(self, real: Array) -> Cells:
        """Whole numbers, known from their real values."""
        finite = np.where(np.isfinite(real), real, 0)
        return Cells(_integers(finite))

    def _pack(self, real: Array, cells: Cells) -> Array:
        packed = np.empty(np.shape(real), CELL)
        packed["real"] = real
        packed["residue"] = np.asarray(cells.residue, object) % self.ring.modulus
        packed["turn"] = np.asarray(cells.turn, object) % self.ring.modulus
        packed["digits"] = cells.digits
        packed["top"], packed["bottom"] = cells.top, cells.bottom
        return packed

    def _finish(self, real: Array, reals: Sequence[Array], cells: Cells) -> Array:
        """Cells with what infinities make of them: they are exact, or nothing is known."""
        packed = self._pack(real, cells)
        poisoned = ~np.isfinite(real)
        for operand in reals:
            poisoned = poisoned | ~np.isfinite(operand)
        if poisoned.any():
            finite = np.where(np.isfinite(real), real, 0)
            whole = finite == np.rint(finite)
            packed["residue"] = np.where(poisoned, _integers(finite), packed["residue"])
            packed["digits"] = np.where(poisoned, np.where(whole, DIGITS, 0), packed["digits"])
            packed["turn"] = np.where(poisoned, 1, packed["turn"])
            for degree in ("top", "bottom"):
                packed[degree] = np.where(poisoned, 0, packed[degree])
        return packed

    def _by_value(self, op: Operation, reals: Sequence[Array], x: Sequence[Cells]) -> Cells | None:
        """What operations make that look at real values, None for any other."""
        match op:
            case math.AbsFOp():
                flipped = reals[0] < 0
            case math.CopySignOp():
                flipped = np.signbit(reals[0]) != np.signbit(reals[1])
            case math.PowFOp():
                return self._power(reals[1], x[0], x[1])
            case _:
                return None
        self._took(flipped)
        return self.multiply(x[0], Cells(np.where(flipped, -1, 1).astype(object)))

    def _power(self, exponents: Array, base: Cells, power: Cells) -> Cells:
        """A constant whole power, or half of one, exactly; else through the logarithm."""
        first = float(exponents.flat[0]) if exponents.size else 0.0
        if not np.all(exponents == first) or np.any(power.top) or abs(first) > _LARGEST_POWER:
            return self.exp(self.multiply(power, self.log(base)))
        if (2 * first) % 1:
            return self.exp(self.multiply(power, self.log(base)))
        found = self.number(1)
        for _ in range(int(abs(first))):
            found = self.multiply(found, base)
        if first % 1:
            found = self.multiply(found, self.root(base))
        return found if first >= 0 else self.divide(self.number(1), found)

    def _rule(self, op: Operation) -> _Rule:
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule
        sign = 1 if isinstance(op, _EVEN) else -1 if isinstance(op, _ODD) else 0
        return lambda residues, x: residues.opaque(op.name, x, sign)

    # What rules are made of.

    def add(self, x: Cells, y: Cells) -> Cells:
        top = np.maximum(x.top + y.bottom, y.top + x.bottom)
        turn = x.turn * y.turn % self.ring.modulus if self._turned else 1
        digits = np.minimum(x.digits, y.digits)
        return Cells(x.residue + y.residue, digits, top, x.bottom + y.bottom, turn)

    def negate(self, x: Cells) -> Cells:
        turn = _each(self.ring.inverse)(x.turn) if self._turned else 1
        return Cells(-x.residue, x.digits, x.top, x.bottom, turn)

    def multiply(self, x: Cells, y: Cells) -> Cells:
        digits = np.minimum(x.digits, y.digits)
        residue = x.residue * y.residue % self.ring.modulus
        return Cells(residue, digits, x.top + y.top, x.bottom + y.bottom)

    def divide(self, x: Cells, y: Cells) -> Cells:
        inverse = _each(self.ring.inverse)(y.residue % self.ring.modulus)
        # A divisor that is no unit is bad luck, or zero.
        digits = np.where(inverse == 0, 0, y.digits)
        return self.multiply(x, Cells(inverse, digits, y.bottom, y.top))

    def exp(self, x: Cells) -> Cells:
        degree = (DIGITS - 1) * np.maximum(x.top, x.bottom)
        residue = _each(self.ring.exp)(x.residue % self.ring.modulus)
        if self._turned:
            residue = np.asarray(residue * x.turn % self.ring.modulus, object)
        digits = np.where(x.digits > 0, np.minimum(x.digits + 1, DIGITS), 0)
        return Cells(residue, digits, degree, (DIGITS - 1) * x.bottom)

    def log(self, x: Cells) -> Cells:
        found: Any = np.frompyfunc(self.ring.log, 1, 2)(x.residue % self.ring.modulus)
        logs, turns = (np.asarray(part, object) for part in found)
        self._turned = True
        # The Teichmueller part is no rational function of the input of a degree that bounds much.
        self.bounded = False
        return Cells(logs, np.where(turns == 0, 0, np.maximum(x.digits - 1, 0)), turn=turns)

    def root(self, x: Cells) -> Cells:
        self.bounded = False
        residue = x.residue % self.ring.modulus
        digits = np.where((residue % self.ring.prime == 0) & (residue != 0), 0, x.digits)
        return Cells(_each(self.ring.root)(residue), digits)

    def scale(self, x: Cells, factor: int | Cells) -> Cells:
        return self.multiply(x, self.number(factor) if isinstance(factor, int) else factor)

    def number(self, n: int) -> Cells:
        return Cells(np.asarray(n, object))

    def ln2(self) -> Cells:
        return Cells(np.asarray(self.ring.ln2[0], object), digits=DIGITS - 1)

    def opaque(self, name: str, operands: Sequence[Cells], sign: int) -> Cells:
        """A function of which only the name is known, and whether it is odd (-1) or even (1)."""
        self.bounded = False
        ring = self.ring

        def scrambled(*known: int) -> int:
            values, digits = known[: len(operands)], known[len(operands) :]
            cut = [x % ring.prime ** max(d, 0) for x, d in zip(values, digits, strict=True)]
            if not sign:
                return ring.scramble(name, *cut)
            mirrored = -cut[0] % ring.prime ** max(digits[0], 0)
            found = ring.scramble(name, min(cut[0], mirrored))
            return found if sign > 0 or cut[0] < mirrored else -found if mirrored != cut[0] else 0

        known = [x.digits for x in operands]
        values = [x.residue % ring.modulus for x in operands]
        arguments = [*values, *(np.asarray(n).astype(object) for n in known)]
        residue = np.frompyfunc(scrambled, len(arguments), 1)(*arguments)
        digits = np.minimum.reduce([np.where(np.asarray(n) > 0, DIGITS, 0) for n in known])
        return Cells(np.asarray(residue, object), digits)


def _cells(x: Array) -> Cells:
    return Cells(x["residue"], x["digits"], x["top"], x["bottom"], x["turn"])


def _each(function: Callable[[int], int]) -> Callable[[Any], Array]:
    return lambda x: np.asarray(np.frompyfunc(function, 1, 1)(x), object)


def _integers(real: Array) -> Array:
    """Whole real numbers as Python's integers."""
    return np.asarray(np.frompyfunc(int, 1, 1)(real), object)


def _choice(op: Operation, reals: Sequence[Array]) -> Array | None:
    """Where an operation takes its first operand rather than its second; None for any other."""
    match op:
        case arith.MaximumfOp():
            return (reals[0] >= reals[1]) | np.isnan(reals[0])
        case arith.MinimumfOp():
            return (reals[0] <= reals[1]) | np.isnan(reals[0])
        case arith.MaxnumfOp():
            return (reals[0] >= reals[1]) | np.isnan(reals[1])
        case arith.MinnumfOp():
            return (reals[0] <= reals[1]) | np.isnan(reals[1])
        case _:
            return None


_STEPS = (math.FloorOp, math.CeilOp, math.RoundOp, math.RoundEvenOp, math.TruncOp)
_ODD = (math.ErfOp, math.SinOp, math.TanOp, math.AsinOp, math.AtanOp, math.CbrtOp)
_EVEN = (math.CosOp,)


def _tanh(r: Residues, x: Cells) -> Cells:
    e = r.exp(r.scale(x, -2))
    one = r.number(1)
    return r.divide(r.add(one, r.negate(e)), r.add(one, e))


def _hyperbolic(r: Residues, x: Cells, sign: int) -> Cells:
    both = r.add(r.exp(x), r.scale(r.exp(r.negate(x)), sign))
    return r.divide(both, r.number(2))


_RULES: dict[type[Operation], _Rule] = {
    arith.AddfOp: lambda r, x: r.add(x[0], x[1]),
    arith.SubfOp: lambda r, x: r.add(x[0], r.negate(x[1])),
    arith.MulfOp: lambda r, x: r.multiply(x[0], x[1]),
    arith.DivfOp: lambda r, x: r.divide(x[0], x[1]),
    arith.NegfOp: lambda r, x: r.negate(x[0]),
    math.FmaOp: lambda r, x: r.add(r.multiply(x[0], x[1]), x[2]),
    math.ExpOp: lambda r, x: r.exp(x[0]),
    math.Exp2Op: lambda r, x: r.exp(r.multiply(x[0], r.ln2())),
    math.ExpM1Op: lambda r, x: r.add(r.exp(x[0]), r.number(-1)),
    math.LogOp: lambda r, x: r.log(x[0]),
    math.Log1pOp: lambda r, x: r.log(r.add(x[0], r.number(1))),
    math.Log2Op: lambda r, x: r.divide(r.log(x[0]), r.ln2()),
    math.Log10Op: lambda r, x: r.divide(r.log(x[0]), r.log(r.number(10))),
    math.SqrtOp: lambda r, x: r.root(x[0]),
    math.RsqrtOp: lambda r, x: r.divide(r.number(1), r.root(x[0])),
    math.TanhOp: lambda r, x: _tanh(r, x[0]),
    math.SinhOp: lambda r, x: _hyperbolic(r, x[0], -1),
    math.CoshOp: lambda r, x: _hyperbolic(r, x[0], 1),
}
