"""What loops load and fold, folded once after them: numbers are the same, loops carry tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr, shape_of
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.runtime.executor import NoWatch, find_executor

TILES = "M = 16, K = 32, N = 16, warps = 4, stages = 1"


def folded_and_multiplied(length: int, monoid: str) -> str:
    """A fold of each row, and a product of what is left of the rows without it."""
    x, w = (
        f"!loom.tensor<[0, 0] : [40, {length}], f32>",
        f"!loom.tensor<[0, 0] : [{length}, 8], f32>",
    )
    y, s = "!loom.tensor<[0, 0] : [40, 8], f32>", "!loom.tensor<[0] : [40], f32>"
    return f"""
    func.func @main(%x: {x}, %w: {w}) -> ({s}, {y}) {{
      %s = loom.operation @s over <[0, 0] : [40, {length}]> [map, fold] by @{monoid}
             ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
             wrap (%a: f32) {{ loom.yield %a : f32 }} : ({x}) -> {s}
      %y = loom.operation @y over <[0, 0, 0] : [40, 8, {length}]> [map, map, fold] by @add
             ins(%x : (i, j, k) -> (i, k), %s : (i, j, k) -> (i), %w : (i, j, k) -> (k, j))
             outs((i, j) -> (i, j))
             wrap (%a: f32, %b: f32, %c: f32) {{
               %d = arith.subf %a, %b : f32
               %r = arith.mulf %d, %c : f32
               loom.yield %r : f32 }} : ({x}, {s}, {w}) -> {y}
      func.return %s, %y : {s}, {y}
    }}"""


@pytest.mark.parametrize(
    ("length", "monoid", "fold"),
    [
        (96, "add", np.add),
        (96, "max", np.maximum),
        (96, "min", np.minimum),
        (70, "add", np.add),
        (70, "max", np.maximum),
    ],
)
def test_folds_of_loaded_rows_are_finished_after_the_loop(
    length: int, monoid: str, fold: Any
) -> None:
    module = parse_text(folded_and_multiplied(length, monoid))
    run_pipeline(module, "loom-group{ops=s,y}")
    for op in module.walk():
        if isinstance(op, loom.FusedOp):
            op.attributes[SCHEDULE] = ScheduleAttr(Schedule.parse(TILES))
    lowered = module.clone()
    run_pipeline(lowered, "loom-to-triton")
    loops = [op for op in lowered.walk() if isinstance(op, scf.ForOp)]
    reductions = [op for op in lowered.walk() if isinstance(op, triton.ReduceOp)]
    late = not any(op.parent_op() in loops for op in reductions)
    # Lanes beyond a row are loaded as zeros, which are no greatest: those are chosen first.
    assert late == (length % 32 == 0 or monoid == "add")
    assert {shape_of(op.res[0]) for op in loops} >= ({(16, 32)} if late else {(16,)})
    random = np.random.default_rng(0)
    given = {"x": random.normal(size=(40, length)), "w": random.normal(size=(length, 8))}
    given = {name: value.astype("f4") for name, value in given.items()}
    got = find_executor("triton").run(module, given, NoWatch()).outputs
    x, w = (value.astype("f8") for value in given.values())
    folded = fold.reduce(x, axis=1)
    np.testing.assert_allclose(got[0], folded, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got[1], (x - folded[:, None]) @ w, rtol=1e-4, atol=1e-3)
