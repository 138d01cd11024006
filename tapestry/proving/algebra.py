"""What scalar operations make of residues: sums, products, exponentials, logarithms, roots.

    algebra = Algebra(Ring.of(0))
    algebra.exp(algebra.add(x, y))      # equals algebra.multiply(algebra.exp(x), algebra.exp(y))

Every value also knows how many of its digits to the base P are known (a logarithm loses one, an
exponential gains one), and the degree of the rational function of the inputs that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tapestry.proving.literals import Real
from tapestry.proving.ring import DIGITS, Ring
from tapestry.runtime.executor import Array

_LARGEST_POWER = 16
"""Powers up to this are products."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The exact side of cells, as arrays that broadcast."""

    residue: Array
    digits: Any = DIGITS
    top: Any = 0.0
    bottom: Any = 0.0
    turn: Any = 1


Rule = Callable[["Algebra", Sequence[Cells]], Cells]
"""What an operation makes of its operands."""


class Algebra:
    """Operations on residues. `bounded` ends false when no bound on chance can be given."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.bounded = True
        self.turned = False
        """Whether any value has a Teichmueller part that matters."""

    def rule(self, op: Operation) -> Rule:
        """What an operation makes of residues; a function of unknown laws is known by its name."""
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule
        sign = 1 if isinstance(op, _EVEN) else -1 if isinstance(op, _ODD) else 0
        return lambda algebra, x: algebra.opaque(op.name, x, sign)

    def meant(self, real: Real) -> Cells:
        """A number that a program names."""
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

    def add(self, x: Cells, y: Cells) -> Cells:
        top = np.maximum(x.top + y.bottom, y.top + x.bottom)
        turn = x.turn * y.turn % self.ring.modulus if self.turned else 1
        digits = np.minimum(x.digits, y.digits)
        return Cells(x.residue + y.residue, digits, top, x.bottom + y.bottom, turn)

    def negate(self, x: Cells) -> Cells:
        turn = each(self.ring.inverse)(x.turn) if self.turned else 1
        return Cells(-x.residue, x.digits, x.top, x.bottom, turn)

    def multiply(self, x: Cells, y: Cells) -> Cells:
        digits = np.minimum(x.digits, y.digits)
        residue = x.residue * y.residue % self.ring.modulus
        return Cells(residue, digits, x.top + y.top, x.bottom + y.bottom)

    def divide(self, x: Cells, y: Cells) -> Cells:
        inverse = each(self.ring.inverse)(y.residue % self.ring.modulus)
        # A divisor that is no unit is bad luck, or zero.
        digits = np.where(inverse == 0, 0, y.digits)
        return self.multiply(x, Cells(inverse, digits, y.bottom, y.top))

    def exp(self, x: Cells) -> Cells:
        degree = (DIGITS - 1) * np.maximum(x.top, x.bottom)
        residue = each(self.ring.exp)(x.residue % self.ring.modulus)
        if self.turned:
            residue = np.asarray(residue * x.turn % self.ring.modulus, object)
        digits = np.where(x.digits > 0, np.minimum(x.digits + 1, DIGITS), 0)
        return Cells(residue, digits, degree, (DIGITS - 1) * x.bottom)

    def log(self, x: Cells) -> Cells:
        found: Any = np.frompyfunc(self.ring.log, 1, 2)(x.residue % self.ring.modulus)
        logs, turns = (np.asarray(part, object) for part in found)
        self.turned = True
        # The Teichmueller part is no rational function of the input of a degree that bounds much.
        self.bounded = False
        return Cells(logs, np.where(turns == 0, 0, np.maximum(x.digits - 1, 0)), turn=turns)

    def root(self, x: Cells) -> Cells:
        self.bounded = False
        residue = x.residue % self.ring.modulus
        digits = np.where((residue % self.ring.prime == 0) & (residue != 0), 0, x.digits)
        return Cells(each(self.ring.root)(residue), digits)

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

    def power(self, exponents: Array, base: Cells, power: Cells) -> Cells:
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


def each(function: Callable[[int], int]) -> Callable[[Any], Array]:
    return lambda x: np.asarray(np.frompyfunc(function, 1, 1)(x), object)


_ODD = (math.ErfOp, math.SinOp, math.TanOp, math.AsinOp, math.AtanOp, math.CbrtOp)
_EVEN = (math.CosOp,)


def _tanh(r: Algebra, x: Cells) -> Cells:
    e = r.exp(r.scale(x, -2))
    one = r.number(1)
    return r.divide(r.add(one, r.negate(e)), r.add(one, e))


def _hyperbolic(r: Algebra, x: Cells, sign: int) -> Cells:
    both = r.add(r.exp(x), r.scale(r.exp(r.negate(x)), sign))
    return r.divide(both, r.number(2))


_RULES: dict[type[Operation], Rule] = {
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
