"""The table of what is aimed at on a GPU, from rows that are made up."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

_FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.insert(0, _FOLDER)
AIMS: Any = importlib.import_module("aims")
sys.path.remove(_FOLDER)


def _row(case: str, family: str, ours: float | None, **more: Any) -> dict[str, Any]:
    return {"case": case, "family": family, "ours": ours, "peers": {}, "bytes": 0} | more


def _aims(rows: list[dict[str, Any]], models: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    kernels = {"ceilings": {"copy bytes/s": 1e12}, "rows": rows}
    found = AIMS.aims({"kernels": kernels, "models": {"rows": models or []}})
    return {one.work: one for one in found}


def test_products_are_held_against_cublas() -> None:
    one = _row("matmul a", "matmul", 2e-3, peers={"eager": 2e-3})
    other = _row("matmul b", "matmul", 4e-3, peers={"eager": 1e-3})
    found = _aims([one, other])["products / cuBLAS"]
    assert found.found == {"matmul a": 1.0, "matmul b": 0.25}
    assert found.mean == pytest.approx(0.5)
    assert found.worst == ("matmul b", 0.25)
    assert not found.met
    assert _aims([one])["products / cuBLAS"].met


def test_the_fastest_schedule_that_is_known_counts() -> None:
    row = _row("matmul a", "matmul", 2e-3, tuned=1e-3, peers={"eager": 1e-3})
    assert _aims([row])["products / cuBLAS"].found == {"matmul a": 1.0}


def test_rows_are_held_against_the_copy_of_the_run() -> None:
    row = _row("softmax a", "softmax", 1e-3, bytes=930_000_000)
    found = _aims([row])["rows / bandwidth"]
    assert found.found == {"softmax a": pytest.approx(0.93)}
    assert found.met


def test_the_largest_bandwidth_of_the_run_is_the_ceiling() -> None:
    row = _row("softmax a", "softmax", 1e-3, bytes=930_000_000)
    ceilings = {
        "copy bytes/s": 1e12,
        "read bytes/s": 2e12,
        "add bytes/s": 1.5e12,
        "bf16 flop/s": 1e15,
    }
    found = AIMS.aims({"kernels": {"ceilings": ceilings, "rows": [row]}})
    (one,) = (one for one in found if one.work == "rows / bandwidth")
    assert one.found == {"softmax a": pytest.approx(0.465)}
    assert not one.met


def test_what_has_no_number_is_counted_and_does_not_meet_an_aim() -> None:
    fast = _row("attention a", "attention", 1e-3, peers={"flash": 2e-3})
    failed = _row("attention b", "attention", None)
    decode = _row("attention decode", "attention", 1e-3, bytes=900_000_000)
    plain = _row("attention float32", "attention", 1e-3)
    found = _aims([fast, failed, decode, plain])
    assert found["attention / flash"].found == {"attention a": 2.0}
    assert found["attention / flash"].missing == 1
    assert not found["attention / flash"].met
    assert found["decode / bandwidth"].met


def test_models_need_a_mean_and_a_least() -> None:
    def model(name: str, ours: float, peer: float) -> list[dict[str, Any]]:
        return [
            {"model": name, "by": "tapestry, graphs", "us": ours},
            {"model": name, "by": "max-autotune", "us": peer},
        ]

    good = _aims([], [*model("a", 1.0, 1.6), *model("b", 1.0, 0.95)])["models / max-autotune"]
    assert good.met
    slow = _aims([], [*model("a", 1.0, 9.0), *model("b", 1.0, 0.8)])["models / max-autotune"]
    assert not slow.met
    assert slow.mean > 1.15


def test_nothing_measured_meets_nothing() -> None:
    found = AIMS.aims({})
    assert not any(one.met for one in found)
    json.dumps([one.as_json() for one in found], allow_nan=False)
