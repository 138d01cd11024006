"""What a training step of the digits takes, compiled on the numpy executor and in eager mode.

    python benchmarks/torch_step.py                    # about a minute
    python benchmarks/torch_step.py --steps 50

A step is the forward pass, the cross entropy, the gradients and plain SGD, of a 64-h-10 perceptron
on all 1,347 images or on a batch. Steps of both take turns, on one thread; a figure is the tenth
percentile of processor time, which other work on the machine disturbs least. `kernels` is the part
of a compiled step that its operations take; the rest is PyTorch's (guards, autograd, the optimizer)
and what hands tensors over.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import torch
from machine import machine
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

from tapestry.runtime.prepared import PreparedProgram

HERE = Path(__file__).parent
DIGITS = HERE.parent / "examples" / "digits" / "digits.npz"
RESULTS = HERE / "results" / "torch_step.json"
SIZES = ((1347, 64), (1347, 256), (256, 128), (64, 128))


def step_of(hidden: int, x: torch.Tensor, y: torch.Tensor, *, compiled: bool) -> Callable[[], None]:
    """A function that trains a model of its own by one step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(x), y)

    run = torch.compile(loss, backend="tapestry", dynamic=False) if compiled else loss

    def step() -> None:
        optimizer.zero_grad()
        run(x, y).backward()
        optimizer.step()

    return step


def measure(steps: int, batch: int, hidden: int) -> dict[str, float]:
    """Microseconds of a step of each kind."""
    with np.load(DIGITS) as digits:
        kept = ~digits["held_out"]
        x = torch.from_numpy(digits["images"][kept][:batch]).float() / 16
        y = torch.from_numpy(digits["labels"][kept][:batch]).long()
    torch.compiler.reset()
    run_program, inside = PreparedProgram.__call__, [0.0]

    def timed(program: PreparedProgram, inputs: list[np.ndarray]) -> list[np.ndarray]:
        began = process_time()
        made = run_program(program, inputs)
        inside[0] += process_time() - began
        return made

    PreparedProgram.__call__ = timed
    kinds = {"eager": False, "compiled": True}
    taking = {name: step_of(hidden, x, y, compiled=kind) for name, kind in kinds.items()}
    took: dict[str, list[float]] = {"eager": [], "compiled": [], "kernels": []}
    for number in range(steps + 10):
        for name, step in taking.items():
            inside[0] = 0.0
            began = process_time()
            step()
            if number >= 10:  # the first ones compile
                took[name].append(process_time() - began)
        if number >= 10:
            took["kernels"].append(inside[0])
    PreparedProgram.__call__ = run_program
    return {name: 1e6 * float(np.percentile(times, 10)) for name, times in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time training steps of the digits.")
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("images", "hidden", "eager", "compiled", "of it kernels", "ratio")
    rows: list[dict[str, float]] = []
    for batch, hidden in SIZES:
        found = measure(options.steps, batch, hidden)
        ratio = found["compiled"] / found["eager"]
        cells = [f"{found[name]:.0f} us" for name in ("eager", "compiled", "kernels")]
        table.add_row(str(batch), str(hidden), *cells, f"{ratio:.2f}")
        rows.append({"images": batch, "hidden": hidden, **found, "ratio": ratio})
    Console().print(table)
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
