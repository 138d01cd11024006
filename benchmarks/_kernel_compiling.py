"""What each case of `kernels.py` takes when it is compiled, and what the cost model says of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from _kernel_case import Case
from rich.console import Console
from rich.progress import track
from rich.table import Table
from xdsl.context import Context
from xdsl.dialects.builtin import bf16, f16

import tapestry
from tapestry.codegen.aot import CompiledKernel, CompileError, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.refusals import Refusals, find_refusals
from tapestry.devices import TYPICAL, DeviceSpec, find_spec
from tapestry.dialects import triton
from tapestry.dialects.loom import tensor_type
from tapestry.graph import flops, operations
from tapestry.passes.triton.cost.calls import calls_of
from tapestry.passes.triton.cost.counting import work_of
from tapestry.passes.triton.cost.neighbours import VECTOR
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.cost.roofline import peak
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.program import arguments, main_function
from tapestry.store import find_store

DEVICES = {**TYPICAL, 90: "h200"}
"""The device that each target stands for."""


@dataclass
class Taken:
    """What a kernel takes, by the assembler and by the cost model's estimate."""

    kernel: str
    schedule: str
    registers: int
    estimated_registers: int
    shared: int
    estimated_shared: int


@dataclass
class Row:
    """A case on a target: its kernels, what is predicted of them, and what is wrong with them."""

    case: str
    family: str
    target: int
    kernels: int = 0
    schedules: list[str] = field(default_factory=list)
    registers: int = 0
    shared: int = 0
    spills: int = 0
    tensor_cores: str = ""
    floor: float = 0.0
    """Seconds; so is `predicted`, of all kernels."""
    predicted: float = 0.0
    bound: str = ""
    predicted_registers: int = 0
    predicted_shared: int = 0
    seconds: float = 0.0
    """What compiling took."""
    problems: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list[Taken])


def loom_of(case: Case) -> Any:
    """The program of a case in loom, after the default pipeline."""
    return tapestry.compile(case.expression(), on="triton").lowered


def lowered_for(module: Any, device: str, refusals: Refusals | None = None) -> Any:
    """The same in triton, with the schedules that are chosen for a device."""
    lowered = module.clone()
    refused = refusals or find_refusals(device)
    LoomToTriton(device=device).lower(Context(), lowered, refused=refused)
    return lowered


def bytes_of(module: Any) -> int:
    """The bytes of a program's inputs and outputs."""
    tensors = [a.type for a in arguments(module)]
    returned = main_function(module).body.block.last_op
    assert returned is not None
    tensors += [tensor_type(value) for value in returned.operands]
    return sum(kind.byte_size for kind in tensors)


def floor(module: Any, lowered: Any, spec: DeviceSpec) -> float:
    """The least seconds on a device: each input read and each output written once, and products.

    Products are those of tiles, or all operations of the program where tiles are padded.
    """
    moving = bytes_of(module) / spec.memory.bandwidth
    kernels = {op.sym_name.data: op for op in lowered.walk() if isinstance(op, triton.KernelOp)}
    works = [
        (work_of(kernels[launch.kernel_name], call), count)
        for launch in lowered.walk()
        if isinstance(launch, triton.LaunchOp)
        for call, count in calls_of(launch)
    ]
    done = [
        (product.flops * work.programs * count, peak(product, spec))
        for work, count in works
        for product in work.products
    ]
    padded = sum(number for number, _ in done)
    needed = min(1.0, sum(map(flops, operations(module))) / padded) if padded else 0.0
    return max(moving, needed * sum(number / rate for number, rate in done))


def compiled_row(case: Case, module: Any, target: int, device: str | None = None) -> Row:
    """What is predicted of a case on a target, and what compiling it in a process says.

    Schedules are those for the device, or for the one that the target stands for.
    """
    started = perf_counter()
    kept = find_store("aot")
    device = device or DEVICES[target]
    refusals = find_refusals(device)
    while True:
        lowered = lowered_for(module, device, refusals)
        printed = print_module(lowered)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernels.py")
            path.write_text(printed.source)
            try:
                kernels = compile_kernels(
                    path,
                    printed.kernels,
                    targets=[target],
                    cache=None if kept is None else kept.folder,
                )
            except CompileError as error:
                if refusals.learn_miscompiled(lowered, printed.kernels, error):
                    continue
                row = predicted_row(case, module, lowered, target, device)
                row.problems.append(str(error.message))
                return row
        if not refusals.learn(lowered, kernels):
            break
    row = predicted_row(case, module, lowered, target, device)
    row.taken = _taken(lowered, kernels, find_spec(device))
    _count(row, case, kernels, halves(lowered))
    row.problems += _narrow(lowered, kernels)
    row.seconds = perf_counter() - started
    return row


def predicted_row(case: Case, module: Any, lowered: Any, target: int, device: str) -> Row:
    """What is predicted of a case on a target."""
    row = Row(case.name, case.family, target)
    spec = find_spec(device)
    predicted = predictions(lowered, spec)
    row.floor = floor(module, lowered, spec)
    row.predicted = sum(one.estimate.seconds for one in predicted)
    longest = max(predicted, key=lambda one: one.estimate.seconds)
    row.bound = longest.estimate.bound
    row.predicted_registers = max(one.estimate.registers for one in predicted)
    row.predicted_shared = max(one.estimate.shared for one in predicted)
    row.schedules = list(dict.fromkeys(str(one.schedule) for one in predicted))
    return row


