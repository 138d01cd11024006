"""Groups on every executor: what a group gives is what its members give, under any shards."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, Array, NoWatch, find_executor
from tests.amounts import drawn

# Scores of queries against keys, scaled, summed over keys: `d2` is folded inside @score, `d1` is
# mapped and then folded, `d0` is a map of all but @norm, which the group runs again for its parts.
_ATTENTION = """
!q = !loom.tensor<[0, 0] : [6, 3], i32>
!k = !loom.tensor<[5, 0] : [9, 3], i32>
!s = !loom.tensor<[0, 5] : [6, 9], i32>
!n = !loom.tensor<[5] : [9], i32>
!o = !loom.tensor<[1] : [7], i32>
func.func @main(%q: !q, %k: !k) -> (!o, !o) {
  %y, %z = loom.fused @scores over <[0, 0, 0] : [6, 4, 3]>
    aligned((d0, d1, d2) -> (d0, d1 + 5, d2), (d0, d1, d2) -> (d1 + 5, d2),
            (d0, d1, d2) -> (d0, d1), (d0, d1, d2) -> (d0 + 1))
    ins(%q, %k) group (%a: !q, %b: !k) {
      %s = loom.operation @score over <[0, 5, 0] : [6, 9, 3]> [map, map, fold] by @add
             ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d1, d2))
             outs((d0, d1) -> (d0, d1))
             wrap (%c: i32, %d: i32) { %r = arith.muli %c, %d : i32  loom.yield %r : i32 }
             : (!q, !k) -> !s
      %n = loom.operation @norm over <[5, 0] : [9, 3]> [map, fold] by @max
             ins(%b : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
             wrap (%c: i32) { loom.yield %c : i32 } : (!k) -> !n
      %t = loom.operation @total over <[0, 0] : [6, 4]> [map, fold] by @add
             ins(%s : (d0, d1) -> (d0, d1 + 5), %n : (d0, d1) -> (d1 + 5)) outs((d0) -> (d0 + 1))
             wrap (%c: i32, %d: i32) { %r = arith.muli %c, %d : i32  loom.yield %r : i32 }
             : (!s, !n) -> !o
      %u = loom.operation @minus over <[1] : [7]> [map]
             ins(%t : (d0) -> (d0)) outs((d0) -> (d0))
             wrap (%c: i32) {
               %i = loom.index 0 : i64
               %j = arith.trunci %i : i64 to i32
               %r = arith.subi %c, %j : i32
               loom.yield %r : i32
             } : (!o) -> !o
      loom.yield %t, %u : !o, !o
    } : (!q, !k) -> (!o, !o)
  func.return %y, %z : !o, !o
}
"""


def _inputs() -> dict[str, Array]:
    generator = np.random.default_rng(7)
    return {
        "q": generator.integers(-5, 6, (6, 3), dtype=np.int32),
        "k": generator.integers(-5, 6, (4, 3), dtype=np.int32),
    }


def _wanted(inputs: dict[str, Array]) -> tuple[Array, Array]:
    q, k = inputs["q"], inputs["k"]
    total = ((q @ k.T) * k.max(axis=1)).sum(axis=1)
    return total, total - np.arange(1, 7)


def _run(on: str, module: ModuleOp, inputs: dict[str, Array]) -> tuple[Array, ...]:
    verify_module(module)
    return find_executor(on).run(module, inputs, NoWatch()).outputs


def _group(module: ModuleOp) -> loom.FusedOp:
    (found,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    return found


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize(
    "pipeline",
    [
        "",
        "loom-shard{grid=3,1,1}",
        "loom-shard{shards=6}",
        "loom-shard{grid=2,1,1},loom-expand-shards",
        "loom-ungroup",
        "loom-shard{grid=2,1,1},loom-ungroup",
        "loom-ungroup,loom-fuse",
    ],
)
def test_a_group_is_its_members(on: str, pipeline: str) -> None:
    module = parse_text(_ATTENTION)
    run_pipeline(module, pipeline)
    inputs = _inputs()
    for got, want in zip(_run(on, module, inputs), _wanted(inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_follows_from_members() -> None:
    group = _group(parse_text(_ATTENTION))
    assert group.dim_classes == ("private", "cascade", "cascade")
    assert [(read.value.name_hint, str(read.projection)) for read in group.reads] == [
        ("q", "(d0, d1, d2) -> (d0, d2)"),
        ("k", "(d0, d1, d2) -> (d1 + 5, d2)"),
        ("k", "(d0, d1, d2) -> (d1 + 5, d2)"),
    ]
    assert [str(p) for p in group.out_maps] == ["(d0, d1, d2) -> (d0 + 1)"] * 2


def test_an_inner_dimension_is_folded_by_its_only_member() -> None:
    text = _ATTENTION.replace("(d0, d1, d2) -> (d1 + 5, d2)", "(d0, d1, d2, d3) -> (d1 + 5, d3)", 1)
    for wide in ("(d0, d1 + 5, d2)", "(d0, d1),", "(d0 + 1))\n"):
        text = text.replace(f"(d0, d1, d2) -> {wide}", f"(d0, d1, d2, d3) -> {wide}", 1)
    text = text.replace(
        "@scores over <[0, 0, 0] : [6, 4, 3]>", "@scores over <[0, 0, 0, 0] : [6, 4, 3, 3]>"
    )
    module = parse_text(text)
    inputs = _inputs()
    got = _run("numpy", module, inputs)
    np.testing.assert_array_equal(got[0], _wanted(inputs)[0])
    assert _group(module).dim_classes == ("private", "cascade", "inner", "inner")


@settings(max_examples=drawn(25), deadline=None)
@given(
    st.sets(st.integers(1, 5)),
    st.booleans(),
    st.sampled_from(["", "loom-expand-shards", "loom-ungroup"]),
    st.sampled_from(["reference", "numpy"]),
)
def test_any_shards_equal_the_whole(rows: set[int], grid: bool, then: str, on: str) -> None:
    cuts = [0, *sorted(rows), 6]
    ranges = [f"[{a}, 0, 0] : [{b}, 4, 3]" for a, b in pairwise(cuts)]
    partition = f"grid {[cuts, [0, 4], [0, 3]]}" if grid else f"ranges [{', '.join(ranges)}]"
    module = parse_text(_ATTENTION)
    run_pipeline(module, f'loom-shard{{partition="{partition}"}}')
    run_pipeline(module, then)
    inputs = _inputs()
    for got, want in zip(_run(on, module, inputs), _wanted(inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_inner_tensors_are_as_large_as_a_shard() -> None:
    module = parse_text(_ATTENTION)
    run_pipeline(module, "loom-shard{grid=6,1,1},loom-expand-shards")
    scores = [
        op for op in module.walk() if isinstance(op, loom.OperationOp) and op.label.data == "score"
    ]
    assert [loom.tensor_type(op.outs[0]).box.size for op in scores] == [4] * 6


@pytest.mark.parametrize("on", ["reference", "numpy"])
def test_scans_are_members_too(on: str) -> None:
    module = parse_text("""
