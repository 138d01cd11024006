"""What is not looked at could not have been chosen: bounds hold, choices are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from xdsl.context import Context

import tapestry as t
from tapestry.codegen.module_printer import print_module
from tapestry.devices import DeviceSpec
from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.cost import ranking
from tapestry.passes.triton.cost.predicting import Build, Made
from tapestry.passes.triton.cost.ranking import (
    BEST,
    Least,
    Ranking,
    Seen,
    Worth,
    ranked,
    worth_of,
)
from tapestry.passes.triton.cost.roofline import Estimate, estimate_of
from tapestry.passes.triton.cost.work import Work
from tapestry.passes.triton.kernels import lowering
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules import choosing


def _product(dtype: str, *shapes: tuple[int, ...]) -> Expression:
    a, b = (t.input(name, shape, dtype) for name, shape in zip("ab", shapes, strict=True))
    return a @ b


def _normed() -> Expression:
    """Products of which one factor is a norm: it may be stored, and both ways are looked at."""
    x, w = t.input("x", (512, 256), "f32"), t.input("w", (256, 768), "f32")
    scale, shift = t.input("scale", (256,), "f32"), t.input("shift", (256,), "f32")
    return t.gelu(t.layer_norm(x, scale, shift) @ w)


def _gated(dtype: str) -> Expression:
    """Two products of a norm, in one kernel."""
    x, g = t.input("x", (512, 256), dtype), t.input("g", (256,), dtype)
    h = t.rms_norm(x, g, eps=1e-6)
    w, v = (t.input(name, (256, 768), dtype) for name in "wv")
    return t.swiglu(h @ w, h @ v)


PRODUCTS: dict[str, tuple[str, Callable[[], Expression]]] = {
    "parts of float32": ("h100", lambda: _product("f32", (512, 384), (384, 640))),
    "float32 by warps": ("a100", lambda: _product("f32", (512, 384), (384, 640))),
    "shared out": ("h200", lambda: _product("bf16", (2048, 1024), (1024, 2048))),
    "odd": ("h100", lambda: _product("f16", (301, 133), (133, 517))),
    "batched": ("h100", lambda: _product("f16", (6, 256, 64), (6, 64, 192))),
    "a norm": ("h100", _normed),
    "two products": ("h200", lambda: _gated("bf16")),
    "two products of float32": ("h100", lambda: _gated("f32")),
}

EVERY = 9
"""Of so many schedules one is looked at."""


@dataclass
class Asked:
    """Is told of rankings, while what they build is there: how many, and of how many kernels."""

    rankings: int = 0
    built: int = 0
    told: Callable[[list[Schedule], Build, DeviceSpec, Least], None] | None = None

    def ranking(
        self, schedules: Iterable[Schedule], build: Build, spec: DeviceSpec, least: Least
    ) -> Ranking:
        """A ranking that is counted."""
        some = list(schedules)

        def counted(schedule: Schedule) -> Made:
            self.built += 1
            return build(schedule)

        self.rankings += 1
        if self.told is not None:
            self.told(some, build, spec, least)
        return Ranking(some, counted, spec, least)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(choosing, "Ranking", asked.ranking)
    return asked


def _printed(
    make: Callable[[], Expression],
    device: str,
    rankings: Any = None,
    refused: Callable[[triton.KernelOp], bool] = choosing.never,
) -> str:
    module = t.compile(make(), on="triton").lowered.clone()
    LoomToTriton(device=device).lower(Context(), module, rankings=rankings, refused=refused)
    return print_module(module).source


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_no_kernel_takes_less_than_is_said(name: str, asked: Asked) -> None:
    device, make = PRODUCTS[name]
    known: list[Worth] = []

    def told(schedules: list[Schedule], build: Build, spec: DeviceSpec, least: Least) -> None:
        for one in ranked(schedules[::EVERY], build, spec):
            known.append(least(one.schedule))
            large, bad, seconds = worth_of(one.estimate)
            assert known[-1] <= (large, bad, seconds * (1 + 1e-9))

    asked.told = told
    _printed(make, device)
    assert any(seconds for *_, seconds in known)


@pytest.mark.parametrize("name", ["parts of float32", "shared out"])
def test_the_order_is_that_of_all(name: str, asked: Asked) -> None:
    device, make = PRODUCTS[name]

    def told(schedules: list[Schedule], build: Build, spec: DeviceSpec, least: Least) -> None:
        some = schedules[::EVERY]
        whole = ranked(some, build, spec)
        assert list(Ranking(some, build, spec, least)) == whole
        added = Ranking(some[::2], build, spec, least)
        assert next(iter(added)) == ranked(some[::2], build, spec)[0]
        added.add(some[1::2])
        assert [one.estimate for one in added] == [one.estimate for one in whole]

    asked.told = told
    _printed(make, device)
    assert asked.rankings


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_choices_are_those_of_all_that_is_looked_at(
    name: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, make = PRODUCTS[name]
    estimated = 0

    def estimate(work: Work, spec: DeviceSpec) -> Estimate:
        nonlocal estimated
        estimated += 1
        return estimate_of(work, spec)

    monkeypatch.setattr(ranking, "estimate_of", estimate)
    found, few = _printed(make, device), estimated
    estimated = 0

    def nothing_known(*_: object) -> Least:
        return lambda _: BEST

    monkeypatch.setattr(choosing, "least_of", nothing_known)
    assert _printed(make, device) == found
    assert asked.rankings
    assert few < estimated


def test_a_kernel_is_built_once_to_be_looked_at_and_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The default one, too, which is among those that are looked at; for all warps and stages."""
    own, built = lowering.best, list[list[Schedule]]()

    def best(options: Any, shards: Any, build: Any) -> Any:
        bodies = list[Schedule]()
        built.append(bodies)

        def noted(own: Any, schedule: Schedule | None) -> Any:
            made = build(own, schedule)
            bodies.append(replace(made[1].op.schedule.data, warps=1, stages=1))
            return made

        return own(options, shards, noted)

    monkeypatch.setattr(lowering, "best", best)
    module = t.compile(_product("bf16", (512, 512), (512, 512)), on="triton").lowered.clone()
    chosen: list[Schedule | None] = []
    LoomToTriton(device="h200").lower(Context(), module, chosen=lambda _, one: chosen.append(one))
    assert max(map(len, built)) > 1
    for bodies in built:
        assert len(bodies) == len(set(bodies))
    # The kernel has the warps and stages that are chosen, whichever were looked at last.
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, triton.KernelOp))
    assert chosen == [kernel.schedule.data]


