"""How long it takes from the text of a block of GPT-2 to kernels that can be launched.

    python benchmarks/latency.py                 # GPT-2's block, 1 x 1024 x 768, 12 heads
    python benchmarks/latency.py --times 5 --device a100

Every measurement is a process of its own: once with an empty cache, then with what that left. Told
apart are starting (Python with Tapestry imported, before there is a program) and the way of the
program: reading and checking its text in weft, the recommended passes, loom-to-triton, printing
the module of kernels, compiling them. Lowering is for a device, by default an H200: there the cost
model chooses schedules, and what was refused before is asked for. No GPU is needed, and none is
used. What the first use of a stage imports counts as its own. Kernels are compiled as ever, in
processes that import Triton while the program is lowered.

`compiling` is all but the work of NVIDIA's assembler: its place has a program that is done at once,
so what is measured is how long all kernels take to be PTX. `assembling` is by how much compiling
takes longer with the assembler itself, in a cold process of its own; it is not part of the way.
Nor is a launch, which takes microseconds (`launch.py`).

Of `triton` the stages of the compiler are told apart: seconds of one process that compiles the
kernels one after another, summed up. They are not part of the way, where kernels are compiled side
by side, but say what it is made of.

Medians, in seconds of wall-clock and of processor time; the latter with that of processes that have
ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tapestry.codegen.aot import CompiledKernel
    from tapestry.runtime.executor import Array

RESULTS = Path(__file__).parent / "results" / "latency.json"

STAGES = ("reading", "passes", "loom-to-triton", "printing", "compiling")
"""The way of a program, in order; starting comes before."""

TRITON = ("ir", "ttir", "ttgir", "llir", "ptx", "cubin")
"""Triton's stages, in order; the last one is the assembler's."""

LIMITS = {"cold": 3.0, "cached": 0.3}
"""Seconds that the way of the block is to take at most."""

_Result = TypeVar("_Result")
_Taken = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Row:
    """One stage: seconds of wall-clock, and of the processor."""

    cache: str
    stage: str
    seconds: float
    processor: float


def child(model: str, *, stages: bool) -> None:
    """One process: each stage of the way, as the triton executor goes it for a GPU's model."""
    taken: _Taken = {}

    def timed(stage: str, run: Callable[[], _Result]) -> _Result:
        started, used = perf_counter(), _processor()
        result = run()
        taken[stage] = perf_counter() - started, _processor() - used
        return result

    def start() -> None:
        import_module("tapestry.runtime.triton.executor")

    from _blocks import gpt2

    text = gpt2(packed=True)
    timed("starting", start)

    import tapestry
    from tapestry.caching import lowered
    from tapestry.codegen.aot import compile_kernels
    from tapestry.codegen.aot_processes import end_all
    from tapestry.codegen.module_files import write_module
    from tapestry.codegen.module_printer import print_module
    from tapestry.codegen.refusals import find_refusals
    from tapestry.devices import find_spec
    from tapestry.runtime.triton.compiled import compilers
    from tapestry.runtime.triton.devices import GPU_TILE, Cpu
    from tapestry.runtime.triton.executor import TritonExecutor
    from tapestry.store import find_store

    device, executor = Cpu(), TritonExecutor(tile=GPU_TILE)
    # What kernels are lowered and compiled for; nothing is run.
    device.model = model
    device.capability = capability = find_spec(model).capability

    def lower() -> tuple[ModuleOp, list[Array]]:
        return executor.lowered(module, device, refused=find_refusals(model))

    def compiled() -> tuple[CompiledKernel, ...]:
        store = find_store("aot")
        made = compile_kernels(
            write_module(printed.source),
            printed.kernels,
            targets=(capability,),
            workers=compilers(),
            cache=None if store is None else store.folder,
        )
        end_all()  # so that what they took is known
        return made

    module = timed("reading", lambda: tapestry.parse_module(text, "gpt2.mlir"))
    module = timed("passes", lambda: lowered(module, "default"))
    kernels, _ = timed("loom-to-triton", lower)
    printed = timed("printing", lambda: print_module(kernels))
    if stages:
        taken = _stages(write_module(printed.source), printed.kernels, capability)
    else:
        timed("compiling", compiled)
    sys.stdout.write(json.dumps({"stages": taken, "kernels": len(printed.kernels)}))


