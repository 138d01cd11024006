"""Runs a compiled program from its folder: no compiler, no Triton, and nothing of Tapestry.

    from load import load
    program = load()            # of the folder that this file is in
    y = program(x, w, b)        # tensors on the GPU, on PyTorch's current stream
    program(x, w, b, out=y)     # into a tensor of the caller's

It needs PyTorch, for memory and streams, and NVIDIA's driver. The kernels are those of the
machine's compute capability, or before sm_90 of the nearest lower one of the same generation. What
runs is the list of launches in the manifest: nothing of the folder is executed on the host but this
file.
Threads may share a program; its calls take turns on the host.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

from tapestry.codegen.driver import Cuda, Device, DriverError, LoadError, MemoryShortError
from tapestry.codegen.launches import Function, Launches
from tapestry.codegen.manifests import read_manifest
from tapestry.codegen.replay import Replayed

HERE = Path(__file__).parent

LEAST_CAPABILITY = 80
"""The least compute capability that programs are compiled for."""


class Program:
    """What was compiled: called with a tensor per input, in order or by name.

    `memory` is the bytes that a call takes for temporaries.
    """

    def __init__(
        self, manifest: Mapping[str, Any], launches: Launches, run: Launches | Replayed
    ) -> None:
        self.inputs: list[dict[str, Any]] = manifest["inputs"]
        self.outputs: list[dict[str, Any]] = manifest["outputs"]
        self.memory: int = manifest["plan"]["arena"]
        self._device = launches.device
        self._run = run
        self._names = [one["name"] for one in self.inputs]
        dtype = launches.device.dtype
        self._kinds = [(dtype(one["dtype"]), tuple(one["shape"])) for one in self.inputs]

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        tensors = list(arrays)
        if named or len(tensors) != len(self._names):
            tensors = self._ordered(tensors, named)
        for place, (dtype, shape) in enumerate(self._kinds):
            tensor = tensors[place]
            fits = getattr(tensor, "dtype", None) == dtype and tuple(tensor.shape) == shape
            if not fits or not self._device.holds(tensor):
                raise self._misfit(place, tensor)
            if tensor.requires_grad:  # no gradients are made here, nor their history
                tensors[place] = tensor = tensor.detach()
            if tensor.is_neg():  # negated when it is read, as it is conjugated
                tensors[place] = tensor = tensor.resolve_neg()
            if tensor.is_conj():
                tensors[place] = tensor = tensor.resolve_conj()
            if not tensor.is_contiguous():
                tensors[place] = tensor.contiguous()
        single = len(self.outputs) == 1
        wanted = [out] if single and out is not None else out
        if wanted is not None:
            self._check_wanted(wanted)
        try:
            results = self._run(tensors, wanted)
        except DriverError as error:
            if not error.is_lasting:
                raise
            what = f"{error}; the GPU's state is lost with such an error: start the process again"
            raise DriverError(what, error.code, error.kernel) from None
        return results[0] if single else tuple(results)

    def _check_wanted(self, out: Sequence[Any]) -> None:
        """Raise TypeError for tensors that results cannot be written to."""
        if not isinstance(out, list | tuple) or len(out) != len(self.outputs):
            raise TypeError(f"out is {len(self.outputs)} tensors, one for each result")
        for tensor in cast("Sequence[Any]", out):
            if not hasattr(tensor, "data_ptr"):
                raise TypeError(f"out has a {type(tensor).__name__}, but must have tensors")
            if not self._device.holds(tensor):
                raise TypeError(f"out is on {tensor.device}, and the program on another")

    def _ordered(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The tensors in the order of the inputs."""
        names = self._names
        if len(arrays) > len(names):
            raise TypeError(f"{len(arrays)} tensors are given, and {len(names)} are taken")
        given = dict(zip(names, arrays, strict=False))
        for name, value in named.items():
            if name in given or name not in names:
                raise TypeError(f"{name} is given twice, or is no input ({', '.join(names)})")
            given[name] = value
        return [given.get(name) for name in names]

    def _misfit(self, place: int, tensor: Any) -> TypeError:
        """What is wrong with an input."""
        entry = self.inputs[place]
        name, want = entry["name"], f"{entry['dtype']} of shape {entry['shape']}"
        if tensor is None:
            return TypeError(f"the input {name} is missing; it is {want}")
        if not hasattr(tensor, "data_ptr"):
            return TypeError(f"the input {name} is a {type(tensor).__name__}, but must be a tensor")
        have = f"{str(tensor.dtype).removeprefix('torch.')} of shape {list(tensor.shape)}"
        if have != want:
            return TypeError(f"the input {name} is {have}, but must be {want}")
        return TypeError(f"the input {name} is on {tensor.device}, and the program on another")


