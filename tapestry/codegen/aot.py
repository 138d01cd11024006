"""Ahead-of-time compilation of printed kernels, without a GPU and without PyTorch.

    compiled = compile_kernels(write_module(printed.source), printed.kernels, targets=(90, 80))
    compiled[0].registers, compiled[0].spills, compiled[0].uses_wgmma

It runs in a process of its own: Triton decides once, when it is imported, whether kernels are
compiled or interpreted, and here it must compile.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tapestry.codegen.aot_ahead import answers_of
from tapestry.codegen.aot_jobs import LONGEST, CompileError, Job, installed
from tapestry.codegen.aot_processes import prepare
from tapestry.codegen.specs import KernelSpec
from tapestry.codegen.units import unit_of
from tapestry.store import Store

_SHARED = {99: (86, 89, 120, 121), 163: (80, 87), 227: (90, 100, 103)}

MAX_SHARED_BYTES = {target: 1024 * size for size, targets in _SHARED.items() for target in targets}
"""Shared memory that one block may use, by compute capability."""

_OVERWRITTEN = "its products may read registers that the next step has written"
"""What is wrong with kernels of which `overwritten` finds registers."""

_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)", re.DOTALL)

_WIDE_READ = re.compile(
    r"\bld\.global\S*\.(v[48]\.[bfus]32|v[24]\.[bfus]64)|\bcp\.async\.c[ag]\.[^;]*\], (0x10|16)\b"
    r"|\bcp\.async\.bulk\.tensor\S*shared\S*\.global"
)
_WIDE_WRITE = re.compile(
    r"\bst\.global\S*\.(v[48]\.[bfus]32|v[24]\.[bfus]64)|\bcp\.async\.bulk\.tensor\S*\.global\.shared"
)
"""What moves 16 bytes of memory or more for a thread, or all of a block, in PTX."""


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
    def symbol(self) -> str:
        """What the kernel is called in its cubin."""
        return self._entry[0]

    @property
    def parameters(self) -> int:
        """How many parameters it has, with those that Triton adds."""
        return self._entry[1].count(".param")

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it does not run, or not well: spilled registers, too much shared memory, warnings."""
        found: list[str] = []
        if self.spills:
            found.append(f"spills {self.spills} bytes")
        if not self.fits:
            most = MAX_SHARED_BYTES[self.target]
            found.append(f"{self.shared} bytes of shared memory, of {most}")
        return (*found, *self.warnings)

    @property
    def fits(self) -> bool:
        """Whether a GPU of the target has the shared memory that it takes."""
        return self.shared <= MAX_SHARED_BYTES.get(self.target, self.shared)

    @property
    def _entry(self) -> tuple[str, str]:
        found = _ENTRY.search(self.ptx)
        assert found is not None, self.name
        return found[1], found[2]

    @property
    def uses_wgmma(self) -> bool:
        """Whether it multiplies matrices by warpgroups, as Hopper does best."""
        return self.tensor_cores == "wgmma"

    @property
    def reads_wide(self) -> bool:
        """Whether it reads 16 bytes of memory at once somewhere."""
        return _WIDE_READ.search(self.ptx) is not None

    @property
    def writes_wide(self) -> bool:
        """Whether it writes 16 bytes of memory at once somewhere."""
        return _WIDE_WRITE.search(self.ptx) is not None

    @property
    def tensor_cores(self) -> str:
        """How it multiplies matrices: by `wgmma`, `tcgen05`, `mma` of a warp, or not at all."""
        known = {"tcgen05.mma": "tcgen05", "wgmma.mma_async": "wgmma", "mma.sync": "mma"}
        return next((said for code, said in known.items() if code in self.ptx), "")


def compile_kernels(
    path: Path,
    kernels: Sequence[KernelSpec],
    *,
    targets: Sequence[int] = (90,),
    workers: int = 1,
    cache: Path | None = None,
    seconds: float = LONGEST,
) -> tuple[CompiledKernel, ...]:
    """Compile kernels of the module in `path` for each target, in `workers` processes.

    They come in the order of `kernels`, each for all targets. What is in the folder `cache` is not
    compiled again, and what is being compiled (`aot_ahead.py`) is waited for. A kernel that takes
    more than `seconds` of a processor is not compiled. Raises CompileError, naming the kernel, when
    Triton refuses one, or compiles one wrongly (`overwriting.py`).
    """
    source = path.read_text()
    store = None if cache is None else Store(cache)
    jobs = [
        Job(unit_of(source, kernel.name), kernel, target, store, seconds)
        for kernel in kernels
        for target in targets
    ]
    refused: dict[str, str] = {}
    miscompiled: dict[tuple[str, int], str] = {}
    answers = answers_of(jobs, workers)
    for answer in answers:
        if "error" in answer:
            why = f"does not compile for sm_{answer['target']}: {answer['error']}"
            refused.setdefault(answer["name"], why)
        elif answer["overwritten"]:
            why = f"would be wrong on sm_{answer['target']}, as Triton {installed()} compiles it"
            miscompiled[answer["name"], answer["target"]] = f"{why}: {_OVERWRITTEN}"
            refused.setdefault(answer["name"], f"{why}: {_OVERWRITTEN}")
    if refused:
        first = next(iter(refused))
        raise CompileError(f"kernel {first} {refused[first]}", refused, miscompiled=miscompiled)
    return tuple(map(_compiled, answers))


def prepare_compiling(kernels: int, workers: int) -> None:
    """Start the processes that will compile so many kernels, about, in `workers` processes.

    They are ready to compile when the kernels are there: to be called before they are made.
    """
    prepare(min(workers, kernels))


def _compiled(answer: Mapping[str, Any]) -> CompiledKernel:
    return CompiledKernel(
        str(answer["name"]),
        int(answer["target"]),
        str(answer["ptx"]),
        base64.b64decode(str(answer["cubin"])),
        int(answer["scratch"]),
        int(answer["registers"]),
        int(answer["spills"]),
        int(answer["shared"]),
        tuple(map(str, answer["warnings"])),
        bool(answer["cached"]),
    )
