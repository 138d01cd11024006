"""What importing and compiling a PyTorch model costs, beside torch.compile's default, on the CPU.

    python benchmarks/import.py                       # GPT-2 of 12 layers, and training the digits
    python benchmarks/import.py --layers 2 --tokens 32

The first call of a compiled GPT-2 (124 million parameters, random) is timed in processes of their
own, that call and nothing before it: once with empty caches, then again with what that left. The
peer is Inductor in the same form. Every backend of torch.compile waits for Dynamo, which is
imported and traces the model in Python before it asks for anything: the backend `eager`, which runs
what it is handed, shows what that takes, with one run.

Then the steps of training a classifier of digits (64-128-10, all 1,347 images at once, SGD) are
timed in one process, eager, compiled by Inductor and by Tapestry, in turns: medians. Seconds of
wall-clock and of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from machine import machine
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "import.json"
DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.npz"
BACKENDS = ("tapestry", "inductor")
TRACING = "eager"
"""The backend that compiles nothing."""


@dataclass(frozen=True)
class Row:
    """One measurement: seconds of wall-clock, and of the processors."""

    what: str
    backend: str
    seconds: float
    processor: float


def gpt2(layers: int, width: int = 768, heads: int = 12, words: int = 50257) -> Any:
    """GPT-2 as its paper has it, with random weights."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, tokens, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(width, 2)
            shape = (batch, tokens, heads, width // heads)
            q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            inner = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(inner)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
            return self.head(self.norm(self.blocks(x)))

    return Model().eval()


def first_call(backend: str, layers: int, tokens: int) -> None:
    """The child process: time the first call of a compiled model, and compare with eager mode."""
    import torch

    torch.manual_seed(0)
    model, given = gpt2(layers), torch.randint(0, 50257, (1, tokens))
    with torch.no_grad():
        want = model(given)
        started, used = perf_counter(), process_time()
        got = torch.compile(model, backend=backend)(given)
        taken = perf_counter() - started, process_time() - used
    far = float((got - want).abs().max())
    sys.stdout.write(json.dumps({"seconds": taken[0], "processor": taken[1], "far": far}))


def compiling(layers: int, tokens: int) -> list[Row]:
    """The first call with each backend, with empty caches and with full ones."""
    rows: list[Row] = []
    for backend in (*BACKENDS, TRACING):
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
                "TAPESTRY_CACHE_DIR": f"{folder}/tapestry",
                "TAPESTRY_CACHE": "1",
            }
            for what in ("cold", "cached"):
                command = [sys.executable, __file__, "--child", backend]
                command += ["--layers", str(layers), "--tokens", str(tokens)]
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                )
                answer = json.loads(done.stdout.splitlines()[-1])
                assert answer["far"] < 1e-3, (backend, answer)
                rows.append(
                    Row(f"first call, {what}", backend, answer["seconds"], answer["processor"])
                )
    return rows


def training(steps: int) -> list[Row]:
    """A training step of the digits' classifier, in turns."""
    import torch
    from torch import nn

    with np.load(DIGITS) as digits:
        kept = ~digits["held_out"]
        x = torch.from_numpy(digits["images"][kept].astype(np.float32) / 16)
        y = torch.from_numpy(digits["labels"][kept].astype(np.int64))

    def stepper(backend: str | None) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
        run: Any = model if backend is None else torch.compile(model, backend=backend)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step() -> float:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        return step

    steppers = {"eager": stepper(None), **{name: stepper(name) for name in BACKENDS}}
    losses = {name: [step() for _ in range(5)] for name, step in steppers.items()}
    for name, found in losses.items():
        np.testing.assert_allclose(found, losses["eager"], rtol=1e-3, err_msg=name)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steppers}
    for _ in range(steps):
        for name, step in steppers.items():
            started, used = perf_counter(), process_time()
            step()
            taken[name].append((perf_counter() - started, process_time() - used))
    return [
        Row("training step", name, *(float(m) for m in np.median(np.array(found), axis=0)))
        for name, found in taken.items()
    ]


def show(rows: list[Row], console: Console) -> None:
    table = Table(title="import and compile, on the CPU", title_justify="left")
    table.add_column("what")
    table.add_column("backend")
    for column in ("seconds", "processor seconds", "by processor"):
        table.add_column(column, justify="right")
    own = {row.what: row.processor for row in rows if row.backend == "tapestry"}
    for row in rows:
        ratio = own[row.what] / row.processor
        shown = "" if row.backend == "tapestry" else f"tapestry takes {ratio:.2f} x"
        table.add_row(row.what, row.backend, f"{row.seconds:.4f}", f"{row.processor:.4f}", shown)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure importing and compiling.")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--child", choices=(*BACKENDS, TRACING), help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    if options.child:
        first_call(options.child, options.layers, options.tokens)
        return
    rows = [*compiling(options.layers, options.tokens), *training(options.steps)]
    show(rows, Console(width=110))
    result = {"machine": machine(), "layers": options.layers, "rows": [asdict(row) for row in rows]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
