"""Tools that start as copies of a process behave like commands of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests import forked

BIN = Path(sys.executable).parent
EMPTY = "builtin.module {}"


@pytest.fixture(scope="module")
def started() -> Any:
    return forked.loaded(subprocess).Popen


def run(start: Any, tool: str, *args: str, text: str = "", **options: Any) -> tuple[int, str, str]:
    process = start(
        [tool, *args],
        executable=str(BIN / tool),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": str(BIN), **options.pop("env", {})},
        universal_newlines=True,
        **options,
    )
    out, errors = process.communicate(text)
    return process.returncode, out, errors


@pytest.mark.parametrize(
    ("tool", "args", "text"),
    [
        ("tapestry-opt", (), EMPTY),
        ("tapestry-opt", ("--version",), ""),
        ("tapestry-opt", (), "builtin.modul {}"),
        ("tapestry-opt", ("gone.mlir",), ""),
        ("tapestry-opt", ("-p", "gone"), EMPTY),
        ("tapestry", ("equal", "gone.mlir", "gone.mlir"), ""),
        ("filecheck", ("checks.txt",), "one\n"),
        ("filecheck", ("checks.txt",), "other\n"),
    ],
)
def test_like_a_command(
    started: Any, tmp_path: Path, tool: str, args: tuple[str, ...], text: str
) -> None:
    (tmp_path / "checks.txt").write_text("// CHECK: one\n")
    found, wanted = (
        run(start, tool, *args, text=text, cwd=tmp_path) for start in (started, subprocess.Popen)
    )
    assert found == wanted


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of the above would hold of commands as well."""
    monkeypatch.setattr("tapestry.tools.opt.main", lambda: print(os.environ["PATH"], sys.argv))
    start = forked.loaded(subprocess).Popen
    found = run(start, "tapestry-opt", "x", env={"PATH": "here"})
    assert found == (0, "here ['tapestry-opt', 'x']\n", "")


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [(SystemExit(3), 3, ""), (SystemExit(), 0, ""), (SystemExit("no"), 1, "no\n")],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, stop: SystemExit, code: int, said: str
) -> None:
    def main() -> None:
        raise stop

    monkeypatch.setattr("tapestry.tools.opt.main", main)
    assert run(forked.loaded(subprocess).Popen, "tapestry-opt") == (code, "", said)


def test_what_nobody_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def main() -> None:
        raise ValueError("of the tool")

    monkeypatch.setattr("tapestry.tools.opt.main", main)
    code, out, errors = run(forked.loaded(subprocess).Popen, "tapestry-opt")
    assert (code, out) == (1, "")
    assert errors.startswith("Traceback")
    assert errors.endswith("ValueError: of the tool\n")


@pytest.mark.parametrize("start", ["forked", "a command"])
def test_a_reader_that_is_gone(started: Any, tmp_path: Path, start: str) -> None:
    (tmp_path / "empty.mlir").write_text(EMPTY)
    reader, writer = os.pipe()
    os.close(reader)
    process = (started if start == "forked" else subprocess.Popen)(
        ["tapestry-opt", str(tmp_path / "empty.mlir")],
        executable=str(BIN / "tapestry-opt"),
        stdout=writer,
        stderr=subprocess.PIPE,
        env={"PATH": str(BIN)},
        universal_newlines=True,
    )
    os.close(writer)
    errors = process.communicate()[1]
    assert "Broken pipe" in errors
    assert process.returncode != 0


def test_what_goes_away_soon_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def main() -> None:
        warnings.warn_explicit("gone soon", DeprecationWarning, "x.py", 1, "tapestry.passes.x")

    monkeypatch.setattr("tapestry.tools.opt.main", main)
    code, _, errors = run(forked.loaded(subprocess).Popen, "tapestry-opt")
    assert code == 1
    assert errors.endswith("DeprecationWarning: gone soon\n")


def test_other_programs_start_as_ever(started: Any) -> None:
    process = started(["true"], executable="/bin/true", env={})
    assert process.wait() == 0
