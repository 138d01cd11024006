"""What Tapestry says on stderr when it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tapestry
from tapestry import logs


@pytest.fixture(autouse=True)
def _silent_again():
    yield
    logs.configure("")


def _run(on: str) -> None:
    x = tapestry.input("x", (4, 6))
    program = tapestry.compile(tapestry.softmax(x * 2, axis=1), on=on).sharded(shards=2)
    program(np.ones((4, 6), np.float32))


def test_nothing_is_said_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    _run("numpy")
    assert capsys.readouterr().err == ""


def test_passes_and_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("passes, plan")
    _run("numpy")
    said = capsys.readouterr().err
    assert "tapestry.passes: weft-apply: 4 -> " in said
    assert "tapestry.plan: @" in said
    assert ": 2 shards, " in said
    assert "tapestry.kernels" not in said


def test_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("kernels")
    _run("triton")
    assert capsys.readouterr().err.startswith("tapestry.kernels: ")


def test_a_wrong_name_is_said_once_and_hinders_nothing() -> None:
    environment = {**os.environ, logs.VARIABLE: "pases"}
    done = subprocess.run(
        [sys.executable, "-c", "import tapestry.logs"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    message = "TAPESTRY_LOGS: there is no channel 'pases'; did you mean passes?\n"
    assert done.stderr == message


def test_all_are_switched_on_and_off() -> None:
    logs.configure("all")
    assert all(logs.channel(name).level for name in logs.CHANNELS)
    logs.configure("")
    assert not any(logs.channel(name).level for name in logs.CHANNELS)
    with pytest.raises(KeyError):
        logs.channel("nothing")
