"""A cross entropy of a matrix product, as language models end: the logits are never stored."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.module_printer import print_module
from tapestry.dialects import loom
from tapestry.frontend import parse_module, run_pipeline
from tapestry.graph import peak_live_bytes
from tapestry.runtime.executor import NoWatch, find_executor


def _program(rows: int, width: int, classes: int, dtype: str) -> str:
    return f"""
!x = !loom.tensor<[0, 0] : [{rows}, {width}], {dtype}>
!w = !loom.tensor<[0, 0] : [{width}, {classes}], {dtype}>
!y = !loom.tensor<[0, 0] : [{rows}, {classes}], {dtype}>
!t = !loom.tensor<[0] : [{rows}], i64>
!l = !loom.tensor<[0] : [{rows}], {dtype}>
func.func @main(%x: !x, %w: !w, %t: !t) -> !l {{
  %y = weft.apply @matmul(%x, %w) : (!x, !w) -> !y
  %l = weft.apply @cross_entropy_loss(%y, %t) {{reduction = "none"}} : (!y, !t) -> !l
  func.return %l : !l
}}"""


def _grouped(rows: int, width: int, classes: int, dtype: str) -> ModuleOp:
    module = parse_module(_program(rows, width, classes, dtype))
    run_pipeline(module, "default")
    return module


def test_nothing_but_arguments_and_losses_is_stored():
    module = _grouped(4096, 2048, 128256, "f16")
    (group,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    assert len(group.members) == 3
    assert peak_live_bytes(module) == 2 * (4096 * 2048 + 2048 * 128256 + 4096) + 8 * 4096


def test_logits_of_few_rows_are_stored_where_a_row_is_deep():
    module = _grouped(64, 2048, 128256, "f16")
    assert peak_live_bytes(module) > 2 * 64 * 128256


def test_one_walk_multiplies_by_tiles():
    module = _grouped(4096, 2048, 128256, "f16")
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    assert source.count("@triton.jit\n") == 2  # the kernel, and the maximum that keeps NaN
    assert (
        source.count("tl.dot(") == source.count("for k_start") == source.count("for c_start") == 1
    )
    assert "BLOCK_C=64," in source


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_losses_are_those_of_the_definition(on: str, dtype: str):
    random = np.random.default_rng(0)
    kind = {"f32": np.float32, "f16": np.float16}[dtype]
    inputs = {
        "x": random.standard_normal((9, 20)).astype(kind),
        "w": random.standard_normal((20, 70)).astype(kind),
        # One target is ignored, and two are no classes.
        "t": np.array([0, 69, 33, -100, 5, 70, -1, 1, 2]),
    }
    (got,) = find_executor(on).run(_grouped(9, 20, 70, dtype), inputs, NoWatch()).outputs
    logits = inputs["x"].astype("f8") @ inputs["w"].astype("f8")
    sums = np.log(np.exp(logits).sum(1))
    here = (inputs["t"] >= 0) & (inputs["t"] < 70)
    want = np.where(here, sums - logits[range(9), np.clip(inputs["t"], 0, 69)], 0)
    tolerance = {"f32": 1e-5, "f16": 2e-2}[dtype]
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
