"""What `loom.index` is where several folded dimensions share an axis that is walked."""

import numpy as np
import pytest

from tapestry.frontend import parse_module
from tapestry.runtime.executor import NoWatch, find_executor

PROGRAM = """
!x = !loom.tensor<[0, 0, 0] : [8, 5, {inner}], f32>
!y = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !y {{
  %y = loom.operation @op over <[0, 0, 0] : [8, 5, {inner}]> [map, fold, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0) -> (d0))
         wrap (%c: f32) {{
           %i = loom.index 1 : i64
           %two = arith.constant 2 : i64
           %less = arith.subi %i, %two : i64
           %half = arith.divsi %less, %two : i64
           %f = arith.sitofp %half : i64 to f32
           %r = arith.mulf %f, %c : f32
           loom.yield %r : f32
         }} {{schedule = #triton.schedule<{schedule}>}} : (!x) -> !y
  func.return %y : !y
}}
"""


@pytest.mark.parametrize(
    ("inner", "schedule"),
    [
        (64, "P = 8, K = 16, warps = 4, stages = 2"),  # a block is at one place of the outer one
        (64, "P = 8, K = 128, warps = 4, stages = 2"),
        (3, "P = 8, K = 1, warps = 4, stages = 2, unroll = 16"),
        (3, "P = 8, K = 1, warps = 4, stages = 2"),
        (3, "P = 8, K = 4, warps = 4, stages = 2"),
    ],
)
def test_bodies_compute_with_coordinates_as_triton_does(inner: int, schedule: str) -> None:
    """Numbers that a loop counts would be Python's, which divides negative ones otherwise."""
    module = parse_module(PROGRAM.format(inner=inner, schedule=schedule))
    x = np.random.default_rng(0).integers(-9, 9, (8, 5, inner)).astype("f4")
    (got,) = find_executor("triton").run(module, {"x": x}, NoWatch()).outputs
    weights = np.trunc((np.arange(5) - 2) / 2)
    np.testing.assert_array_equal(got, np.einsum("abc,b->a", x, weights))
