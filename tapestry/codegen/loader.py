"""Runs a compiled program from its folder: no compiler, no Triton, and nothing of Tapestry.

    from load import load
    program = load()            # of the folder that this file is in
    y = program(x, w, b)        # tensors on the GPU

It needs PyTorch, for memory and streams, and NVIDIA's driver. The kernels are those of the
machine's compute capability, or of the nearest lower one of the same generation.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).parent


class LoadError(Exception):
    """A folder that is damaged, or that this machine cannot run."""


class Device(Protocol):
    """What kernels are loaded and launched by."""

    def capability(self) -> int: ...

    def function(self, cubin: bytes, name: str, shared: int) -> Any: ...

    def launch(
        self, function: Any, grid: Sequence[int], threads: int, shared: int, arguments: list[Any]
    ) -> None: ...


class Cuda:
    """NVIDIA's driver, through ctypes, on the current device and stream of PyTorch."""

    def __init__(self) -> None:
        torch: Any = import_module("torch")
        if not torch.cuda.is_available():
            raise LoadError("PyTorch sees no GPU")
        torch.cuda.current_stream()  # makes the device's context the current one
        self._torch = torch
        self._driver = ctypes.CDLL("libcuda.so.1")

    def capability(self) -> int:
        """The compute capability of the device: 90 for sm_90."""
        major, minor = self._torch.cuda.get_device_capability()
        return 10 * major + minor

    def function(self, cubin: bytes, name: str, shared: int) -> ctypes.c_void_p:
        """A kernel of a cubin, allowed to use `shared` bytes per block."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, 8, shared)
        return function

    def launch(
        self, function: Any, grid: Sequence[int], threads: int, shared: int, arguments: list[Any]
    ) -> None:
        """Launch a kernel on the current stream; `arguments` are ctypes values."""
        pointers = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in arguments]
        stream = ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)
        packed = (ctypes.c_void_p * len(pointers))(*pointers)
        self._call("cuLaunchKernel", function, *grid, threads, 1, 1, shared, stream, packed, None)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise LoadError(f"{name} failed with CUDA error {code}")


_VALUES: dict[str, Callable[[Any], Any]] = {
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


class Kernel:
    """A kernel that launches like one of Triton's: `kernel[grid](*arguments, **blocks)`."""

    def __init__(self, entry: Mapping[str, Any], cubin: bytes, device: Device) -> None:
        self._entry = entry
        self._device = device
        self._function = device.function(cubin, entry["symbol"], entry["shared"])

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        sizes = (*grid, 1, 1)[:3]
        entry = self._entry

        def launch(*given: Any, **_: Any) -> None:
            if 0 in sizes:
                return
            kinds = entry["arguments"]
            arguments = [_value(kind, one) for kind, one in zip(kinds, given, strict=True)]
            # What Triton adds at the end (scratch memory, which these kernels need none of).
            arguments += [ctypes.c_void_p()] * (entry["parameters"] - len(kinds))
            threads = 32 * entry["num_warps"]
            self._device.launch(self._function, sizes, threads, entry["shared"], arguments)

        return launch


def _value(kind: str, given: Any) -> Any:
    if kind.startswith("*"):
        return ctypes.c_void_p(given.data_ptr())
    return _VALUES[kind](given)


