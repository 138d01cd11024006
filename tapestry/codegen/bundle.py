"""A program compiled ahead of time, as a folder that runs without a compiler.

    bundle = compile_bundle(module, Path("out"), targets=(90, 80))

    out/kernels.py       the kernels to read, and to run with Triton: `kernels.launch(x, w)`
    out/*.cubin          the kernels compiled, named by what is in them
    out/load.py          `load()` runs the cubins: needs PyTorch and NVIDIA's driver
    out/manifest.json    kernels, launches in order, where buffers lie; digests of the files
    out/constants.npz    constants too large for code

Kernels that are equal, in shards or layers, are one. Where a program was compiled before, its files
that are not needed any more are removed, and no others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry import caching
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.codegen import driver, launches, loader, manifests, replay
from tapestry.codegen.aot import (
    MAX_SHARED_BYTES,
    CompiledKernel,
    CompileError,
    compile_kernels,
    prepare_compiling,
)
from tapestry.codegen.aot_ahead import compiling_ahead
from tapestry.codegen.climbing import HINT, Climbing
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.planning import plan_of
from tapestry.codegen.plans import Plan
from tapestry.codegen.refusals import KIND as REFUSED
from tapestry.codegen.refusals import Asked, Refusals
from tapestry.codegen.shipping import one_file
from tapestry.codegen.specs import KernelSpec
from tapestry.devices import find_spec, typical
from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.files import whole_file
from tapestry.locations import location_of
from tapestry.passes.triton.loom_to_triton import NO_DEVICE, LoomToTriton
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.runtime.program import arguments, main_function, outputs
from tapestry.saving import ConstantFile
from tapestry.store import find_store

_HEAD = 1 << 10
"""The first bytes of a file, which say what it is."""

VERSION = manifests.FORM
"""The form of the folder, which `load.py` checks."""

_CONSTANTS = "constants.npz"


@dataclass(frozen=True)
class Bundle:
    """What was written: the folder, and each kernel for each target."""

    folder: Path
    kernels: tuple[CompiledKernel, ...]
    cubins: int
    """Files of kernels; fewer than kernels where some are equal."""
    specs: tuple[KernelSpec, ...]
    plan: Plan


def compile_bundle(
    module: ModuleOp,
    folder: Path,
    *,
    targets: Sequence[int] = (90,),
    numerics: str = "mixed",
    workers: int | None = None,
) -> Bundle:
    """Compile a module in loom for each target (90 for sm_90) and write it to `folder`.

    Kernels that do not compile, or do not fit, are made again with more care (`climbing.py`).
    Raises InvalidProgramError for what cannot be compiled ahead of time, CompileError for a kernel
    that does not compile however it is made, UsageError where the folder cannot be written.
    """
    for op in module.walk():
        if isinstance(op, loom.ExternalOp):
            raise InvalidProgramError(
                f"@{op.callee.data} is an external kernel: it has no code to compile",
                location=location_of(op),
                hint="run the program with tapestry run, where its implementation is registered",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from None
    _check_own(folder)
    earlier = _listed(folder)
    constants = ConstantFile(folder / _CONSTANTS)
    moved = constants.moved(module)
    device = _smallest(targets)
    lowering = LoomToTriton(numerics=numerics, device=device)
    kept = find_store("aot")
    refusals = Refusals(targets, find_store(REFUSED))
    climbing = Climbing(moved, device)
    processes = workers or os.cpu_count() or 1
    while True:
        lowered = _lowered(moved, lowering, refusals, climbing.rungs, targets, processes)
        printed = print_module(lowered)
        _write(folder, "kernels.py", printed.source.encode())
        try:
            compiled = compile_kernels(
                folder / "kernels.py",
                printed.kernels,
                targets=targets,
                workers=processes,
                cache=None if kept is None else kept.folder,
            )
            if refusals.learn(lowered, compiled):
                continue
            _check_fit(compiled)
        except CompileError as error:
            if refusals.learn_miscompiled(lowered, printed.kernels, error):
                continue
            if climbing.climb(lowered, printed.kernels, error.kernels):
                continue
            if not error.kernels:
                raise
            why = climbing.spent(lowered, printed.kernels, error.kernels)
            raise CompileError(why, error.kernels, hint=HINT) from error
        else:
            climbing.tell()
            break
    specs = {spec.name: spec for spec in printed.kernels}
    entries = [_entry(folder, kernel, specs[kernel.name]) for kernel in compiled]
    scratch = {kernel.name: 0 for kernel in compiled}
    for kernel in compiled:
        scratch[kernel.name] = max(scratch[kernel.name], kernel.scratch)
    plan = plan_of(lowered, printed.kernels).placed(scratch)
    _write(folder, "load.py", one_file([driver, launches, replay, manifests, loader]).encode())
    kept = {_CONSTANTS: _digest((folder / _CONSTANTS).read_bytes())} if constants.used else {}
    manifest: dict[str, Any] = {
        "version": VERSION,
        "targets": list(targets),
        "inputs": [{"name": a.name, **_kind(a.type)} for a in arguments(module)],
        "outputs": [_kind(kind) for kind in outputs(module)],
        "files": kept,
        "kernels": entries,
        "plan": plan.as_json(),
    }
    manifest["sha256"] = manifests.digest_of(manifest)
    _write(folder, "manifest.json", json.dumps(manifest, indent=2).encode())
    _remove(folder, {name: earlier[name] for name in earlier.keys() - _listed(folder).keys()})
    cubins = len({entry["cubin"] for entry in entries})
    return Bundle(folder, compiled, cubins, printed.kernels, plan)


def _lowered(
    module: ModuleOp,
    lowering: LoomToTriton,
    refusals: Refusals,
    rungs: Mapping[str, Rung],
    targets: Sequence[int],
    processes: int,
) -> ModuleOp:
    """A program as kernels; kept, unless some are to be made with more care than usual.

    Where it is not, the processes that compile them are started first.
    """
    lowered, asked = module.clone(), Asked(refusals)

    def make(program: ModuleOp) -> None:
        prepare_compiling(len(main_function(program).body.block.ops), processes)
        with compiling_ahead(targets, processes) as made:
            lowering.lower(Context(), program, refused=asked, rungs=rungs, made=made)

    if rungs:
        make(lowered)
        return lowered
    return caching.kept(lowered, [lowering.spec(include_default=True)], make, asked=asked)


def _check_fit(kernels: Sequence[CompiledKernel]) -> None:
    """Raise CompileError for kernels that no GPU of their target launches."""
    large: dict[str, str] = {}
    for one in kernels:
        if not one.fits:
            large[one.name] = (
                f"takes {one.shared} bytes of shared memory, and a program has "
                f"{MAX_SHARED_BYTES[one.target]} on sm_{one.target}"
            )
    if large:
        first = next(iter(large))
        raise CompileError(f"kernel {first} {large[first]}", large)


def _smallest(targets: Sequence[int]) -> str:
    """The device of least shared memory: one set of kernels serves all targets."""
    known = [find_spec(f"sm_{target}") for target in targets if typical(target) is not None]
    smallest = min(
        known, key=lambda one: (one.limits.shared_per_program, one.capability), default=None
    )
    return NO_DEVICE if smallest is None else smallest.name


def _entry(folder: Path, kernel: CompiledKernel, spec: KernelSpec) -> dict[str, Any]:
    """What the manifest says of a kernel; its cubin is written, unless an equal one is there."""
    digest = _digest(kernel.cubin)
    name = f"{digest[:24]}.cubin"
    _write(folder, name, kernel.cubin)
    return {
        "name": kernel.name,
        "symbol": kernel.symbol,
        "target": kernel.target,
        "cubin": name,
        "sha256": digest,
        "arguments": [kind for _, kind in spec.signature],
        "parameters": kernel.parameters,
        "num_warps": spec.num_warps,
        "shared": kernel.shared,
        "registers": kernel.registers,
    }


def _check_own(folder: Path) -> None:
    """Raise UsageError where a file that is to be written is there, and is somebody else's."""
    for name, is_own in _OWN.items():
        path = folder / name
        try:
            if not path.exists() or is_own(path):
                continue
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
        raise UsageError(
            f"cannot write {path}: there is one that Tapestry did not write",
            hint="give a folder of its own, or remove the file",
        )


