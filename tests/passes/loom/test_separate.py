"""Statistics that a product folds besides, taken out: the same numbers, once for each row."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

import tapestry as t
from tapestry.dialects import loom
from tapestry.frontend import parse_text, verify_module
from tapestry.passes.loom.separate import separable_parts, separate
from tapestry.runtime.executor import NoWatch, find_executor


class _Separate(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if separable_parts(op):
            separate(op, rewriter)


def separated(module: ModuleOp) -> ModuleOp:
    new = module.clone()
    PatternRewriteWalker(_Separate(), apply_recursively=False).rewrite_module(new)
    verify_module(new)
    return new


def operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def gated(rows: int, width: int, out: int, dtype: str = "f32") -> ModuleOp:
    shapes = {"x": (rows, width), "g": (width,), "w": (width, out), "v": (width, out)}
    x, g, w, v = (t.input(name, shape, dtype) for name, shape in shapes.items())
    h = t.rms_norm(x, g, eps=1e-6)
    return t.compile(t.swiglu(h @ w, h @ v), on="triton").lowered


def test_a_norm_is_folded_once_for_each_row():
    module = gated(24, 32, 40)
    (whole,) = operations(module)
    assert separable_parts(whole) == (0,)
    before, after = operations(separated(module))
    assert (before.index.shape, after.index.shape) == ((24, 32), (24, 40, 32))
    assert before.monoid_name == "add"
    assert len(after.state_types) == len(whole.state_types) - 1
    assert [read.value for read in after.extra_reads] == [before.outs[0]]
    # The norm's part reads its rows alone, and no weights.
    (read,) = before.in_reads
    assert read.value in after.ins
    assert read.projection.inputs == 2


@pytest.mark.parametrize("where", ["reference", "numpy", "triton"])
def test_the_parts_give_what_the_whole_gives(where: str):
    module = gated(5, 24, 18)
    rng = np.random.default_rng(0)
    shapes = {"x": (5, 24), "g": (24,), "w": (24, 18), "v": (24, 18)}
    given = {name: rng.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    found = [
        find_executor(where).run(one, given, NoWatch()).outputs[0]
        for one in (module, separated(module))
    ]
    wide = {name: array.astype("f8") for name, array in given.items()}
    h = wide["x"] / np.sqrt(np.mean(wide["x"] ** 2, axis=1, keepdims=True) + 1e-6) * wide["g"]
    gate, up = h @ wide["w"], h @ wide["v"]
    for one in found:
        np.testing.assert_allclose(one, gate / (1 + np.exp(-gate)) * up, rtol=1e-5, atol=1e-5)


PAIR = """
!x = !loom.tensor<[0, 0] : [6, 8], f32>
!y = !loom.tensor<[0] : [6], f32>
!z = !loom.tensor<[0, 0] : [6, 4], f32>
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {
    %s = arith.addf %a, %c : f32
    %t = arith.addf %b, %d : f32
    {MORE}
  }
func.func @main(%x: !x, %w: !loom.tensor<[0, 0] : [4, 8], f32>) -> !z {
  %z = loom.operation @both over <[0, 0, 0] : [6, 4, 8]> [map, map, fold] by @pair
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d1, d2))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) {
           %p = arith.mulf %a, %b : f32
           loom.yield %a, %p : f32, f32
         }
         unwrap (%u: f32, %v: f32) { %q = arith.divf %v, %u : f32  loom.yield %q : f32 }
         : (!x, !loom.tensor<[0, 0] : [4, 8], f32>) -> !z
  func.return %z : !z
}
"""
ALONE = "loom.yield %s, %t : f32, f32"
JOINED = "%u = arith.addf %t, %s : f32 loom.yield %s, %u : f32, f32"


def _pair(more: str) -> loom.OperationOp:
    (op,) = operations(parse_text(PAIR.replace("{MORE}", more)))
    return op


def test_parts_that_others_are_merged_by_stay():
    assert separable_parts(_pair(ALONE)) == (0,)
    assert separable_parts(_pair(JOINED)) == ()


def test_what_varies_alike_stays():
    x = t.input("x", (32, 64), "f32")
    module = t.compile(t.layer_norm(x, t.input("w", (64,), "f32"), t.input("b", (64,), "f32")))
    assert not any(separable_parts(op) for op in operations(module.lowered))
    # One row or one column is as few as none.
    assert not any(separable_parts(op) for op in operations(gated(24, 32, 1)))
