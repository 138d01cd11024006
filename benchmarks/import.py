"""What importing and compiling a PyTorch model costs, beside torch.compile's default, on the CPU.

    python benchmarks/import.py                       # GPT-2 of 12 layers, and training the digits
    python benchmarks/import.py --layers 2 --tokens 32

The first call of a compiled GPT-2 (124 million parameters, random) is timed in processes of their
own, that call and nothing before it: once with empty caches, then again with what that left, by
every backend in turn, several times: medians. So is the first step of training it, to the
gradients. The peer is Inductor in the same form. Every backend of torch.compile waits for Dynamo,
which is imported and traces the model in Python before it asks for anything: the backend `eager`,
which runs what it is handed, shows what that takes, with one run. Where PyTorch keeps what Dynamo
made (`caching_precompile`), a call with full caches is `precompiled`: without that trace.

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


FORMS = {
    "first call, {}": [],
    "first call, precompiled": ["--keep"],
    "first step of training, {}": ["--train"],
}
"""What is timed, with empty and with full caches, and the options of the process that does it."""


@dataclass(frozen=True)
class Row:
    """One measurement: seconds of wall-clock, and of the processors."""

    what: str
    backend: str
    seconds: float
    processor: float


def first_call(backend: str, layers: int, tokens: int, *, train: bool, keep: bool) -> None:
    """The child process: time the first call of a compiled model, and compare with eager mode.

    `train` is a step of training to the gradients, which are compared instead; `keep` has PyTorch
    keep what Dynamo made.
    """
    import torch
    from _gpt2 import GPT2

    torch.manual_seed(0)
    model, given = GPT2(layers).train(train), torch.randint(0, 50257, (1, tokens))

    def call(run: Any) -> Any:
        if not train:
            with torch.no_grad():
                return run(given)
        model.zero_grad()
        logits = run(given)[0]
        torch.nn.functional.cross_entropy(logits[:-1], given[0, 1:]).backward()
        return model.blocks[0].qkv.weight.grad

    want = call(model).clone()
    started, used = perf_counter(), process_time()
    got = call(torch.compile(model, backend=backend))
    taken = perf_counter() - started, process_time() - used
    far = float((got - want).abs().max())
    sys.stdout.write(json.dumps({"seconds": taken[0], "processor": taken[1], "far": far}))
    if keep:
        torch.compiler.save_cache_artifacts()


def compiling(layers: int, tokens: int, times: int) -> list[Row]:
    """The first call with each backend, with empty caches and with full ones."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            row
            for at, (what, flags) in enumerate(FORMS.items())
            for row in _calls(Path(folder) / str(at), what, flags, layers, tokens, times)
        ]


def _calls(
    folder: Path, what: str, flags: list[str], layers: int, tokens: int, times: int
) -> list[Row]:
    """One form: each backend with empty caches, then all in turns with what that left."""
    kept = "--keep" in flags
    backends = BACKENDS if kept else (*BACKENDS, TRACING)

    def call(backend: str) -> tuple[float, float]:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{backend}/inductor",
            "TAPESTRY_CACHE_DIR": f"{folder}/{backend}/tapestry",
            "TAPESTRY_CACHE": "1",
            "TORCH_CACHING_PRECOMPILE": str(int(kept)),
        }
        # Python's own cache, which every installed package has.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, __file__, "--child", backend, *flags]
        command += ["--layers", str(layers), "--tokens", str(tokens)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout.splitlines()[-1])
        assert answer["far"] < 1e-3, (backend, answer)
        return answer["seconds"], answer["processor"]

    cold = {backend: call(backend) for backend in backends}
    cached: dict[str, list[tuple[float, float]]] = {backend: [] for backend in backends}
    for _ in range(times):
        for backend in backends:
            cached[backend].append(call(backend))
    rows = [] if kept else [Row(what.format("cold"), one, *took) for one, took in cold.items()]
    return rows + [Row(what.format("cached"), one, *_medians(took)) for one, took in cached.items()]


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    """Seconds of wall-clock and of the processors, of measurements."""
    seconds, processor = np.median(np.array(taken), axis=0)
    return float(seconds), float(processor)


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
    return [Row("training step", name, *_medians(found)) for name, found in taken.items()]


def show(rows: list[Row], console: Console) -> None:
    table = Table(title="import and compile, on the CPU", title_justify="left")
    table.add_column("what")
    table.add_column("backend")
    for column in ("seconds", "processor seconds", "tapestry takes", "by processor"):
        table.add_column(column, justify="right")
    own = {row.what: row for row in rows if row.backend == "tapestry"}
    for row in rows:
        ours = own[row.what]
        ratios = (ours.seconds / row.seconds, ours.processor / row.processor)
        shown = ["", ""] if row is ours else [f"{ratio:.2f} x" for ratio in ratios]
        table.add_row(row.what, row.backend, f"{row.seconds:.4f}", f"{row.processor:.4f}", *shown)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure importing and compiling.")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--times", type=int, default=5, help="calls with full caches")
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    parser.add_argument("--child", choices=(*BACKENDS, TRACING), help=argparse.SUPPRESS)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    if options.child:
        first_call(
            options.child, options.layers, options.tokens, train=options.train, keep=options.keep
        )
        return
    rows = [*compiling(options.layers, options.tokens, options.times), *training(options.steps)]
    show(rows, Console(width=110))
    result = {"machine": machine(), "layers": options.layers, "rows": [asdict(row) for row in rows]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
