"""Coefficients of a device from measured kernels: those under which the cost model predicts them.

    samples = [Sample(works_of(lowered), seconds), ...]
    found = fitted(samples, find_spec("h200"))
    found.spec.coefficients.step, found.before, found.after     # 4.1e-08, 1.62, 1.17

Rates and bandwidths have probes of their own (`calibration.py`). What is fitted here no probe
shows alone: how long a step of a loop waits, how much of one work hides behind another. Errors are
those of logarithms, so a kernel of microseconds says as much as one of milliseconds, and one that
the model is far from says little more than others. What no sample depends on stays as it is in the
base, and what few depend on stays near it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import exp, log
from typing import Any, Final

import numpy as np
from pydantic import BaseModel
from xdsl.dialects.builtin import ModuleOp

from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.roofline import estimate_of
from tapestry.passes.triton.cost.work import Work

Works = tuple[tuple[Work, int], ...]
"""Launches one after another, each so many times."""

SPREAD: Final = 30.0
"""Amounts are looked for between the base over this and the base times this."""

AMOUNTS: Final = ("memory.latency", "coefficients.launch", "coefficients.step")
SHARES: Final = {
    "coefficients.warp_products": 0.05,
    "coefficients.scalar_products": 0.05,
    "coefficients.overlap": 0.0,
    "coefficients.hidden": 0.0,
}
"""What is fitted: seconds, and shares, at least so large and at most 1."""

_NEAR: Final = 0.02
"""How much it weighs to stay at the base: little beside a sample."""

_FEW: Final = 3
_MATTERS: Final = 0.02
"""So many samples have to depend on what is fitted, so much when it changes by a third or so."""

_ROUGH: Final = 0.1
"""An error of this size is one that a model of this kind has; larger ones count less."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Launches as the cost model sees them, and the seconds that they took together."""

    works: Works
    seconds: float


@dataclass(frozen=True)
class Fit:
    """A device with what was fitted, and which figures those are.

    `before` and `after` are the factors by which predictions are off, on the geometric mean.
    """

    spec: DeviceSpec
    known: frozenset[str]
    before: float
    after: float


def works_of(lowered: ModuleOp) -> Works:
    """The launches of a program in triton, in order."""
    kernels = {
        op.sym_name.data: op for op in lowered.body.block.ops if isinstance(op, triton.KernelOp)
    }
    return tuple(
        (work_of(kernels[launch.kernel_name], call), count)
        for launch in lowered.walk()
        if isinstance(launch, triton.LaunchOp) and launch.rows
        for call, count in calls_of(launch)
    )


def seconds_of(works: Works, spec: DeviceSpec) -> float:
    """What the cost model says of launches one after another."""
    return sum(estimate_of(work, spec).seconds * count for work, count in works)


def fitted(samples: Sequence[Sample], base: DeviceSpec) -> Fit:
    """The device under which the cost model is nearest to what was measured."""
    start = {name: _inner(name, _read(base, name)) for name in (*AMOUNTS, *SHARES)}
    known = [name for name in start if _matters(name, start, samples, base)]
    first = _errors(samples, base)
    if not known:
        return Fit(base, frozenset(), _factor(first), _factor(first))

    def residuals(inner: Sequence[float]) -> np.ndarray:
        values = {name: float(value) for name, value in zip(known, inner, strict=True)}
        near = [_NEAR * (values[name] - start[name]) for name in known]
        return np.array([*_errors(samples, _with(base, values)), *near])

    def cost(inner: Sequence[float]) -> float:
        return float(np.sum(np.sqrt(1 + (residuals(inner) / _ROUGH) ** 2) - 1))

    bounds = [_bounds(name, start) for name in known]
    inner = _scanned([start[name] for name in known], bounds, cost)
    optimize: Any = import_module("scipy.optimize")
    low, high = (np.array(ends) for ends in zip(*bounds, strict=True))
    room = 1e-9 * (high - low)
    found = optimize.least_squares(
        residuals,
        np.clip(inner, low + room, high - room),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=_ROUGH,
        diff_step=1e-3,
    )
    best = min((inner, [float(one) for one in found.x]), key=cost)
    spec = _with(base, dict(zip(known, best, strict=True)))
    return Fit(spec, frozenset(known), _factor(first), _factor(_errors(samples, spec)))


def _scanned(start: list[float], bounds: Sequence[tuple[float, float]], cost: Any) -> list[float]:
    """A place near the best one: what is fitted is tried in turns, at places over its range.

    Works that hide behind others have no slope, so a descent alone would stay where it is.
    """
    best, least = list(start), cost(start)
    for _ in range(2):
        for place, (low, high) in enumerate(bounds):
            for value in np.linspace(low, high, 13):
                tried = [*best[:place], float(value), *best[place + 1 :]]
                found = cost(tried)
                if found < least:
                    best, least = tried, found
    return best


def _errors(samples: Sequence[Sample], spec: DeviceSpec) -> list[float]:
    return [log(seconds_of(one.works, spec) / one.seconds) for one in samples]


def _factor(errors: Sequence[float]) -> float:
    return exp(sum(map(abs, errors)) / len(errors)) if errors else 1.0


def _matters(
    name: str, start: Mapping[str, float], samples: Sequence[Sample], base: DeviceSpec
) -> bool:
    """Whether predictions of some samples depend on a figure.

    Amounts may be ten times the base's.
    """
    low, high = _bounds(name, start)
    apart = 0.4 if name in SHARES else log(10.0)
    ends = (max(low, start[name] - apart), min(high, start[name] + apart))
    changed = [_errors(samples, _with(base, {name: value})) for value in ends]
    return sum(abs(a - b) > _MATTERS for a, b in zip(*changed, strict=True)) >= _FEW


def _bounds(name: str, start: Mapping[str, float]) -> tuple[float, float]:
    if name in SHARES:
        return SHARES[name], 1.0
    return start[name] - log(SPREAD), start[name] + log(SPREAD)


def _inner(name: str, value: float) -> float:
    """A figure as it is fitted: amounts by their logarithm."""
    return value if name in SHARES else log(value)


def _read(spec: DeviceSpec, name: str) -> float:
    part, _, own = name.partition(".")
    return float(getattr(getattr(spec, part), own))


def _with(spec: DeviceSpec, inner: Mapping[str, float]) -> DeviceSpec:
    """A device with other figures."""
    changed: dict[str, BaseModel] = {}
    for name, value in inner.items():
        part, _, own = name.partition(".")
        model: BaseModel = changed[part] if part in changed else getattr(spec, part)
        figure = value if name in SHARES else exp(value)
        changed[part] = model.model_copy(update={own: figure})
    return spec.model_copy(update=changed)
