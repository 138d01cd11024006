"""The part of `gpu_check.py` about models of PyTorch that the backend compiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from traceback import print_exception
from typing import Any

import numpy as np
from _gpu_rows import Rows, within

RESERVE = 15.0
"""Seconds of the part that its start and end take."""


def cases(*, small: bool = False) -> dict[str, tuple[Any, tuple[int, ...], Any, float]]:
    """Models, the shape of their input, the dtype, and how far results may be from float64."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int = 512, heads: int = 8) -> None:
            super().__init__()
            self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.heads = heads

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            parts = self.qkv(self.norm(x)).view(b, t, 3, self.heads, c // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.after(x))))

    hidden = 16 if small else 1024
    perceptron = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    images = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(10)
    )
    return {
        "perceptron": (perceptron, (4 if small else 256, 784), torch.float32, 1e-3),
        "block, float16": (
            Block(32, 2) if small else Block(),
            (1, 16, 32) if small else (4, 256, 512),
            torch.float16,
            2e-2,
        ),
        "convolution": (
            images,
            (1, 3, 8, 8) if small else (64, 3, 32, 32),
            torch.float32,
            1e-3,
        ),
    }


def backends() -> dict[str, Callable[[Any], Callable[..., Any]]]:
    """What compiles a model, what is to be known first coming first."""
    import torch

    # By its function: its name is known only where Tapestry is installed.
    from tapestry.importers.torch import backend

    def by(**options: Any) -> Callable[[Any], Callable[..., Any]]:
        return lambda model: torch.compile(model, dynamic=False, **options)

    return {
        "tapestry": by(backend=backend),
        "eager": lambda model: model,
        "tapestry, graphs": by(backend=backend, options={"graphs": True}),
        "inductor": by(),
        "max-autotune": by(mode="max-autotune"),
    }


def models_part(path: Path, seconds: float, *, small: bool = False) -> dict[str, Any]:
    """Models of PyTorch: results against eager in float64, and time beside eager and inductor."""
    import torch

    end = perf_counter() + seconds - RESERVE
    kept = Rows(path)
    end = kept.rest.setdefault("until", end)
    for name, compiling in backends().items():
        for model in cases(small=small):
            if not kept.has(model=model, by=name) and perf_counter() < end:
                kept.add({"model": model, "by": name})  # also where the process dies of it
                kept.rows[-1] |= _row(model, compiling, end - perf_counter(), small=small)
                kept.write()
                kept.restart_if_lost(torch)
    ours = [row for row in kept.rows if row["by"].startswith("tapestry")]
    right = sum(row.get("right", False) for row in ours)
    summary = f"{right} of {len(ours)} models right"
    return {**kept.rest, "rows": kept.rows, "summary": summary, "ok": right == len(ours)}


def _row(
    name: str, compiling: Callable[[Any], Callable[..., Any]], left: float, *, small: bool
) -> dict[str, Any]:
    """A model on a backend: the error, and what compiling and a call take."""
    import torch

    torch.manual_seed(0)
    torch.compiler.reset()
    model, shape, dtype, tolerance = cases(small=small)[name]
    x = torch.randn(shape)
    row: dict[str, Any] = {}
    try:
        with torch.no_grad(), within(left):
            want = model.eval().double()(x.double())
            model, x = model.to("cuda", dtype), x.to("cuda", dtype)
            began = perf_counter()
            compiled = compiling(model)
            got = compiled(x)
            row["compile_seconds"] = perf_counter() - began
            row["error"] = float((got.double().cpu() - want).abs().max() / want.abs().max())
            row["right"] = row["error"] < tolerance
            row["us"] = timed(compiled, x)
    except Exception as error:  # noqa: BLE001 - the table says what failed
        print_exception(error)
        row["problem"] = f"{type(error).__name__}: {error}"[:600]
    return row


def timed(run: Callable[..., object], *given: object) -> float:
    """Microseconds of a call on the GPU: the median by events."""
    import torch

    for _ in range(5):
        run(*given)
    taken: list[float] = []
    for _ in range(30):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run(*given)
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) * 1e3)
    return float(np.median(taken))
