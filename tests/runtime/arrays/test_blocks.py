"""Blocks: embeddings, gathers and selections, on every executor and sharded."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_module, parse_text, run_pipeline, verify_module
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.running import run
from tests.runtime.everywhere import agree

RNG = np.random.default_rng(0)

EMBEDDING = """
!ids = !loom.tensor<[0] : [6], {ids}>
!table = !loom.tensor<[0, 2] : [11, 7], {element}>
!y = !loom.tensor<[0, 0] : [6, 5], {element}>
func.func @main(%ids: !ids, %table: !table) -> !y {{
  %y = loom.operation @embed over <[0, 0] : [6, 5]> [map, map]
         ins(%ids : (i, d) -> (i), %table : (i, d) -> (0, d + 2) :> [11, 1])
         outs((i, d) -> (i, d))
         wrap (%id: {ids}, %rows: !loom.block<[11, 1], {element}>) {{
           {index}
           %zero = arith.constant 0 : i64
           {fill}
           %v = loom.read %rows[%at, %zero] {otherwise} : {element}
           loom.yield %v : {element}
         }} : (!ids, !table) -> !y
  func.return %y : !y
}}"""

SAME = "%none = arith.constant 0 : i64 %at = arith.addi %id, %none : i64"
WIDER = "%at = arith.extsi %id : i32 to i64"
SHARDS = ["loom-shard{grid=3,2}", "loom-shard{shards=5}", "loom-simplify,loom-fuse"]


def embedding(ids="i64", element="f32", index=SAME, fill="", otherwise=""):
    return EMBEDDING.format(ids=ids, element=element, index=index, fill=fill, otherwise=otherwise)


@pytest.mark.parametrize("element", ["f32", "f16", "i8", "i64"])
def test_embeddings(element):
    kind = element.replace("f", "float").replace("i", "int")
    table = RNG.integers(-9, 9, (11, 5)).astype(kind)
    ids = np.array([3, 0, 10, 10, 5, 1])
    agree(
        embedding(element=element),
        {"ids": ids, "table": table},
        [table[ids]],
        pipelines=SHARDS,
        tolerance=0,
    )
    narrow = embedding(ids="i32", element=element, index=WIDER)
    agree(narrow, {"ids": ids.astype("i4"), "table": table}, [table[ids]], tolerance=0)


def test_else_is_what_is_outside():
    table = RNG.normal(size=(11, 5)).astype("f4")
    ids = np.array([-1, 0, 11, 10, 2**40, -(2**63)])
    want = np.where(((ids >= 0) & (ids < 11))[:, None], table[np.clip(ids, 0, 10)], 7.5)
    constant = embedding(fill="%f = arith.constant 7.5 : f32", otherwise="else %f")
    inputs = {"ids": ids, "table": table}
    agree(constant, inputs, [want], pipelines=SHARDS, tolerance=0)
    computed = embedding(fill="%f = arith.sitofp %id : i64 to f32", otherwise="else %f")
    want = np.where(((ids >= 0) & (ids < 11))[:, None], want, ids.astype("f4")[:, None])
    agree(computed, inputs, [want], pipelines=SHARDS, tolerance=0)


@pytest.mark.parametrize("executor", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("pipeline", ["", "loom-shard{shards=4},loom-expand-shards"])
@pytest.mark.parametrize("wrong", [-1, 11])
def test_an_index_outside_is_an_error_with_its_place(executor, pipeline, wrong):
    module = parse_module(embedding(), "model.mlir")
    run_pipeline(module, pipeline)
    inputs = {"ids": np.array([0, 1, 2, 3, 4, wrong]), "table": np.zeros((11, 5), "f4")}
    with pytest.raises(
        BlockIndexError, match=r"^model.mlir:13:12: error: .*index .*is out of range"
    ):
        run(module, inputs, on=executor)


def test_gather_along_an_axis_and_index_select():
    text = """
    !x = !loom.tensor<[0, 0] : [4, 6], f32>
    !i = !loom.tensor<[0, 0] : [3, 6], i64>
    !j = !loom.tensor<[0] : [5], i64>
    !g = !loom.tensor<[0, 0] : [3, 6], f32>
    !s = !loom.tensor<[0, 0] : [4, 5], f32>
    func.func @main(%x: !x, %i: !i, %j: !j) -> (!g, !s) {
      %g = loom.operation @gather over <[0, 0] : [3, 6]> [map, map]
             ins(%i : (a, b) -> (a, b), %x : (a, b) -> (0, b) :> [4, 1]) outs((a, b) -> (a, b))
             wrap (%at: i64, %column: !loom.block<[4, 1], f32>) {
               %zero = arith.constant 0 : i64
               %v = loom.read %column[%at, %zero] : f32
               loom.yield %v : f32
             } : (!i, !x) -> !g
      %s = loom.operation @select over <[0, 0] : [4, 5]> [map, map]
             ins(%j : (a, b) -> (b), %x : (a, b) -> (a, 1) :> [1, 5]) outs((a, b) -> (a, b))
             wrap (%at: i64, %row: !loom.block<[1, 5], f32>) {
               %zero = arith.constant 0 : i64
               %one = arith.constant 1 : i64
               %place = arith.subi %at, %one : i64
               %v = loom.read %row[%zero, %place] : f32
               loom.yield %v : f32
             } : (!j, !x) -> !s
      func.return %g, %s : !g, !s
    }"""
    x = RNG.normal(size=(4, 6)).astype("f4")
    i, j = RNG.integers(0, 4, (3, 6)), np.array([1, 5, 3, 3, 2])
    want = [np.take_along_axis(x, i, 0), x[:, j]]
    agree(text, {"x": x, "i": i, "j": j}, want, pipelines=["loom-shard{shards=3}"], tolerance=0)


def test_blocks_in_folds_and_in_unwrap():
    # An embedding bag, scaled by a weight that is looked up for the bag itself.
    text = """
    !ids = !loom.tensor<[0, 0] : [4, 3], i64>
    !t = !loom.tensor<[0, 0] : [9, 5], f32>
    !w = !loom.tensor<[0] : [4], f32>
    !y = !loom.tensor<[0, 0] : [4, 5], f32>
    func.func @main(%ids: !ids, %t: !t, %w: !w) -> !y {
      %y = loom.operation @bag over <[0, 0, 0] : [4, 5, 3]> [map, map, fold] by @add
             ins(%ids : (b, d, k) -> (b, k), %t : (b, d, k) -> (0, d) :> [9, 1])
             extra(%w : (b, d) -> (0) :> [4]) outs((b, d) -> (b, d))
             wrap (%id: i64, %rows: !loom.block<[9, 1], f32>) {
               %zero = arith.constant 0 : i64
               %v = loom.read %rows[%id, %zero] : f32
               loom.yield %v : f32
             }
             unwrap (%sum: f32, %weights: !loom.block<[4], f32>) {
               %b = loom.index 0 : i64
               %three = arith.constant 3 : i64
               %last = arith.subi %three, %b : i64
               %s = loom.read %weights[%last] : f32
               %r = arith.mulf %sum, %s : f32
               loom.yield %r : f32
             } : (!ids, !t, !w) -> !y
      func.return %y : !y
    }"""
    ids, t = RNG.integers(0, 9, (4, 3)), RNG.normal(size=(9, 5)).astype("f4")
    w = RNG.normal(size=4).astype("f4")
    want = t[ids].sum(1) * w[::-1, None]
    shards = ["loom-shard{grid=2,1,3}", "loom-shard{shards=4}"]
    agree(text, {"ids": ids, "t": t, "w": w}, [want], pipelines=shards)


def test_a_gathered_factor_is_still_a_matrix_product():
    text = """
    !ids = !loom.tensor<[0] : [20], i64>
    !t = !loom.tensor<[0, 0] : [9, 18], f32>
    !w = !loom.tensor<[0, 0] : [18, 17], f32>
    !y = !loom.tensor<[0, 0] : [20, 17], f32>
    func.func @main(%ids: !ids, %t: !t, %w: !w) -> !y {
      %y = loom.operation @product over <[0, 0, 0] : [20, 17, 18]> [map, map, fold] by @add
             ins(%ids : (i, j, k) -> (i), %t : (i, j, k) -> (0, k) :> [9, 1],
                 %w : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
             wrap (%id: i64, %rows: !loom.block<[9, 1], f32>, %b: f32) {
               %zero = arith.constant 0 : i64
               %a = loom.read %rows[%id, %zero] : f32
               %p = arith.mulf %a, %b : f32
               loom.yield %p : f32
             } : (!ids, !t, !w) -> !y
      func.return %y : !y
    }"""
    ids, t = RNG.integers(0, 9, 20), RNG.normal(size=(9, 18)).astype("f4")
    w = RNG.normal(size=(18, 17)).astype("f4")
    want = t[ids] @ w
    agree(text, {"ids": ids, "t": t, "w": w}, [want], pipelines=["loom-shard{grid=2,2,2}"])


def test_boxes_that_leave_the_tensor():
    # Around each cell a box of five; the index walks it from end to end and beyond.
    text = """
    !x = !loom.tensor<[1] : [7], f32>
    !y = !loom.tensor<[0, 0] : [6, 7], f32>
    func.func @main(%x: !x) -> !y {
      %y = loom.operation @box over <[0, 0] : [6, 7]> [map, map]
             ins(%x : (i, j) -> (i - 1) :> [5] clip 0.5 : f32) outs((i, j) -> (i, j))
             wrap (%b: !loom.block<[5], f32>) {
               %j = loom.index 1 : i64
               %one = arith.constant 1 : i64
               %at = arith.subi %j, %one : i64
               %none = arith.constant -1.0 : f32
               %v = loom.read %b[%at] else %none : f32
               loom.yield %v : f32
             } : (!x) -> !y
      func.return %y : !y
    }"""
    x = RNG.normal(size=6).astype("f4")
    padded = np.concatenate([np.full(2, 0.5), x, np.full(3, 0.5)])
    want = np.full((6, 7), -1.0)
    for i in range(6):
        want[i, 1:6] = padded[i : i + 5]
    agree(text, {"x": x}, [want], pipelines=["loom-shard{grid=2,3}"], tolerance=1e-6)


def test_a_shard_reads_the_box_that_is_declared():
    module = parse_text(embedding())
    verify_module(module)
    run_pipeline(module, "loom-shard{grid=2,1},loom-expand-shards")
    inputs = {"ids": np.zeros(6, "i8"), "table": np.zeros((11, 5), "f4")}
    for executor in ("numpy", "triton"):
        record = run(module, inputs, on=executor).records[0]
        assert record.bytes_read == 3 * 8 + 11 * 5 * 4


def test_points_outside_a_domain_need_no_index():
    text = """
    !ids = !loom.tensor<[0, 0] : [3, 3], i64>
    !t = !loom.tensor<[0] : [5], i32>
    !y = !loom.tensor<[0] : [3], i32>
    func.func @main(%ids: !ids, %t: !t) -> !y {
      %y = loom.operation @sum over <[0, 0] : [3, 3]> [map, fold] by @add
             ins(%ids : (i, k) -> (i, k), %t : (i, k) -> (0) :> [5]) outs((i) -> (i))
             domain(d0 - d1 >= 0)
             wrap (%id: i64, %b: !loom.block<[5], i32>) {
               %v = loom.read %b[%id] : i32
               loom.yield %v : i32
             } : (!ids, !t) -> !y
      func.return %y : !y
    }"""
    module = parse_module(text)
    inputs = {"ids": np.array([[1, 99, 99], [2, 3, -7], [0, 4, 4]]), "t": np.arange(5, dtype="i4")}
    for executor in ("reference", "numpy", "triton"):
        assert run(module, inputs, on=executor).outputs[0].tolist() == [1, 5, 8]
        with pytest.raises(BlockIndexError):
            run(module, {**inputs, "ids": np.diag([1, 5, 1])}, on=executor)
    with pytest.raises(
        BlockIndexError, match="index 5 is out of range: those that are there are from 0 to 4"
    ):
        run(module, {**inputs, "ids": np.full((3, 3), 5)}, on="numpy")
    with pytest.raises(BlockIndexError, match="from 0 to 4; counted from the end, it is -7"):
        run(module, {**inputs, "ids": np.full((3, 3), -2)}, on="numpy")
    # An index that does not move along the fold is needed where some point of the fold is inside.
    text = text.replace("(i, k) -> (i, k)", "(i, k) -> (i, 0)")
    module = parse_module(text.replace("d0 - d1 >= 0", "d0 - d1 - 1 >= 0"))
    inputs["ids"] = np.array([[99], [3], [4]]) + np.zeros((1, 3), "i8")
    for executor in ("reference", "numpy", "triton"):
        assert run(module, inputs, on=executor).outputs[0].tolist() == [0, 3, 8]
