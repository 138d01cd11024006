"""The example of an operator of one's own in a PyTorch model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "torch_metakernel"


def test_it_trains_as_eager_mode_does() -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from eager mode" in done.stdout


def test_its_templates_hold() -> None:
    command = [sys.executable, "-m", "tapestry.tools.tapestry", "metakernel", "check"]
    done = subprocess.run(
        [*command, str(FOLDER / "operators.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
