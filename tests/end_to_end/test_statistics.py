"""Folds whose state is a statistic, split along the fold, on every executor."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, NoWatch, find_executor

_VARIANCE = """
!x = !loom.tensor<[2, 0] : [7, 23], f32>
!y = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @variance over <[2, 0] : [7, 23]> [map, fold] by @welford
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0 - 2))
         wrap (%c: f32) {
           %one = arith.constant 1.0 : f32
           %zero = arith.constant 0.0 : f32
           loom.yield %one, %c, %zero : f32, f32, f32
         }
         unwrap (%n: f32, %mean: f32, %q: f32) {
           %r = arith.divf %q, %n : f32
           loom.yield %r : f32
         } : (!x) -> !y
  func.return %y : !y
}
"""

_LOGSUMEXP = """
!x = !loom.tensor<[2, 0] : [7, 23], f32>
!y = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @total over <[2, 0] : [7, 23]> [map, fold] by @logsumexp
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0 - 2))
         wrap (%c: f32) {
           %one = arith.constant 1.0 : f32
           loom.yield %c, %one : f32, f32
         }
         unwrap (%m: f32, %s: f32) {
           %l = math.log %s : f32
           %r = arith.addf %m, %l : f32
           loom.yield %r : f32
         } : (!x) -> !y
  func.return %y : !y
}
"""


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("shards", ["grid=1,1", "grid=2,4", "grid=1,23"])
def test_sharded_statistics(on: str, shards: str) -> None:
    x = np.random.default_rng(1).normal(50, 3, (5, 23)).astype(np.float32)
    wide = x.astype(np.float64)
    peak = wide.max(1)
    for text, want in (
        (_VARIANCE, wide.var(1)),
        (_LOGSUMEXP, peak + np.log(np.exp(wide - peak[:, None]).sum(1))),
    ):
        module = parse_text(text)
        verify_module(module)
        run_pipeline(module, f"loom-shard{{{shards}}}")
        (got,) = find_executor(on).run(module, {"x": x}, NoWatch()).outputs
        np.testing.assert_allclose(got, want, rtol=3e-6)
