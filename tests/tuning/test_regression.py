"""Coefficients from times that are made up: those of the device they are of are found again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from xdsl.context import Context

import tapestry as t
from tapestry.devices import DeviceSpec, find_spec
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.tuning import jobs_of
from tapestry.tuning.regression import Sample, Works, fitted, seconds_of, works_of

H200, A100 = find_spec("h200"), find_spec("a100")


def true_one(base: DeviceSpec = H200, **changed: float) -> DeviceSpec:
    latency = changed.pop("latency", base.memory.latency)
    return base.model_copy(
        update={
            "memory": base.memory.model_copy(update={"latency": latency}),
            "coefficients": base.coefficients.model_copy(update=changed),
        }
    )


def works(expression: Expression, count: int) -> Iterator[Works]:
    module = t.compile(expression, on="triton").lowered
    for job in jobs_of(module, LoomToTriton()):
        found = list(candidates(job.task))
        for schedule in found[:: max(1, len(found) // count)]:
            lowered = job.scheduled(schedule)
            LoomToTriton().apply(Context(), lowered)
            yield works_of(lowered)


def product(m: int, n: int, k: int, dtype: str) -> Expression:
    return t.input("a", (m, k), dtype) @ t.input("b", (k, n), dtype)


@pytest.fixture(scope="module")
def kernels() -> list[Works]:
    """Launches of kernels of many kinds: small and large, with and without products."""
    x, small = t.input("x", (8192, 4096), "f16"), t.input("x", (64, 64))
    return [
        one
        for expression, count in (
            (small * 2, 2),
            (t.softmax(x), 6),
            (x.sum(axis=0), 6),
            (product(16, 4096, 4096, "f16"), 8),
            (product(1024, 1024, 1024, "f16"), 12),
            (product(4096, 4096, 4096, "bf16"), 12),
            (product(512, 512, 512, "f32"), 8),
        )
        for one in works(expression, count)
    ]


def test_what_is_predicted_exactly_stays(kernels: list[Works]) -> None:
    found = fitted([Sample(one, seconds_of(one, H200)) for one in kernels], H200)
    assert found.before == pytest.approx(1.0)
    assert found.after == pytest.approx(1.0)
    assert found.spec.coefficients.step == pytest.approx(H200.coefficients.step, rel=1e-3)


def test_the_figures_of_another_device_are_found(kernels: list[Works]) -> None:
    true = true_one(launch=1.1e-6, step=1.2e-7, hidden=0.6, latency=9e-7)
    noise = np.random.default_rng(0).normal(0, 0.02, len(kernels))
    samples = [
        Sample(one, seconds_of(one, true) * float(np.exp(off)))
        for one, off in zip(kernels, noise, strict=True)
    ]
    found = fitted(samples, H200)
    assert found.before > 1.1
    assert found.after < 1.03
    own = found.spec.coefficients
    assert own.launch == pytest.approx(1.1e-6, rel=0.1)
    assert own.step == pytest.approx(1.2e-7, rel=0.15)
    assert own.hidden == pytest.approx(0.6, abs=0.1)
    assert found.spec.memory.latency == pytest.approx(9e-7, rel=0.15)
    assert found.spec.rates == H200.rates


def test_products_by_warps_have_a_rate_where_they_are_all_there_is(kernels: list[Works]) -> None:
    true = true_one(A100, warp_products=0.35)
    products = [one for one in kernels if any(work.products for work, _ in one)]
    found = fitted([Sample(one, seconds_of(one, true)) for one in products], A100)
    assert "coefficients.warp_products" in found.known
    assert found.spec.coefficients.warp_products == pytest.approx(0.35, rel=0.05)


def test_a_time_that_is_wrong_changes_little(kernels: list[Works]) -> None:
    samples = [Sample(one, seconds_of(one, H200)) for one in kernels]
    samples[5] = Sample(samples[5].works, samples[5].seconds * 20)
    own = fitted(samples, H200).spec.coefficients
    assert own.launch == pytest.approx(H200.coefficients.launch, rel=0.05)
    assert own.hidden == pytest.approx(H200.coefficients.hidden, rel=0.05)
    # Hardly a sample says anything of it.
    assert own.warp_products == pytest.approx(H200.coefficients.warp_products, rel=0.15)


def test_what_no_sample_depends_on_is_left(kernels: list[Works]) -> None:
    tiny = [one for one in kernels if not any(work.products for work, _ in one)]
    true = true_one(launch=5e-6, warp_products=0.9)
    found = fitted([Sample(one, seconds_of(one, true)) for one in tiny], H200)
    assert "coefficients.launch" in found.known
    assert "coefficients.warp_products" not in found.known
    assert found.spec.coefficients.warp_products == H200.coefficients.warp_products
    assert fitted([], H200).spec == H200
