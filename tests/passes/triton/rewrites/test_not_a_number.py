"""Values that are used again where results are NaN anyway: rows of any numbers give the same."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

ROWS = np.array(
    [
        [0.0, 1.0, -2.0, 3.0],
        [-np.inf, -np.inf, -np.inf, -np.inf],
        [-np.inf, 1.0, -np.inf, -np.inf],
        [np.inf, 1.0, 2.0, 3.0],
        [np.nan, 1.0, 2.0, 3.0],
        [3e38, -3e38, 1e30, 0.0],
        [-3e38, -3e38, -3e38, -3e38],
    ],
    np.float32,
)


@pytest.mark.parametrize("function", [tapestry.softmax, tapestry.log_softmax])
def test_rows_of_any_numbers_are_as_they_were(function):
    x = tapestry.input("x", ROWS.shape, "float32")
    with np.errstate(all="ignore"):
        wanted = tapestry.run(function(x), x=ROWS, on="reference")
        found = tapestry.run(function(x), x=ROWS, on="triton")
    np.testing.assert_allclose(found, wanted, 1e-6)


SHARES = """
!x = !loom.tensor<[0, 0] : [8, 16], f32>
!r = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !x {
  %m = loom.operation @m over <[0, 0] : [8, 16]> [map, fold] by @max
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !r
  %l = loom.operation @l over <[0, 0] : [8, 16]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k), %m : (i, k) -> (i)) outs((i) -> (i))
         wrap (%a: f32, %b: f32) {
           %none = arith.constant 0.0 : f32
           %c = arith.cmpf oeq, %b, %none : f32
           %u = arith.constant 1.0 : f32
           %w = arith.select %c, %u, %b : f32
           %d = arith.subf %a, %w : f32
           %e = math.exp %d : f32
           loom.yield %e : f32
         } : (!x, !r) -> !r
  %y = loom.operation @y over <[0, 0] : [8, 16]> [map, map]
         ins(%x : (i, k) -> (i, k), %m : (i, k) -> (i), %l : (i, k) -> (i)) outs((i, k) -> (i, k))
         wrap (%a: f32, %b: f32, %s: f32) {
           %none = arith.constant 0.0 : f32
           %c = arith.cmpf oeq, %b, %none : f32
           %u = arith.constant SPOILT : f32
           %t = arith.select %c, %u, %s : f32
           %d = arith.subf %a, %b : f32
           %e = math.exp %d : f32
           %q = arith.divf %e, %t : f32
           loom.yield %q : f32
         } : (!x, !r, !r) -> !x
  func.return %y : !x
}
"""


@pytest.mark.parametrize(("spoilt", "exponentials"), [("0x7FC00000", 1), ("2.0", 2)])
def test_only_what_is_nan_may_be_of_other_numbers(spoilt, exponentials):
    text = SHARES.replace("SPOILT", spoilt)
    module = parse_text(text)
    run_pipeline(module, "loom-group{ops=m,l,y}")
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    x[3] = -np.abs(x[3])
    x[3, 5] = 0.0  # the greatest of its row, where both are not the same
    (found,) = find_executor("triton").run(module, {"x": x}, NoWatch()).outputs
    (wanted,) = find_executor("reference").run(parse_text(text), {"x": x}, NoWatch()).outputs
    np.testing.assert_allclose(found, wanted, 1e-6)
    run_pipeline(module, "loom-to-triton")
    assert print_module(module).source.count("tl.exp(") == exponentials
