"""Monoids whose states merge at once by what all others have: which they are."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.algebra.complements import find_merged_at_once
from tapestry.algebra.monoids import Monoid, monoid_from
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline
from tapestry.importers.building import ProgramBuilder
from tapestry.runtime.arrays.mapfold import merged
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array


def _norm() -> Monoid:
    """What a layer norm folds: a sum, a count, the squares about the mean."""
    build = ProgramBuilder()
    x = build.argument("x", (8, 16), "f64")
    module = build.finish(build.apply("var", x, parameters={"axis": 1}))
    run_pipeline(module, "default")
    (definition,) = [op for op in module.walk() if isinstance(op, loom.MonoidOp)]
    return monoid_from(definition)


def test_squares_about_a_mean_are_moved_by_what_the_others_have() -> None:
    monoid = _norm()
    assert find_moved_parts(monoid) is None
    found = find_merged_at_once(monoid)
    assert found is not None
    (part,) = found.moved
    random = np.random.default_rng(0)
    states: list[Array] = [random.uniform(1, 9, 50) for _ in monoid.state]
    state = [one[0] for one in states]
    for at in range(1, 50):
        state = merged(monoid, state, [one[at] for one in states])
    (moved,) = evaluate(found.moved[part], [*states, *map(np.asarray, state)], pytest.fail)
    assert moved.sum() == pytest.approx(float(state[part]), rel=1e-12)


def test_a_merge_that_only_two_states_have_in_common_is_refused() -> None:
    """p is the cube of s. Of two states, s^3 + 1.5 s (T - s) T adds up to T^3; of more, not."""
    module = parse_text("""
      loom.monoid @cube commutative zero [0.0 : f64, 0.0 : f64]
          merge (%s: f64, %p: f64, %s_1: f64, %p_1: f64) {
        %t = arith.addf %s, %s_1 : f64
        %k = arith.constant 1.5 : f64
        %both = arith.mulf %s, %s_1 : f64
        %a2 = arith.mulf %s, %s : f64
        %a3 = arith.mulf %a2, %s : f64
        %am = arith.mulf %s, %s_1 : f64
        %at = arith.mulf %am, %t : f64
        %ak = arith.mulf %at, %k : f64
        %a = arith.addf %a3, %ak : f64
        %b2 = arith.mulf %s_1, %s_1 : f64
        %b3 = arith.mulf %b2, %s_1 : f64
        %bm = arith.mulf %s_1, %s : f64
        %bt = arith.mulf %bm, %t : f64
        %bk = arith.mulf %bt, %k : f64
        %b = arith.addf %b3, %bk : f64
        %q = arith.addf %a, %b : f64
        loom.yield %t, %q : f64, f64
      }
    """)
    (definition,) = [op for op in module.walk() if isinstance(op, loom.MonoidOp)]
    assert find_merged_at_once(monoid_from(definition)) is None