def load(
    folder: str | Path = HERE, device: Device | None = None, *, graphs: bool = False
) -> Program:
    """The program of a folder; LoadError says what is damaged or missing.

    With `graphs` a program that is called again is replayed as a CUDA graph; where that is not
    possible, stderr says so once.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    device = Cuda() if device is None else device
    target = _target(manifest["targets"], device.capability())
    functions: dict[str, Function] = {}
    for entry in manifest["kernels"]:
        if entry["target"] == target:
            cubin = _content(folder, entry["cubin"], entry["sha256"])
            handle = device.function(cubin, entry["symbol"], entry["shared"])
            threads = 32 * entry["num_warps"]
            function = Function(handle, threads, entry["shared"], entry["parameters"])
            functions[entry["name"]] = function
    plan = manifest["plan"]
    missing = {step["kernel"] for step in plan["steps"] if "kernel" in step} - set(functions)
    if missing:
        raise LoadError(f"{folder} has no kernel {min(missing)} for sm_{target}")
    try:
        constants = _constants(folder, manifest, device)
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        size = sum(one["bytes"] for one in plan["buffers"] if one["kind"] == "constant")
        raise MemoryShortError(
            f"the constants of {folder} take {size} bytes of GPU memory, and there are not as many "
            "free"
        ) from error
    launches = Launches(plan, functions, device, constants)
    return Program(manifest, launches, Replayed(launches, _no_graph) if graphs else launches)


def _no_graph(why: str) -> None:
    sys.stderr.write(f"the program is not replayed as a CUDA graph: {why}\n")


def _constants(folder: Path, manifest: Mapping[str, Any], device: Device) -> dict[int, Any]:
    """The constants of a program, on the device."""
    for name, digest in manifest["files"].items():
        _content(folder, name, digest, keep=False)
    made: dict[int, Any] = {}
    for place, buffer in enumerate(manifest["plan"]["buffers"]):
        if buffer["kind"] != "constant":
            continue
        data = bytes.fromhex(buffer["hex"]) if "hex" in buffer else _entry(folder, manifest, buffer)
        if len(data) != buffer["bytes"]:
            raise LoadError(f"a constant of {folder} has {len(data)} bytes, not {buffer['bytes']}")
        made[place] = device.upload(data, buffer["shape"], buffer["dtype"])
    return made


def _entry(folder: Path, manifest: Mapping[str, Any], buffer: Mapping[str, Any]) -> bytes:
    """The bytes of an array of an .npz file whose digest was right."""
    try:
        numpy: Any = import_module("numpy")
    except ImportError:
        raise LoadError("NumPy is not installed, which reads the program's constants") from None
    if buffer["file"] not in manifest["files"]:
        raise LoadError(f"{buffer['file']!r} is not a file of {folder}")
    try:
        with numpy.load(folder / buffer["file"], allow_pickle=False) as arrays:
            return numpy.ascontiguousarray(arrays[buffer["entry"]]).tobytes()
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise LoadError(f"{folder / buffer['file']} holds no {buffer['entry']}: {error}") from None


def _target(targets: Sequence[int], capability: int) -> int:
    """The best target: the device's own, or before sm_90 a lower one of its generation.

    What is compiled for newer ones is for that architecture alone (`sm_90a`).
    """
    family = capability // 10 if capability < 90 else None
    fitting = [t for t in targets if t == capability or (t // 10 == family and t < capability)]
    if not fitting and capability < LEAST_CAPABILITY:
        own, least = (f"{one // 10}.{one % 10}" for one in (capability, LEAST_CAPABILITY))
        raise LoadError(
            f"this GPU is sm_{capability}, which is too old: its compute capability is {own}, and "
            f"programs are compiled for {least} at least"
        )
    if not fitting:
        have = ", ".join(f"sm_{target}" for target in targets)
        raise LoadError(
            f"this GPU is sm_{capability}, and the program was compiled for {have}; "
            f"compile it with --target sm_{capability}, or run it with Triton from kernels.py"
        )
    return max(fitting)


def _content(folder: Path, name: str, digest: str, *, keep: bool = True) -> bytes:
    """The bytes of a file of the folder, which are those that were written; none if not kept."""
    if Path(name).name != name or "\\" in name:
        raise LoadError(f"{name!r} is not a file of {folder}")
    kept: list[bytes] = []
    found = hashlib.sha256()
    try:
        with (folder / name).open("rb") as file:
            while part := file.read(1 << 20):
                found.update(part)
                if keep:
                    kept.append(part)
    except OSError as error:
        raise LoadError(f"cannot read {folder / name}: {error.strerror}") from None
    except ValueError:  # a character that no path has: NUL, or half of a surrogate pair
        raise LoadError(f"{name!r} is not a file of {folder}") from None
    if found.hexdigest() != digest:
        raise LoadError(f"{folder / name} is damaged; compile the program again")
    return b"".join(kept)


def main() -> None:
    """Say what the program of a folder takes and gives."""
    try:
        program = load(sys.argv[1] if len(sys.argv) > 1 else HERE)
    except LoadError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    sys.stdout.write(f"takes {program.inputs}\ngives {program.outputs}\n")
    sys.stdout.write(f"holds {program.memory} bytes of temporaries while it runs\n")


if __name__ == "__main__":
    main()
