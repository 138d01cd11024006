"""The law that splits folds: any tree of merges over a sequence equals merging it left to right.

Exact for integers and for whatever selects or counts; up to rounding where floats add, multiply or
take exponentials. For built-in monoids and for some that a program defines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import bf16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid, builtin_monoid, monoid_from
from tapestry.dialects import loom
from tapestry.frontend import parse_text
from tapestry.runtime.arrays.mapfold import merged, zero_state
from tapestry.runtime.executor import Array

State = list[Array]
Wrap = Callable[[float, int], tuple[float, ...]]
"""The parts of the state that a value at a position becomes."""


@dataclass(frozen=True)
class Case:
    """A monoid, what a value becomes, how a state ends, and how far trees may differ."""

    label: str
    monoid: Monoid
    wrap: Wrap
    finish: Callable[[State], State] = list
    tolerance: float = 0.0


def _builtin(name: str, *state: Attribute) -> Monoid:
    monoid = builtin_monoid(name, state)
    assert monoid is not None
    return monoid


def _defined(text: str) -> Monoid:
    (definition,) = parse_text(text).body.block.ops
    assert isinstance(definition, loom.MonoidOp)
    return monoid_from(definition)


# x -> a x + b, composed: it does not commute.
_AFFINE = _defined("""
loom.monoid @affine zero [1 : i32, 0 : i32] merge (%a: i32, %b: i32, %c: i32, %d: i32) {
  %ac = arith.muli %a, %c : i32
  %cb = arith.muli %c, %b : i32
  %e = arith.addi %cb, %d : i32
  loom.yield %ac, %e : i32, i32
}""")

# PyTorch's cummax: of equal values and of NaNs, the last position.
_LAST_MAX = _defined("""
loom.monoid @last_max zero [0xFFF0000000000000 : f64, -1 : i64]
    merge (%a: f64, %i: i64, %b: f64, %j: i64) {
  %not_less = arith.cmpf uge, %b, %a : f64
  %number = arith.cmpf ord, %a, %a : f64
  %nan = arith.cmpf uno, %b, %b : f64
  %late = arith.andi %not_less, %number : i1
  %wins = arith.ori %late, %nan : i1
  %none = arith.constant -1 : i64
  %missing = arith.cmpi eq, %j, %none : i64
  %value = arith.select %wins, %b, %a : f64
  %at = arith.select %wins, %j, %i : i64
  %v = arith.select %missing, %a, %value : f64
  %p = arith.select %missing, %i, %at : i64
  loom.yield %v, %p : f64, i64
}""")

_FIRST_NONZERO = _defined("""
loom.monoid @first_nonzero zero [0 : i8] merge (%a: i8, %b: i8) {
  %z = arith.constant 0 : i8
  %n = arith.cmpi eq, %a, %z : i8
  %r = arith.select %n, %b, %a : i8
  loom.yield %r : i8
}""")


def _value(x: float, _: int) -> tuple[float, ...]:
    return (x,)


def _placed(x: float, at: int) -> tuple[float, ...]:
    return (x, at)


def _logsumexp(state: State) -> State:
    with np.errstate(all="ignore"):
        return [state[0] + np.log(state[1])]


_CASES = [
    *(Case(f"{name}-{kind}", _builtin(name, kind), _value)
      for name in ("add", "mul", "max", "min", "and", "or") for kind in (i1, i8)),
    *(Case(f"{name}-{kind}", _builtin(name, kind), _value)
      for name in ("max", "min") for kind in (bf16, f64)),
    *(Case(f"{name}-{kind}", _builtin(name, kind), _value, tolerance=eps)
      for name in ("add", "mul") for kind, eps in ((f32, 1e-5),)),
    *(Case(f"{name}-{kind}", _builtin(name, kind, i64), _placed)
      for name in ("argmax", "argmin") for kind in (i1, i32, f64)),
    Case("logsumexp", _builtin("logsumexp", f64, f64), lambda x, _: (x, 1.0), _logsumexp, 1e-12),
    Case("welford", _builtin("welford", f64, f64, f64), lambda x, _: (1.0, x, 0.0), list, 1e-10),
    Case("affine", _AFFINE, lambda x, _: (3, x)),
    Case("last_max", _LAST_MAX, _placed),
    Case("first_nonzero", _FIRST_NONZERO, _value),
]  # fmt: skip

_EXACT = [-math.inf, -2.0, -1.0, 0.0, 0.0, 1.0, 1.5, 3.0, math.inf, math.nan]


def _sequence(draw: st.DrawFn, case: Case) -> list[State]:
    """Wrapped values: numbers that collide, with NaN and infinities where they are exact."""
    dtype = numpy_dtype(case.monoid.state[-1 if case.label == "affine" else 0])
    if dtype.kind == "b":
        values: st.SearchStrategy[float] = st.booleans()
    elif dtype.kind == "i":
        values = st.integers(-3, 3)
    elif case.tolerance:
        values = st.floats(-2, 2, width=32)
    else:
        values = st.sampled_from(_EXACT)
    drawn = draw(st.lists(values, max_size=9))
    kinds = [numpy_dtype(kind) for kind in case.monoid.state]
    return [
        [np.asarray(part).astype(kind) for part, kind in zip(case.wrap(x, at), kinds, strict=True)]
        for at, x in enumerate(drawn)
    ]


def _left(monoid: Monoid, states: Sequence[State]) -> State:
    total = zero_state(monoid, ())
    for state in states:
        total = merged(monoid, total, state)
    return total


def _tree(draw: st.DrawFn, monoid: Monoid, states: Sequence[State]) -> State:
    """The states cut at random places into runs, each a tree, merged one after another."""
    if len(states) <= 1:
        return _left(monoid, states)
    cuts = draw(st.sets(st.integers(0, len(states)), min_size=1, max_size=3))
    bounds = [0, *sorted(cuts), len(states)]
    runs = [states[a:b] for a, b in pairwise(bounds)]
    if any(len(run) == len(states) for run in runs):
        runs = [states[:1], states[1:]]
    return _left(monoid, [_tree(draw, monoid, run) for run in runs])


def _agree(case: Case, got: State, want: State) -> None:
    for a, b in zip(case.finish(got), case.finish(want), strict=True):
        assert a.dtype == b.dtype
        if case.tolerance:
            np.testing.assert_allclose(a, b, rtol=case.tolerance, atol=case.tolerance)
        else:
            assert np.array_equal(a, b, equal_nan=a.dtype.kind not in "ib")


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.label)
def test_any_tree_is_the_fold(case: Case) -> None:
    @settings(max_examples=12, deadline=None)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        states = data.draw(st.composite(_sequence)(case))
        got = data.draw(st.composite(_tree)(case.monoid, states))
        _agree(case, got, _left(case.monoid, states))

    law()


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.label)
def test_the_zero_changes_nothing(case: Case) -> None:
    @settings(max_examples=6, deadline=None)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        state = _left(case.monoid, data.draw(st.composite(_sequence)(case)))
        zero = zero_state(case.monoid, ())
        _agree(case, merged(case.monoid, zero, state), state)
        _agree(case, merged(case.monoid, state, zero), state)

    law()


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.label)
def test_what_is_called_commutative_commutes(case: Case) -> None:
    if not case.monoid.commutative:
        return

    @settings(max_examples=6, deadline=None)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        states = data.draw(st.composite(_sequence)(case))
        order = data.draw(st.permutations(states))
        _agree(case, _left(case.monoid, order), _left(case.monoid, states))

    law()


@pytest.mark.parametrize(
    ("values", "position"),
    [([1.0, 3.0, 3.0], 2), ([3.0, math.nan, 5.0, math.nan, 9.0], 3), ([-math.inf] * 2, 1)],
)
def test_last_of_equals(values: list[float], position: int) -> None:
    states: list[State] = [[np.asarray(x), np.asarray(at)] for at, x in enumerate(values)]
    assert int(_left(_LAST_MAX, states)[1]) == position