!x = !loom.tensor<[0, 0] : [5, 6], i32>
func.func @main(%x: !x) -> !x {
  %y = loom.fused @both over <[0, 0] : [5, 6]> aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
    ins(%x) group (%a: !x) {
      %s = loom.operation @sums over <[0, 0] : [5, 6]> [map, scan] by @add
             ins(%a : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: i32) { loom.yield %c : i32 } : (!x) -> !x
      %d = loom.operation @twice over <[0, 0] : [5, 6]> [map, map]
             ins(%s : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: i32) { %r = arith.addi %c, %c : i32  loom.yield %r : i32 } : (!x) -> !x
      loom.yield %d : !x
    } : (!x) -> !x
  func.return %y : !x
}""")
    run_pipeline(module, "loom-shard{grid=2,1}")
    assert _group(module).dim_classes == ("shared", "cascade")
    x = np.arange(30, dtype=np.int32).reshape(5, 6)
    np.testing.assert_array_equal(_run(on, module, {"x": x})[0], 2 * np.cumsum(x, axis=1))


@pytest.mark.parametrize("first", [0, -1])
@pytest.mark.parametrize("pipeline", ["", "loom-shard{shards=2}", "loom-shard{shards=4}"])
@pytest.mark.parametrize("on", EXECUTORS)
def test_a_box_of_an_inner_tensor_crosses_no_cut(on: str, pipeline: str, first: int) -> None:
    """Rows may be cut; columns not, as a member reads cells of the columns beside its own."""
    text = """
