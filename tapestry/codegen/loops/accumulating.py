"""What a loop keeps of the values that it folds, until the end.

    how = accumulator(Folded(slot, "arith.maximumf", zero))
    parts = how.lift(write, [x])                    # of a value
    parts = how.merge(write, parts, others)         # in the loop
    (largest,) = how.finish(write, parts)           # once
    (largest,) = how.both(write, [largest], [y])    # of two that are finished

Most folds keep what they fold, a number or the parts of a state. The largest float is NaN where
there is one, and +0 where there are zeros of both signs, which is several instructions for each
comparison; apart, these are three short chains: the largest of what is no NaN, the bits that all
have, and whether there was a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.graphs import Folded, Merge, Merged
from tapestry.codegen.loops.vectors import BYTES, Value, Writer

Parts = Sequence[Value]


class Accumulator(Protocol):
    """How values fold, in so many parts."""

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        """The parts of one value, or of one state, which come first among them."""
        ...

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        """The parts of what both are of."""
        ...

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        """The value that parts stand for, or the state."""
        ...

    def both(self, write: Writer, left: Sequence[Value], right: Sequence[Value]) -> Sequence[Value]:
        """Two values, or states, in one."""
        ...


def accumulator(fold: Folded | Merged) -> Accumulator:
    """The accumulator of a fold."""
    if isinstance(fold, Merged):
        return _Plain(fold.merge)
    primitive = fold.primitive
    if primitive in ("arith.maximumf", "arith.minimumf"):
        return _Extreme(largest=primitive == "arith.maximumf")
    return _Plain(partial(_single, primitive))


def _single(
    primitive: str, write: Writer, left: Sequence[Value], right: Sequence[Value]
) -> Sequence[Value]:
    return (combined(primitive, write, left[0], right[0]),)


@dataclass(frozen=True)
class _Plain:
    """What is folded, as it is."""

    how: Merge

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:  # noqa: ARG002
        return values

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        return self.how(write, left, right)

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:  # noqa: ARG002
        return parts

    def both(self, write: Writer, left: Sequence[Value], right: Sequence[Value]) -> Sequence[Value]:
        return self.how(write, left, right)


@dataclass(frozen=True)
class _Extreme:
    """The largest or smallest of floats: of those that are no NaN; signs; and where NaN was.

    The sign bit of what all have in common is the sign of the largest. For the smallest, it is the
    bits that any has.
    """

    largest: bool

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        (value,) = values
        bits = write.cast("bitcast", value, _integer(value))
        nan = write.cast("sext", write.compared("uno", value, value), _integer(value))
        return value, bits, nan

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        (a, bits, nan), (b, other_bits, other_nan) = left, right
        # A comparison with NaN is false, which gives `a`: that is no NaN, or nothing matters.
        better = write.compared("ogt" if self.largest else "olt", b, a)
        signs = write.binary("and" if self.largest else "or", bits, other_bits)
        return write.chosen(better, b, a), signs, write.binary("or", nan, other_nan)

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        value, bits, nan = parts
        # A largest number below zero is one of numbers that all have the sign; one above zero has
        # none, nor does what all have in common: so that is the sign of zeros, and of all others.
        lowest = 1 << (8 * BYTES[value.kind] - 1)
        sign = write.binary("and", bits, write.number(-lowest, bits.kind))
        size = write.cast("bitcast", value, bits.kind)
        size = write.binary("and", size, write.number(lowest - 1, bits.kind))
        found = write.cast("bitcast", write.binary("or", size, sign), value.kind)
        missing, none = write.number(float("nan"), value.kind), write.number(0, nan.kind)
        return (write.chosen(write.compared("ne", nan, none), missing, found),)

    def both(self, write: Writer, left: Sequence[Value], right: Sequence[Value]) -> Sequence[Value]:
        return _single("arith.maximumf" if self.largest else "arith.minimumf", write, left, right)


def _integer(value: Value) -> str:
    """The type of integers of as many bits."""
    return f"i{8 * BYTES[value.kind]}"
