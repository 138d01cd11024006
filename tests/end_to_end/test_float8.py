"""8-bit floats are stored, extended and truncated alike by every executor."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.runtime.executor import Array

KINDS = ["f8E4M3FN", "f8E5M2"]
EXECUTORS = ["reference", "numpy", "triton"]


def _dtype(kind: str) -> np.dtype:
    element = type_named(kind)
    assert element is not None
    return numpy_dtype(element)


def _cast(source: str, target: str, size: int, lines: str) -> str:
    x, y = (f"!loom.tensor<[0] : [{size}], {kind}>" for kind in (source, target))
    return f"""func.func @main(%x: {x}) -> {y} {{
      %y = loom.operation @cast over <[0] : [{size}]> [map]
        ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
        wrap (%c: {source}) {{ {lines} loom.yield %v : {target} }} : ({x}) -> {y}
      func.return %y : {y}
    }}"""


def _run(text: str, on: str, pipeline: str = "", **inputs: Array) -> Array:
    module = tapestry.parse_module(text)
    tapestry.run_pipeline(module, pipeline)
    (got,) = tapestry.run(module, inputs, on=on).outputs
    return got


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", ["f16", "bf16", "f32", "f64"])
def test_every_number_extends_exactly(kind: str, wide: str, on: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(_dtype(kind))
    lines = f"%v = arith.extf %c : {kind} to {wide}"
    got = _run(_cast(kind, wide, 256, lines), on, x=x).astype(np.float32)
    want = x.astype(np.float32)
    assert np.array_equal(got, want, equal_nan=True)
    number = ~np.isnan(want)
    assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])


def _halfway(kind: str) -> Array:
    """Every number of the type, what is halfway between neighbours, and what is beside that."""
    numbers = np.arange(128, dtype=np.uint8).view(_dtype(kind)).astype(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    middle = (numbers[1:] + numbers[:-1]) / 2
    top = 2 * numbers[-1] - numbers[-2]
    edge = np.array([top, (top + numbers[-1]) / 2, 1e9, np.inf, np.nan, 1e-30], np.float32)
    values = np.concatenate([numbers, middle, edge])
    values = np.concatenate([values, np.nextafter(values, np.float32(0))])
    with np.errstate(over="ignore"):
        values = np.concatenate([values, np.nextafter(values, np.float32(np.inf))])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("kind", KINDS)
def test_truncation_rounds_to_nearest_even(kind: str, on: str) -> None:
    x = _halfway(kind)
    lines = f"%v = arith.truncf %c : f32 to {kind}"
    got = _run(_cast("f32", kind, len(x), lines), on, x=x)
    want = x.astype(_dtype(kind))
    assert got.dtype == want.dtype
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got.view(np.uint8)[~nan], want.view(np.uint8)[~nan])


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("kind", KINDS)
def test_sharded_products_of_stored_numbers(kind: str, on: str) -> None:
    a, b, y = (
        f"!loom.tensor<[0, 0] : [{m}, {n}], {t}>"
        for m, n, t in ((20, 40, kind), (40, 24, kind), (20, 24, "f32"))
    )
    text = f"""func.func @main(%a: {a}, %b: {b}) -> {y} {{
      %y = loom.operation @product over <[0, 0, 0] : [20, 24, 40]> [map, map, fold] by @add
        ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d2, d1))
        outs((d0, d1) -> (d0, d1))
        wrap (%p: {kind}, %q: {kind}) {{
          %s = arith.extf %p : {kind} to f32
          %t = arith.extf %q : {kind} to f32
          %v = arith.mulf %s, %t : f32
          loom.yield %v : f32
        }} : ({a}, {b}) -> {y}
      func.return %y : {y}
    }}"""
    draw = np.random.default_rng(0).standard_normal
    inputs = {"a": draw((20, 40)).astype(_dtype(kind)), "b": draw((40, 24)).astype(_dtype(kind))}
    want = _run(text, "reference", **inputs)
    got = _run(text, on, "loom-shard{grid=2,1,2}", **inputs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_says_to_extend_first(kind: str) -> None:
    lines = f"%v = arith.addf %c, %c : {kind}"
    with pytest.raises(tapestry.TapestryError, match="arith.extf makes numbers of it") as error:
        tapestry.parse_module(_cast(kind, kind, 4, lines))
    assert error.value.location is not None
