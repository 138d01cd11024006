"""Counts that follow from where a walk is: moments are those of all cells, whole and in parts."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

PIPELINES = (
    "default",
    "default,loom-shard{shards=3}",
    "default,loom-split-fold{parts=4}",
)


def variance(shape: tuple[int, ...], axis: int, kind: str) -> str:
    kept = [size for d, size in enumerate(shape) if d != axis]
    x = f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, {kind}>"
    y = f"!loom.tensor<{[0] * len(kept)} : {kept}, {kind}>"
    return f"""
    func.func @main(%x: {x}) -> {y} {{
      %y = weft.apply @var(%x) {{axis = {axis}}} : ({x}) -> {y}
      func.return %y : {y}
    }}"""


# Rows of whole blocks, of a last block that is not full, and of one block.
@pytest.mark.sweep(3)
@pytest.mark.parametrize("length", [256, 250, 17])
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_moments_of_blocks_are_those_of_all_cells(length: int, pipeline: str, kind: str) -> None:
    dtype = {"f32": np.float32, "f16": np.float16}[kind]
    for shape, axis in (((5, length), 1), ((length, 5), 0), ((length,), 0)):
        x = np.random.default_rng(length).normal(3, 2, shape).astype(dtype)
        module = parse_text(variance(shape, axis, kind))
        run_pipeline(module, pipeline)
        (found,) = TritonExecutor(tile=64).run(module, {"x": x}, NoWatch()).outputs
        wanted = x.astype(np.float64).var(axis, ddof=1)
        np.testing.assert_allclose(found, wanted, 1e-3 if kind == "f16" else 1e-5)


def test_not_finite_cells_are_seen() -> None:
    x = np.ones((4, 200), np.float32)
    x[1, 70], x[2, 3], x[3, :] = np.nan, np.inf, 3e38
    module = parse_text(variance((4, 200), 1, "f32"))
    run_pipeline(module, "default")
    with np.errstate(all="ignore"):
        (found,) = TritonExecutor(tile=64).run(module, {"x": x}, NoWatch()).outputs
    assert found[0] == 0
    assert np.isnan(found[1:3]).all()
    assert not np.isfinite(found[3])
