"""`tapestry run --metakernels`: templates of the user's own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TEMPLATE = """\
cube:
  inputs: {x: {shape: "[$d...]", dtype: number}}
  index: "[$d...]"
  wrap: "x ^ 3"
"""
PROGRAM = """\
func.func @main(%x: !loom.tensor<[0] : [3], f32>) -> !loom.tensor<[0] : [3], f32> {
  %y = weft.apply @cube(%x) : (!loom.tensor<[0] : [3], f32>) -> !loom.tensor<[0] : [3], f32>
  func.return %y : !loom.tensor<[0] : [3], f32>
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "in.npz", x=np.array([1, -2, 3], np.float32))
    return tmp_path


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "run", "program.mlir"]
    command += ["--inputs", "in.npz", "--output", "out.npz", "--on", "numpy", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_they_are_applied(folder: Path):
    (folder / "mine" / "cube.yaml").write_text(TEMPLATE)
    assert run(folder, "--metakernels", "mine").returncode == 0
    with np.load(folder / "out.npz") as outputs:
        np.testing.assert_array_equal(outputs["out0"], [1, -8, 27])


def test_an_unknown_key_is_located(folder: Path):
    (folder / "mine" / "cube.yaml").write_text(TEMPLATE.replace("wrap", "warp"))
    done = run(folder, "--metakernels", "mine")
    assert done.returncode == 1
    assert done.stderr.startswith("mine/cube.yaml:4:")
    assert "warp" in done.stderr
    assert "wrap" in done.stderr


def test_without_them_the_name_is_unknown(folder: Path):
    done = run(folder)
    assert done.returncode == 1
    assert done.stderr.startswith("program.mlir:2:3: error: ")
    assert "cube" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("tapestry", "inspect", "program.mlir"),
        ("tapestry", "equal", "program.mlir", "program.mlir"),
        ("opt", "program.mlir", "-p", "weft-apply,loom-simplify", "--equal-each"),
    ],
)
def test_every_tool_takes_them(folder: Path, command: tuple[str, ...]):
    (folder / "mine" / "cube.yaml").write_text(TEMPLATE)
    tool, *rest = command
    line = [sys.executable, "-m", f"tapestry.tools.{tool}", *rest, "--metakernels"]
    for given, code in (("mine", 0), ("nothing", 2)):
        done = subprocess.run(
            [*line, given], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
