"""Which device kernels run on, and what is said where that is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tapestry.codegen import climbing
from tapestry.runtime.triton import devices
from tapestry.runtime.triton.devices import Cpu, Gpu, find_device


def raising(error: Exception) -> Callable[..., Any]:
    def called(*_: object) -> None:
        raise error

    return called


def pytorch(
    *, available: bool, cuda: str | None = "13.0", init: Any = None, current: Any = lambda: 0
) -> SimpleNamespace:
    functions = {"is_available": lambda: available, "init": init, "current_device": current}
    return SimpleNamespace(cuda=SimpleNamespace(**functions), version=SimpleNamespace(cuda=cuda))


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climbing, "_said", set[str]())
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


OLD = "The NVIDIA driver on your system is too old (found version 11040).\nPlease update"


@pytest.mark.parametrize(
    ("torch", "why"),
    [
        (pytorch(available=False, cuda=None), "this PyTorch is built for the CPU alone"),
        (
            pytorch(available=False, init=raising(RuntimeError(OLD))),
            "The NVIDIA driver on your system is too old (found version 11040)",
        ),
        (
            pytorch(available=True, current=raising(RuntimeError("CUDA error: busy\nmore"))),
            "CUDA error: busy",
        ),
        (pytorch(available=False, init=lambda: None), "PyTorch sees none"),
        (None, "PyTorch is not installed"),
    ],
    ids=["built without", "driver", "unusable", "none", "no PyTorch"],
)
def test_why_there_is_no_gpu_is_said_once(
    torch: Any, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "find_spec", lambda _: torch)
    monkeypatch.setattr(devices, "import_module", lambda _: torch)
    assert isinstance(find_device(quiet=True), Cpu)
    assert not caplog.records
    for _ in range(2):
        assert isinstance(find_device(), Cpu)
    (record,) = caplog.records
    said, hint = record.getMessage().split("\n")
    assert said.startswith(f"there is no GPU to run kernels on: {why}")
    assert said.endswith("; Triton's interpreter runs them, slowly")
    assert "TRITON_INTERPRET=1" in hint


def test_what_is_asked_for_is_not_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert isinstance(find_device(), Cpu)
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(devices, "import_module", lambda _: pytorch(available=True))
    monkeypatch.setattr(devices, "find_spec", lambda _: True)
    assert isinstance(find_device(), Gpu)
    assert not caplog.records
