"""Folders that show how a program was compiled, and run it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.dumping import Dump

W = np.random.default_rng(0).normal(size=(16, 40)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)


@pytest.mark.parametrize("on", ["numpy", "triton"])
def test_the_script_runs_what_was_run(on: str, tmp_path: Path) -> None:
    x = tapestry.input("x", (8, 16))
    tapestry.save(tapestry.relu(x @ W), tmp_path / "model.mlir")
    np.savez(tmp_path / "in.npz", x=X)
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "run", "model.mlir"]
    command += ["--inputs", "in.npz", "--on", on, "--shards", "2", "--dump", "out"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "out"
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "00-program.mlir"
    assert "01-weft-apply.mlir" in names
    assert ("kernels.py" in names) == (on == "triton")
    for path in (tmp_path / "model.mlir", tmp_path / "model.npz", tmp_path / "in.npz"):
        path.unlink()
    script = [sys.executable, str(folder / "repro.py")]
    done = subprocess.run(script, check=True, capture_output=True, text=True, cwd="/")
    assert done.stdout.startswith("output 0: float32[8, 40], at most ")
    assert float(done.stdout.split("at most ")[1].split()[0]) < 1e-4


def test_every_step_can_be_read(tmp_path: Path) -> None:
    x = tapestry.input("x", (8, 16))
    tapestry.save(x @ W + W[0, 0], tmp_path / "model.mlir")
    module = tapestry.load_module(tmp_path / "model.mlir")
    tapestry.run_pipeline(module, "default", dump=Dump(tmp_path / "out"))
    steps = sorted((tmp_path / "out").glob("*.mlir"))
    for step in steps[1:]:
        (got,) = tapestry.run(tapestry.load_module(step), {"x": X}).outputs
        np.testing.assert_allclose(got, X @ W + W[0, 0], rtol=1e-4, atol=1e-5)
    with np.load(tmp_path / "out" / "constants.npz") as archive:
        assert len(archive.files) == 1


def test_an_old_dump_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "07-gone.mlir").write_text("")
    (tmp_path / "notes.txt").write_text("mine")
    Dump(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tapestry.UsageError, match="cannot write to"):
        Dump(tmp_path / "file")
