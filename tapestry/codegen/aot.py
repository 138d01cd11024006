"""Ahead-of-time compilation of printed kernels, without a GPU and without PyTorch.

    compiled = compile_kernels(write_module(printed.source), printed.kernels, targets=(90, 80))
    compiled[0].registers, compiled[0].spills, compiled[0].uses_wgmma

It runs in a process of its own: Triton decides once, when it is imported, whether kernels are
compiled or interpreted, and here it must compile.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import TapestryError

MAX_SHARED_BYTES = {80: 166912, 90: 232448}
"""Shared memory that one block may use, by compute capability."""


class CompileError(TapestryError):
    """A kernel that Triton does not compile."""

    kind = "compile"


@dataclass(frozen=True)
class CompiledKernel:
    """What a kernel became on a target (90 for sm_90).

    `registers` and `spills` (bytes stored) are per thread, `shared` is bytes per block, `scratch`
    bytes of global memory that a launch has to bring. `warnings` are what the assembler said.
    `cached` says that it was compiled before.
    """

    name: str
    target: int
    ptx: str
    cubin: bytes = field(repr=False)
    scratch: int
    registers: int
    spills: int
    shared: int
    warnings: tuple[str, ...]
    cached: bool = False

    @property
    def uses_wgmma(self) -> bool:
        """Whether it multiplies matrices by warpgroups, as Hopper does best."""
        return "wgmma.mma_async" in self.ptx


def compile_kernels(
    path: Path,
    kernels: Sequence[KernelSpec],
    *,
    targets: Sequence[int] = (90,),
    workers: int = 1,
    cache: Path | None = None,
) -> tuple[CompiledKernel, ...]:
    """Compile kernels of the module in `path` for each target, in `workers` processes.

    They come in the order of `kernels`, each for all targets. What is in the folder `cache` is not
    compiled again. Raises CompileError, naming the kernel, when Triton refuses one.
    """
    used = max(1, min(workers, len(kernels)))
    with ThreadPoolExecutor(used) as pool:
        parts = [list(kernels)[first::used] for first in range(used)]
        found = list(pool.map(partial(_compile_part, path, targets, cache), parts))
    at = {(one.name, one.target): one for part in found for one in part}
    return tuple(at[kernel.name, target] for kernel in kernels for target in targets)


def _compile_part(
    path: Path, targets: Sequence[int], cache: Path | None, kernels: Sequence[KernelSpec]
) -> list[CompiledKernel]:
    request = {
        "path": str(path),
        "kernels": [asdict(kernel) for kernel in kernels],
        "targets": list(targets),
        "cache": None if cache is None else str(cache),
    }
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    # A kernel from Triton's cache would come without what the assembler says of it.
    environment |= {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DUMP_PTXAS_LOG": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tapestry.codegen.aot_worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise CompileError(f"compiling {path.name} failed: {_last_line(done.stderr)}")
    answers: list[Mapping[str, Any]] = json.loads(done.stdout)
    return [_compiled(answer) for answer in answers]


def _compiled(answer: Mapping[str, Any]) -> CompiledKernel:
    name, target = str(answer["name"]), int(answer["target"])
    if "error" in answer:
        raise CompileError(f"kernel {name} does not compile for sm_{target}: {answer['error']}")
    return CompiledKernel(
        name,
        target,
        str(answer["ptx"]),
        base64.b64decode(str(answer["cubin"])),
        int(answer["scratch"]),
        int(answer["registers"]),
        int(answer["spills"]),
        int(answer["shared"]),
        tuple(map(str, answer["warnings"])),
        bool(answer["cached"]),
    )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
