"""Ahead-of-time compilation of printed kernels, without a GPU and without PyTorch.

    compiled = compile_kernels(write_module(printed.source), printed.kernels, targets=(90, 80))
    compiled[0].registers, compiled[0].spills, compiled[0].uses_wgmma

It runs in a process of its own: Triton decides once, when it is imported, whether kernels are
compiled or interpreted, and here it must compile.
"""

from __future__ import annotations

import base64
import re
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from tapestry.codegen.aot_processes import CompilerDiedError, compiler, prepare
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import TapestryError
from tapestry.store import Store, key_of

_SHARED = {99: (86, 89, 120, 121), 163: (80, 87), 227: (90, 100, 103)}

MAX_SHARED_BYTES = {target: 1024 * size for size, targets in _SHARED.items() for target in targets}
"""Shared memory that one block may use, by compute capability."""

_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)", re.DOTALL)

_WIDE_READ = re.compile(
    r"\bld\.global\S*\.(v[48]\.[bfus]32|v[24]\.[bfus]64)|\bcp\.async\.c[ag]\.[^;]*\], (0x10|16)\b"
    r"|\bcp\.async\.bulk\.tensor\S*shared\S*\.global"
)
_WIDE_WRITE = re.compile(
    r"\bst\.global\S*\.(v[48]\.[bfus]32|v[24]\.[bfus]64)|\bcp\.async\.bulk\.tensor\S*\.global\.shared"
)
"""What moves 16 bytes of memory or more for a thread, or all of a block, in PTX."""

LONGEST: Final = 600.0
"""Seconds of a processor after which a compiler that works on one kernel is ended."""


class CompileError(TapestryError):
    """Kernels that Triton does not compile; the message is about the first.

    `kernels` has for each what is wrong with it; it is empty where that is no kernel's fault.
    """

    kind = "compile"

    def __init__(
        self, message: str, kernels: Mapping[str, str] | None = None, *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kernels = dict(kernels or {})


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
    compiled again. A kernel that takes more than `seconds` of a processor is not compiled. Raises
    CompileError, naming the kernel, when Triton refuses one.
    """
    index = None if cache is None else _Index(cache, sha256(path.read_bytes()).hexdigest())
    answers: list[Mapping[str, Any]] = []
    left: list[KernelSpec] = []
    for kernel in kernels:
        known = [None if index is None else index.read(kernel, target) for target in targets]
        if None in known:
            left.append(kernel)
        answers += [] if None in known else [answer for answer in known if answer is not None]
    if left:
        used = max(1, min(workers, len(left)))
        with ThreadPoolExecutor(used) as pool:
            # One by one, for they take unlike times: whichever process is free gets the next.
            found = list(pool.map(partial(_compile_one, path, targets, cache, seconds), left))
        made = [answer for one in found for answer in one]
        answers += made
        if index is not None:
            index.write(left, made)
    refused = [answer for answer in answers if "error" in answer]
    if refused:
        why: dict[str, str] = {}
        for one in refused:
            why.setdefault(one["name"], f"does not compile for sm_{one['target']}: {one['error']}")
        first = next(iter(why))
        raise CompileError(f"kernel {first} {why[first]}", why)
    at = {(one.name, one.target): one for one in map(_compiled, answers)}
    return tuple(at[kernel.name, target] for kernel in kernels for target in targets)


def prepare_compiling(kernels: int, workers: int) -> None:
    """Start the processes that will compile so many kernels, about, in `workers` processes.

    They are ready to compile when the kernels are there: to be called before they are made.
    """
    prepare(min(workers, kernels))


@dataclass(frozen=True)
class _Index:
    """Where a module's kernels are in the cache: their keys there are Triton's to say.

    So a program that was compiled before needs no process that imports Triton.
    """

    cache: Path
    module: str

    def read(self, kernel: KernelSpec, target: int) -> Mapping[str, Any] | None:
        """The answer about a kernel, if it is kept."""
        entry = Store(self.cache / "index").read(self._key(kernel, target))
        known = None if entry is None else Store(self.cache).read(str(entry.get("key")))
        return None if known is None else {**known, "name": kernel.name, "cached": True}

    def write(self, kernels: Sequence[KernelSpec], answers: Sequence[Mapping[str, Any]]) -> None:
        """Keep where answers are."""
        named = {kernel.name: kernel for kernel in kernels}
        for answer in answers:
            if "key" in answer and "error" not in answer:
                key = self._key(named[str(answer["name"])], int(answer["target"]))
                Store(self.cache / "index").write(key, {"key": answer["key"]})

    def _key(self, kernel: KernelSpec, target: int) -> str:
        what = {"module": self.module, "kernel": asdict(kernel), "target": target}
        return key_of({**what, "triton": installed()})


def installed() -> str:
    """The version of Triton that is installed."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return "none"


def _compile_one(
    path: Path, targets: Sequence[int], cache: Path | None, seconds: float, kernel: KernelSpec
) -> list[Mapping[str, Any]]:
    """The answers of a process about a kernel; that it died of it is an answer too."""
    request = {
        "path": str(path),
        "kernel": asdict(kernel),
        "targets": list(targets),
        "cache": None if cache is None else str(cache),
        "seconds": seconds,
    }
    try:
        with compiler() as process:
            return process.ask(request)
    except OSError as error:
        raise _not_here(path, str(error)) from None
    except CompilerDiedError as died:
        if died.status >= 0:  # no kernel's fault: Triton is not there, or the module is not right
            raise _not_here(path, died.said) from None
        why = f"the compiler died of signal {-died.status}"
        if -died.status == signal.SIGXCPU:
            why = f"that takes more than {seconds:.0f} seconds"
        return [{"name": kernel.name, "target": targets[0], "error": why}]


def _not_here(path: Path, why: str) -> CompileError:
    """Nothing compiles on this machine, as it is."""
    return CompileError(
        f"compiling {path.name} failed: {why}",
        hint="compiling takes Triton, and a few megabytes in the folder for temporary files",
    )


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
