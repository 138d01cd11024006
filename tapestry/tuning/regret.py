"""How well the cost model chooses among schedules that were measured: its regret.

    found = regret_of(predicted(job, find_spec("h100"), measured), measured)
    found.chosen, found.regret      what the model takes for the fastest: 1.06 times the least time
    found.order                     0.9: how much the model's order is that of the times
    found.off, found.spread         predictions are 0.95 of the times, within a factor of 1.12

A regret of 1 says that the choice is the best of those that were measured, whatever was predicted
of it. The order is Spearman's rank correlation: 1 where both orders are the same, 0 where they have
nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, pstdev

from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.cost.predicting import Prediction


@dataclass(frozen=True)
class Regret:
    """Of one kernel: its schedule by the model and by measurement, and how predictions are off."""

    count: int
    chosen: Schedule
    best: Schedule
    regret: float
    """The time of the chosen schedule over the least time; 1 at least."""
    order: float
    off: float
    """The median of what is predicted over what was measured."""
    spread: float
    """The factor by which predictions differ besides, as a standard deviation of logarithms."""


def regret_of(predictions: Sequence[Prediction], measured: Mapping[Schedule, float]) -> Regret:
    """What choosing by predictions costs; `measured` has the seconds of each of their schedules.

    Predictions come best first, as `ranked` has them. ValueError where there are less than two.
    """
    if len(predictions) < 2:
        raise ValueError("an order takes two measured schedules at least")
    seconds = [measured[one.schedule] for one in predictions]
    logs = [log(p.estimate.seconds / s) for p, s in zip(predictions, seconds, strict=True)]
    best = min(predictions, key=lambda one: measured[one.schedule]).schedule
    return Regret(
        count=len(predictions),
        chosen=predictions[0].schedule,
        best=best,
        regret=seconds[0] / measured[best],
        order=rank_correlation([one.estimate.seconds for one in predictions], seconds),
        off=exp(median(logs)),
        spread=exp(pstdev(logs)),
    )


def geometric_mean(numbers: Iterable[float]) -> float:
    """The mean of factors."""
    return exp(fmean(map(log, numbers)))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's: that of ranks, where equal numbers share theirs; 0 where all are equal.

    >>> rank_correlation([1, 2, 3], [10, 20, 90]), rank_correlation([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    a, b = _ranks(one), _ranks(other)
    middle = fmean(a)
    both = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    apart = sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b)
    return round(both / apart**0.5, 12) if apart else 0.0


def _ranks(numbers: Sequence[float]) -> list[float]:
    places: dict[float, list[int]] = {}
    for place, number in enumerate(sorted(numbers)):
        places.setdefault(number, []).append(place)
    return [fmean(places[number]) for number in numbers]