def _taken(lowered: Any, kernels: Sequence[CompiledKernel], spec: DeviceSpec) -> list[Taken]:
    """What each kernel takes."""
    estimates = {one.name: one for one in predictions(lowered, spec)}
    return [
        Taken(
            kernel.name,
            str(estimates[kernel.name].schedule),
            kernel.registers,
            estimates[kernel.name].estimate.registers,
            kernel.shared,
            estimates[kernel.name].estimate.shared,
        )
        for kernel in kernels
        if kernel.name in estimates
    ]


def halves(lowered: Any) -> set[str]:
    """The kernels that multiply tiles of 16 bits, by name."""
    return {
        kernel.sym_name.data
        for kernel in lowered.walk()
        if isinstance(kernel, triton.KernelOp)
        for op in kernel.walk()
        if isinstance(op, triton.DotOp) and op.a.type.element_type in (f16, bf16)
    }


def _count(
    row: Row, case: Case, kernels: Sequence[CompiledKernel], multiplying: Collection[str]
) -> None:
    """Fill in what kernels take, and say what is wrong with them.

    `multiplying` are those that are to use the best that there is for matrices, each.
    """
    cores = {kernel.tensor_cores for kernel in kernels} - {""}
    row.kernels = len(kernels)
    row.registers = max(kernel.registers for kernel in kernels)
    row.shared = max(kernel.shared for kernel in kernels)
    row.spills = sum(kernel.spills for kernel in kernels)
    row.tensor_cores = "+".join(sorted(cores))
    best = {90: "wgmma", 100: "tcgen05"}.get(row.target)
    if case.multiplies and best is not None:
        if not multiplying and not row.tensor_cores:
            row.problems.append(f"no kernel multiplies matrices, and none has {best}")
        row.problems += [
            f"no {best} in {kernel.name}"
            for kernel in kernels
            if kernel.name in multiplying and kernel.tensor_cores != best
        ]
    row.problems += [problem for kernel in kernels for problem in kernel.problems]


def _narrow(lowered: Any, kernels: Sequence[CompiledKernel]) -> list[str]:
    """Kernels that read less than 16 bytes at once of all that they read.

    More is expected of those of which some load has neighbouring, aligned cells, enough for 16
    bytes of each thread. Stores are not judged: those of a convolution, whose rows are pixels of
    several axes, are narrow, since a compiler does not see through how these are taken apart.
    """
    known = {op.sym_name.data: op for op in lowered.walk() if isinstance(op, triton.KernelOp)}
    wide: set[str] = set()
    for launch in lowered.walk():
        for call, _ in calls_of(launch) if isinstance(launch, triton.LaunchOp) else ():
            work = work_of(known[launch.kernel_name], call)
            if any(
                stream.vector >= VECTOR and stream.cells * stream.cell >= VECTOR * work.threads
                for stream in work.streams
                if not stream.writes
            ):
                wide.add(launch.kernel_name)
    return [
        f"{kernel.name} reads no {VECTOR} bytes at once"
        for kernel in kernels
        if kernel.name in wide and not kernel.reads_wide
    ]


def compiled(cases: Sequence[Case], devices: Mapping[int, str], workers: int | None) -> list[Row]:
    """What all cases take, compiled in as many processes at once as there are cores.

    `devices` has the device that each target is compiled for.
    """
    console = Console(stderr=True)
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = [
            pool.submit(compiled_row, case, module, target, device)
            for case, module in ((one, loom_of(one)) for one in cases)
            for target, device in devices.items()
        ]
        shown = track(waiting, "compiling", console=console, transient=True)
        return [one.result() for one in shown]


def show_compiled(rows: Sequence[Row], console: Console) -> None:
    """Print a table."""
    table = Table(title="kernels, compiled ahead of time", title_justify="left")
    table.add_column("case")
    numbers = ("sm", "kernels", "registers", "predicted", "shared KiB", "predicted")
    numbers += ("floor us", "predicted us", "of floor")
    for column in numbers:
        table.add_column(column, justify="right")
    for column in ("bound by", "cores", "schedule", "problems"):
        table.add_column(column)
    for row in rows:
        table.add_row(
            row.case,
            str(row.target),
            str(row.kernels),
            str(row.registers),
            str(row.predicted_registers),
            f"{row.shared / 1024:.0f}",
            f"{row.predicted_shared / 1024:.0f}",
            f"{row.floor * 1e6:.1f}",
            f"{row.predicted * 1e6:.1f}",
            f"{row.predicted / row.floor:.2f}" if row.floor else "",
            row.bound,
            row.tensor_cores,
            row.schedules[0] if row.schedules else "",
            "; ".join(row.problems),
        )
    console.print(table)
    _show_estimates(rows, console)
    bad = sum(bool(row.problems) for row in rows)
    console.print(f"{len(rows)} rows, {bad} with problems")


def _show_estimates(rows: Sequence[Row], console: Console) -> None:
    """Print how far estimates of registers and shared memory are off, by target."""
    table = Table(title="taken, in relation to what is estimated", title_justify="left")
    for column in ("sm", "kernels", "registers: least", "median", "most"):
        table.add_column(column, justify="right")
    table.add_column("shared memory: most over the estimate, KiB", justify="right")
    for target in dict.fromkeys(row.target for row in rows):
        taken = [one for row in rows if row.target == target for one in row.taken]
        if not taken:
            continue
        ratios = [one.registers / one.estimated_registers for one in taken]
        over = max(one.shared - one.estimated_shared for one in taken) / 1024
        shown = (f"{ratio:.2f}" for ratio in (min(ratios), median(ratios), max(ratios)))
        table.add_row(str(target), str(len(taken)), *shown, f"{over:.1f}")
    console.print(table)
