"""Inputs that leave their tensors: convolutions and pooling, on every executor and sharded."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.running import run
from tests.runtime.everywhere import agree

RNG = np.random.default_rng(0)


def _convolved(x, w, stride, dilation, padding):
    """A 2d convolution of [c, h, w] by [o, c, k, l], straight from its definition."""
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    reach = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    shape = [(n - r) // stride + 1 for n, r in zip(padded.shape[1:], reach, strict=True)]
    out = np.zeros((w.shape[0], *shape))
    for i, j in np.ndindex(*shape):
        at = (slice(i * stride, i * stride + reach[0], dilation),)
        at += (slice(j * stride, j * stride + reach[1], dilation),)
        out[:, i, j] = np.einsum("cab,ocab->o", padded[(slice(None), *at)], w)
    return out


@pytest.mark.parametrize(("stride", "dilation", "padding"), [(1, 1, 1), (2, 1, 1), (1, 2, 3)])
def test_convolutions(stride, dilation, padding):
    x, w = RNG.normal(size=(2, 5, 6)).astype("f4"), RNG.normal(size=(3, 2, 3, 2)).astype("f4")
    want = _convolved(x.astype("f8"), w.astype("f8"), stride, dilation, padding)
    o, h, v = want.shape
    rows = [f"{stride} * {i} + {dilation} * {k} - {padding}" for i, k in ("ik", "jl")]
    text = f"""
    !x = !loom.tensor<[0, 0, 0] : [2, 5, 6], f32>
    !w = !loom.tensor<[0, 0, 0, 0] : [3, 2, 3, 2], f32>
    !y = !loom.tensor<[0, 0, 0] : [{o}, {h}, {v}], f32>
    func.func @main(%x: !x, %w: !w) -> !y {{
      %y = loom.operation @conv over <[0, 0, 0, 0, 0, 0] : [{o}, {h}, {v}, 2, 3, 2]>
             [map, map, map, fold, fold, fold] by @add
             ins(%x : (o, i, j, c, k, l) -> (c, {rows[0]}, {rows[1]}) clip 0.0 : f32,
                 %w : (o, i, j, c, k, l) -> (o, c, k, l))
             outs((o, i, j) -> (o, i, j))
             wrap (%a: f32, %b: f32) {{
               %p = arith.mulf %a, %b : f32
               loom.yield %p : f32
             }} : (!x, !w) -> !y
      func.return %y : !y
    }}"""
    shards = ["loom-shard{shards=4}", "loom-shard{grid=1,2,1,1,3,2}"]
    agree(text, {"x": x, "w": w}, [want], pipelines=shards)


def test_max_pooling_ignores_what_is_not_there():
    x = RNG.normal(size=(7, 9)).astype("f4") - 10
    padded = np.pad(x, 1, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))[::2, ::2]
    want = windows.max(axis=(2, 3))
    text = """
    !x = !loom.tensor<[2, -3] : [9, 6], f32>
    !y = !loom.tensor<[0, 0] : [4, 5], f32>
    func.func @main(%x: !x) -> !y {
      %y = loom.operation @pool over <[0, 0, 0, 0] : [4, 5, 3, 3]> [map, map, fold, fold] by @max
             ins(%x : (i, j, k, l) -> (2 * i + k + 1, 2 * j + l - 4) clip 0xFF800000 : f32)
             outs((i, j) -> (i, j))
             wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
      func.return %y : !y
    }"""
    shards = ["loom-shard{shards=3}", "loom-shard{grid=2,2,3,1}"]
    agree(text, {"x": x}, [want], pipelines=shards, tolerance=0)


PADDED = """
!x = !loom.tensor<[0] : [4], {element}>
!b = !loom.tensor<[3] : [5], {element}>
!y = !loom.tensor<[0] : [9], {element}>
func.func @main(%x: !x, %b: !b) -> !y {{
  %y = loom.operation @sum over <[0, 0] : [9, 2]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0 + d1 - 3) clip {fill} : {element})
         extra(%b : (d0) -> (8 - d0) clip {fill} : {element}) outs((d0) -> (d0))
         wrap (%a: {element}) {{ loom.yield %a : {element} }}
         unwrap (%s: {element}, %e: {element}) {{
           %r = arith.{add} %s, %e : {element}
           loom.yield %r : {element}
         }} : (!x, !b) -> !y
  func.return %y : !y
}}"""


@pytest.mark.parametrize("element", ["f64", "f32", "f16", "bf16", "i64", "i32", "i8"])
def test_every_element_type_and_extra_inputs(element):
    add, fill = ("addi", "-2") if element[0] == "i" else ("addf", "-1.5")
    text = PADDED.format(element=element, add=add, fill=fill)
    kind = {"bf16": "float32"}.get(element, element.replace("f", "float").replace("i", "int"))
    if element == "bf16":
        import ml_dtypes

        kind = ml_dtypes.bfloat16
    x, b = np.arange(1, 5).astype(kind), np.array([10, 20]).astype(kind)
    padded = np.pad(x.astype("f8"), (3, 4), constant_values=float(fill))
    edge = np.full(9, float(fill))
    edge[8 - 3], edge[8 - 4] = 10, 20
    want = padded[:9] + padded[1:10] + edge
    agree(text, {"x": x, "b": b}, [want], pipelines=["loom-shard{grid=3,2}"], tolerance=0)


def test_a_read_of_nothing_at_all_and_of_an_empty_tensor():
    text = """
    !x = !loom.tensor<[0, 0] : [2, 3], i32>
    !e = !loom.tensor<[1, 0] : [1, 3], i32>
    !y = !loom.tensor<[0] : [3], i32>
    func.func @main(%x: !x, %e: !e) -> !y {
      %y = loom.operation @y over <[0] : [3]> [map]
             ins(%x : (d0) -> (7, d0) clip 5 : i32, %e : (d0) -> (1, 1) clip 30 : i32,
                 %x : (d0) -> (0, 1000000000 * d0) clip 100 : i32)
             outs((d0) -> (d0))
             wrap (%a: i32, %b: i32, %c: i32) {
               %s = arith.addi %a, %b : i32
               %t = arith.addi %s, %c : i32
               loom.yield %t : i32
             } : (!x, !e, !x) -> !y
      func.return %y : !y
    }"""
    x = np.arange(1, 7, dtype="i4").reshape(2, 3)
    inputs = {"x": x, "e": np.empty((0, 3), "i4")}
    agree(text, inputs, [np.array([36, 135, 135], "i4")], pipelines=["loom-shard{shards=2}"])


def test_a_row_that_the_offset_does_not_move_along():
    # In a 3 x 3 tensor, a step along (1, -3) stays at the same offset: only the mask moves.
    text = """
    !x = !loom.tensor<[0, 0] : [3, 3], f32>
    !y = !loom.tensor<[0] : [3], f32>
    func.func @main(%x: !x) -> !y {
      %y = loom.operation @y over <[0] : [3]> [map]
             ins(%x : (d0) -> (d0, 4 - 3 * d0) clip 0.5 : f32) outs((d0) -> (d0))
             wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !y
      func.return %y : !y
    }"""
    x = np.arange(9, dtype="f4").reshape(3, 3)
    agree(text, {"x": x}, [np.array([0.5, 4, 0.5])], pipelines=["loom-shard{shards=3}"])


VIEWED = """
!x = !loom.tensor<[0] : [8], f32>
!v = !loom.tensor<[0] : [4], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @main(%x: !x) -> !y {{
  %v = loom.view %x : (d0) -> ({row}) : !x -> !v
  %y = loom.operation @y over <[0] : [6]> [map] ins(%v : (d0) -> (d0 - 1) clip 9.0 : f32)
         outs((d0) -> (d0)) wrap (%a: f32) {{ loom.yield %a : f32 }} : (!v) -> !y
  func.return %y : !y
}}"""


@pytest.mark.parametrize("row", ["d0 + 2", "2 * d0", "2 * d0 + 1", "7 - d0", "6 - 2 * d0", "d0"])
def test_what_a_view_hides_stays_hidden(row):
    agree(VIEWED.format(row=row), {"x": np.arange(8, dtype="f4")}, pipelines=["loom-simplify"])


def test_what_is_read_counts_the_cells_that_exist():
    text = PADDED.format(element="f32", add="addf", fill="0.0")
    module = parse_text(text)
    verify_module(module)
    inputs = {"x": np.ones(4, "f4"), "b": np.ones(2, "f4")}
    for pipeline in ("loom-simplify", "loom-shard{grid=1,1}", "loom-expand-shards"):
        run_pipeline(module, pipeline)
        for executor in ("numpy", "triton"):
            record = run(module, inputs, on=executor).records[0]
            assert record.bytes_read == 4 * (4 + 2)
