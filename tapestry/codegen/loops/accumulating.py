"""What a loop keeps of the values that it folds, until the end.

    fold = accumulator("arith.maximumf")
    parts = fold.lift(write, x)                     # of a value
    parts = fold.merge(write, parts, others)        # in the loop
    largest = fold.finish(write, parts)             # once

Most operations keep one number. The largest float is NaN where there is one, and +0 where there are
zeros of both signs, which is several instructions for each comparison; apart, these are three
short chains: the largest of what is no NaN, the bits that all have, and whether there was a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.vectors import BYTES, Value, Writer

Parts = Sequence[Value]


class Accumulator(Protocol):
    """How values fold, in so many parts."""

    def lift(self, write: Writer, value: Value) -> Parts:
        """The parts of one value."""
        ...

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        """The parts of what both are of."""
        ...

    def finish(self, write: Writer, parts: Parts) -> Value:
        """The value that parts stand for."""
        ...


def accumulator(primitive: str) -> Accumulator:
    """The accumulator of an operation that loops fold by."""
    if primitive in ("arith.maximumf", "arith.minimumf"):
        return _Extreme(largest=primitive == "arith.maximumf")
    return _Single(primitive)


@dataclass(frozen=True)
class _Single:
    """A value, as it is."""

    primitive: str

    def lift(self, write: Writer, value: Value) -> Parts:  # noqa: ARG002
        return (value,)

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        return (combined(self.primitive, write, left[0], right[0]),)

    def finish(self, write: Writer, parts: Parts) -> Value:  # noqa: ARG002
        return parts[0]


@dataclass(frozen=True)
class _Extreme:
    """The largest or smallest of floats: of those that are no NaN; signs; and where NaN was.

    The sign bit of what all have in common is 0 if a value is positive. If the largest is zero,
    such a value is +0. For the smallest, it is the bits that any has, and -0.
    """

    largest: bool

    def lift(self, write: Writer, value: Value) -> Parts:
        bits = write.cast("bitcast", value, _integer(value))
        nan = write.cast("sext", write.compared("uno", value, value), _integer(value))
        return value, bits, nan

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        (a, bits, nan), (b, other_bits, other_nan) = left, right
        # A comparison with NaN is false, which gives `a`: that is no NaN, or nothing matters.
        better = write.compared("ogt" if self.largest else "olt", b, a)
        signs = write.binary("and" if self.largest else "or", bits, other_bits)
        return write.chosen(better, b, a), signs, write.binary("or", nan, other_nan)

    def finish(self, write: Writer, parts: Parts) -> Value:
        value, bits, nan = parts
        zero, none = write.number(0.0, value.kind), write.number(0, bits.kind)
        signed = write.compared("sge" if self.largest else "slt", bits, none)
        at_zero = write.binary("and", write.compared("oeq", value, zero), signed)
        best = write.number(0.0 if self.largest else -0.0, value.kind)
        found = write.chosen(at_zero, best, value)
        missing = write.number(float("nan"), value.kind)
        return write.chosen(write.compared("ne", nan, none), missing, found)


def _integer(value: Value) -> str:
    """The type of integers of as many bits."""
    return f"i{8 * BYTES[value.kind]}"
