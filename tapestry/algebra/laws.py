"""Whether a monoid that a program defines is one, tried on sample states.

    loom.monoid @worst commutative zero [0.0 : f32] merge (%a: f32, %b: f32) {
      %m = arith.maximumf %a, %b : f32
      loom.yield %m : f32
    }
    // error: @worst: the zero (0.0) is not the identity of merge:
    //        merge((0.0), (-1.25)) is (0.0), but must be (-1.25)

The zero must be the identity of the merge, the merge associative, and commutative where declared.
Samples find what is wrong; they prove nothing, and a merge that cannot be evaluated is taken as
written. What counts as wrong:

* Parts of a state that merge apart from all others are tried each by itself, on small numbers and
  on the extremes of its type: integers must agree exactly. Floats must agree up to rounding, which
  may reassociate; where an extreme overflows, nothing is said.
* Parts that merge together may have states that no fold reaches (a mean of no values, two maxima in
  the wrong order), so the laws are tried on states that a merge of ordinary numbers made, and only
  what is wrong on a good share of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.functions import complex_of
from tapestry.algebra.monoids import Monoid, monoid_from
from tapestry.algebra.scalars import Array, compute, has_meaning
from tapestry.dialects import loom
from tapestry.issues import Problem

# No six of them add up to zero, and every float type holds them exactly.
_ORDINARY = (0.4375, 3.0625, -1.28125, 7.6875, -2.96875)
_WHOLE = (1, 5, -3, 7, -2)
_MOST = 1500
_SHARE = 1 / 16

State = tuple[Array, ...]
"""Per part of a state, the values of many samples."""


@dataclass(frozen=True)
class _Definition:
    """A monoid, equal to others that are written the same."""

    text: str
    monoid: Monoid = field(compare=False)


def broken_laws(definition: loom.MonoidOp) -> tuple[Problem, ...]:
    """The laws that a definition breaks; its types must have been verified."""
    return _broken_laws(_Definition(str(definition), monoid_from(definition)))


@lru_cache(maxsize=256)
def _broken_laws(definition: _Definition) -> tuple[Problem, ...]:
    monoid = definition.monoid
    if not all(has_meaning(op) for op in monoid.merge.ops if op is not monoid.merge.last_op):
        return ()
    found = [_Trial(monoid, parts).problem() for parts in _independent_parts(monoid)]
    return tuple(problem for problem in found if problem is not None)


def _independent_parts(monoid: Monoid) -> list[tuple[int, ...]]:
    """The parts of the state in groups that merge without looking at each other."""
    count = len(monoid.state)
    group = list(range(count))
    for part, value in enumerate(monoid.merged):
        used = {value} | {x for op in needed_operations([value]) for x in op.operands}
        for position, argument in enumerate(monoid.merge.args):
            if argument in used:
                old, new = group[position % count], group[part]
                group = [new if g == old else g for g in group]
    return [tuple(p for p in range(count) if group[p] == g) for g in sorted(set(group))]


class _Trial:
    """Some parts of a monoid's state, merged apart from the others, on samples."""

    def __init__(self, monoid: Monoid, parts: Sequence[int]) -> None:
        self.monoid = monoid
        self.parts = parts
        self.dtypes = [numpy_dtype(monoid.state[p]) for p in parts]
        self.wanted = [monoid.merged[p] for p in parts]
        needed = needed_operations(self.wanted)
        self.needed = [op for op in monoid.merge.ops if op in needed]

    def problem(self) -> Problem | None:
        """The first law that the samples break."""
        for law in (self._zero_is_idle, self._is_identity, self._associates, self._commutes):
            problem = law()
            if problem is not None:
                return problem
        return None

    def merge(self, a: State, b: State) -> State:
        """Two states of many samples each, merged one by one; parts not tried are zero."""
        count = len(self.monoid.state)
        zeros = [
            np.asarray(zero).astype(numpy_dtype(kind))
            for zero, kind in zip(self.monoid.zero, self.monoid.state, strict=True)
        ]
        arguments = [*zeros, *zeros]
        for place, part in enumerate(self.parts):
            arguments[part], arguments[count + part] = a[place], b[place]
        values: dict[SSAValue, Array] = dict(zip(self.monoid.merge.args, arguments, strict=True))
        for op in self.needed:
            values[op.results[0]] = compute(op, [values[operand] for operand in op.operands])
        shape = np.broadcast_shapes(*(x.shape for x in (*a, *b)))
        return tuple(np.broadcast_to(values[value], shape) for value in self.wanted)

    def zero(self) -> State:
        """The zero, as one sample."""
        return tuple(
            np.asarray([self.monoid.zero[part]]).astype(dtype)
            for part, dtype in zip(self.parts, self.dtypes, strict=True)
        )

    def samples(self, times: int) -> list[State]:
        """`times` states, in every combination of samples or a fixed choice of combinations."""
        if len(self.parts) == 1:
            return self._combinations(times)
        made = self._combinations(2 * times)
        return [self.merge(made[at], made[at + 1]) for at in range(0, len(made), 2)]

    def _combinations(self, times: int) -> list[State]:
        values = [_ordinary(dtype) for dtype in self.dtypes] * times
        if len(self.parts) == 1 and not _is_float(self.dtypes[0]):
            # Integers wrap: the laws hold up to the ends or not at all.
            values = [np.concatenate([v, _extremes(self.dtypes[0])]) for v in values]
        lengths = [len(v) for v in values]
        if prod(lengths) <= _MOST:
            places = np.unravel_index(np.arange(prod(lengths)), lengths)
        else:
            random = np.random.default_rng(0)
            places = [random.integers(0, length, _MOST) for length in lengths]
        picked = [v[at] for v, at in zip(values, places, strict=True)]
        step = len(self.parts)
        return [tuple(picked[at : at + step]) for at in range(0, len(picked), step)]

    def _zero_is_idle(self) -> Problem | None:
        zero = self.zero()
        merged = self.merge(zero, zero)
        right = all(
            bool(x[0] == y[0] or (x[0] != x[0] and y[0] != y[0]))
            for x, y in zip(merged, zero, strict=True)
        )
        return None if right else self._identity_problem("merge(zero, zero)", zero, merged, 0)

    def _is_identity(self) -> Problem | None:
        trials = [(self.samples(1)[0], False)]
        if len(self.parts) == 1:
            trials.append(((_extremes(self.dtypes[0]),), True))
        zero = self.zero()
        for states, extreme in trials:
            for name, got in (
                ("merge(zero, {})", self.merge(zero, states)),
                ("merge({}, zero)", self.merge(states, zero)),
            ):
                at = self._first_wrong(got, states, nan_is_wrong=not extreme, extreme=extreme)
                if at is not None:
                    shown = name.format(self._shown(states, at))
                    return self._identity_problem(shown, states, got, at)
        return None

    def _associates(self) -> Problem | None:
        a, b, c = self.samples(3)
        left, right = self.merge(self.merge(a, b), c), self.merge(a, self.merge(b, c))
        at = self._first_wrong(left, right)
        if at is None:
            return None
        x, y, z = (self._shown(state, at) for state in (a, b, c))
        message = (
            f"merge is not associative: merge(merge({x}, {y}), {z}) is {self._shown(left, at)}, "
            f"but merge({x}, merge({y}, {z})) is {self._shown(right, at)}"
        )
        return Problem("monoid-associativity", message, states=[x, y, z])

    def _commutes(self) -> Problem | None:
        if not self.monoid.commutative:
            return None
        a, b = self.samples(2)
        left, right = self.merge(a, b), self.merge(b, a)
        at = self._first_wrong(left, right)
        if at is None:
            return None
        x, y = self._shown(a, at), self._shown(b, at)
        message = (
            f"merge is declared commutative, but merge({x}, {y}) is {self._shown(left, at)}, and "
            f"merge({y}, {x}) is {self._shown(right, at)}; leave out `commutative`"
        )
        return Problem("monoid-commutativity", message, states=[x, y])

    def _identity_problem(self, name: str, wanted: State, got: State, at: int) -> Problem:
        zero = self._shown(self.zero(), 0)
        message = (
            f"the zero {zero} is not the identity of merge: {name} is {self._shown(got, at)}, "
            f"but must be {self._shown(wanted, at)}"
        )
        return Problem("monoid-identity", message, zero=zero)

    def _first_wrong(
        self, got: State, wanted: State, *, nan_is_wrong: bool = False, extreme: bool = False
    ) -> int | None:
        """The first sample that is wrong, rounding aside, if enough are."""
        # Parts that merge together divide and cancel: rounding leads further there.
        root = 2 if len(self.parts) == 1 else 4
        wrong: Array = np.zeros(np.broadcast_shapes(*(x.shape for x in (*got, *wanted))), bool)
        for x, y, dtype in zip(got, wanted, self.dtypes, strict=True):
            if not _is_float(dtype):
                wrong |= x != y
                continue
            wide = np.complex128 if dtype.kind == "c" else np.float64
            x, y = x.astype(wide), y.astype(wide)
            with np.errstate(all="ignore"):
                size = np.where(np.isfinite(y), np.abs(y), 0)
                far = (x != y) & ~(np.abs(x - y) <= _tolerance(dtype, root) * (1 + size))
            far &= np.isfinite(x) & (np.isfinite(y) | extreme)
            wrong |= far | (np.isnan(x) & ~np.isnan(y)) if nan_is_wrong else far
        few = _SHARE * len(wrong) if len(self.parts) > 1 else 0
        return int(wrong.argmax()) if wrong.sum() > few else None

    def _shown(self, state: State, at: int) -> str:
        values = [part[at if len(part) > 1 else 0].item() for part in state]
        return f"({', '.join(map(str, values))})"


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "biu"


def _limits(dtype: np.dtype[Any]) -> Any:
    return cast(Any, ml_dtypes.finfo)(dtype)


def _tolerance(dtype: np.dtype[Any], root: int) -> float:
    """How far rounding may lead, relative to one or to the value."""
    return float(_limits(dtype).eps) ** (1 / root)


def _ordinary(dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "c":
        return (np.array(_ORDINARY) + 1j * np.roll(_ORDINARY, 2)).astype(dtype)
    return np.array(_ORDINARY if _is_float(dtype) else _WHOLE).astype(dtype)


def _extremes(dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return np.array([False, True])
    if not _is_float(dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([0, low, low + 1, -1, high - 1, high]).astype(dtype)
    limits = _limits(dtype)
    ends = [float(limits.smallest_normal), float(limits.max), np.inf]
    values = np.array([0.0, -0.0, *ends, *(-end for end in ends)])
    if dtype.kind == "c":
        # Together they would make NaN of each other.
        none = np.zeros(())
        values = np.concatenate([complex_of(values, none), complex_of(none, values)])
    return values.astype(dtype)
