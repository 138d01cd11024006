"""`tapestry equal` as a user meets it: answers, exit codes, counterexamples that replay."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tapestry.diagnostics import InvalidProgramError
from tapestry.proving.pair import Options
from tapestry.tools._equal import EXIT_CODES, Request, compare_files

DOUBLE = """\
!x = !loom.tensor<[0, 0] : [3, 4], f32>
func.func @main(%x: !x, %b: !x) -> !x {
  %y = loom.operation @y over <[0, 0] : [3, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1), %b : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %e: f32) {
           %s = arith.addf %c, %c : f32
           %r = arith.addf %s, %e : f32
           loom.yield %r : f32
         } : (!x, !x) -> !x
  func.return %y : !x
}
"""
TIMES_TWO = DOUBLE.replace(
    "%s = arith.addf %c, %c : f32",
    "%two = arith.constant 2.0 : f32  %s = arith.mulf %two, %c : f32",
)
SWAPPED = DOUBLE.replace("%c, %c", "%c, %e")


def tapestry(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tapestry.tools.tapestry", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", "TERM": "dumb"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "double": DOUBLE,
        "two": TIMES_TWO,
        "swapped": SWAPPED,
        "shape": DOUBLE.replace("4]", "5]"),
        "broken": DOUBLE.replace("over <[0, 0] : [3, 4]>", "over <[0, 0] : [3, 3]>"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    return {name: tmp_path / f"{name}.mlir" for name in texts}


def test_equal_programs(files: dict[str, Path]):
    result = tapestry("equal", files["double"], files["two"])
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("equal (")


def test_a_difference_is_shown_and_replays(files: dict[str, Path], tmp_path: Path):
    inputs = tmp_path / "in.npz"
    result = tapestry("equal", files["double"], files["swapped"], "--counterexample", inputs)
    assert result.returncode == 1
    assert result.stdout.startswith("differ: ")
    assert "class generic, seed 0, sizes x [3, 4], b [3, 4]" in result.stdout
    outputs: list[npt.NDArray[Any]] = []
    commands = [line.strip() for line in result.stdout.splitlines() if "tapestry run" in line]
    assert len(commands) == 2
    for place, command in enumerate(commands):
        output = tmp_path / f"{place}.npz"
        assert tapestry(*command.split()[1:], "--output", output).returncode == 0
        outputs.append(np.load(output)["out0"])
    assert np.count_nonzero(outputs[0] != outputs[1]) == 1, "the counterexample is shrunk"


def test_signatures_must_agree(files: dict[str, Path]):
    result = tapestry("equal", files["double"], files["shape"])
    assert result.returncode == 1
    assert "signatures differ: argument 0 is !loom.tensor<[0, 0] : [3, 4], f32> (%x)" in (
        result.stdout
    )


def test_programs_must_be_well_formed(files: dict[str, Path], tmp_path: Path):
    result = tapestry("equal", files["double"], files["broken"])
    assert result.returncode == 2
    assert "broken.mlir:3:" in result.stderr
    missing = tapestry("equal", files["double"], tmp_path / "none.mlir")
    assert missing.returncode == 2
    assert "cannot read" in missing.stderr
    assert "Traceback" not in result.stderr + missing.stderr


def test_large_programs_part_at_smaller_sizes(files: dict[str, Path], tmp_path: Path):
    large = {name: files[name].with_name(f"large_{name}.mlir") for name in ("double", "swapped")}
    for name, path in large.items():
        path.write_text(files[name].read_text().replace("[3, 4]", "[500, 400]"))
    inputs = tmp_path / "in.npz"
    result = tapestry("equal", large["double"], large["swapped"], "--counterexample", inputs)
    assert result.returncode == 1
    assert "sizes: x [500, 400] -> " in result.stdout
    assert "they part at @y" in result.stdout
    commands = [line.strip() for line in result.stdout.splitlines() if "tapestry run" in line]
    assert [command.split()[2] for command in commands] == [
        str(tmp_path / "in.first.mlir"),
        str(tmp_path / "in.second.mlir"),
    ]
    for command in commands:
        replayed = tapestry(*command.split()[1:])
        assert (replayed.returncode, replayed.stderr) == (0, "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InvalidProgramError("it asks for what is not there"), "it asks for what is not there"),
        (MemoryError("cannot allocate 8 GiB"), "cannot allocate 8 GiB"),
        (RuntimeError("a mistake of ours"), "a mistake of ours"),
    ],
)
def test_an_error_is_no_difference(
    files: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    said: str,
):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("tapestry.tools._equal.compare_programs", fail)
    request = Request(files["double"], files["two"], Options())
    assert compare_files(request) == EXIT_CODES["undecided"]
    assert said in capsys.readouterr().err


def test_issues_of_both_programs_are_json_for_tools(files: dict[str, Path], tmp_path: Path):
    syntax = tmp_path / "syntax.mlir"
    syntax.write_text("func.func @main(%x i32) { func.return }")
    result = tapestry("equal", "--issues-json", files["broken"], syntax)
    issues = json.loads(result.stderr)
    assert (result.returncode, result.stdout) == (2, "")
    assert [(issue["kind"], issue["file"]) for issue in issues] == [
        ("coverage", str(files["broken"])),
        ("syntax", str(syntax)),
    ]
