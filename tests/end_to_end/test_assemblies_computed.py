"""An assembly that maps read is computed by a map that chooses among its parts."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor

PROGRAM = """
!x = !loom.tensor<[0, 0] : [6, 10], f32>
!a = !loom.tensor<[0, 0] : [6, 3], f32>
!b = !loom.tensor<[0, 0] : [4, 7], f32>
!c = !loom.tensor<[0, 0] : [2, 7], f32>
func.func @main(%x: !x, %c: !c, %s: !x) -> !x {
  %a = loom.operation @a over <[0, 0] : [6, 3]> [map, map]
         ins(%x : (i, d) -> (i, 9 - 2 * d)) outs((i, d) -> (i, d))
         wrap (%u: f32) {
           %i = loom.index 1 : i64
           %f = arith.sitofp %i : i64 to f32
           %v = arith.divf %f, %u : f32
           loom.yield %v : f32
         } : (!x) -> !a
  %b = loom.view %x : (i, d) -> (i + 2, d + 1) : !x -> !b
  %y = loom.assemble %a, %b at (i, d) -> (i, d + 3), %c at (i, d) -> (i + 4, d + 3)
         : !a, !b, !c -> !x
  %z = loom.operation @z over <[0, 0] : [6, 10]> [map, map]
         ins(%y : (i, d) -> (i, d), %s : (i, d) -> (i, d)) outs((i, d) -> (i, d))
         wrap (%u: f32, %v: f32) { %p = arith.mulf %u, %v : f32  loom.yield %p : f32 }
         : (!x, !x) -> !x
  func.return %z : !x
}
"""


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("pipeline", ["loom-fuse", "default", "default,loom-shard{shards=3}"])
def test_parts_are_chosen_by_coordinates(on: str, pipeline: str) -> None:
    random = np.random.default_rng(0)
    given = {
        "x": random.normal(size=(6, 10)).astype("f4"),
        "c": random.normal(size=(2, 7)).astype("f4"),
        "s": random.normal(size=(6, 10)).astype("f4"),
    }
    plain, fused = parse_text(PROGRAM), parse_text(PROGRAM)
    run_pipeline(fused, pipeline)
    verify_module(fused)
    assert not any(isinstance(op, loom.AssembleOp) for op in fused.walk())
    (want,) = find_executor("reference").run(plain, given, NoWatch()).outputs
    (got,) = find_executor(on).run(fused, given, NoWatch()).outputs
    np.testing.assert_allclose(got, want, rtol=1e-6)