def test_what_is_alike_is_ranked_once(asked: Asked) -> None:
    """The alternatives to a program, and the program, are made of some of the same kernels."""
    rankings: dict[Any, Ranking] = {}
    found = _printed(_normed, "h100", rankings)
    assert asked.rankings == len(rankings) > 1
    asked.built = 0
    assert _printed(_normed, "h100", rankings) == found
    assert asked.rankings == len(rankings)
    assert asked.built == 0


def test_what_is_refused_is_looked_for_further_where_others_stopped() -> None:
    """Programs that were ranked first are lowered by then: kernels are built of this one."""
    x, w = t.input("x", (2048, 384), "bf16"), t.input("w", (384, 1024), "bf16")
    rankings: dict[Any, Ranking] = {}

    def make() -> Expression:
        return (x * 2.0 + 1.0) @ w

    def refused(rankings: dict[Any, Ranking] | None) -> str:
        """The program, if every kernel but the one that is asked about first is refused."""
        asked: list[triton.KernelOp] = []

        def after_the_default(kernel: triton.KernelOp) -> bool:
            asked.append(kernel)
            return [one.sym_name for one in asked].count(kernel.sym_name) > 1

        return _printed(make, "h100", rankings, after_the_default)

    first = _printed(make, "h100", rankings)
    assert refused(rankings) == refused(None) != first


def test_what_is_seen_is_not_found_again() -> None:
    found: list[int] = []

    def numbers() -> Any:
        for number in range(9):
            found.append(number)
            yield number

    seen = Seen(numbers())
    assert seen.first == seen.first == 0
    assert found == [0]
    assert [number for number, _ in zip(seen, range(3), strict=False)] == [0, 1, 2]
    assert list(seen) == list(range(9)) == found
    assert Seen(iter(())).first is None
