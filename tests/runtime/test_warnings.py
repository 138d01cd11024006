"""What IEEE 754 defines (infinities, NaN, overflow) is a result, never a warning to the user."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tapestry.frontend import parse_module
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram

_FOLD = """
func.func @main(%x: !loom.tensor<[0, 0] : [2, 4], f32>) -> !loom.tensor<[0] : [2], f32> {
  %y = loom.operation @fold over <[0, 0] : [2, 4]> [map, fold] by @MONOID
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) shards <grid [[0, 2], [0, 2, 4]]>
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0, 0] : [2, 4], f32>) -> !loom.tensor<[0] : [2], f32>
  func.return %y : !loom.tensor<[0] : [2], f32>
}
"""
_PRODUCT = """
func.func @main(%x: !loom.tensor<[0, 0] : [2, 4], f32>) -> !loom.tensor<[0, 0] : [2, 2], f32> {
  %y = loom.operation @product over <[0, 0, 0] : [2, 2, 4]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %x : (d0, d1, d2) -> (d1, d2))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }
         : (!loom.tensor<[0, 0] : [2, 4], f32>, !loom.tensor<[0, 0] : [2, 4], f32>)
         -> !loom.tensor<[0, 0] : [2, 2], f32>
  func.return %y : !loom.tensor<[0, 0] : [2, 2], f32>
}
"""


@pytest.mark.parametrize("executor", ["reference", "numpy"])
@pytest.mark.parametrize(
    "text", [*(_FOLD.replace("MONOID", name) for name in ("add", "mul", "max")), _PRODUCT]
)
def test_no_warnings(executor: str, text: str) -> None:
    x = np.array([[np.inf, -np.inf, 3e38, 3e38], [np.nan, 1e-45, -3e38, 0]], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_executor(executor).run(parse_module(text), {"x": x}, NoWatch())


_PLACES = """
func.func @main() -> !loom.tensor<[0] : [2], f32> {
  %y = loom.operation @logarithms over <[0] : [2]> [map] ins() outs((d0) -> (d0))
         wrap () {
           %i = loom.index 0 : i64
           %f = arith.sitofp %i : i64 to f32
           %r = math.log %f : f32
           loom.yield %r : f32
         } : () -> !loom.tensor<[0] : [2], f32>
  func.return %y : !loom.tensor<[0] : [2], f32>
}
"""


def test_what_is_computed_beforehand_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (made,) = PreparedProgram(parse_module(_PLACES))([])
    assert made.tolist() == [-np.inf, 0]
