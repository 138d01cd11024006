"""Programs over the ring Z / P^5, beside their real values: every cell of a float holds both.

The real value says which branch a comparison, a maximum or a step takes, and where a number is
infinite; the residue is exact. A cell also knows how many of the residue's digits are known, and
the degree of the rational function of the inputs that it is, which bounds how likely two different
functions are to agree by chance.

A `Residues` arithmetic runs a program on such cells, through the same evaluator as floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.proving.algebra import Algebra, Cells, each
from tapestry.proving.floats import WIDE, FloatArithmetic
from tapestry.proving.inputs import Draw
from tapestry.proving.literals import meaning
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


class Residues:
    """The arithmetic of cells."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.algebra = Algebra(ring)
        self._floats = FloatArithmetic(WIDE)
        self._path = blake2b()

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
        return self._pack(
            real, Cells(np.asarray(0)) if found is None else self.algebra.meant(found)
        )

    def exact(self, data: Array) -> Array:
        """Floats as they are."""
        real = data.astype(WIDE)
        finite = np.where(np.isfinite(real), real, 0)

        def exactly(value: Any) -> int:
            return self.ring.fraction(Fraction(*value.as_integer_ratio()))

        return self._finish(real, (), Cells(each(exactly)(finite.astype(object))))

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
        return self._finish(real, reals, by_value or self.algebra.rule(op)(self.algebra, cells))

    def fold(self, primitive: type[Operation], cells: Array, axes: tuple[int, ...]) -> Array | None:
        """The fold of cells by a primitive in one step; None where it takes merging one by one."""
        if primitive is not arith.AddfOp or not cells.size:
            return None
        real = cells["real"].sum(axis=axes)
        bottoms = cells["bottom"].sum(axis=axes)
        above = np.max(cells["top"] - cells["bottom"], axis=axes, initial=-np.inf)
        turn: Any = np.multiply.reduce(cells["turn"], axis=axes) if self.algebra.turned else 1
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
                return self.algebra.power(reals[1], x[0], x[1])
            case _:
                return None
        self._took(flipped)
        return self.algebra.multiply(x[0], Cells(np.where(flipped, -1, 1).astype(object)))


def _cells(x: Array) -> Cells:
    return Cells(x["residue"], x["digits"], x["top"], x["bottom"], x["turn"])


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