class Program:
    """What was compiled: called with a tensor per input, in order or by name."""

    def __init__(
        self, manifest: Mapping[str, Any], launch: Callable[..., Any], options: Mapping[str, Any]
    ) -> None:
        self.inputs: list[dict[str, Any]] = manifest["inputs"]
        self.outputs: list[dict[str, Any]] = manifest["outputs"]
        self._launch = launch
        self._options = options

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        names = [one["name"] for one in self.inputs]
        if len(arrays) > len(names):
            raise TypeError(f"{len(arrays)} tensors are given, and {len(names)} are taken")
        given = dict(zip(names, arrays, strict=False))
        for name, value in named.items():
            if name in given or name not in names:
                raise TypeError(f"{name} is given twice, or is no input ({', '.join(names)})")
            given[name] = value
        tensors = [self._checked(one, given.get(one["name"])) for one in self.inputs]
        return self._launch(*tensors, **self._options)

    @staticmethod
    def _checked(entry: Mapping[str, Any], tensor: Any) -> Any:
        """A tensor as kernels take it: of the right kind, contiguous, aligned to 16 bytes."""
        name, want = entry["name"], f"{entry['dtype']} of shape {entry['shape']}"
        if tensor is None:
            raise TypeError(f"the input {name} is missing; it is {want}")
        have = f"{str(tensor.dtype).removeprefix('torch.')} of shape {list(tensor.shape)}"
        if have != want:
            raise TypeError(f"the input {name} is {have}, but must be {want}")
        tensor = tensor.contiguous()
        return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def load(folder: str | Path = HERE, device: Device | None = None, **options: Any) -> Program:
    """The program of a folder; LoadError says what is damaged or missing."""
    folder = Path(folder)
    manifest = _manifest(folder)
    device = Cuda() if device is None else device
    target = _target(manifest, device.capability())
    namespace: dict[str, Any] = {"triton": types.SimpleNamespace(cdiv=_blocks)}
    for entry in manifest["kernels"]:
        if entry["target"] == target:
            cubin = _content(folder, entry["cubin"], entry["sha256"])
            namespace[entry["name"]] = Kernel(entry, cubin, device)
    host = _content(folder, manifest["host"]["file"], manifest["host"]["sha256"])
    exec(compile(host, str(folder / manifest["host"]["file"]), "exec"), namespace)  # noqa: S102
    for name, digest in manifest["files"].items():
        _content(folder, name, digest)
    if "torch_upload" in namespace:
        options["upload"] = _Kept(options.get("upload", namespace["torch_upload"]))
    if manifest["files"]:
        options.setdefault("folder", str(folder))
        namespace["read_entry"] = _Reader(namespace["read_entry"])
    return Program(manifest, namespace["launch"], options)


class _Reader:
    """Reads each array of a file once."""

    def __init__(self, read: Callable[[str, str, str], bytes]) -> None:
        self._read = read
        self._known: dict[tuple[str, str, str], bytes] = {}

    def __call__(self, folder: str, path: str, entry: str) -> bytes:
        key = (folder, path, entry)
        if key not in self._known:
            self._known[key] = self._read(*key)
        return self._known[key]


class _Kept:
    """Brings each constant to the device once."""

    def __init__(self, upload: Callable[[bytes, Any, str], Any]) -> None:
        self._upload = upload
        self._known: dict[tuple[int, Any, str], tuple[bytes, Any]] = {}

    def __call__(self, data: bytes, shape: Any, dtype: str) -> Any:
        key = (id(data), shape, dtype)  # the bytes are kept with it, so the number stays theirs
        if key not in self._known:
            self._known[key] = (data, self._upload(data, shape, dtype))
        return self._known[key][1]


def _blocks(size: int, block: int) -> int:
    """How many blocks hold `size`: what the host calls `triton.cdiv`."""
    return -(-size // block)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
        version = manifest["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{folder} holds no compiled program: {error}") from None
    if version != 1:
        raise LoadError(f"{folder} was compiled in form {version}; this loader reads form 1")
    return manifest


def _target(manifest: Mapping[str, Any], capability: int) -> int:
    """The best target: the device's own, or a lower one of its generation."""
    targets: list[int] = manifest["targets"]
    fitting = [t for t in targets if t // 10 == capability // 10 and t <= capability]
    if not fitting:
        have = ", ".join(f"sm_{target}" for target in targets)
        raise LoadError(f"this GPU is sm_{capability}, and the program was compiled for {have}")
    return max(fitting)


def _content(folder: Path, name: str, digest: str) -> bytes:
    """The bytes of a file of the folder, which are those that were written."""
    if Path(name).name != name:
        raise LoadError(f"{name!r} is not a file of {folder}")
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read {folder / name}: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise LoadError(f"{folder / name} is damaged; compile the program again")
    return content


if __name__ == "__main__":
    loaded = load(sys.argv[1] if len(sys.argv) > 1 else HERE)
    sys.stdout.write(f"takes {loaded.inputs}\ngives {loaded.outputs}\n")