def _begins(path: Path, marker: str) -> bool:
    with path.open("rb") as file:
        return marker.encode() in file.read(_HEAD)


def _is_manifest(path: Path) -> bool:
    try:
        manifest: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and {"targets", "files", "kernels"} <= manifest.keys()


def _has_constants(path: Path) -> bool:
    """Whether it is an archive of what `ConstantFile` names, and nothing else."""
    try:
        with ZipFile(path) as archive:
            return all(re.fullmatch(r"c[0-9a-f]{16}\.npy", name) for name in archive.namelist())
    except BadZipFile:
        return False


_OWN: Mapping[str, Callable[[Path], bool]] = {
    "kernels.py": lambda path: _begins(path, "Written by Tapestry"),
    "load.py": lambda path: _begins(path, "Runs a compiled program from its folder"),
    "manifest.json": _is_manifest,
    _CONSTANTS: _has_constants,
}
"""What says of a file that is to be written that an earlier one is Tapestry's."""


def _listed(folder: Path) -> dict[str, str]:
    """The digests of the files that a folder's manifest lists; none where it is not one of ours."""
    try:
        manifest: Any = json.loads((folder / "manifest.json").read_text("utf-8"))
        if manifest.pop("sha256") != manifests.digest_of(manifest):
            return {}
        return manifest["files"] | {one["cubin"]: one["sha256"] for one in manifest["kernels"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _remove(folder: Path, files: Mapping[str, str]) -> None:
    """Remove the files of these digests; what another program wrote there since is left."""
    for name, digest in files.items():
        path = folder / name
        with suppress(OSError):
            if path.parent == folder and _digest(path.read_bytes()) == digest:
                path.unlink()


def _kind(kind: TensorType) -> dict[str, Any]:
    return {"dtype": str(numpy_dtype(kind.element_type)), "shape": list(kind.box.shape)}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _write(folder: Path, name: str, content: bytes) -> None:
    with whole_file(folder / name) as temporary:
        temporary.write_bytes(content)
