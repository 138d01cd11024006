"""Materialized programs compute what they did, bit for bit, on every executor."""

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor

TEXT = """
!m = !loom.tensor<[1, 2] : [7, 6], f32>
!n = !loom.tensor<[0, 0] : [4, 6], f32>
!k = !loom.tensor<[0, 0] : [5, 8], f32>
!t = !loom.tensor<[0, 0] : [6, 4], f32>
!w = !loom.tensor<[0, 0] : [6, 8], f32>
!e = !loom.tensor<[0, 3] : [0, 5], f32>
!f = !loom.tensor<[0] : [0], f32>
func.func @main(%x: !m, %e: !e) -> (!n, !n, !k, !w, !f) {
  %r = loom.reshape %x : !m -> !n
  %y = loom.operation @y over <[0, 0] : [4, 6]> [map, map] ins(%r : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%p: f32) { %q = arith.negf %p : f32 loom.yield %q : f32 } : (!n) -> !n
  %z = loom.operation @z over <[0, 0] : [5, 8]> [map, map]
         ins(%r : (d0, d1) -> (d0 - 1, d1 - 1) clip -1.0 : f32) outs((d0, d1) -> (d0, d1))
         wrap (%p: f32) { %q = arith.negf %p : f32 loom.yield %q : f32 } : (!n) -> !k
  %a = loom.view %y : (d0, d1) -> (d1, d0) : !n -> !t
  %b = loom.reshape %y : !n -> !t
  %w = loom.assemble %a at (d0, d1) -> (d0, 2 * d1), %b at (d0, d1) -> (d0, 2 * d1 + 1)
         : !t, !t -> !w
  %f = loom.reshape %e : !e -> !f
  func.return %y, %r, %z, %w, %f : !n, !n, !k, !w, !f
}
"""


@pytest.mark.parametrize("executor", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("every", ["false", "true"])
@pytest.mark.parametrize("before", ["", "loom-simplify,", "loom-shard{shards=3},"])
def test_keeps_values(before, every, executor):
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    inputs = {"x": x, "e": np.empty((0, 2), np.float32)}
    module = parse_text(TEXT)
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    run_pipeline(module, f"{before}loom-materialize{{all={every}}}")
    verify_module(module)
    assert every == "false" or "loom.reshape" not in str(module)
    got = find_executor(executor).run(module, inputs, NoWatch()).outputs
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
