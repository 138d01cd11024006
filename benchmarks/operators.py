"""What single operations of PyTorch take through Tapestry on the CPU, beside eager mode.

    python benchmarks/operators.py                    # about ten minutes
    python benchmarks/operators.py --only roll cat    # names that have one of these in them
    python benchmarks/operators.py --inductor

Eager mode's operations are written one by one, by hand, and read and write memory once: where an
operation comes alone, there is nothing to fuse, and it shows what Tapestry's code and its calls
cost. Each is called on some megabytes, and on some thousand cells, without gradients. The backends
take turns in one process, with the threads that PyTorch has by itself; of several calls one after
another the median counts, in microseconds of wall-clock time. A ratio above 1 says that Tapestry is
faster.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from _torch_operators import Operation, operations
from machine import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

RESULTS = Path(__file__).parent / "results" / "operators.json"
BURST = 2e-3
"""Seconds of calls of one backend, before it is the next one's turn."""


def once(call: Callable[[], Any], count: int) -> float:
    """Seconds of a call, of so many."""
    began = perf_counter()
    for _ in range(count):
        call()
    return (perf_counter() - began) / count


def measure(
    operation: Operation, arguments: Sequence[Tensor], backends: Sequence[str], seconds: float
) -> dict[str, float]:
    """Microseconds of a call by each backend."""
    torch.compiler.reset()
    calls: dict[str, Callable[[], Any]] = {}
    with torch.no_grad():
        want = operation(*arguments)
        for backend in backends:
            run = operation if backend == "eager" else torch.compile(operation, backend=backend)
            calls[backend] = lambda run=run: run(*arguments)
            for _ in range(4):  # the first ones compile
                torch.testing.assert_close(calls[backend](), want, rtol=2e-2, atol=2e-2)
        counts = {one: max(1, int(BURST / once(call, 3))) for one, call in calls.items()}
        found: dict[str, list[float]] = {backend: [] for backend in backends}
        end = perf_counter() + seconds
        while perf_counter() < end or len(found["eager"]) < 3:
            for backend, call in calls.items():
                call()
                found[backend].append(once(call, counts[backend]))
    return {backend: 1e6 * float(np.median(took)) for backend, took in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time single operations of PyTorch.")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names")
    parser.add_argument("--size", choices=("large", "small"), help="one of the sizes alone")
    parser.add_argument("--inductor", action="store_true", help="beside Inductor too")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to time a call")
    parser.add_argument("--output", type=Path, help=f"the JSON file to write, {RESULTS.name}")
    options = parser.parse_args()
    backends = ("eager", "tapestry", *(["inductor"] if options.inductor else []))
    sizes = [options.size] if options.size else ["large", "small"]
    all_of_them = operations()
    chosen = [name for name in all_of_them if any(one in name for one in options.only)]
    table = Table("operation", "on", *(f"{one}, us" for one in backends), "eager / tapestry")
    console, rows = Console(width=110), []
    for name in track(chosen, "operations", console=console):
        operation, large, small = all_of_them[name]
        for size in sizes:
            arguments = (large if size == "large" else small)()
            found = measure(operation, arguments, backends, options.seconds)
            ratio = found["eager"] / found["tapestry"]
            figures = (f"{found[one]:.3g}" for one in backends)
            table.add_row(name, size, *figures, f"{ratio:.2f}")
            rows.append({"operation": name, "on": size, **found, "ratio": ratio})
    console.print(table)
    if options.output or (len(chosen) == len(all_of_them) and not options.size):
        result = {"machine": machine(), "threads": torch.get_num_threads(), "rows": rows}
        output = options.output or RESULTS
        output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
