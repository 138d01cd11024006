"""Monoids whose states merge many at once: which they are, and that it is the same."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64

from tapestry.algebra.derivation.cascade import derive
from tapestry.algebra.derivation.model import Fold, mean_of
from tapestry.algebra.derivation.polynomials import exp, symbol
from tapestry.algebra.derivation.writing import merging
from tapestry.algebra.monoids import Monoid, builtin_monoid, monoid_from
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.runtime.arrays.mapfold import merged
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array

x, v, m, mean = map(symbol, ["x", "v", "m", mean_of("s")])


def _derived(*folds: Fold) -> Monoid:
    found = derive(folds, {"x", "v"})
    return monoid_from(merging(found, "derived", {part.name: f64 for part in found.parts}))


_ENTROPY = _derived(
    Fold("m", "max", x), Fold("l", "add", exp(x - m)), Fold("h", "add", exp(x - m) * (x - m))
)
_LOWEST = _derived(Fold("m", "min", x), Fold("o", "add", exp(m - x) * v))


@pytest.mark.parametrize("monoid", [_ENTROPY, _LOWEST], ids=["entropy", "lowest"])
def test_many_states_merge_as_two_by_two(monoid: Monoid):
    found = find_moved_parts(monoid)
    assert found is not None
    assert list(found.plain) == [0]
    random = np.random.default_rng(0)
    states = [random.standard_normal(7) for _ in monoid.state]
    state: list[Array] = [part[0] for part in states]
    for at in range(1, 7):
        state = merged(monoid, state, [part[at] for part in states])
    together = [states[0].max() if found.plain[0] is arith.MaximumfOp else states[0].min()]
    together += [np.float64(0)] * (len(states) - 1)

    def nowhere(dim: int) -> Array:
        raise AssertionError(dim)

    for part, block in found.moved.items():
        (moved,) = evaluate(block, [*states, *map(np.asarray, together)], nowhere)
        assert moved.sum() == pytest.approx(float(state[part]), rel=1e-12)


def test_what_a_state_moves_by_must_not_be_another_states():
    """A mean's shift is the other's share of the difference: two states at a time."""
    squares = _derived(Fold("s", "add", x), Fold("q", "add", (x - mean) ** 2))
    assert find_moved_parts(squares) is None


def test_built_in_monoids():
    for name, kinds, parts in (("max", (f32,), (1, 0)), ("logsumexp", (f32, f32), (1, 1))):
        monoid = builtin_monoid(name, kinds)
        assert monoid is not None
        found = find_moved_parts(monoid)
        assert found is not None
        assert (len(found.plain), len(found.moved)) == parts
    welford = builtin_monoid("welford", (f32, f32, f32))
    assert welford is not None
    assert find_moved_parts(welford) is None
