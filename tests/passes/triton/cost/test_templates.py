"""A kernel of other sizes does what is counted without building it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from xdsl.context import Context

import tapestry as t
from tapestry.devices import DeviceSpec
from tapestry.dialects.triton import Schedule
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.cost.counting import Counts, counts_of
from tapestry.passes.triton.cost.predicting import Build
from tapestry.passes.triton.cost.ranking import Least, Ranking
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.cost.templates import SIZES, Template
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules import choosing

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))

from _kernel_cases import CASES

NAMES = (
    "matmul f32 512",
    "matmul f16 odd 1001x1003x997",
    "matmul f16 broadcast 64x512x512x128",
    "linear+bias+gelu+residual 2048x1024x4096",
    "rms norm+swiglu 16x4096x14336",
    "softmax 2048x32768",
    "cross entropy 8192x32000",
    "attention causal d=64",
    "attention grouped d=128",
    "attention backward causal d=64",
    "sum along axis 1 of 512x1024x256",
    "conv2d 32x128x56x56 -> 128, 3x3 by 2, relu",
    "max pool 64x64x112x112, 3x3 by 2",
)
SOME = 12
"""How many schedules of a kernel are built."""

WARPS_AND_STAGES = ((1, 1), (4, 2), (8, 3))


def _summaries(counts: list[tuple[Counts, int]]) -> list[Any]:
    return [one.work(4, 2).summary for one, _ in counts]


def _estimates(counts: list[tuple[Counts, int]], spec: DeviceSpec) -> list[tuple[Estimate, int]]:
    works = [(c.work(*pair), count) for c, count in counts for pair in WARPS_AND_STAGES]
    return [(estimate_of(work, spec), count) for work, count in works]


Told: TypeAlias = "Callable[[list[Schedule], Build, DeviceSpec], None]"
LoweredWith: TypeAlias = "Callable[[Expression, Told], int]"


@pytest.fixture
def lowered_with(monkeypatch: pytest.MonkeyPatch) -> LoweredWith:
    """Lowers a program for an H200, tells of the schedules that kernels may have, counts these."""

    def lower(expression: Expression, told: Told) -> int:
        kernels = 0

        def ranking(
            schedules: Iterable[Schedule], build: Build, spec: DeviceSpec, least: Least
        ) -> Ranking:
            nonlocal kernels
            kernels += 1
            every = list(schedules)
            told(every, build, spec)
            return Ranking(every, build, spec, least)

        monkeypatch.setattr(choosing, "Ranking", ranking)
        module = t.compile(expression, on="triton").lowered.clone()
        LoomToTriton(device="h200").lower(Context(), module)
        return kernels

    return lower


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_counted_is_what_a_kernel_that_is_built_does(
    name: str, lowered_with: LoweredWith
) -> None:
    counted = 0

    def told(every: list[Schedule], build: Build, spec: DeviceSpec) -> None:
        nonlocal counted
        templates: list[Template] = []

        for schedule in every[:: max(1, len(every) // SOME)]:
            made = build(schedule)
            real = [(counts_of(made.kernel, call), count) for call, count in made.calls]
            for template in templates:
                found = template.counts(schedule)
                if found is not None:
                    counted += template.schedule.tile != schedule.tile
                    assert _estimates(found, spec) == _estimates(real, spec)
                    assert _summaries(found) == _summaries(real)
            templates += [one for one in [Template.of(made)] if one is not None]

    (case,) = (case for case in CASES if case.name == name)
    lowered_with(case.expression(), told)
    assert counted


@pytest.mark.parametrize(
    "seen", [lambda row, column: row >= 2 * column, lambda row, column: row + 5 >= column]
)
def test_masks_of_grouped_rows_are_counted_as_they_are_built(
    seen: Callable[[Expression, Expression], Expression],
    lowered_with: LoweredWith,
) -> None:
    """Whether blocks of rows end inside a head decides how masks are written, and branches."""
    counted = refused = 0

    def told(every: list[Schedule], build: Build, spec: DeviceSpec) -> None:
        nonlocal counted, refused
        plain = every[0].besides(*SIZES)
        some = [one for one in every if one.besides(*SIZES) == plain and one.warps == 4]
        made = {one: build(one) for one in some if one.stages == 2}
        for template in (Template.of(one) for one in made.values()):
            assert template is not None
            for schedule, other in made.items():
                found = template.counts(schedule)
                refused += found is None
                if found is not None:
                    real = [(counts_of(other.kernel, call), count) for call, count in other.calls]
                    counted += template.schedule.tile != schedule.tile
                    assert _estimates(found, spec) == _estimates(real, spec)

    q = t.input("q", (2, 4, 192, 64), "float16").astype("float32")
    k, v = (t.input(name, (2, 1, 256, 64), "float16").astype("float32") for name in "kv")
    places = t.arange(192).reshape(192, 1), t.arange(256).reshape(1, 256)
    scores = t.where(seen(*places), q @ k.transpose(0, 1, 3, 2) * 0.125, float("-inf"))
    lowered_with((t.softmax(scores, axis=-1) @ v).astype("float16"), told)
    assert counted
    assert refused


def test_sizes_that_decide_something_else_are_not_counted(
    lowered_with: LoweredWith,
) -> None:
    def told(every: list[Schedule], build: Build, _: DeviceSpec) -> None:
        def tile(m: int, n: int, k: int) -> Schedule:
            return replace(every[0], tile={"M": m, "N": n, "K": k})

        template = Template.of(build(tile(64, 128, 32)))
        assert template is not None
        assert template.counts(tile(64, 256, 64)) is not None
        assert template.counts(tile(64, 64, 64)) is not None
        # The last blocks of rows have less than 256, and one block of terms needs no loop.
        assert template.counts(tile(256, 128, 32)) is None
        assert template.counts(tile(64, 128, 512)) is None
        assert template.counts(replace(tile(64, 256, 32), loads="descriptor")) is None
        # Whether a tile has 64 rows or 64 columns, its type does not say.
        equal = Template.of(build(tile(64, 64, 32)))
        assert equal is not None
        assert equal.counts(tile(64, 64, 128)) is not None
        assert equal.counts(tile(128, 64, 32)) is None
        assert equal.counts(tile(64, 1, 32)) is None

    x, w = t.input("x", (384, 512), "f16"), t.input("w", (512, 1024), "f16")
    assert lowered_with(x @ w, told)


def test_a_kernel_of_which_nothing_is_known_is_no_template(
    lowered_with: LoweredWith,
) -> None:
    def told(every: list[Schedule], build: Build, _: DeviceSpec) -> None:
        assert Template.of(replace(build(every[0]), answers=None)) is None

    assert lowered_with(t.input("x", (512, 512), "f16").sum(axis=0), told)