!x = !loom.tensor<[0, 0] : [2, 8], i32>
func.func @main(%x: !x) -> !x {
  %y = loom.fused @g over <[0, 0] : [2, 8]> aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
    ins(%x) group (%a: !x) {
      %e = loom.operation @twice over <[0, 0] : [2, 8]> [map, map]
             ins(%a : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: i32) { %r = arith.addi %c, %c : i32  loom.yield %r : i32 } : (!x) -> !x
      %s = loom.operation @last over <[0, 0] : [2, 8]> [map, map]
             ins(%e : (d0, d1) -> (d0, d1 FIRST) :> [1, 3] clip 5 : i32)
             outs((d0, d1) -> (d0, d1))
             wrap (%b: !loom.block<[1, 3], i32>) {
               %zero = arith.constant 0 : i64
               %two = arith.constant 2 : i64
               %r = loom.read %b[%zero, %two] : i32
               loom.yield %r : i32
             } : (!x) -> !x
      loom.yield %s : !x
    } : (!x) -> !x
  func.return %y : !x
}"""
    module = parse_text(text.replace("FIRST", f"- {-first}" if first else ""))
    run_pipeline(module, pipeline)
    partition = _group(module).partition
    assert (partition.cuts if partition else None) == (((0, 1, 2), (0, 8)) if pipeline else None), (
        "only rows are cut"
    )
    x = np.arange(16, dtype=np.int32).reshape(2, 8)
    ahead = first + 2
    want = np.concatenate([2 * x[:, ahead:], np.full((2, ahead), 5, np.int32)], axis=1)
    np.testing.assert_array_equal(_run(on, module, {"x": x})[0], want)


ATTENTION = """
!q = !loom.tensor<[0, 0] : [5, 3], f32>
!k = !loom.tensor<[0, 0] : [7, 3], f32>
!t = !loom.tensor<[0, 0] : [3, 7], f32>
!s = !loom.tensor<[0, 0] : [5, 7], f32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %t = weft.apply @transpose(%k) {perm = [1, 0]} : (!k) -> !t
  %s = weft.apply @matmul(%q, %t) : (!q, !t) -> !s
  %p = weft.apply @softmax(%s) {axis = 1} : (!s) -> !s
  %o = weft.apply @matmul(%p, %v) : (!s, !k) -> !q
  func.return %o : !q
}
"""


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("after", ["", ",loom-expand-shards", ",loom-ungroup"])
@pytest.mark.parametrize("grid", ["1,3,1,1", "2,2,1,1", "2,7,1,1"])
def test_attention_in_one_group_is_split_along_the_keys(grid: str, after: str, on: str) -> None:
    module = parse_text(ATTENTION)
    draw = np.random.default_rng(0)
    inputs = {
        name: draw.normal(size=(rows, 3)).astype(np.float32) * 4
        for name, rows in (("q", 5), ("k", 7), ("v", 7))
    }
    run_pipeline(module, "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-group")
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    assert group.merged_dims == (1,)
    run_pipeline(module, f"loom-shard{{grid={grid}}}{after}")
    verify_module(module)
    (found,) = find_executor(on).run(module, inputs, NoWatch()).outputs
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    weight = np.exp(q @ k.T - (q @ k.T).max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, weight @ v / weight.sum(axis=1, keepdims=True), rtol=2e-5)
