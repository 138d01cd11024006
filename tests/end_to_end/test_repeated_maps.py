"""A map that computes the same along a dimension is computed once, if all that read it can tell."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor

PROGRAM = """
!k = !loom.tensor<[1, 0] : [3, 8], f32>
!s = !loom.tensor<[0, 0] : [8, 8], f32>
!x = !loom.tensor<[0] : [8], f32>
func.func @main(%k: !k, %x: !x) -> (!x, !s) {
  %s = loom.operation @s over <[1, 0, 0] : [3, 4, 8]> [map, map, map]
         ins(%k : (h, g, i) -> (h, i)) outs((h, g, i) -> (4 * h + g - 4, i))
         wrap (%u: f32) { %v = math.exp %u : f32  loom.yield %v : f32 } : (!k) -> !s
  %y = loom.operation @y over <[0, 0] : [8, 8]> [map, fold] by @add
         ins(%s : (r, i) -> (r, i)) extra(%x : (r) -> (r)) outs((r) -> (r))
         wrap (%u: f32) { loom.yield %u : f32 }
         unwrap (%u: f32, %w: f32) { %v = arith.mulf %u, %w : f32  loom.yield %v : f32 }
         : (!s, !x) -> !x
  %z = loom.operation @z over <[0, 0, 0] : [2, 4, 8]> [map, map, map]
         ins(%s : (h, g, i) -> (4 * h + g, 7 - i)) outs((h, g, i) -> (4 * h + g, i))
         wrap (%u: f32) { %v = math.sin %u : f32  loom.yield %v : f32 } : (!s) -> !s
  func.return %y, %z : !x, !s
}
"""


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("keep", [True, False])
def test_what_repeats_is_computed_once(on: str, keep: bool) -> None:
    # A reader that takes rows as one dimension needs `r // 4`, which is no affine function.
    text = (
        PROGRAM
        if keep
        else PROGRAM.replace(
            "over <[0, 0] : [8, 8]> [map, fold]", "over <[0, 0, 0] : [2, 4, 8]> [map, map, fold]"
        ).replace(
            "(%s : (r, i) -> (r, i)) extra(%x : (r) -> (r)) outs((r) -> (r))",
            "(%s : (h, g, i) -> (4 * h + g, i)) extra(%x : (h, g) -> (4 * h + g)) "
            "outs((h, g) -> (4 * h + g))",
        )
    )
    plain, once = parse_text(text), parse_text(text)
    run_pipeline(once, "loom-simplify")
    verify_module(once)
    made = next(op for op in once.walk() if isinstance(op, loom.OperationOp))
    assert made.index.size == (64 if keep else 16)
    random = np.random.default_rng(0)
    given = {"k": random.normal(size=(2, 8)).astype("f4"), "x": random.normal(size=8).astype("f4")}
    want = find_executor("reference").run(plain, given, NoWatch()).outputs
    got = find_executor(on).run(once, given, NoWatch()).outputs
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
