"""`tapestry tune`, without a GPU: what is predicted, and what is said where nothing is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.tools import tapestry
from tapestry.tuning import programs
from tapestry.tuning.benches import Bench, HostBench

PROGRAM = """
!a = !loom.tensor<[0, 0] : [512, 512], bf16>
func.func @main(%a: !a, %b: !a) -> !a {
  %y = weft.apply @matmul(%a, %b) : (!a, !a) -> !a
  func.return %y : !a
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TAPESTRY_CACHE", "tuning")
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "model.mlir"
    path.write_text(PROGRAM)
    return path


def _exit(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        tapestry.main(["tune", *arguments])
    return int(exit_.value.code or 0)


def test_predictions_are_a_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(str(file), "--predict", "--rows", "3", "--target", "a100") == 0
    said = capsys.readouterr().out
    assert "predicted for NVIDIA A100" in said
    rows = [line for line in said.splitlines() if "stages" in line]
    assert len(rows) == 4
    assert sum("default" in row for row in rows) == 1
    assert "M 512, N 512, K 512" in said


def test_where_nothing_is_to_choose_it_says_so(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "func.func @main(%a: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>"
        " {\n  func.return %a : !loom.tensor<[0] : [4], f32>\n}\n"
    )
    assert _exit(str(file), "--predict") == 0
    assert capsys.readouterr().out.startswith("there is nothing to choose: ")


def test_without_a_gpu_it_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(str(file)) == 2
    assert "error: there is no GPU to measure on\n  hint: --predict" in capsys.readouterr().err


def test_an_unknown_device_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(str(file), "--predict", "--target", "h300") == 2
    assert "there is no device 'h300'" in capsys.readouterr().err


def _host(_: LoomToTriton) -> tuple[Bench, str]:
    times = iter(range(1000))
    return HostBench(lambda *_: 2e-5, clock=lambda: float(next(times))), "h200"


def test_measurements_are_a_table_and_are_kept(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = file.with_name("small.mlir")
    small.write_text(PROGRAM.replace("512, 512", "32, 32"))
    monkeypatch.setattr("tapestry.tools._tune.find_bench", _host)
    assert _exit(str(small), "--budget", "2.5") == 0
    said = capsys.readouterr().out
    assert "measured on interpreter" in said
    assert "20.0" in said
    assert len(list((file.parent / "cache" / "tuning").iterdir())) == 1


def test_programs_are_tuned_when_they_are_compiled(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tapestry as t
    from tapestry.passes.triton.kernels.mapfold import given_schedule

    monkeypatch.setattr(programs, "find_bench", _host)
    x = t.input("x", (32, 48), "f32").sum(axis=1)
    for seconds in (2.5, 0):
        compiled = t.compile(x, on="triton", tune=seconds)
        ops = list(compiled.lowered.walk())
        assert any(given_schedule(op) is not None for op in ops if op.name == "loom.operation")
    plain = t.compile(x, on="triton").lowered
    assert all(given_schedule(op) is None for op in plain.walk() if op.name == "loom.operation")
    _ = file


def test_without_a_gpu_programs_are_compiled_as_ever(file: Path) -> None:
    import tapestry as t

    x = t.input("x", (32, 48), "f32").sum(axis=1)
    compiled = t.compile(x, on="triton", tune=5)
    assert str(compiled.lowered) == str(t.compile(x, on="triton").lowered)
    _ = file
