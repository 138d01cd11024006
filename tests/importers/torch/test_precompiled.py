"""Where PyTorch keeps what Dynamo made, a compiled graph is kept by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch._dynamo.precompile_context")

PROGRAM = """
import json, sys
import torch
from torch._dynamo.utils import counters

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))

if __name__ == "__main__":
    torch.manual_seed(0)
    model, x = Model(), torch.randn(5, 4)
    loss = torch.compile(model, backend="tapestry")(x).square().sum()
    loss.backward()
    gradients = [one.grad.tolist() for one in model.parameters()]
    traced = counters["frames"]["total"]
    if "save" in sys.argv:
        torch.compiler.save_cache_artifacts()
    print(json.dumps([loss.item(), gradients, traced]))
"""


def _run(folder: Path, *arguments: str) -> list[Any]:
    """What a process of its own finds: a loss, gradients, and how many frames Dynamo traced."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    environment = {
        **os.environ,
        "TAPESTRY_CACHE": "1",
        # no folder beside the script may be named as a package is: it would be found instead of it
        "TAPESTRY_CACHE_DIR": str(folder / "kept"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
        "TORCH_CACHING_PRECOMPILE": "1",
    }
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_next_process_does_not_trace(tmp_path):
    loss, gradients, traced = _run(tmp_path, "save")
    assert traced > 0
    assert _run(tmp_path) == [loss, gradients, 0]
    shutil.rmtree(tmp_path / "kept" / "graphs")  # what PyTorch has is a name
    assert _run(tmp_path) == [loss, gradients, traced]
