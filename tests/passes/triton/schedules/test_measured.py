"""Defaults beside what was measured of them on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import tapestry as t
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.schedule import default
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.tuning import jobs_of

MEASURED = Path(__file__).parents[4] / "benchmarks" / "results" / "schedules_h100.json"


def test_a_row_of_scores_gets_the_warps_that_were_fastest() -> None:
    rows = json.loads(MEASURED.read_text())["kernels"]
    (times,) = (row["microseconds"] for row in rows if row["case"] == "attention decode d=128")
    shapes = {"q": (64, 32, 1, 128), "k": (64, 32, 8192, 128), "v": (64, 32, 8192, 128)}
    q, k, v = (t.input(name, shape, "f16") for name, shape in shapes.items())
    program = t.compile(t.scaled_dot_product_attention(q, k, v), on="triton").lowered
    (job,) = jobs_of(program, LoomToTriton())
    by_default = default(job.task, Tiling())
    seconds = {Schedule.parse(text): time for text, time in times.items()}
    assert seconds[by_default] <= 1.02 * min(seconds.values())