def _processor() -> float:
    """Seconds of the processor that this process has used, and those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _stages(path: Path, kernels: Any, capability: int) -> _Taken:
    """What each stage of Triton takes for all kernels, compiled one after another here."""
    from tapestry.codegen import aot_worker
    from tapestry.codegen.module_files import load_kernels

    knobs: Any = import_module("triton.knobs")
    import_module("triton.compiler.code_generator")
    spent: dict[str, float] = defaultdict(float)

    def listen(*, times: Any, **_: Any) -> None:
        for stage, microseconds in (("ir", times.ir_initialization), *times.lowering_stages):
            spent[stage] += microseconds / 1e6

    knobs.compilation.listener = listen
    functions = vars(load_kernels(path))
    for kernel in kernels:
        answer = aot_worker.answer_of(functions[kernel.name], asdict(kernel), capability)
        assert "error" not in answer, answer
    return {stage: (spent[stage], spent[stage]) for stage in TRITON}


@contextmanager
def _no_assembler() -> Iterator[dict[str, str]]:
    """Variables of the environment by which Triton calls an assembler that is done at once."""
    knobs: Any = import_module("triton.knobs")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ptxas"
        real = knobs.nvidia.ptxas.path
        path.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exec "{real}" --version\n'
            'while [ "$1" != -o ]; do shift; done\n: > "$2"\n'
        )
        path.chmod(0o755)
        yield dict.fromkeys(("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"), str(path))


def measure(times: int, device: str) -> tuple[list[Row], int]:
    """Medians of cold and of cached processes, and how many kernels there are."""
    found: dict[str, list[_Taken]] = {"cold": [], "cached": [], "triton": []}
    kernels = set[int]()

    def run(environment: dict[str, str], *options: str) -> _Taken:
        answer = _run(environment, "--device", device, *options)
        kernels.add(answer["kernels"])
        return answer["stages"]

    with _no_assembler() as instead:
        for _ in range(times):
            with tempfile.TemporaryDirectory() as folder:
                own = {"TAPESTRY_CACHE_DIR": folder, **instead}
                cold = run(own)
                found["cached"].append(run(own))
            with tempfile.TemporaryDirectory() as folder:
                whole = run({"TAPESTRY_CACHE_DIR": folder})["compiling"]
                more = zip(whole, cold["compiling"], strict=True)
                cold["assembling"] = tuple(one - other for one, other in more)
                found["triton"].append(run({"TAPESTRY_CACHE_DIR": folder}, "--stages"))
            found["cold"].append(cold)
    assert len(kernels) == 1, kernels
    rows: list[Row] = []
    for cache in ("cold", "cached"):
        for one in found[cache]:
            one["the way"] = tuple(sum(one[stage][n] for stage in STAGES) for n in (0, 1))
    of_cache = {"cold": ("assembling",), "cached": ()}
    for cache, seen in found.items():
        way = ("starting", *STAGES, "the way", *of_cache.get(cache, ()))
        for stage in TRITON if cache == "triton" else way:
            wall, processor = (median(one[stage][n] for one in seen) for n in (0, 1))
            rows.append(Row(cache, stage, wall, processor))
    return rows, kernels.pop()


def _run(own: dict[str, str], *options: str) -> dict[str, Any]:
    environment = {**os.environ, "TAPESTRY_CACHE": "1", **own}
    environment.pop("TRITON_INTERPRET", None)
    if "--stages" in options:
        environment["TRITON_ALWAYS_COMPILE"] = "1"
        environment["TRITON_CACHE_DIR"] = own["TAPESTRY_CACHE_DIR"]
    done = subprocess.run(
        [sys.executable, __file__, "--child", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def show(rows: list[Row], kernels: int) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"a block of GPT-2, from text to {kernels} compiled kernels"
    table = Table(title=title, title_justify="left")
    table.add_column("stage")
    for column in ("cold", "processor", "cached", "processor"):
        table.add_column(column, justify="right")
    cached = {row.stage: row for row in rows if row.cache == "cached"}
    for cold in (row for row in rows if row.cache == "cold"):
        other = cached.get(cold.stage)
        numbers = [cold.seconds, cold.processor]
        numbers += [] if other is None else [other.seconds, other.processor]
        table.add_row(cold.stage, *(f"{number:.3f}" for number in numbers))
    console = Console(width=100)
    console.print(table)
    parts = (f"{row.stage} {row.seconds:.3f}" for row in rows if row.cache == "triton")
    console.print(f"Triton's stages, kernels one after another: {', '.join(parts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the latency of compiling a block.")
    parser.add_argument("--times", type=int, default=3, help="processes of each kind")
    parser.add_argument("--device", default="h200", help="what kernels are lowered for")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stages", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file to write")
    options = parser.parse_args()
    if options.child:
        child(options.device, stages=options.stages)
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
