"""A `libcuda.so.1` that is built here: our calls reach C functions of the driver's types.

    driver = PretendDriver.built(folder)
    driver.knows(cubin, a function of a launch)

Cubins are read as the driver reads them: a launch must have the threads that its kernel was
compiled for, and for each parameter the address of as many bytes as the kernel takes, in the
context that its module was loaded in. It runs what is known of the cubin; `reads_only` says that
nothing is to be run.
"""

# ruff: noqa: N802 - functions are called what the driver's are

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.codegen.cubins import Told, told

DEVICES = 2
SHARED = 227 * 1024
DEFAULT = 48 * 1024
INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 1, 201, 400, 500
SHARED_OPTIN, MAX_DYNAMIC_SHARED = 97, 8
"""CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN and the attribute of functions."""
_SOURCE = Path(__file__).with_name("libcuda.c")
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))


@dataclass
class Kernel:
    """A function of a module: what its cubin says, and the shared memory that it is allowed."""

    name: str
    digest: str
    said: Told
    context: int
    allowed: int = DEFAULT


@dataclass
class Launch:
    """A launch as the driver got it; `values` are the `bytes` of each parameter, as numbers."""

    kernel: str
    programs: int
    shared: int
    stream: int
    values: list[int]
    bytes: list[int]
    threads: int
    device: int


