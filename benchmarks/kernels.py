"""The kernels that Tapestry writes: what they take, and on a GPU how fast they are.

    python benchmarks/kernels.py                            # compile every case for sm_90
    python benchmarks/kernels.py --target 90 80 --only attention softmax
    python benchmarks/kernels.py --measure                  # on a GPU: check and time everything

Without a GPU every case is compiled. A case has problems where a kernel spills registers, takes
more shared memory than there is, multiplies matrices of 16 bits without wgmma on sm_90, or where it
is more kernels than one; with `--strict` the script then fails. `floor` is the least time that an
H200 takes: for each input read once and each output written once, and for the floating-point
operations, the larger.

With `--measure` each case is checked against PyTorch in float64, then timed beside PyTorch: eager,
torch.compile, and torch.compile(mode="max-autotune"), which calls cuBLAS and FlashAttention. The
ceilings, a copy and a matrix product, are measured in the same run. Times are medians by events;
inputs rotate, so that they are not all in the L2. `--seconds` bounds the whole run; what was not
reached is said.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _kernel_cases import CASES, Case
from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.context import Context

import tapestry
from tapestry.codegen.aot import MAX_SHARED_BYTES, CompiledKernel, CompileError, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.dialects.loom import tensor_type
from tapestry.graph import flops, operations
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.program import arguments, main_function

RESULTS = Path(__file__).parent / "results"
BANDWIDTH = 4.3e12
"""Bytes per second of a copy on an H200, reads and writes counted."""
RATES = {"f16": 790e12, "bf16": 790e12, "f32": 60e12}
"""Floating-point operations per second: cuBLAS in 16 bits, and float32 outside of tensor cores."""


@dataclass
class Row:
    """A case on a target: its kernels, and what is wrong with them."""

    case: str
    family: str
    target: int
    kernels: int
    registers: int
    shared: int
    spills: int
    tensor_cores: str
    floor: float
    """Seconds."""
    seconds: float
    """What compiling took."""
    problems: list[str] = field(default_factory=list)


@dataclass
class Timing:
    """A case on the GPU: the error against float64 (relative), and seconds."""

    case: str
    family: str
    error: float
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    problem: str = ""


def lowered(case: Case) -> Any:
    """The program of a case in loom, after the default pipeline."""
    return tapestry.compile(case.expression(), on="triton").lowered


def floor(case: Case, module: Any) -> float:
    """The least seconds on an H200."""
    tensors = [a.type for a in arguments(module)]
    function = main_function(module)
    returned = function.body.block.last_op
    assert returned is not None
    tensors += [tensor_type(value) for value in returned.operands]
    bytes_moved = sum(kind.byte_size for kind in tensors)
    work = sum(map(flops, operations(module)))
    dtype = case.inputs[0].dtype
    rate = RATES[dtype] if case.multiplies else RATES["f32"]
    return max(bytes_moved / BANDWIDTH, work / rate)


def compiled(case: Case, targets: Sequence[int]) -> list[Row]:
    """What a case takes on each target."""
    started = perf_counter()
    module = lowered(case)
    least = floor(case, module)
    LoomToTriton().apply(Context(), module)
    printed = print_module(module)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernels.py")
        path.write_text(printed.source)
        try:
            kernels = compile_kernels(
                path, printed.kernels, targets=targets, workers=os.cpu_count() or 1
            )
        except CompileError as error:
            row = Row(case.name, case.family, targets[0], 0, 0, 0, 0, "", least, 0.0)
            row.problems.append(str(error.message))
            return [row]
    taken = perf_counter() - started
    return [
        _row(case, target, [k for k in kernels if k.target == target], least, taken)
        for target in targets
    ]


def _row(
    case: Case, target: int, kernels: Sequence[CompiledKernel], least: float, taken: float
) -> Row:
    cores = {_cores(kernel) for kernel in kernels} - {""}
    row = Row(
        case.name,
        case.family,
        target,
        len(kernels),
        max(kernel.registers for kernel in kernels),
        max(kernel.shared for kernel in kernels),
        sum(kernel.spills for kernel in kernels),
        "+".join(sorted(cores)),
        least,
        taken,
    )
    if row.spills:
        row.problems.append(f"spills {row.spills} bytes")
    if row.shared > MAX_SHARED_BYTES[target]:
        row.problems.append("too much shared memory")
    half = case.inputs[0].dtype in ("f16", "bf16")
    if case.multiplies and half and target == 90 and "wgmma" not in cores:
        row.problems.append("no wgmma")
    if len(kernels) > 1:
        row.problems.append(f"{len(kernels)} kernels")
    row.problems += [warning for kernel in kernels for warning in kernel.warnings]
    return row


def _cores(kernel: CompiledKernel) -> str:
    if kernel.uses_wgmma:
        return "wgmma"
    return "mma" if "mma.sync" in kernel.ptx else ""


def show_compiled(rows: Sequence[Row], console: Console) -> None:
    table = Table(title="kernels, compiled ahead of time", title_justify="left")
    table.add_column("case")
    for column in ("sm", "kernels", "registers", "shared KiB", "floor us", "compile s"):
        table.add_column(column, justify="right")
    table.add_column("tensor cores")
    table.add_column("problems")
    for row in rows:
        table.add_row(
            row.case,
            str(row.target),
            str(row.kernels),
            str(row.registers),
            f"{row.shared / 1024:.0f}",
            f"{row.floor * 1e6:.1f}",
            f"{row.seconds:.1f}",
            row.tensor_cores,
            "; ".join(row.problems),
        )
    console.print(table)
    bad = sum(bool(row.problems) for row in rows)
    console.print(f"{len(rows)} rows, {bad} with problems")


class Gpu:
    """Checks and times cases on a GPU, through PyTorch."""

    def __init__(self, seconds: float) -> None:
        import torch

        self.torch: Any = torch
        self.end = perf_counter() + seconds

    def ceilings(self) -> dict[str, float]:
        """Bytes per second of a copy, and operations per second of a product in bf16."""
        torch = self.torch
        big = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
        other = torch.empty_like(big)
        copy = self.time([lambda: other.copy_(big)])
        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        product = self.time([lambda: a @ a])
        return {"copy bytes/s": 2 * big.numel() / copy, "bf16 flop/s": 2 * 8192**3 / product}

    def time(self, calls: Sequence[Any], repeats: int = 30) -> float:
        """The median seconds of calls, which take turns."""
        torch = self.torch
        for call in calls:
            call()
        torch.cuda.synchronize()
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
        for number, (start, end) in enumerate(events):
            start.record()
            calls[number % len(calls)]()
            end.record()
        torch.cuda.synchronize()
        return float(np.median([start.elapsed_time(end) for start, end in events])) / 1e3

    def inputs(self, case: Case, seed: int) -> list[Any]:
        torch = self.torch
        generator = torch.Generator(device="cuda").manual_seed(seed)
        dtypes = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
        made: list[Any] = []
        for one in case.inputs:
            if one.below:
                options = {"generator": generator, "device": "cuda"}
                made.append(torch.randint(one.below, one.shape, **options))
            else:
                cells = torch.randn(one.shape, generator=generator, device="cuda")
                made.append(cells.to(dtypes[one.dtype]))
        return made

    def measure(self, case: Case) -> Timing:
        """Check a case, and time it and its peers."""
        torch = self.torch
        module = lowered(case)
        row = Timing(case.name, case.family, float("nan"), float("nan"), floor=floor(case, module))
        LoomToTriton().apply(Context(), module)
        source = print_module(module).source
        from tapestry.runtime.triton_module import load_kernels, write_module

        launch = vars(load_kernels(write_module(source)))["launch"]
        given = self.inputs(case, 0)
        got = launch(*given)
        wide = [one.double() if one.is_floating_point() else one for one in given]
        try:
            want = case.peer(torch, *wide)
        except torch.OutOfMemoryError:
            want = case.peer(torch, *given).double()
        row.error = float((got.double() - want).norm() / want.norm().clamp_min(1e-30))
        del wide, want, got
        size = sum(one.numel() * one.element_size() for one in given)
        sets = [given] + [self.inputs(case, n) for n in range(1, 1 + min(4, int(2e8 // size)))]
        row.ours = self.time([lambda one=one: launch(*one) for one in sets])
        peers = {
            "eager": lambda *x: case.peer(torch, *x),
            "compile": torch.compile(lambda *x: case.peer(torch, *x)),
            "max-autotune": torch.compile(
                lambda *x: case.peer(torch, *x), mode="max-autotune-no-cudagraphs"
            ),
        }
        for name, peer in peers.items():
            if perf_counter() < self.end:
                torch.compiler.reset()
                row.peers[name] = self.time([lambda one=one, p=peer: p(*one) for one in sets])
        return row


def measured(cases: Sequence[Case], seconds: float, console: Console) -> dict[str, Any]:
    gpu = Gpu(seconds)
    ceilings = gpu.ceilings()
    rows: list[Timing] = []
    for case in cases:
        if perf_counter() > gpu.end:
            console.print(f"no time was left for {case.name} and those after it")
            break
        try:
            rows.append(gpu.measure(case))
        except Exception as error:  # noqa: BLE001 - a case that fails is a row, not the end
            nan = float("nan")
            text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            rows.append(Timing(case.name, case.family, nan, nan, problem=text[:200]))
    show_measured(rows, console)
    return {"ceilings": ceilings, "timings": [asdict(row) for row in rows]}


def show_measured(rows: Sequence[Timing], console: Console) -> None:
    table = Table(title="kernels, measured", title_justify="left")
    table.add_column("case")
    names = ("eager", "compile", "max-autotune")
    for column in ("error", "us", "floor/us", *(f"{name}/ours" for name in names)):
        table.add_column(column, justify="right")
    table.add_column("problem")
    for row in rows:
        ratios = [f"{row.peers[n] / row.ours:.2f}" if n in row.peers else "" for n in names]
        table.add_row(
            row.case,
            f"{row.error:.1e}",
            f"{row.ours * 1e6:.1f}",
            f"{row.floor / row.ours:.2f}",
            *ratios,
            row.problem,
        )
    console.print(table)
    ratios = [row.peers["max-autotune"] / row.ours for row in rows if "max-autotune" in row.peers]
    if ratios:
        mean = prod(ratios) ** (1 / len(ratios))
        console.print(f"max-autotune / ours: geometric mean {mean:.3f}, least {min(ratios):.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile, check and time kernels.")
    parser.add_argument("--measure", action="store_true", help="check and time on a GPU")
    parser.add_argument("--strict", action="store_true", help="fail if a case has problems")
    parser.add_argument("--target", type=int, nargs="+", default=[90], help="90 for sm_90")
    parser.add_argument("--only", nargs="*", default=[], help="names or parts of names of cases")
    parser.add_argument("--seconds", type=float, default=540.0, help="what --measure may take")
    parser.add_argument("--output", type=Path, help="the JSON file to write")
    options = parser.parse_args()
    wanted: list[str] = options.only
    cases = [one for one in CASES if not wanted or any(word in one.name for word in wanted)]
    console = Console(width=150)
    if options.measure:
        result: dict[str, Any] = measured(cases, options.seconds, console)
        name = "kernels.json"
    else:
        rows = [row for case in cases for row in compiled(case, options.target)]
        show_compiled(rows, console)
        result = {"rows": [asdict(row) for row in rows]}
        name = "kernels_compiled.json"
    output: Path = options.output or RESULTS / name
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine(), **result}, indent=2) + "\n")
    return int(options.strict and any(row.get("problems") for row in result.get("rows", [])))


if __name__ == "__main__":
    sys.exit(main())
