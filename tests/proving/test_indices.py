"""Indices that are computed of integers: those that leave what is read are not drawn."""

from __future__ import annotations

import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.proving.equality import compare_programs


@pytest.mark.parametrize("shift", [-2, -1, 0, 3])
def test_indices_that_are_shifted_stay_inside_of_what_is_read(shift: int) -> None:
    text = f"""
!i = !loom.tensor<[0] : [6], i64>
!t = !loom.tensor<[0] : [9], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @main(%i: !i, %t: !t) -> !y {{
  %y = loom.operation @look over <[0] : [6]> [map]
         ins(%i : (d0) -> (d0), %t : (d0) -> (0) :> [9]) outs((d0) -> (d0))
         wrap (%n: i64, %b: !loom.block<[9], f32>) {{
           %k = arith.constant {shift} : i64
           %m = arith.addi %n, %k : i64
           %v = loom.read %b[%m] : f32
           loom.yield %v : f32
         }} : (!i, !t) -> !y
  func.return %y : !y
}}"""
    one, other = parse_text(text), parse_text(text)
    run_pipeline(other, "loom-shard{shards=2},loom-expand-shards")
    assert compare_programs(one, other).answer == "certified"
    wrong = parse_text(text.replace(f"constant {shift}", f"constant {shift + 1}"))
    assert compare_programs(one, wrong).answer == "differs"


def _looked_up(index: str) -> str:
    return f"""
!i = !loom.tensor<[0] : [6], i64>
!t = !loom.tensor<[0] : [9], f32>
!y = !loom.tensor<[0] : [6], f32>
func.func @main(%i: !i, %t: !t) -> !y {{
  %y = loom.operation @look over <[0] : [6]> [map]
         ins(%i : (d0) -> (d0), %t : (d0) -> (0) :> [9]) outs((d0) -> (d0))
         wrap (%n: i64, %b: !loom.block<[9], f32>) {{
           %k = arith.constant 9 : i64
           %z = arith.constant 0 : i64
           {index}
           %v = loom.read %b[%m] : f32
           loom.yield %v : f32
         }} : (!i, !t) -> !y
  func.return %y : !y
}}"""


FROM_THE_END = """%w = arith.addi %n, %k : i64 %c = arith.cmpi slt, %n, %z : i64
                  %m = arith.select %c, %w, %n : i64"""
MODULO = "%w = arith.addi %n, %k : i64 %m = arith.remsi %w, %k : i64"
CLAMPED = "%m = arith.maxsi %n, %z : i64"


@pytest.mark.parametrize(
    ("index", "answer"), [(FROM_THE_END, "certified"), (MODULO, "certified"), (CLAMPED, "differs")]
)
def test_indices_that_count_from_the_end_are_drawn_where_they_may_be(
    index: str, answer: str
) -> None:
    one = parse_text(_looked_up(FROM_THE_END.replace("slt, %n, %z", "sgt, %z, %n")))
    assert compare_programs(one, parse_text(_looked_up(index))).answer == answer
