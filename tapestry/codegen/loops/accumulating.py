"""What a loop keeps of the values that it folds, until the end.

    (how,) = accumulators(graph)                    # that folds by "arith.maximumf"
    parts = how.lift(write, [x])                    # of a value, or of what values fold to
    parts = how.merge(write, parts, how.enter(write, [y]))      # in the loop, with a value's
    (largest,) = how.finish(write, parts)           # once

Most folds keep what they fold, a number or the parts of a state. The largest float is NaN where
there is one, and +0 where there are zeros of both signs, which is several instructions for each
comparison. The bits of floats as integers are in an order that says all that, with three
instructions that do not wait for each other; where processors have none of these for 64 bits, the
numbers, what is missing and signs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.graphs import Folded, Graph, Merge, Merged
from tapestry.codegen.loops.vectors import Value, Writer

Parts = Sequence[Value]

_PIECE = 8
"""Elements of which the conditions are as wide as registers of most processors."""

_EXTREMES = ("arith.maxsi", "arith.maxui", "arith.minui")
"""What is kept of the bits of floats, of which the largest or smallest is wanted."""

_INFINITY, _SIGN = 0x7F800000, 1 << 31
"""The bits of a float."""

_SIGN_OF_DOUBLE = -(1 << 63)


class Accumulator(Protocol):
    """How values fold, in so many parts."""

    @property
    def waits(self) -> bool:
        """Whether a processor waits for what a vector folds to, so that several at once are faster.

        It does not where there are so many parts that others keep it busy, and its registers.
        """
        ...

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        """The parts of one value, or of one state, which come first among them."""
        ...

    def enter(self, write: Writer, values: Sequence[Value]) -> Parts:
        """The parts of the value of a point."""
        ...

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        """The parts of what both are of."""
        ...

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        """The value that parts stand for, or the state."""
        ...


def accumulators(graph: Graph) -> list[Accumulator]:
    """The accumulators of a graph's folds."""
    return [_accumulator(fold, graph.kinds[fold.slots[0]]) for fold in graph.folds]


def _accumulator(fold: Folded | Merged, kind: str) -> Accumulator:
    if isinstance(fold, Merged):
        merge = partial(_in_pieces, fold.merge)
        return _Narrow(merge, fold.narrow, fold.zeros) if fold.narrow else _Plain(merge)
    primitive = fold.primitive
    if primitive in ("arith.maximumf", "arith.minimumf"):
        largest = primitive == "arith.maximumf"
        return _ExtremeOfDoubles(largest) if kind == "double" else _Extreme(largest)
    return _Plain(partial(_single, primitive))


def _single(
    primitive: str, write: Writer, left: Sequence[Value], right: Sequence[Value]
) -> Sequence[Value]:
    return (combined(primitive, write, left[0], right[0]),)


def _in_pieces(
    merge: Merge, write: Writer, left: Sequence[Value], right: Sequence[Value]
) -> Sequence[Value]:
    """Two states merged, a few elements after another.

    LLVM makes bytes of the conditions of more elements than a register has, and back.
    """
    if write.lanes <= _PIECE or not any(value.wide for value in (*left, *right)):
        return merge(write, left, right)
    pieces: list[Sequence[Value]] = []
    for first in range(0, write.lanes, _PIECE):
        one, other = ([write.some(value, first, _PIECE) for value in own] for own in (left, right))
        with write.of(_PIECE):
            pieces.append([write.widened(value) for value in merge(write, one, other)])
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = [list(map(write.joined, *pair)) for pair in pairs]
    return pieces[0]


@dataclass(frozen=True)
class _Plain:
    """What is folded, as it is."""

    how: Merge
    waits: bool = True

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:  # noqa: ARG002
        return values

    def enter(self, write: Writer, values: Sequence[Value]) -> Parts:
        return self.lift(write, values)

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        return self.how(write, left, right)

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:  # noqa: ARG002
        return parts


