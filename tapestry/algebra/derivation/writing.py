"""Derivations as IR: what one point makes of a state, how states merge, what a state means.

The merge of the largest cell `m` and the sum `l` of exponentials relative to it becomes

    loom.monoid @softmax commutative zero [0xFF800000 : f32, 0.0 : f32]
        merge (%m: f32, %l: f32, %m_1: f32, %l_1: f32) {
      %new = arith.maximumf %m, %m_1 : f32
      %ref = (0 where %new is -inf, else %new)
      %e = exp(%m - %ref)     %e_1 = exp(%m_1 - %ref)
      loom.yield %new, %l * %e + %l_1 * %e_1 : f32, f32
    }

Every part is written alike: moved from its own state's centre to the common one, and merged. That
is what lets a backend merge many states at once instead of two by two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, f32
from xdsl.ir import Attribute, Block, Region, SSAValue

from tapestry.algebra.derivation.model import Centre, Derivation, Result, value_of
from tapestry.algebra.derivation.polynomials import Polynomial, constant
from tapestry.algebra.derivation.writer import Values, Writer
from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import Monoid, builtin_monoid
from tapestry.dialects import loom


class _State:
    """The parts of a state, and its centres."""

    def __init__(
        self, derivation: Derivation, writer: Writer, parts: Mapping[str, SSAValue]
    ) -> None:
        self.writer = writer
        self.parts = parts
        self.centres = {centre.name: centre for centre in derivation.centres}

    def count(self, centre: Centre) -> SSAValue:
        """How many points a mean is of, one if there are none."""
        writer, count = self.writer, self.parts[centre.parts[1]]
        return writer.where(writer.equals(count, 0.0), writer.number(1), count)

    def centre(self, name: str) -> SSAValue:
        """A centre as other states may be moved to it: never infinite for want of points."""
        centre, writer = self.centres[name], self.writer
        value = self.parts[centre.parts[0]]
        if centre.kind == "mean":
            return writer.add(arith.DivfOp(value, self.count(centre)))
        finite = writer.where(writer.equals(value, zero_of(centre)), writer.number(0), value)
        finite.name_hint = finite.name_hint or "centre"
        return finite

    def shift(self, other: _State, both: _State, name: str) -> SSAValue:
        """How far this state's centre is from that of both.

        An empty state is infinitely far from an extremum, which is right in an exponent. Of means
        it is the other's share of their difference, which does not cancel as the means of many
        points do.
        """
        centre, writer = self.centres[name], self.writer
        if centre.kind == "mean":
            apart = writer.add(arith.SubfOp(self.centre(name), other.centre(name)))
            count = other.parts[centre.parts[1]]
            share = writer.add(arith.DivfOp(count, both.count(centre)))
            return writer.add(arith.MulfOp(apart, share))
        extremum = self.parts[centre.parts[0]]
        return writer.add(arith.SubfOp(extremum, both.centre(name)))

    def shift_as_factor(self, other: _State, both: _State, name: str) -> SSAValue:
        """The shift of a state with points, zero for an empty one: nothing is moved there."""
        centre, writer = self.centres[name], self.writer
        shift = self.shift(other, both, name)
        if centre.kind == "mean":
            return shift
        none = writer.equals(self.parts[centre.parts[0]], zero_of(centre))
        return writer.where(none, writer.number(0), shift)


def zero_of(centre: Centre) -> float:
    """What an extremum of no points is."""
    return -inf if centre.kind == "max" else inf


def merging(derivation: Derivation, name: str, kinds: Mapping[str, Attribute]) -> loom.MonoidOp:
    """The monoid that a derivation folds by; `kinds` has the type of each part of the state.

    All parts that move have one float type.
    """
    types = [kinds[part.name] for part in derivation.parts]
    block = Block(arg_types=[*types, *types])
    for part, first, second in zip(
        derivation.parts, block.args, block.args[len(types) :], strict=False
    ):
        first.name_hint = second.name_hint = _identifier(part.name)
    writer = Writer(block, _float_of(derivation, kinds))
    sides = [
        _State(derivation, writer, dict(zip([p.name for p in derivation.parts], args, strict=True)))
        for args in (block.args[: len(types)], block.args[len(types) :])
    ]
    merged: dict[str, SSAValue] = {}
    for part in derivation.parts:
        if part.moved is None:
            monoid = _monoid(part.monoid, kinds[part.name])
            both = [side.parts[part.name] for side in sides]
            (merged[part.name],) = writer.copy(monoid.merge, both)
            merged[part.name].name_hint = _identifier(part.name)
    new = _State(derivation, writer, merged)
    for part in derivation.parts:
        if part.moved is not None:
            first = _moved(part.moved, part.centres, sides[0], sides[1], new)
            second = _moved(part.moved, part.centres, sides[1], sides[0], new)
            merged[part.name] = writer.add(arith.AddfOp(first, second))
    block.add_op(loom.YieldOp(*(merged[part.name] for part in derivation.parts)))
    zeros = [
        number_attr(_monoid(part.monoid, kind).real_zero[0], kind)
        for part, kind in zip(derivation.parts, types, strict=True)
    ]
    return loom.MonoidOp(name, zeros, Region(block), commutative=True)


def _identifier(name: str) -> str:
    return name.replace(" ", "_")


def _float_of(derivation: Derivation, kinds: Mapping[str, Attribute]) -> AnyFloat:
    """The type of the numbers by which parts move; where no part moves, there are none."""
    moving = [kinds[part.name] for part in derivation.parts if part.moved is not None]
    return next((kind for kind in (*moving, *kinds.values()) if isinstance(kind, AnyFloat)), f32)


def _monoid(name: str, kind: Attribute) -> Monoid:
    monoid = builtin_monoid(name, (kind,))
    assert monoid is not None, "folds are by built-in monoids of one part"
    return monoid


def _moved(
    moved: Polynomial, centres: Sequence[str], old: _State, other: _State, both: _State
) -> SSAValue:
    """A part of a state as it is seen from the centres of it and the other together."""
    shifted = {old.centres[name].shift: name for name in centres}

    values = {value_of(name): part for name, part in old.parts.items()}

    def near(name: str) -> SSAValue:
        if name in values:
            return values[name]
        return old.shift_as_factor(other, both, shifted[name])

    def far(name: str) -> SSAValue:
        return old.shift(other, both, shifted[name])

    return old.writer.polynomial(moved, near, far)


def point(derivation: Derivation, writer: Writer, cells: Values) -> list[SSAValue]:
    """The parts of the state of one point."""

    def symbols(name: str) -> SSAValue:
        for centre in derivation.centres:
            if name == centre.distance:
                return writer.add(arith.SubfOp(cells(centre.cell), cells(centre.cell)))
        return cells(name)

    return [writer.polynomial(part.point, symbols) for part in derivation.parts]


class Finish:
    """The results of the folds, computed from a state as far as they are asked for."""

    def __init__(
        self,
        derivation: Derivation,
        writer: Writer,
        parts: Sequence[SSAValue],
        others: Values,
        *,
        may_be_empty: bool,
    ) -> None:
        names = [part.name for part in derivation.parts]
        self._derivation = derivation
        self._writer = writer
        self._state = _State(derivation, writer, dict(zip(names, parts, strict=True)))
        self._others = others
        self._may_be_empty = may_be_empty
        self._known = {value_of(n): part for n, part in self._state.parts.items()}

    def __call__(self, name: str) -> SSAValue:
        """A fold's result, the mean of one, or what `others` knows."""
        if name not in self._known:
            self._known[name] = self._computed(name)
        return self._known[name]

    def _computed(self, name: str) -> SSAValue:
        result = self._derivation.results.get(name)
        if result is None:
            known = name in self._state.centres
            return self._state.centre(name) if known else self._others(name)
        safe = self._implied(result)

        def symbols(name: str) -> SSAValue:
            return self(name) if name in safe else self._guarded(name, result.guards)

        value = self._writer.polynomial(result.value, symbols)
        for name in result.finite:
            # Zero where the centre is finite, and NaN where it is not: no sum of zeros hides that.
            centre = self(name)
            nothing = self._writer.add(arith.SubfOp(centre, centre))
            value = self._writer.add(arith.AddfOp(value, nothing))
        return value

    def _implied(self, result: Result) -> set[str]:
        """The parts that a result multiplies by another one only, which is guarded alike."""
        results = self._derivation.results
        found = set(result.value.symbols)
        for monomial, _ in result.value.terms:
            names = {name for name, _ in monomial.powers}
            others = (results[name].guards for name in names & results.keys())
            if result.guards not in others:
                found -= names
        return found

    def _guarded(self, name: str, guards: Sequence[str]) -> SSAValue:
        """A part as it is written: where nothing is finite, each term is infinity less itself.

        That is so relative to the extremum, which is in `guards` then. Relative to something else,
        the factor that says how far that is from the extremum makes the term what it is, but for a
        cell that is infinite: beside it nothing counts, and infinity less itself is in the state.
        """
        value, writer = self(name), self._writer
        part = next((p for p in self._derivation.parts if p.symbol == name), None)
        for centre in [self._state.centres[c] for c in (() if part is None else part.centres)]:
            if centre.kind == "mean":
                continue
            extremum = self(value_of(centre.parts[0]))
            if centre.name not in guards:
                if part is not None and part.point == constant(1):
                    alone = writer.equals(extremum, -zero_of(centre))
                    value = writer.where(alone, writer.number(1), value)
                continue
            nothing = writer.equals(extremum, zero_of(centre))
            if self._may_be_empty:
                assert self._derivation.count is not None
                count = self(value_of(self._derivation.count))
                some = writer.add(arith.CmpfOp(count, writer.number(0), "une"))
                nothing = writer.add(arith.AndIOp(nothing, some))
            value = writer.where(nothing, writer.number(nan), value)
        return value
