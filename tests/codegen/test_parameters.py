"""What a launch passes is what the machine code takes: read off cubins, with the Triton there is.

After its operands a kernel takes addresses that Triton adds: of memory that it asks for itself, and
of memory for profiling. A block has the threads that the kernel was compiled for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tapestry
from tapestry.codegen.aot import CompiledKernel, compile_kernels
from tapestry.codegen.launches import Function, Launches
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.specs import KernelSpec
from tapestry.frontend import run_pipeline
from tests.codegen.cubins import told
from tests.codegen.standing import Standing
from tests.codegen.test_aot import matmul

HIDDEN = 2
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}


def layers() -> Any:
    x = tapestry.input("x", (64, 96), "bfloat16")
    for n in range(2):
        x = tapestry.softmax(x @ tapestry.input(f"w{n}", (96, 96), "bfloat16"))
    return x


def sums() -> Any:
    return (tapestry.input("x", (300, 7), "int8") + tapestry.input("y", (7,), "int64")).sum(axis=0)


PROGRAMS = {
    "a map": lambda: tapestry.relu(tapestry.input("x", (1000,), "float32")),
    "layers": layers,
    "integers": sums,
    "a sort": lambda: tapestry.input("x", (40, 30), "float16").sort(axis=1)[0],
    "a scan": lambda: tapestry.input("x", (40, 3000), "float32").cumsum(axis=1),
}


def compiled(module: Any, folder: Path) -> list[tuple[KernelSpec, CompiledKernel]]:
    printed = print_module(module)
    path = folder / "kernels.py"
    path.write_text(printed.source)
    made = compile_kernels(path, printed.kernels, targets=(90,))
    specs = {spec.name: spec for spec in printed.kernels}
    return [(specs[kernel.name], kernel) for kernel in made]


def check(spec: KernelSpec, kernel: CompiledKernel) -> None:
    own = [8 if kind.startswith("*") else SIZES[kind] for _, kind in spec.signature]
    found = told(kernel.cubin, kernel.symbol)
    assert found.parameters == own + [8] * HIDDEN
    assert kernel.parameters == len(found.parameters)
    assert found.threads == 32 * spec.num_warps


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_operands_and_threads_are_those_of_the_machine_code(name, shards, tmp_path) -> None:
    program = tapestry.compile(PROGRAMS[name](), on="triton")
    module = (program if shards is None else program.sharded(shards=shards)).lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    for spec, kernel in compiled(module, tmp_path):
        check(spec, kernel)


def test_memory_that_is_asked_for_is_passed_right_after_operands(tmp_path) -> None:
    """Where tensor descriptors are made: the machine code reads that parameter and no later one."""
    schedule = "M = 128, N = 128, K = 64, warps = 8, stages = 3, programs = 132, loads = descriptor"
    module = matmul("bf16", 512, 512, 256)
    run_pipeline(module, f'loom-to-triton{{schedules="product: {schedule}"}}')
    ((spec, kernel),) = compiled(module, tmp_path)
    check(spec, kernel)
    assert kernel.scratch > 0
    read = {int(n) for n in re.findall(rf"\[{kernel.symbol}_param_(\d+)\]", kernel.ptx)}
    place = len(spec.signature)
    assert place in read
    assert max(read) == place
    plan = plan_of(module, [spec]).placed({spec.name: kernel.scratch})
    functions = {
        spec.name: Function(spec.name, 32 * spec.num_warps, kernel.shared, kernel.parameters)
    }
    device = Standing(tmp_path / "kernels.py", {}, {})
    run = Launches(plan.as_json(), functions, device, {})
    (table,), (launch,) = run._tables, plan.launches
    assert launch.scratch is not None
    assert len(table) == kernel.parameters
    start = table[0] - 8 * launch.buffers[0]
    assert table[place] == start + 8 * launch.scratch
    assert plan.buffers[launch.scratch].bytes == launch.programs * kernel.scratch
    assert plan.buffers[launch.scratch].offset % 128 == 0  # as the hardware wants descriptors
