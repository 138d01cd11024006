"""Tables of measured kernels become a device's file: times here are those of a device made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import calibrate
from _kernel_cases import CASES
from _kernel_compiling import loom_of

from tapestry.devices import find_spec, read_spec
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.tuning import jobs_of
from tapestry.tuning.regression import seconds_of

H100 = find_spec("h100")


def rows(names: list[str], **true: float) -> list[dict[str, Any]]:
    """Some schedules of cases, with the times of an H100 whose coefficients are others."""
    spec = H100.model_copy(update={"coefficients": H100.coefficients.model_copy(update=true)})
    found: list[dict[str, Any]] = []
    for case in (one for one in CASES if one.name in names):
        (job,) = jobs_of(loom_of(case.small), LoomToTriton())
        timed = [
            {"kernel": job.task.name, "schedule": str(one), "seconds": 1.0, "problem": ""}
            for one in list(candidates(job.task))[:4]
        ]
        for one, sample in zip(timed, calibrate._samples(case.small, timed), strict=True):
            one["seconds"] = seconds_of(sample.works, spec)
        failed = {**timed[0], "seconds": None, "problem": "CompileError: no"}
        found.append({"case": case.name, "measured": [*timed, failed]})
    return found


def test_a_table_becomes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = rows(["add 2^27", "softmax 8192x4096", "matmul f16 512"], launch=9e-6)
    figures = H100.model_copy(update={"multiprocessors": 114}).model_dump()
    table = {
        "gpu": "NVIDIA H100 PCIe",
        "parts": [
            {"part": "kernels", "table": {"rows": measured}},
            {"part": "models", "table": None},
            {"part": "calibrated", "table": {"figures": figures, "measured": ["rates.f16"]}},
        ],
    }
    given, made = tmp_path / "gpu_check.json", tmp_path / "mine.yaml"
    given.write_text(json.dumps(table))
    assert calibrate.main([str(given), "--small", "-o", str(made)]) == 0
    timed = sum(one["seconds"] is not None for row in measured for one in row["measured"])
    assert f"{timed} kernels: predictions were off by" in capsys.readouterr().out
    spec = read_spec(made)
    # So small kernels wait once for a launch and once for memory: only both together show.
    waited = spec.coefficients.launch + spec.memory.latency
    assert waited == pytest.approx(9e-6 + H100.memory.latency, rel=0.05)
    assert spec.multiprocessors == 114
    assert spec.title == "NVIDIA H100 PCIe"
    assert spec.coefficients.warp_products == H100.coefficients.warp_products
    text = made.read_text()
    for line, source in (("f16", "measured"), ("launch", "fitted"), ("overlap", "h100")):
        (own,) = [one for one in text.splitlines() if one.strip().startswith(f"{line}:")]
        assert own.endswith(f"# {source}")


def test_times_that_nothing_explains_are_no_figures(tmp_path: Path) -> None:
    table = {"gpu": "NVIDIA H100 PCIe", "rows": rows(["add 2^27", "softmax 8192x4096"])}
    for number, one in enumerate(one for row in table["rows"] for one in row["measured"]):
        one["seconds"] = one["seconds"] and (1.0 if number % 2 else 1e-9)
    given, made = tmp_path / "kernels.json", tmp_path / "mine.yaml"
    given.write_text(json.dumps(table))
    assert calibrate.main([str(given), "--small", "-o", str(made)]) == 1
    assert not made.exists()


def test_a_table_without_times_is_refused(tmp_path: Path) -> None:
    given = tmp_path / "kernels.json"
    given.write_text(json.dumps({"gpu": "NVIDIA H200", "rows": [{"case": "add 2^27"}]}))
    assert calibrate.main([str(given), "-o", str(tmp_path / "mine.yaml")]) == 1
    given.write_text(json.dumps({"gpu": "NVIDIA T4", "rows": []}))
    with pytest.raises(SystemExit, match="like NVIDIA T4: give one with --base"):
        calibrate.main([str(given), "-o", str(tmp_path / "mine.yaml")])
    assert list(tmp_path.iterdir()) == [given]
