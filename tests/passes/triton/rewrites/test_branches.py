"""Masks in branches: blocks inside of a domain, on its boundary and outside give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.runtime.executor import NoWatch, find_executor

TILES = "M = 16, C = 16, K = 16, warps = 4, stages = 1"


def largest_scores(rows: int, columns: int, domain: str) -> str:
    """The largest product of each row with the columns in a domain."""
    x = f"!loom.tensor<[0, 0] : [{rows}, 16], f16>"
    y = f"!loom.tensor<[0, 0] : [{columns}, 16], f16>"
    s = f"!loom.tensor<[0, 0] : [{rows}, {columns}], f32>"
    m = f"!loom.tensor<[0] : [{rows}], f32>"
    return f"""
    func.func @main(%x: {x}, %y: {y}) -> {m} {{
      %s = loom.operation @s over <[0, 0, 0] : [{rows}, {columns}, 16]> [map, map, fold] by @add
             ins(%x : (i, j, c) -> (i, c), %y : (i, j, c) -> (j, c)) outs((i, j) -> (i, j))
             wrap (%a: f16, %b: f16) {{
               %u = arith.extf %a : f16 to f32
               %v = arith.extf %b : f16 to f32
               %p = arith.mulf %u, %v : f32
               loom.yield %p : f32 }} : ({x}, {y}) -> {s}
      %m = loom.operation @m over <[0, 0] : [{rows}, {columns}]> [map, fold] by @max
             ins(%s : (i, j) -> (i, j)) outs((i) -> (i)) domain({domain})
             wrap (%a: f32) {{ loom.yield %a : f32 }} : ({s}) -> {m}
      func.return %m : {m}
    }}"""


@pytest.mark.parametrize(
    ("rows", "columns", "domain", "inside"),
    [
        (48, 64, "d0 - d1 >= 0", lambda i, j: i >= j),
        (48, 64, "d0 - d1 + 15 >= 0", lambda i, j: i + 15 >= j),
        (48, 50, "d0 - d1 - 1 >= 0", lambda i, j: i - 1 >= j),
        (40, 64, "-d0 + d1 - 7 >= 0", lambda i, j: j - 7 >= i),
        (64, 64, "d0 - d1 >= 0, -d0 + d1 + 33 >= 0", lambda i, j: (i >= j) & (j + 33 >= i)),
        (33, 80, "2 * d0 - d1 >= 0", lambda i, j: 2 * i >= j),
        (48, 64, "-d0 - d1 + 70 >= 0", lambda i, j: i + j <= 70),
    ],
)
def test_blocks_inside_on_and_outside_of_a_boundary(
    rows: int, columns: int, domain: str, inside: Callable[[Any, Any], Any]
) -> None:
    module = parse_text(largest_scores(rows, columns, domain))
    run_pipeline(module, "loom-group{ops=s,m}")
    random = np.random.default_rng(0)
    given = {
        name: random.normal(size=(n, 16)).astype("f2") for name, n in (("x", rows), ("y", columns))
    }
    given["x"][5, 3] = np.nan
    given["y"][9, 2] = np.inf
    for op in module.walk():
        if isinstance(op, loom.FusedOp):
            op.attributes[SCHEDULE] = ScheduleAttr(Schedule.parse(TILES))
    lowered = module.clone()
    run_pipeline(lowered, "loom-to-triton")
    assert any(isinstance(op, scf.IfOp) for op in lowered.walk())
    (got,) = find_executor("triton").run(module, given, NoWatch()).outputs
    x, y = (value.astype("f8") for value in given.values())
    with np.errstate(invalid="ignore"):
        scores = x @ y.T
    i, j = np.indices(scores.shape)
    want = np.where(inside(i, j), scores, -np.inf).max(1)
    np.testing.assert_allclose(got, want, rtol=1e-5)
