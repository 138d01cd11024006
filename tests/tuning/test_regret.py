"""Regret of made-up predictions; that of the cost model among schedules timed on an H100."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tapestry.devices import find_spec
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.predicting import Prediction, predictions
from tapestry.passes.triton.cost.roofline import Estimate
from tapestry.tuning.jobs import predicted
from tapestry.tuning.regret import geometric_mean, rank_correlation, regret_of

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(_BENCHMARKS))

from _kernel_cases import CASES  # noqa: E402
from _kernel_compiling import loom_of, lowered_for  # noqa: E402
from regret import MEASURED, judged  # noqa: E402

H200 = MEASURED.with_name("schedules_h200.json")
NONE = Estimate(1.0, {}, 1, 1.0, 32, 0, 0.0, 0.0)
TIMES = {Schedule({"P": 1 << n}): float(n) for n in range(1, 6)}


def _predicted(seconds: dict[Schedule, float]) -> list[Prediction]:
    found = [Prediction("one", s, replace(NONE, seconds=t)) for s, t in seconds.items()]
    return sorted(found, key=lambda one: one.estimate.seconds)


def test_true_predictions_have_no_regret() -> None:
    found = regret_of(_predicted({s: 0.5 * t for s, t in TIMES.items()}), TIMES)
    assert (found.count, found.regret, found.order) == (5, 1.0, 1.0)
    assert found.chosen == found.best == Schedule({"P": 2})
    assert found.off == pytest.approx(0.5)
    assert found.spread == pytest.approx(1.0)


def test_an_order_that_is_the_other_way_round_costs_most() -> None:
    found = regret_of(_predicted({s: 1 / t for s, t in TIMES.items()}), TIMES)
    assert (found.regret, found.order) == (5.0, -1.0)
    assert found.spread > 2


def test_an_order_takes_two() -> None:
    with pytest.raises(ValueError, match="two measured schedules"):
        regret_of(_predicted(TIMES)[:1], TIMES)


def test_equal_numbers_share_their_ranks() -> None:
    assert rank_correlation([1, 1, 2], [1, 1, 2]) == 1.0
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0.0
    assert rank_correlation([1, 1, 2], [2, 1, 3]) == pytest.approx(0.866, abs=1e-3)


def test_the_cost_model_chooses_well_among_what_was_timed() -> None:
    """If this fails after a change of the model: `python benchmarks/regret.py` shows where."""
    found = list(judged(json.loads(MEASURED.read_text()), "h100"))
    regrets = [one.regret.regret for one in found]
    assert len(regrets) >= 15
    assert geometric_mean(regrets) <= 1.08
    assert max(regrets) <= 1.3
    orders = {one.case: one.regret.order for one in found if one.case.startswith("matmul bf16")}
    assert min(orders.values()) > 0.7


def test_what_is_picked_is_what_runs_on_the_device() -> None:
    """The least by the model is not picked where it is faster by too little, or may not fit."""
    name = "linear+bias+gelu+residual 2048x1024x4096"
    (found,) = judged(json.loads(MEASURED.read_text()), "h100", name)
    (case,) = (one for one in CASES if one.name == name)
    (made,) = predictions(lowered_for(loom_of(case), "h100"), find_spec("h100"))
    assert found.picked.schedule == made.schedule
    assert found.picked.estimate.seconds == pytest.approx(made.estimate.seconds)
    assert found.picked_seconds == found.seconds.get(made.schedule)


@pytest.mark.parametrize("name", ["layer norm 512x262144", "softmax 512x262144"])
def test_what_is_picked_for_long_rows_is_near_the_best_of_all(name: str) -> None:
    """How rows are read again is found for one tile, and a better tile for that, and so on."""
    spec = find_spec("h200")
    (found,) = judged(json.loads(H200.read_text()), "h200", name)
    every = predicted(found.job, spec)
    best = min(one.estimate.seconds for one in every if not one.estimate.problems)
    assert found.picked.estimate.seconds <= 1.04 * best
