"""`tapestry tune`, without a GPU: what is predicted, and what is said where nothing is measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.driver import LoadError, MemoryShortError
from tapestry.passes.triton.kernels.mapfold import given_schedule
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.measured import measured_of
from tapestry.runtime.triton.compiled import GpuError, check_capability
from tapestry.tools import tapestry
from tapestry.tuning import jobs_of, programs, settled
from tapestry.tuning.benches import Bench, HostBench
from tapestry.tuning.cuda import CudaBench

H200 = LoomToTriton(device="h200")

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
    assert 4 <= len(rows) <= 5
    assert sum("untuned" in row for row in rows) == 1
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


def test_an_old_gpu_is_said_before_anything_is_measured(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def old(_: LoomToTriton) -> tuple[Bench, str]:
        check_capability(75)
        raise AssertionError

    monkeypatch.setattr("tapestry.tools._tune.find_bench", old)
    for command in (["tune", str(file)], ["calibrate", "-o", str(file.with_name("mine.yaml"))]):
        with pytest.raises(SystemExit, match="1"):
            tapestry.main(command)
        assert "error: this GPU is sm_75, and kernels run on sm_80" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("capability", "said"),
    [((7, 5), "this GPU is sm_75"), (RuntimeError("CUDA error: busy\nmore"), "CUDA error: busy$")],
)
def test_a_gpu_that_cannot_be_used_is_an_error(
    capability: tuple[int, int] | Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")

    def asked() -> tuple[int, int]:
        if isinstance(capability, Exception):
            raise capability
        return capability

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", asked)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    with pytest.raises(GpuError) as found:
        programs.find_bench(LoomToTriton())
    assert re.search(said, found.value.message)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            MemoryShortError("Tried to allocate 4 GiB"),
            "4 GiB\n  hint: probes take up to 8",
        ),
        (LoadError("NVIDIA's driver cannot be loaded"), "driver cannot be loaded"),
    ],
)
def test_what_cannot_be_calibrated_is_one_message(
    error: Exception,
    said: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    bench = CudaBench(None, LoomToTriton())
    monkeypatch.setattr(CudaBench, "device", "NVIDIA H200")
    monkeypatch.setattr("tapestry.tools._tune.find_bench", lambda _: (bench, "h200"))
    monkeypatch.setattr("tapestry.tools._tune.calibrate", fail)
    with pytest.raises(SystemExit, match="1"):
        tapestry.main(["calibrate", "-o", str(file.with_name("mine.yaml"))])
    shown = capsys.readouterr().err
    assert shown.startswith("error: the GPU cannot be measured: ")
    assert said in shown


def test_an_unknown_device_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(str(file), "--predict", "--target", "h300") == 2
    assert "there is no device 'h300'" in capsys.readouterr().err


def _seconds(module: ModuleOp, _: Callable[[], None]) -> float:
    """What is given another schedule than the untuned one is twice as fast, alone and whole."""
    (job,) = jobs_of(settled(_without_schedules(module), H200), H200)
    given = [given_schedule(op) for op in module.walk() if op.name == "loom.operation"]
    own = next(filter(None, given), None) or measured_of(module, "h200").get(job.place)
    return 2e-5 if own in (None, job.untuned) else 1e-5


def _without_schedules(module: ModuleOp) -> ModuleOp:
    plain = module.clone()
    for op in plain.walk():
        op.attributes.pop("schedule", None)
    return plain


def _host(lowering: LoomToTriton) -> tuple[Bench, str]:
    times = iter(range(1000))
    on_h200 = replace(lowering, device="h200")
    return HostBench(_seconds, clock=lambda: float(next(times)), lowering=on_h200), "h200"


def test_measurements_are_a_table_and_are_kept(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = file.with_name("small.mlir")
    small.write_text(PROGRAM.replace("512, 512", "32, 32"))
    monkeypatch.setattr("tapestry.tools._tune.find_bench", _host)
    assert _exit(str(small), "--budget", "3.5") == 0
    said = capsys.readouterr().out
    assert "measured on interpreter" in said
    assert "the program takes 10.0 us with schedules, 20.0 us untuned\n" in said
    # What kernels take, and what the program takes.
    assert len(list((file.parent / "cache" / "tuning").iterdir())) == 2


def test_what_is_not_faster_stays_as_it_is(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = file.with_name("small.mlir")
    small.write_text(PROGRAM.replace("512, 512", "32, 32"))

    def same(lowering: LoomToTriton) -> tuple[Bench, str]:
        bench, like = _host(lowering)
        assert isinstance(bench, HostBench)
        return replace(bench, stopwatch=lambda *_: 2e-5), like

    monkeypatch.setattr("tapestry.tools._tune.find_bench", same)
    assert _exit(str(small), "--budget", "3.5") == 0
    assert "nothing is faster than the kernels that the program has" in capsys.readouterr().out


def test_programs_are_tuned_when_they_are_compiled(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tapestry as t

    monkeypatch.setattr(programs, "find_bench", _host)
    x = t.input("x", (32, 48), "f32").sum(axis=1)
    for seconds in (3.5, 0):
        compiled = t.compile(x, on="triton", tune=seconds)
        assert len(measured_of(compiled.lowered, "h200")) == 1
        assert measured_of(compiled.lowered, "a100") == {}
        given = np.ones((32, 48), np.float32)
        np.testing.assert_array_equal(compiled(x=given), given.sum(1))
    plain = t.compile(x, on="triton").lowered
    assert measured_of(plain, "h200") == {}
    _ = file


def test_without_a_gpu_programs_are_compiled_as_ever(file: Path) -> None:
    import tapestry as t

    x = t.input("x", (32, 48), "f32").sum(axis=1)
    compiled = t.compile(x, on="triton", tune=5)
    assert str(compiled.lowered) == str(t.compile(x, on="triton").lowered)
    _ = file
