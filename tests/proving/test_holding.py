"""Coordinates in tensors: a program is as sensitive to extents as if its operations were one."""

from __future__ import annotations

import pytest

import tapestry
from tapestry.proving.equality import compare_programs
from tapestry.proving.pair import Options
from tapestry.proving.reduction import reduce_sizes
from tapestry.proving.sizes.holding import held_by
from tapestry.runtime.program import main_function

_IOTA = """
!x = !loom.tensor<[0] : [3000], f32>
!i = !loom.tensor<[0] : [3000], i64>
func.func @main(%x: !x) -> !x {
  %i = loom.operation @iota over <[0] : [3000]> [map] outs((d0) -> (d0))
    wrap () { %d = loom.index 0 : i64  loom.yield %d : i64 } : () -> !i
  %v = loom.view %i : (d0) -> (2999 - d0) : !i -> !i
  %y = loom.operation @late over <[0] : [3000]> [map]
    ins(%x : (d0) -> (d0), %v : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: f32, %n: i64) {
      %k = arith.constant 1500 : i64
      %late = arith.cmpi sge, %n, %k : i64
      %two = arith.addf %a, %a : f32
      %r = arith.select %late, %two, %a : f32
      loom.yield %r : f32
    } : (!x, !i) -> !x
  func.return %y : !x
}"""

_FLOOR = """
!x = !loom.tensor<[0] : [3000], f32>
func.func @main(%x: !x) -> !x {
  %i = loom.operation @iota over <[0] : [3000]> [map] outs((d0) -> (d0))
    wrap () {
      %d = loom.index 0 : i64
      %f = arith.sitofp %d : i64 to f32
      loom.yield %f : f32
    } : () -> !x
  %y = loom.operation @late over <[0] : [3000]> [map]
    ins(%x : (d0) -> (d0), %i : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: f32, %n: f32) {
      %k = arith.constant 0.00073 : f32
      %q = arith.mulf %n, %k : f32
      %l = math.floor %q : f32
      %r = arith.mulf %l, %a : f32
      loom.yield %r : f32
    } : (!x, !x) -> !x
  func.return %y : !x
}"""

_ARGMAX = """
!x = !loom.tensor<[0, 0] : [2, 640], f32>
!i = !loom.tensor<[0] : [2], i64>
!m = !loom.tensor<[0] : [2], f32>
func.func @main(%x: !x) -> !i {
  %m, %i = loom.operation @argmax over <[0, 0] : [2, 640]> [map, fold] by @argmax
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0), (d0) -> (d0))
    wrap (%a: f32) { %d = loom.index 1 : i64  loom.yield %a, %d : f32, i64 } : (!x) -> (!m, !i)
  %y = loom.operation @late over <[0] : [2]> [map] ins(%i : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%n: i64) {
      %k = arith.constant 100 : i64
      %r = arith.minsi %n, %k : i64
      loom.yield %r : i64
    } : (!i) -> !i
  func.return %y : !i
}"""

_UNWRAP = """
!x = !loom.tensor<[0, 0] : [2, 640], f32>
!i = !loom.tensor<[0] : [2], i64>
func.func @main(%x: !x) -> !i {
  %i = loom.operation @argmax over <[0, 0] : [2, 640]> [map, fold] by @argmax
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    wrap (%a: f32) { %d = loom.index 1 : i64  loom.yield %a, %d : f32, i64 }
    unwrap (%m: f32, %n: i64) {
      %k = arith.constant 100 : i64
      %r = arith.minsi %n, %k : i64
      loom.yield %r : i64
    } : (!x) -> !i
  func.return %y : !i
}""".replace("return %y", "return %i")


_SHARDED = "loom-shard{shards=2},loom-expand-shards"


@pytest.mark.parametrize(
    ("text", "number", "other", "pipeline"),
    [
        (_IOTA, "1500", "1510", ""),
        (_IOTA, "1500", "1510", _SHARDED),
        (_FLOOR, "0.00073", "0.00059", ""),
        (_FLOOR, "0.00073", "0.00059", _SHARDED),
        (_ARGMAX, "100", "400", ""),
        (_UNWRAP, "100", "400", ""),
    ],
    ids=["compare", "compare-sharded", "floor", "floor-sharded", "argmax", "unwrap"],
)
def test_a_coordinate_that_is_read_counts_as_one(
    text: str, number: str, other: str, pipeline: str
) -> None:
    one, two = tapestry.parse_module(text), tapestry.parse_module(text.replace(number, other))
    tapestry.run_pipeline(two, pipeline)
    verdict = compare_programs(one, two, Options(seeds=1, shrinking=0))
    assert verdict.answer == "differs"


def test_what_acts_alike_everywhere_gets_smaller() -> None:
    lines = "%k = arith.constant 0.5 : f32 %l = arith.mulf %n, %k : f32 %s = math.sin %l : f32"
    start, end = _FLOOR.index("%k ="), _FLOOR.index("%r =")
    text = f"{_FLOOR[:start]}{lines}\n      {_FLOOR[end:]}".replace("mulf %l, %a", "addf %s, %a")
    module = tapestry.parse_module(text)
    assert reduce_sizes(module, module.clone()).is_smaller


def test_what_holds_coordinates() -> None:
    module = tapestry.parse_module(_ARGMAX)
    ops = [op for op in main_function(module).body.block.ops if op.results]
    held = held_by(module)
    values, positions = ops[0].results
    # A maximum of data has none, though its place has.
    assert not held[values].origins
    assert held[positions].origins == held[ops[1].results[0]].origins == {(ops[0], 1)}
    assert not held[positions].closed
