"""What launching kernels costs on the host, per kernel: our list of launches, and Triton's own way.

    python benchmarks/launch.py                        # a few seconds; on a GPU also the real thing
    python benchmarks/launch.py --launches 1 10 100 --json launch.json

Without a GPU the driver is a C function that returns at once, called with the arguments that
`cuLaunchKernel` gets, and memory is the CPU's; so this is all that happens on the host but the
driver's own work. Triton's way is `kernel[grid](...)` of the same kernel and arguments, with a
driver and a launcher of its own that do nothing. `fixed` is what a call takes without launches:
the guard of inputs, results, the arena.

On a GPU the same programs run: `queued` is the host's time, while the GPU is behind or ahead;
`graph` the whole program as a CUDA graph.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from machine import machine
from rich.console import Console
from rich.table import Table
from xdsl.context import Context

from tapestry.codegen.driver import Cuda, LoadError
from tapestry.codegen.launches import Function, Launches
from tapestry.codegen.module_files import load_kernels, write_module
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.replay import Replayed
from tapestry.frontend import parse_text
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.triton.compiled import compiled_launches

RESULTS = Path(__file__).parent / "results" / "launch.json"
AIM = 10.0
"""Microseconds per kernel without graphs."""


class Null:
    """A device whose driver does nothing; memory is PyTorch's on the CPU."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        # A function of C that returns its first argument, which is no function here: 0, no error.
        self.launch = ctypes.CDLL(None).labs

    def function(self, cubin: bytes, name: str, shared: int) -> ctypes.c_void_p:
        del cubin, name, shared
        return ctypes.c_void_p(0)

    def fill(self, address: int, cell: bytes, count: int, stream: int) -> int:
        del address, cell, count, stream
        return 0

    def failure(self, code: int) -> str:
        return str(code)

    def capability(self) -> int:
        return 90

    def stream(self) -> int:
        return 0

    def is_current(self) -> bool:
        return True

    def current(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def dtype(self, name: str) -> Any:
        return getattr(self._torch, name)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return self._torch.empty(shape, dtype=dtype)

    def upload(self, data: bytes, shape: Sequence[int], dtype: str) -> Any:
        raise NotImplementedError

    def holds(self, tensor: Any) -> bool:
        return not tensor.is_cuda

    def capture(self, run: Callable[[], list[Any]]) -> tuple[Callable[[], object], list[Any]]:
        raise NotImplementedError

    def is_capturing(self) -> bool:
        return False

    def after(self, stream: int) -> None:
        raise NotImplementedError


def program(launches: int, cells: int = 4096) -> Any:
    """A chain of operations of three operands, which is so many launches of one kernel."""
    kind = f"!loom.tensor<[0] : [{cells}], f32>"
    lines = [f"func.func @main(%x: {kind}, %w: {kind}) -> {kind} {{"]
    before = "%x"
    for number in range(launches):
        lines.append(
            f"%y{number} = loom.operation @step over <[0] : [{cells}]> [map] "
            f"ins({before} : (d0) -> (d0), %w : (d0) -> (d0)) outs((d0) -> (d0)) "
            f"wrap (%a: f32, %b: f32) {{ %s = arith.addf %a, %b : f32 loom.yield %s : f32 }} "
            f": ({kind}, {kind}) -> {kind}"
        )
        before = f"%y{number}"
    lines.append(f"func.return {before} : {kind} }}")
    module = parse_text("\n".join(lines))
    LoomToTriton().apply(Context(), module)
    return module


def per_call(run: Callable[[], object], seconds: float = 0.3) -> float:
    """Microseconds of a call: the least mean of some rounds, which other work disturbs least."""
    run()
    rounds: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(rounds) < 3:
        began = perf_counter()
        for _ in range(20):
            run()
        rounds.append((perf_counter() - began) / 20)
    return min(rounds) * 1e6


def ours(launches: int) -> float:
    """Microseconds of a call of our list, on a driver that does nothing."""
    import torch

    lowered = program(launches)
    specs = print_module(lowered).kernels
    plan = plan_of(lowered, specs).placed().as_json()
    device = Null()
    functions = {
        spec.name: Function(ctypes.c_void_p(0), 128, 0, len(spec.signature) + 2) for spec in specs
    }
    run = Launches(plan, functions, device, {})
    inputs = [torch.ones(4096), torch.ones(4096)]
    return per_call(lambda: run(inputs))


def tritons(launches: int) -> float | str:
    """Microseconds of so many `kernel[grid](...)`, with a launcher that does nothing."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget

    class Launcher:
        def __init__(self, source: Any, metadata: Any) -> None: ...

        def __call__(self, *_: Any) -> None: ...

    class Driver:
        launcher_cls = Launcher
        utils = SimpleNamespace(
            get_device_properties=lambda _: {"max_shared_mem": 232448},
            load_binary=lambda *_: (1, 1, 32, 0, 1024),
            unload_module=lambda _: None,
        )

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _: int) -> int:
            return 0

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 90, 32)

    triton.runtime.driver.set_active(Driver())
    lowered = program(1)
    made = print_module(lowered)
    kernel = vars(load_kernels(write_module(made.source)))[made.kernels[0].name]
    options = made.kernels[0].options
    x, w, y = (torch.ones(4096) for _ in range(3))

    def run() -> None:
        for _ in range(launches):
            kernel[(2,)](x, w, y, **options)

    try:
        return per_call(run)
    except Exception as error:  # noqa: BLE001 - another version of Triton asks for more
        return f"not measured: {type(error).__name__}: {error}"


def on_gpu(launches: int, calls: int) -> dict[str, float | str]:
    """Microseconds of a call on the GPU that is there."""
    import torch

    # Of another length than where Triton's launcher does nothing, so that no kernel is that one.
    lowered = program(launches, 8192)
    made = print_module(lowered)
    path = write_module(made.source)
    run = compiled_launches(path, made.kernels, plan_of(lowered, made.kernels), Cuda(), {})
    inputs = [torch.ones(8192, device="cuda"), torch.ones(8192, device="cuda")]
    (y,) = run(inputs)
    torch.testing.assert_close(y, inputs[0] + launches * inputs[1])
    rounds: list[float] = []
    for _ in range(calls):
        torch.cuda.synchronize()
        began = perf_counter()
        run(inputs)
        rounds.append(perf_counter() - began)
    found: dict[str, float | str] = {"queued": min(rounds) * 1e6}
    began = perf_counter()
    for _ in range(calls):
        run(inputs)
    torch.cuda.synchronize()
    found["run"] = (perf_counter() - began) / calls * 1e6
    replayed = Replayed(run)
    for _ in range(3):
        (y,) = replayed(inputs)
    torch.testing.assert_close(y, inputs[0] + launches * inputs[1])
    torch.cuda.synchronize()
    began = perf_counter()
    for _ in range(calls):
        replayed(inputs)
    torch.cuda.synchronize()
    found["graph"] = (perf_counter() - began) / calls * 1e6
    try:
        from triton.runtime import driver

        driver.reset_active()  # the one that does nothing was the active one
        host = vars(load_kernels(path))["launch"]
        host(*inputs)
        torch.cuda.synchronize()
        began = perf_counter()
        for _ in range(calls):
            host(*inputs)
        torch.cuda.synchronize()
        found["triton"] = (perf_counter() - began) / calls * 1e6
    except Exception as error:  # noqa: BLE001 - what a peer fails with is said in its place
        found["triton"] = f"not measured: {type(error).__name__}: {error}"[:300]
    return found


def main() -> None:
    """Measure, print a table, write JSON."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--launches", type=int, nargs="+", default=[1, 10, 100])
    options.add_argument("--calls", type=int, default=50, help="that are timed on a GPU")
    options.add_argument("--json", type=Path, default=RESULTS)
    asked = options.parse_args()
    rows: list[dict[str, Any]] = []
    fixed = ours(1) - (ours(11) - ours(1)) / 10
    theirs = {count: tritons(count) for count in asked.launches}
    for count in asked.launches:
        taken = ours(count)
        row: dict[str, Any] = {"launches": count, "call": taken, "per_kernel": taken / count}
        other = theirs[count]
        row["triton_per_kernel"] = other / count if isinstance(other, float) else other
        rows.append(row)
    written: dict[str, Any] = {
        "machine": machine(),
        "fixed": fixed,
        "host": rows,
        "gpu": [],
        "skipped": "",
    }
    real: list[dict[str, Any]] = written["gpu"]

    def write() -> None:
        asked.json.write_text(json.dumps(written, indent=1) + "\n")

    write()
    try:
        Cuda()
    except LoadError as error:
        written["skipped"] = str(error)
    else:
        for count in asked.launches:
            real.append({"launches": count, **on_gpu(count, asked.calls)})
            write()
    table = Table("launches", "a call (us)", "per kernel (us)", "Triton's, per kernel (us)")
    for row in rows:
        other = row["triton_per_kernel"]
        shown = f"{other:.2f}" if isinstance(other, float) else str(other)
        table.add_row(str(row["launches"]), f"{row['call']:.1f}", f"{row['per_kernel']:.2f}", shown)
    console = Console()
    console.print(table)
    console.print(f"a call without launches: {fixed:.1f} us; the aim is {AIM:.0f} us per kernel")
    if written["skipped"]:
        console.print(f"the real driver is not measured: {written['skipped']}")
    for row in real:
        console.print(f"on the GPU, microseconds of a call: {row}")
    write()
    if rows[-1]["per_kernel"] > AIM:
        sys.exit(f"a launch takes {rows[-1]['per_kernel']:.1f} us, more than {AIM:.0f}")


if __name__ == "__main__":
    main()
