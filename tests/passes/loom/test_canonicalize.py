"""One form: what differs in dimensions, order and unused operands alone becomes the same text."""

from __future__ import annotations

from random import Random

import pytest

from tapestry.frontend import parse_text, run_pipeline
from tests.passes.random_graphs import random_graph

PLAIN = """
!x = !loom.tensor<[0, 0] : [5, 6], f32>
!w = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @y over <[0, 0] : [5, 6]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0, d1), %w : (d0, d1) -> (d1)) outs((d0) -> (d0))
         wrap (%c: f32, %d: f32) { %p = arith.mulf %c, %d : f32 loom.yield %p : f32 }
         : (!x, !w) -> !y
  func.return %y : !y
}
"""
TURNED = """
!x = !loom.tensor<[0, 0] : [5, 6], f32>
!w = !loom.tensor<[0] : [6], f32>
!y = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @y over <[1, 3, 0] : [7, 8, 1]> [fold, map, map] by @add
         ins(%w : (d0, d1, d2) -> (d0 - 1), %x : (d0, d1, d2) -> (d1 - 3 + d2, d0 - 1))
         outs((d0, d1) -> (d0 - 3))
         wrap (%d: f32, %c: f32) { %p = arith.mulf %c, %d : f32 loom.yield %p : f32 }
         : (!w, !x) -> !y
  func.return %y : !y
}
"""


def canonical(text: str, pipeline: str = "") -> str:
    module = parse_text(text)
    run_pipeline(module, f"{pipeline}loom-canonicalize")
    return str(module)


def test_what_is_the_same_looks_the_same() -> None:
    assert canonical(TURNED) == canonical(PLAIN)


@pytest.mark.parametrize("seed", range(12))
def test_once_is_enough(seed: int) -> None:
    graph = random_graph(Random(seed))
    once = canonical(graph.text, "weft-apply,loom-fuse,loom-fuse{kinds=keep,beside},loom-unfuse,")
    assert canonical(once) == str(parse_text(once))
