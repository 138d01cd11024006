"""The scripts that measure on a GPU, on one that is pretended, at small sizes: `__main__.py`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler to build a driver with", allow_module_level=True)
if torch.cuda.is_available():
    pytest.skip("there is a real GPU", allow_module_level=True)

ROOT = Path(__file__).parents[2]

CEILINGS = ("copy bytes/s", "read bytes/s", "add bytes/s", "bf16 flop/s")


def run(folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "tests.pretending", str(folder), *given]
    own = {"PYTHONPATH": str(ROOT), "TAPESTRY_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        asked, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False
    )


def test_kernels_are_checked_timed_and_tuned(tmp_path: Path) -> None:
    table = tmp_path / "kernels.json"
    script = ["benchmarks/kernels.py", "--measure", "--small", "--output", str(table)]
    done = run(tmp_path, *script, "--only", "add 2", "--seconds", "120", "--tune", "20")
    assert done.returncode == 0, done.stderr
    found = json.loads(table.read_text())
    (row,) = found["rows"]
    assert row["error"] < 1e-6
    assert not row["problems"]
    assert row["peers"].keys() == {"eager", "compile", "max-autotune"}
    assert row["tuned"] > 0
    assert any(one["seconds"] for one in row["measured"])
    assert found["ceilings"].keys() == set(CEILINGS)
    assert "the driver refused" not in done.stderr


@pytest.mark.slow
def test_everything_is_checked(tmp_path: Path) -> None:
    script = ["benchmarks/gpu_check.py", "--small", "--output", str(tmp_path / "out")]
    done = run(tmp_path, *script, "--seconds", "1800")
    found = json.loads((tmp_path / "out" / "gpu_check.json").read_text())
    parts: dict[str, Any] = {one["part"]: one for one in found["parts"]}
    # What a launch takes fails the script where the machine has much else to do.
    assert len(parts.pop("launch")["table"]["gpu"]) == 2
    assert {one["state"] for one in parts.values()} == {"done"}, done.stdout + done.stderr
    assert (tmp_path / "out" / "h200.yaml").exists()
