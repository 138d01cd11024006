"""Batch normalization as StableHLO says it, which JAX itself spells out, against NumPy."""

import numpy as np
import pytest

import tapestry
from tapestry.importers import stablehlo

pytest.importorskip("jax")

X, F = "tensor<4x3x5xf32>", "tensor<3xf32>"
HOW = "{epsilon = 0.001 : f32, feature_index = 1 : i64}"
TEXT = f"""
func.func @main(%x: {X}, %g: {F}, %b: {F}, %m: {F}, %v: {F}, %dy: {X})
    -> ({X}, {F}, {F}, {X}, {X}, {F}, {F}) {{
  %0:3 = "stablehlo.batch_norm_training"(%x, %g, %b) {HOW} : ({X}, {F}, {F}) -> ({X}, {F}, {F})
  %1 = "stablehlo.batch_norm_inference"(%x, %g, %b, %m, %v) {HOW}
       : ({X}, {F}, {F}, {F}, {F}) -> {X}
  %2:3 = "stablehlo.batch_norm_grad"(%x, %g, %m, %v, %dy) {HOW}
       : ({X}, {F}, {F}, {F}, {X}) -> ({X}, {F}, {F})
  return %0#0, %0#1, %0#2, %1, %2#0, %2#1, %2#2 : {X}, {F}, {F}, {X}, {X}, {F}, {F}
}}"""


def wide(vector: np.ndarray) -> np.ndarray:
    return vector[None, :, None]


def test_batch_normalization() -> None:
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(2, 4, 3, 5)).astype(np.float32)
    scale, offset, mean = rng.normal(size=(3, 3)).astype(np.float32)
    variance = np.abs(mean) + np.float32(0.5)
    module = stablehlo.load(TEXT)
    tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse")
    names = [argument.name for argument in tapestry.arguments(module)]
    inputs = dict(zip(names, (x, scale, offset, mean, variance, dy), strict=True))
    got = tapestry.run(module, inputs).outputs

    def normalized(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return (x - wide(mean)) / np.sqrt(wide(variance) + 1e-3)

    batch = (x.mean((0, 2)), x.var((0, 2)))
    cells = normalized(mean, variance)
    slopes = (dy * cells).sum((0, 2)), dy.sum((0, 2))
    centred = dy - wide(slopes[1]) / 20 - cells * wide(slopes[0]) / 20
    want = [
        normalized(*batch) * wide(scale) + wide(offset),
        *batch,
        cells * wide(scale) + wide(offset),
        wide(scale / np.sqrt(variance + 1e-3)) * centred,
        *slopes,
    ]
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-5)
