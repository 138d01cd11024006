"""The example that trains a classifier in PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "torch_digits" / "train.py"


def test_it_trains_as_eager_mode_does() -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "operators are native (100.0 %)" in done.stdout
    assert "of 450 held-out images are right" in done.stdout
