"""Folds of 16-bit floats accumulate in float32, on every executor, split or not."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.algebra.dtypes import numpy_dtype, type_named

ROWS, DEPTH = 3, 3000


def _module(kind: str, monoid: str, iterator: str = "fold") -> str:
    matrix = f"!loom.tensor<[0, 0] : [{ROWS}, {DEPTH}], {kind}>"
    kept = "(d0) -> (d0)" if iterator == "fold" else "(d0, d1) -> (d0, d1)"
    result = f"!loom.tensor<[0] : [{ROWS}], {kind}>" if iterator == "fold" else matrix
    return f"""func.func @main(%x: {matrix}) -> {result} {{
      %y = loom.operation @total over <[0, 0] : [{ROWS}, {DEPTH}]> [map, {iterator}] by @{monoid}
        ins(%x : (d0, d1) -> (d0, d1)) outs({kept})
        wrap (%c: {kind}) {{ loom.yield %c : {kind} }} : ({matrix}) -> {result}
      func.return %y : {result}
    }}"""


def _ones(kind: str):
    """Ones and the like, whose sum a 16-bit float that is rounded at each step never reaches."""
    element = type_named(kind)
    assert element is not None
    values = np.ones((ROWS, DEPTH))
    values[1] = 1 / 3
    return values.astype(numpy_dtype(element))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("pipeline", ["", "loom-shard{grid=2,3}"])
def test_sums_do_not_stagnate(kind: str, on: str, pipeline: str) -> None:
    module = tapestry.parse_module(_module(kind, "add"))
    tapestry.run_pipeline(module, pipeline)
    x = _ones(kind)
    (got,) = tapestry.run(module, {"x": x}, on=on).outputs
    exact = x.astype(np.float64).sum(axis=1)
    # Rounded once, at the end.
    assert got.dtype == x.dtype
    assert np.array_equal(got, exact.astype(np.float32).astype(x.dtype))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_partial_states_that_are_stored_are_rounded(kind: str) -> None:
    module = tapestry.parse_module(_module(kind, "add"))
    tapestry.run_pipeline(module, "loom-shard{grid=1,4},loom-expand-shards")
    x = _ones(kind)
    outputs = [tapestry.run(module, {"x": x}, on=on).outputs[0] for on in ("reference", "numpy")]
    exact = x.astype(np.float64).sum(axis=1)
    for got in outputs:
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2e-2)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_running_sums(kind: str, on: str) -> None:
    module = tapestry.parse_module(_module(kind, "add", "scan"))
    x = _ones(kind)
    (want,) = tapestry.run(module, {"x": x}, on="reference").outputs
    (got,) = tapestry.run(module, {"x": x}, on=on).outputs
    assert np.array_equal(want[:, -1], x.astype(np.float64).sum(axis=1).astype(x.dtype))
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_truth_values_that_are_added_are_bits(on: str) -> None:
    parity = """loom.monoid @parity commutative zero [false] merge (%a: i1, %b: i1) {
      %s = arith.addi %a, %b : i1
      loom.yield %s : i1
    }
    """
    module = tapestry.parse_module(parity + _module("i1", "parity"))
    x = np.random.default_rng(0).integers(0, 2, (ROWS, DEPTH)).astype(np.bool_)
    (got,) = tapestry.run(module, {"x": x}, on=on).outputs
    assert np.array_equal(got, x.sum(axis=1) % 2 == 1)
