"""What a call of a compiled PyTorch model takes on the CPU, beside eager mode and Inductor.

    python benchmarks/torch_step.py                    # about two minutes
    python benchmarks/torch_step.py --only digits --steps 500

Training steps are the forward pass, the cross entropy, the gradients and plain SGD of a 64-128-10
perceptron on the digits: on all 1,347 images, on 64 and on one, where a call costs more than what
it computes. The blocks of GPT-2 and of a ResNet are called without gradients; those that are
trained, with the gradients of a sum to the input and to all parameters. The backends take turns in
one process, with the threads that PyTorch has by itself; a figure is the median of
wall-clock time. `program` is the part of Tapestry's calls that its operations take; the rest is
PyTorch's (guards, autograd, the optimizer) and what hands tensors over.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from _gpt2 import Block
from machine import machine
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

from tapestry.runtime.prepared.linking import Linked
from tapestry.runtime.prepared.script import Whole

HERE = Path(__file__).parent
DIGITS = HERE.parent / "examples" / "digits" / "digits.npz"
RESULTS = HERE / "results" / "torch_step.json"
BACKENDS = ("eager", "tapestry", "inductor")

Step = Callable[[], torch.Tensor]


def compiled(function: Any, backend: str) -> Any:
    """A function or model by a backend."""
    return function if backend == "eager" else torch.compile(function, backend=backend)


def digits(batch: int, activation: type[nn.Module] = nn.GELU) -> Callable[[str], Step]:
    """A training step on so many images."""
    with np.load(DIGITS) as data:
        kept = ~data["held_out"]
        x = torch.from_numpy(data["images"][kept][:batch]).float() / 16
        y = torch.from_numpy(data["labels"][kept][:batch]).long()

    def make(backend: str) -> Step:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), activation(), nn.Linear(128, 10))
        run, optimizer = compiled(model, backend), torch.optim.SGD(model.parameters(), 0.05)

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


class Residual(nn.Module):
    """A block of a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(x + self.norms[1](self.second(inner)))


def forward(make_model: Callable[[], nn.Module], *shape: int) -> Callable[[str], Step]:
    """A call of a model that is not trained."""

    def make(backend: str) -> Step:
        torch.manual_seed(0)
        model, x = make_model().eval(), torch.randn(*shape)
        run = compiled(model, backend)

        def step() -> torch.Tensor:
            with torch.no_grad():
                return run(x)

        return step

    return make


def gradients(make_model: Callable[[], nn.Module], *shape: int) -> Callable[[str], Step]:
    """A call of a model that is trained, and its gradients."""

    def make(backend: str) -> Step:
        torch.manual_seed(0)
        model, x = make_model(), torch.randn(*shape, requires_grad=True)
        run = compiled(model, backend)

        def step() -> torch.Tensor:
            leaves = [x, *model.parameters()]
            found = torch.autograd.grad(run(x).square().sum(), leaves)
            return torch.cat([one.flatten() for one in found])

        return step

    return make


class UNet(nn.Module):
    """A level of a U-Net: down, up again, and what was there beside it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU())
        self.down = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU()
        )
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.after = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = self.before(x)
        return self.after(torch.cat([before, self.up(self.down(before))], 1))


def lenet() -> nn.Module:
    """LeNet, with maxima for means."""
    pool, relu = nn.MaxPool2d(2), nn.ReLU()
    images = [nn.Conv2d(1, 6, 5, padding=2), relu, pool, nn.Conv2d(6, 16, 5), relu, pool]
    return nn.Sequential(*images, nn.Flatten(), nn.Linear(400, 120), relu, nn.Linear(120, 10))


def gpt2_block() -> nn.Module:
    """A layer of GPT-2."""
    return Block(width=768, heads=12)


CASES: dict[str, Callable[[str], Step]] = {
    "digits, all images": digits(1347),
    "digits, all images, ReLU": digits(1347, nn.ReLU),
    "digits, 64 images": digits(64),
    "digits, 1 image": digits(1),
    "GPT-2 block, 64 tokens": forward(gpt2_block, 1, 64, 768),
    "ResNet block, 4 x 64 x 28 x 28": forward(lambda: Residual(64), 4, 64, 28, 28),
    "ResNet block, trained": gradients(lambda: Residual(64), 4, 64, 28, 28),
    "LeNet, trained, 64 images": gradients(lenet, 64, 1, 28, 28),
    "U-Net level, trained, 2 x 3 x 64 x 64": gradients(lambda: UNet(16), 2, 3, 64, 64),
    "convolution, depthwise, trained": gradients(
        lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), 4, 64, 28, 28
    ),
    "convolution, 4 groups, trained": gradients(
        lambda: nn.Conv2d(64, 64, 3, padding=1, groups=4), 4, 64, 28, 28
    ),
    "convolution, transposed, trained": gradients(
        lambda: nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), 4, 64, 14, 14
    ),
    "convolution, 1-d, trained": gradients(lambda: nn.Conv1d(64, 64, 9, padding=4), 8, 64, 256),
    "convolution, 3-d, trained": gradients(
        lambda: nn.Conv3d(8, 16, 3, padding=1), 2, 8, 16, 16, 16
    ),
}


def measure(make: Callable[[str], Step], steps: int) -> dict[str, float]:
    """Microseconds of a step by each backend, and of Tapestry's programs in it."""
    torch.compiler.reset()
    inside = [0.0]

    def timed(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began = perf_counter()
            made = run(*given)
            inside[0] += perf_counter() - began
            return made

        return call

    run_program, run_at = Whole.__call__, Linked.run_at

    taking = {backend: make(backend) for backend in BACKENDS}
    for _ in range(5):  # the first ones compile
        made = {backend: step() for backend, step in taking.items()}
        # Sums that cancel have errors of what they are of, not of what is left.
        near = 1e-4 * float(made["eager"].abs().max())
        for backend in BACKENDS[1:]:
            torch.testing.assert_close(made[backend], made["eager"], rtol=1e-3, atol=near)
    took: dict[str, list[float]] = {name: [] for name in (*BACKENDS, "program")}
    Whole.__call__, Linked.run_at = timed(run_program), timed(run_at)
    try:
        for _ in range(steps):
            for backend, step in taking.items():
                inside[0] = 0.0
                began = perf_counter()
                step()
                took[backend].append(perf_counter() - began)
                if backend == "tapestry":
                    took["program"].append(inside[0])
    finally:
        Whole.__call__, Linked.run_at = run_program, run_at
    return {name: 1e6 * float(np.median(times)) for name, times in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time calls of compiled PyTorch models.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    chosen = {name: make for name, make in CASES.items() if options.only in name}
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name; there are {', '.join(CASES)}")
    table = Table("a call", *BACKENDS, "of it program", "tapestry / eager", "inductor / eager")
    rows: list[dict[str, Any]] = []
    for name, make in chosen.items():
        found = measure(make, options.steps)
        ratios = [found[backend] / found["eager"] for backend in BACKENDS[1:]]
        cells = [f"{found[part]:.0f} us" for part in (*BACKENDS, "program")]
        table.add_row(name, *cells, *(f"{ratio:.2f}" for ratio in ratios))
        rows.append({"case": name, **found, "ratio": ratios[0], "inductor_ratio": ratios[1]})
    Console(width=120).print(table)
    if len(chosen) == len(CASES):
        result = {"machine": machine(), "threads": torch.get_num_threads(), "rows": rows}
        options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
