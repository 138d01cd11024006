"""How long it takes from the text of a block of GPT-2 to kernels that can be launched.

    python benchmarks/latency.py                 # GPT-2's block, 1 x 1024 x 768, 12 heads
    python benchmarks/latency.py --times 5 --device a100

Every measurement is a process of its own: once with an empty cache, then with what that left. Told
apart are starting (Python with Tapestry imported, before there is a program) and the way of the
program: reading and checking its text in weft, the recommended passes, loom-to-triton, printing
the module of kernels, and loading it, with which Triton is imported. Lowering is for a device, by
default an H200: there the cost model chooses schedules, and what was refused before is asked for.
No GPU is needed, and none is used: loading is Python's alone. What the first use of a stage imports
counts as its own. Not counted is what Triton and its assembler make of kernels when they are first
launched, or by `tapestry compile` ahead of time, nor the launches; cubins are kept by themselves.

Medians, in seconds of wall-clock and of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tapestry.runtime.executor import Array

RESULTS = Path(__file__).parent / "results" / "latency.json"

STAGES = ("reading", "passes", "loom-to-triton", "printing", "loading")
"""The way of a program, in order; starting comes before."""

LIMITS = {"cold": 3.0, "cached": 0.3}
"""Seconds that the way of the block is to take at most."""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Row:
    """One stage: seconds of wall-clock, and of the processor."""

    cache: str
    stage: str
    seconds: float
    processor: float


def child(model: str) -> None:
    """One process: each stage of the way, as the triton executor goes it for a GPU's model."""
    taken: dict[str, tuple[float, float]] = {}

    def timed(stage: str, run: Callable[[], _Result]) -> _Result:
        started, used = perf_counter(), process_time()
        result = run()
        taken[stage] = perf_counter() - started, process_time() - used
        return result

    def start() -> None:
        import_module("tapestry.runtime.triton.executor")

    from _blocks import gpt2

    text = gpt2(packed=True)
    timed("starting", start)

    import tapestry
    from tapestry.caching import lowered
    from tapestry.codegen.module_printer import print_module
    from tapestry.codegen.refusals import find_refusals
    from tapestry.runtime.triton.devices import GPU_TILE, Cpu
    from tapestry.runtime.triton.executor import TritonExecutor
    from tapestry.runtime.triton.module import load_kernels, write_module

    device, executor = Cpu(), TritonExecutor(tile=GPU_TILE)
    device.model = model  # what kernels are lowered for; nothing is run

    def lower() -> tuple[ModuleOp, list[Array]]:
        return executor.lowered(module, device, refused=find_refusals(model))

    module = timed("reading", lambda: tapestry.parse_module(text, "gpt2.mlir"))
    module = timed("passes", lambda: lowered(module, "default"))
    kernels, _ = timed("loom-to-triton", lower)
    printed = timed("printing", lambda: print_module(kernels))
    timed("loading", lambda: load_kernels(write_module(printed.source)))
    sys.stdout.write(json.dumps({"stages": taken, "kernels": len(printed.kernels)}))


def measure(times: int, device: str) -> tuple[list[Row], int]:
    """Medians of cold and of cached processes, and how many kernels there are."""
    found: dict[str, list[dict[str, tuple[float, float]]]] = {"cold": [], "cached": []}
    kernels = set[int]()
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            for seen in found.values():
                answer = _run(folder, device)
                seen.append(answer["stages"])
                kernels.add(answer["kernels"])
    assert len(kernels) == 1, kernels
    rows: list[Row] = []
    for cache, seen in found.items():
        for one in seen:
            one["the way"] = tuple(sum(one[stage][n] for stage in STAGES) for n in (0, 1))
        for stage in ("starting", *STAGES, "the way"):
            wall, processor = (median(one[stage][n] for one in seen) for n in (0, 1))
            rows.append(Row(cache, stage, wall, processor))
    return rows, kernels.pop()


def _run(folder: str, device: str) -> dict[str, object]:
    environment = {**os.environ, "TAPESTRY_CACHE_DIR": folder, "TAPESTRY_CACHE": "1"}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, __file__, "--child", "--device", device],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def show(rows: list[Row], kernels: int) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"a block of GPT-2, from text to {kernels} loaded kernels"
    table = Table(title=title, title_justify="left")
    table.add_column("stage")
    for column in ("cold", "processor", "cached", "processor"):
        table.add_column(column, justify="right")
    for cold in (row for row in rows if row.cache == "cold"):
        (cached,) = (row for row in rows if (row.cache, row.stage) == ("cached", cold.stage))
        numbers = (cold.seconds, cold.processor, cached.seconds, cached.processor)
        table.add_row(cold.stage, *(f"{number:.3f}" for number in numbers))
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the latency of compiling a block.")
    parser.add_argument("--times", type=int, default=3, help="processes of each kind")
    parser.add_argument("--device", default="h200", help="what kernels are lowered for")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    if options.child:
        child(options.device)
        return
    rows, kernels = measure(options.times, options.device)
    show(rows, kernels)

    from machine import machine

    result = {
        "machine": machine(),
        "device": options.device,
        "kernels": kernels,
        "limits": LIMITS,
        "rows": [asdict(row) for row in rows],
    }
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
