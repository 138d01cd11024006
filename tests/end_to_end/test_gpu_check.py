"""The script that checks everything on a GPU: a part that fails or hangs does not stop the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(_FOLDER))

import gpu_check  # noqa: E402

WRITES = "import sys; open(sys.argv[1], 'w').write('{\"summary\": \"fine\"}')"


def _commands(monkeypatch: pytest.MonkeyPatch, **code: str) -> None:
    def command(part: str, table: Path, limit: float) -> list[str]:
        assert limit > 0
        return [sys.executable, "-c", code.get(part, WRITES), str(table)]

    monkeypatch.setattr(gpu_check, "command", command)


def test_what_fails_is_recorded_and_the_rest_goes_on(monkeypatch, tmp_path) -> None:
    _commands(
        monkeypatch,
        machine="raise ValueError('nothing works')",
        small="import time; time.sleep(60)",
        loader="pass",
        models="import os; os.abort()",
    )
    monkeypatch.setattr(gpu_check, "gpu", lambda: "H200")
    monkeypatch.setattr(gpu_check, "LIMITS", dict.fromkeys(gpu_check.LIMITS, 20.0) | {"small": 1.0})
    given = ["gpu_check.py", "--seconds", "101", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    assert gpu_check.main() == 1
    parts = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    states = {one["part"]: one["state"] for one in parts}
    assert states == {
        "machine": "failed",
        "small": "too slow",
        "launch": "done",
        "loader": "failed",
        "models": "failed",
        "kernels": "done",
    }
    assert "nothing works" in parts[0]["said"]
    assert parts[2]["table"] == {"summary": "fine"}


def test_without_a_gpu_parts_are_skipped(monkeypatch, tmp_path) -> None:
    _commands(monkeypatch)
    monkeypatch.setattr(gpu_check, "gpu", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--output", str(tmp_path)])
    assert gpu_check.main() == 0
    parts = json.loads((tmp_path / "gpu_check.json").read_text())["parts"]
    skipped = {one["part"] for one in parts if one["state"] == "skipped"}
    assert skipped == set(gpu_check.LIMITS) - set(gpu_check.ALONE)


def test_all_parts_together_take_less_than_nine_minutes() -> None:
    assert sum(gpu_check.LIMITS.values()) < 9 * 60


def test_the_parts_are_those_of_the_other_file() -> None:
    code = "import _gpu_parts; print(*_gpu_parts.PARTS)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_FOLDER, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == set(gpu_check.LIMITS) - {"launch", "kernels"}
