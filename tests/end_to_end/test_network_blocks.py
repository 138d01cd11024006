"""Blocks of GPT-2, LLaMA and ResNet become few kernels, and compute what the naive program does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.movement import splittables
from tapestry.pipelines import DEFAULT_PIPELINE
from tapestry.runtime.executor import Array, NoWatch, find_executor

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from _blocks import gpt2, llama, resnet_basic, resnet_bottleneck

_BLOCKS = {
    "gpt2": (gpt2(tokens=5, width=12, heads=3), 7),
    "gpt2-packed": (gpt2(tokens=5, width=12, heads=3, packed=True), 7),
    "gpt2-batch": (gpt2(batch=2, tokens=5, width=12, heads=3), 7),
    "llama": (llama(tokens=5, width=16, heads=4, groups=2, hidden=20), 7),
    "llama-packed": (llama(tokens=5, width=16, heads=4, groups=2, hidden=20, packed=True), 6),
    "resnet-basic": (resnet_basic(channels=3, size=6), 2),
    "resnet-basic-strided": (resnet_basic(channels=3, size=6, stride=2), 3),
    "resnet-bottleneck": (resnet_bottleneck(channels=8, size=5, inner=2), 3),
    "resnet-bottleneck-strided": (resnet_bottleneck(channels=3, size=5, inner=2, stride=2), 4),
}
"""Each with how many kernels it may be at most."""


def _inputs(text: str) -> dict[str, Array]:
    module = parse_text(text)
    (function,) = [op for op in module.walk() if op.name == "func.func"]
    numbers = np.random.default_rng(0)
    block = function.regions[0].block
    shapes = {arg.name_hint or "": arg.type.box.shape for arg in block.args}
    # Variances are positive.
    return {
        name: np.abs(numbers.normal(size=shape)).astype("f4")
        if "variance" in name
        else numbers.normal(size=shape).astype("f4")
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("name", _BLOCKS)
def test_few_kernels_compute_the_same(name: str) -> None:
    text, most = _BLOCKS[name]
    inputs = _inputs(text)
    naive, module = parse_text(text), parse_text(text)
    run_pipeline(naive, "weft-apply")
    run_pipeline(module, DEFAULT_PIPELINE)
    verify_module(module)
    assert len(splittables(module)) <= most
    (want,) = find_executor("numpy").run(naive, inputs, NoWatch()).outputs
    (got,) = find_executor("numpy").run(module, inputs, NoWatch()).outputs
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
