"""The JAX example: a training step of JAX's, run by Tapestry."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

TRAIN = Path(__file__).parents[2] / "examples" / "jax" / "train.py"


def test_the_example_trains() -> None:
    done = subprocess.run(
        [sys.executable, TRAIN, "--steps", "12"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"difference from JAX's step: \d\.\de-0[6-9]", done.stdout), done.stdout
    assert "step   0: loss 2." in done.stdout