@dataclass(frozen=True)
class _Narrow:
    """What is folded, but for integers that are kept in 32 bits.

    They are ordered as they are in 64: zeros are the least or the most there are, or fit as well.
    """

    how: Merge
    narrow: frozenset[int]
    zeros: tuple[float, ...]
    waits: bool = True

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        found = list(self.enter(write, values))
        for part in self.narrow:
            is_zero = write.compared("eq", values[part], self._zero(write, part))
            found[part] = write.chosen(is_zero, self._near(write, part), found[part])
        return found

    def enter(self, write: Writer, values: Sequence[Value]) -> Parts:
        return [
            write.cast("trunc", value, "i32") if part in self.narrow else value
            for part, value in enumerate(values)
        ]

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        return self.how(write, left, right)

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        found = list(parts)
        for part in self.narrow:
            is_zero = write.compared("eq", parts[part], self._near(write, part))
            wide = write.cast("sext", parts[part], "i64")
            found[part] = write.chosen(is_zero, self._zero(write, part), wide)
        return found

    def _zero(self, write: Writer, part: int) -> Value:
        return write.number(self.zeros[part], "i64")

    def _near(self, write: Writer, part: int) -> Value:
        """The zero in 32 bits."""
        return write.number(max(_LEAST, min(_MOST, self.zeros[part])), "i32")


_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
"""Of 32-bit integers."""


@dataclass(frozen=True)
class _Extreme:
    """The largest or smallest of floats, by their bits as integers.

    Of floats without a sign the order is that of their bits; of those with one, it is the reverse.
    So three extremes of the bits say all: the largest as signed numbers, which is the largest float
    without a sign if there is any, and a NaN if one of these is; the largest as unsigned numbers,
    the smallest float with a sign, or a NaN; and the least as unsigned numbers, the largest float
    with a sign if all have one, else the smallest without.
    """

    largest: bool
    waits: bool = False

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        return (write.cast("bitcast", values[0], "i32"),) * len(_EXTREMES)

    def enter(self, write: Writer, values: Sequence[Value]) -> Parts:
        return self.lift(write, values)

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        three = zip(_EXTREMES, left, right, strict=True)
        return [combined(extreme, write, a, b) for extreme, a, b in three]

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        signed, most, least = parts

        def number(value: int) -> Value:
            return write.number(value, "i32")

        if self.largest:
            unsigned = write.compared("sge", signed, number(0))
            found = write.chosen(unsigned, signed, least)
        else:
            some = write.compared("slt", most, number(0))
            found = write.chosen(some, most, least)
        without = write.compared("sgt", signed, number(_INFINITY))
        # As an unsigned number; that of a module's text has a sign.
        beyond = write.compared("ugt", most, number(_INFINITY - _SIGN))
        missing = write.binary("or", without, beyond)
        found = write.cast("bitcast", found, "float")
        return (write.chosen(missing, write.number(float("nan"), "float"), found),)


@dataclass(frozen=True)
class _ExtremeOfDoubles:
    """The largest or smallest of floats of 64 bits, whether one is NaN, and their signs: the bits
    that all have, or that any has, which decide of zeros.
    """

    largest: bool
    waits: bool = False

    def lift(self, write: Writer, values: Sequence[Value]) -> Parts:
        (value,) = values
        missing = write.cast("sext", write.compared("uno", value, value), "i64")
        return value, missing, write.cast("bitcast", value, "i64")

    def enter(self, write: Writer, values: Sequence[Value]) -> Parts:
        return self.lift(write, values)

    def merge(self, write: Writer, left: Parts, right: Parts) -> Parts:
        (one, gone, bits), (other, also, more) = left, right
        beyond = write.compared("ogt" if self.largest else "olt", other, one)
        return (
            write.chosen(beyond, other, one),
            write.binary("or", gone, also),
            write.binary("and" if self.largest else "or", bits, more),
        )

    def finish(self, write: Writer, parts: Parts) -> Sequence[Value]:
        found, missing, bits = parts
        sign = write.binary("and", bits, write.number(_SIGN_OF_DOUBLE, "i64"))
        is_zero = write.compared("oeq", found, write.number(0.0, "double"))
        found = write.chosen(is_zero, write.cast("bitcast", sign, "double"), found)
        some = write.compared("ne", missing, write.number(0, "i64"))
        return (write.chosen(some, write.number(float("nan"), "double"), found),)