@dataclass
class PretendDriver:
    """What the C functions ask; `launches` and `fills` are what was done, in order."""

    path: Path
    kernels: dict[str, Callable[[str, int, int, Any], None]] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    fills: int = 0
    reads_only: bool = False
    capturing: list[Callable[[], object]] | None = None
    expected: Callable[[int], int] = lambda _: 0
    """The stream of a device that work has to be on."""
    asked: Callable[[str], Callable[[str, int, int, Any], None] | None] = lambda _: None
    """What a kernel of a cubin runs that is not known yet."""
    codes: dict[str, int] = field(default_factory=dict)
    """What functions fail with, by name."""

    def __post_init__(self) -> None:
        self._library = ctypes.CDLL(str(self.path))
        self._answer = _ANSWER(self._called)
        self._library.pretend_with(self._answer)
        self._modules: dict[int, tuple[bytes, int]] = {}
        self._functions: dict[int, Kernel] = {}
        self._contexts: dict[int, int] = {}
        self._text = ctypes.create_string_buffer(b"pretended error")

    @classmethod
    def built(cls, folder: Path) -> PretendDriver:
        """Build the library in a folder with the C compiler that there is."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        assert compiler is not None, "there is no C compiler"
        path, partial = folder / "libcuda.so.1", folder / f"libcuda.{os.getpid()}"
        if not path.exists():  # another process may use it
            triton = find_spec("triton.backends.nvidia")
            assert triton is not None
            assert triton.origin is not None
            asked = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", partial]
            asked += ["-Wl,-soname,libcuda.so.1", f"-I{Path(triton.origin).parent / 'include'}"]
            subprocess.run([*asked, _SOURCE], check=True)
            partial.replace(path)
        return cls(path)

    def make_current(self, device: int) -> None:
        """What PyTorch does with another device: its context becomes this thread's."""
        self._contexts[threading.get_ident()] = _context(device)

    def knows(self, cubin: bytes, run: Callable[[str, int, int, Any], None]) -> None:
        """A launch of a kernel of a cubin runs this: its name, programs, threads, parameters."""
        self.kernels[digest(cubin)] = run

    def _called(self, name: bytes, given: Any) -> int:
        if name.decode() in self.codes:
            return self.codes[name.decode()]
        try:
            return int(getattr(self, f"_{name.decode()}")(given) or 0)
        except Exception as error:  # noqa: BLE001 - a C caller takes no exceptions
            self.problems.append(f"{name.decode()}: {type(error).__name__}: {error}")
            return 999

    def _refuse(self, what: str, code: int = INVALID_VALUE) -> int:
        self.problems.append(what)
        return code

    @property
    def _context(self) -> int:
        """This thread's context, 0 without one."""
        return self._contexts.get(threading.get_ident(), 0)

    def _without_context(self) -> bool:
        return not self._context

    def _stream(self) -> int:
        """The stream that this thread's work has to be on."""
        return self.expected(self._context - _context(0))

    def _cuInit(self, given: Any) -> None: ...

    def _cuDriverGetVersion(self, given: Any) -> None:
        ctypes.c_int.from_address(given[0]).value = 12040

    def _cuDeviceGet(self, given: Any) -> int:
        ctypes.c_int.from_address(given[0]).value = given[1]
        return 0 if given[1] < DEVICES else self._refuse(f"there is no device {given[1]}")

    def _cuDeviceGetAttribute(self, given: Any) -> int:
        if given[2] >= DEVICES:
            return self._refuse(f"attribute {given[1]} of device {given[2]}")
        ctypes.c_int.from_address(given[0]).value = SHARED if given[1] == SHARED_OPTIN else 1
        return 0

    def _cuCtxGetCurrent(self, given: Any) -> None:
        ctypes.c_uint64.from_address(given[0]).value = self._context

    def _cuDevicePrimaryCtxRetain(self, given: Any) -> None:
        ctypes.c_uint64.from_address(given[0]).value = _context(given[1])

    def _cuCtxSetCurrent(self, given: Any) -> int:
        if given[0] not in map(_context, range(DEVICES)):
            return self._refuse(f"{given[0]:#x} is no context")
        self._contexts[threading.get_ident()] = given[0]
        return 0

    def _cuPointerGetAttribute(self, given: Any) -> int:
        ctypes.c_uint64.from_address(given[0]).value = given[2]
        return 0

    def _cuModuleLoadData(self, given: Any) -> int:
        if self._without_context():
            return INVALID_CONTEXT
        head = ctypes.string_at(given[1], 64)
        if head[:4] != b"\x7fELF":
            return self._refuse("a module that is no ELF file", 200)
        handle = 0xA000000000000000 + len(self._modules)
        self._modules[handle] = ctypes.string_at(given[1], _size(head)), self._context
        ctypes.c_uint64.from_address(given[0]).value = handle
        return 0

    def _cuModuleGetFunction(self, given: Any) -> int:
        (image, context), name = self._modules[given[1]], ctypes.string_at(given[2]).decode()
        try:
            said = told(image, name)
        except KeyError:
            return self._refuse(f"{name} is not in its module", NOT_FOUND)
        handle = 0xF000000000000000 + len(self._functions)
        self._functions[handle] = Kernel(name, digest(image), said, context)
        ctypes.c_uint64.from_address(given[0]).value = handle
        return 0

    def _cuModuleUnload(self, given: Any) -> None: ...

    def _cuFuncGetAttribute(self, given: Any) -> None:
        # Shared memory that is not asked for at launch, registers, local memory, or threads.
        ctypes.c_int.from_address(given[0]).value = 1024 if given[1] == 0 else 0

    def _cuFuncSetAttribute(self, given: Any) -> int:
        if given[1] != MAX_DYNAMIC_SHARED:  # newer ones, which Triton 3.9 tries and can do without
            return INVALID_VALUE
        if given[2] > SHARED:
            return self._refuse(f"attribute {given[1]} = {given[2]} of a function")
        self._functions[given[0]].allowed = given[2]
        return 0

    def _cuFuncSetCacheConfig(self, given: Any) -> int:
        if given[1] != 1 or given[0] not in self._functions:
            return self._refuse(f"cache {given[1]} of {given[0]:#x}")
        return 0

    def _cuGetErrorString(self, given: Any) -> None:
        ctypes.c_uint64.from_address(given[1]).value = ctypes.addressof(self._text)

    def _cuMemsetD8Async(self, given: Any) -> int:
        return self._set(given[0], 1, given[1], 1, given[2], given[3])

    def _cuMemsetD16Async(self, given: Any) -> int:
        return self._set(given[0], 2, given[1], 2, given[2], given[3])

    def _cuMemsetD32Async(self, given: Any) -> int:
        return self._set(given[0], 4, given[1], 4, given[2], given[3])

    def _cuMemsetD2D32Async(self, given: Any) -> int:
        at, pitch, value, width, height, stream = given[:6]
        if width != 1:
            return self._refuse(f"rows of {width} words")
        return self._set(at, pitch, value, 4, height, stream)

    def _set(self, at: int, pitch: int, value: int, size: int, count: int, stream: int) -> int:
        if self._without_context() or stream != self._stream() or at % size:
            return self._refuse(f"a fill of {count} cells of {size} at {at:#x} on {stream}")
        self.fills += 1

        def fill() -> None:
            cell = value.to_bytes(size, "little")
            if pitch == size:
                ctypes.memmove(at, cell * count, size * count)
                return
            for number in range(count):
                ctypes.memmove(at + pitch * number, cell, size)

        return self._do(fill)

    def _cuLaunchKernel(self, given: Any) -> int:
        if self._without_context():
            return INVALID_CONTEXT
        function, x, y, z, tx, ty, tz, shared, stream, table, extra, attributes = given[:12]
        kernel = self._functions.get(function)
        if kernel is None:
            return self._refuse(f"a launch of {function:#x}, which is no function")
        if kernel.context != self._context:
            return self._refuse(f"{kernel.name} was loaded in another context", INVALID_HANDLE)
        threads, bounds = (tx, ty, tz), (kernel.said.threads, 1, 1)
        if (y, z, extra, attributes) != (1, 1, 0, 0) or threads != bounds or not 0 < x < 1 << 31:
            return self._refuse(f"{kernel.name} on {(x, y, z)} programs of {threads} threads")
        if shared > kernel.allowed or stream != self._stream():
            return self._refuse(f"{kernel.name} with {shared} shared bytes on stream {stream}")
        places = (ctypes.c_uint64 * len(kernel.said.parameters)).from_address(table)
        sizes = kernel.said.parameters
        values = [
            int.from_bytes(ctypes.string_at(place, size), "little")
            for place, size in zip(places, sizes, strict=True)
        ]
        where = kernel.context - _context(0)
        self.launches.append(Launch(kernel.name, x, shared, stream, values, sizes, tx, where))
        run = self.kernels.get(kernel.digest) or self.asked(kernel.digest)
        if run is not None:
            self.kernels[kernel.digest] = run
        if run is None:
            return 0 if self.reads_only else self._refuse(f"{kernel.name} is of an unknown cubin")
        # A kernel has the values of the time of its launch, also where it is captured.
        cells = (ctypes.c_uint64 * len(values))(*values)
        start = ctypes.addressof(cells)
        held = (ctypes.c_void_p * len(values))(*(start + 8 * n for n in range(len(values))))

        def launch(run: Any = run, kept: Sequence[Any] = (cells, held)) -> None:
            run(kernel.name, x, threads[0], kept[1])

        return self._do(launch)

    def _cuLaunchKernelEx(self, given: Any) -> int:
        return self._cuLaunchKernel(given)

    def _do(self, work: Callable[[], None]) -> int:
        if self.capturing is None:
            work()
        else:
            self.capturing.append(work)
        return 0


def _context(device: int) -> int:
    """The primary context of a device."""
    return 0xC0DE000000000001 + device


def _size(elf: bytes) -> int:
    """The bytes of an ELF file up to the end of its table of sections."""
    (start,), (each, count) = (
        struct.unpack_from("<Q", elf, 0x28),
        struct.unpack_from("<HH", elf, 58),
    )
    return start + each * count


def digest(image: bytes) -> str:
    """What a cubin, or what starts with it, is known by."""
    image = image[: _size(image)]
    return sha256(image).hexdigest()
