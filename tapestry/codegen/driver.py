"""What kernels are loaded and launched by: NVIDIA's driver, with PyTorch's memory and streams.

    device = Cuda()
    function = device.function(cubin, "relu_kernel", shared=0)
    device.launch(function, 4, 1, 1, 128, 1, 1, 0, device.stream(), parameters, None)

Tests have devices of their own: `Device` says what one can do. This file needs nothing of Tapestry:
it is part of what `tapestry compile` writes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from threading import Lock, local
from typing import Any, Protocol

_capturing = Lock()
"""PyTorch captures one graph at a time."""


class LoadError(Exception):
    """A program that is damaged, or that this machine cannot run."""


class MemoryShortError(LoadError):
    """The GPU has not the memory that a program takes."""


class DriverError(LoadError):
    """What the driver refused or failed; `code` is CUDA's, `kernel` what was launched."""

    def __init__(self, message: str, code: int, kernel: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.kernel = kernel

    @property
    def is_lasting(self) -> bool:
        """Whether the process can do nothing more on the GPU."""
        return self.code >= 700 and self.code != 701


class OldDriverError(DriverError):
    """A kernel that the driver cannot read: compiled for another GPU, or by a newer CUDA."""


SHORT = 2
"""CUDA's code of memory that is short: what fails with it has not begun."""

_UNREAD = {200, 209, 218, 222}
"""CUDA's codes of code that the driver cannot read."""


class Device(Protocol):
    """What kernels are loaded and launched by.

    `launch` takes what the driver's `cuLaunchKernel` takes, `fill` an address, the bytes of a cell,
    how many cells, and a stream; both return an error code, 0 for none, that `failure` explains.
    """

    launch: Callable[..., int]

    def capability(self) -> int: ...

    def function(self, cubin: bytes, name: str, shared: int) -> Any: ...

    def fill(self, address: int, cell: bytes, count: int, stream: int) -> int: ...

    def failure(self, code: int) -> str: ...

    def stream(self) -> int: ...

    def is_current(self) -> bool: ...

    def current(self) -> AbstractContextManager[Any]: ...

    def dtype(self, name: str) -> Any: ...

    def empty(self, shape: Sequence[int], dtype: Any) -> Any: ...

    def upload(self, data: bytes, shape: Sequence[int], dtype: str) -> Any: ...

    def holds(self, tensor: Any) -> bool: ...

    def capture(self, run: Callable[[], list[Any]]) -> tuple[Callable[[], object], list[Any]]: ...

    def is_capturing(self) -> bool: ...

    def after(self, stream: int) -> None: ...


class Cuda:
    """NVIDIA's driver, through ctypes, and PyTorch's memory and streams, on one device."""

    def __init__(self, index: int | None = None) -> None:
        try:
            torch: Any = import_module("torch")
        except ImportError:
            raise LoadError("PyTorch is not installed, and memory on the GPU is its") from None
        if not torch.cuda.is_available():
            raise LoadError("PyTorch sees no GPU; run the program on a machine that has one")
        self._torch = torch
        try:
            self.index: int = torch.cuda.current_device() if index is None else index
            self._device = torch.device("cuda", self.index)
            with torch.cuda.device(self.index):
                torch.empty(1, device=self._device)  # makes the device's context the current one
        except RuntimeError as error:
            raise LoadError(f"the GPU cannot be used: {str(error).splitlines()[0]}") from None
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise LoadError(f"NVIDIA's driver cannot be loaded: {error}") from None
        self.launch = self._driver.cuLaunchKernel
        self._thread = local()
        own: Any = import_module("torch._C")
        self._raw_stream = getattr(own, "_cuda_getCurrentRawStream", None)
        limit = ctypes.c_int()
        # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        self._call("cuDeviceGetAttribute", ctypes.byref(limit), 97, self.index)
        self._shared = limit.value

    def capability(self) -> int:
        """The compute capability of the device: 90 for sm_90."""
        major, minor = self._torch.cuda.get_device_capability(self.index)
        return 10 * major + minor

    def function(self, cubin: bytes, name: str, shared: int) -> ctypes.c_void_p:
        """A kernel of a cubin, allowed to use `shared` bytes per block."""
        if shared > self._shared:
            raise LoadError(
                f"{name} takes {shared} bytes of shared memory per block, and this GPU has "
                f"{self._shared}"
            )
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            with self.current():
                self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
                self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
                if shared > 48 * 1024:
                    # CU_FUNC_CACHE_PREFER_SHARED, so that as many blocks fit as there is room for.
                    # It is a wish, so what becomes of it does not matter.
                    self._driver.cuFuncSetCacheConfig(function, 1)
                    # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    self._call("cuFuncSetAttribute", function, 8, shared)
        except DriverError as error:
            raise self._unloaded(name, error) from None
        return function

    def _unloaded(self, name: str, error: DriverError) -> LoadError:
        """What is wrong where a kernel cannot be loaded, and what can be done."""
        what = f"kernel {name} cannot be loaded: {error}"
        if error.code == SHORT:
            return MemoryShortError(what)
        if error.code in _UNREAD:
            version = ctypes.c_int()
            self._driver.cuDriverGetVersion(ctypes.byref(version))
            major, minor = version.value // 1000, version.value % 1000 // 10
            what += (
                f"; the driver is of CUDA {major}.{minor}, and what a newer one compiled needs a "
                "newer driver: update NVIDIA's driver, or compile with an older Triton"
            )
            return OldDriverError(what, error.code)
        return DriverError(what, error.code)

    def fill(self, address: int, cell: bytes, count: int, stream: int) -> int:
        """Make `count` cells at an address equal on a stream."""
        driver, at = self._driver, ctypes.c_uint64(address)
        queue, size = ctypes.c_void_p(stream), len(cell)
        if size == 8 and cell[:4] == cell[4:]:
            cell, count, size = cell[:4], 2 * count, 4
        words = [int.from_bytes(cell[n : n + 4], "little") for n in range(0, size, 4)]
        number = ctypes.c_size_t(count)
        if size == 8:
            code = 0
            for n, word in enumerate(words):
                place = ctypes.c_uint64(address + 4 * n)
                one, pitch, value = ctypes.c_size_t(1), ctypes.c_size_t(8), ctypes.c_uint(word)
                code = code or driver.cuMemsetD2D32Async(place, pitch, value, one, number, queue)
            return code
        if size == 4:
            return driver.cuMemsetD32Async(at, ctypes.c_uint(words[0]), number, queue)
        if size == 2:
            return driver.cuMemsetD16Async(at, ctypes.c_ushort(words[0]), number, queue)
        return driver.cuMemsetD8Async(at, ctypes.c_ubyte(words[0]), number, queue)

    def failure(self, code: int) -> str:
        """What an error code of the driver's means."""
        if code == 710:  # CUDA_ERROR_ASSERT
            return "device-side assert triggered (CUDA error 710)"
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(code, ctypes.byref(text))
        said = "unknown error" if text.value is None else text.value.decode()
        return f"{said} (CUDA error {code})"

    def stream(self) -> int:
        """PyTorch's current stream of the device."""
        if self._raw_stream is not None:
            return self._raw_stream(self.index)
        return self._torch.cuda.current_stream(self.index).cuda_stream

    def is_current(self) -> bool:
        """Whether the device is PyTorch's current one, and its context this thread's."""
        return (
            getattr(self._thread, "bound", False)
            and self._torch.cuda.current_device() == self.index
        )

    @contextmanager
    def current(self) -> Generator[None]:
        """While it lasts, the device is PyTorch's current one, and its context this thread's.

        PyTorch makes a thread's context with the first call that needs one, which memory that is
        handed out again does not.
        """
        with self._torch.cuda.device(self.index):
            context = ctypes.c_void_p()
            self._call("cuCtxGetCurrent", ctypes.byref(context))
            if not context.value:
                self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.index)
                self._call("cuCtxSetCurrent", context)
            self._thread.bound = True
            yield

    def dtype(self, name: str) -> Any:
        """PyTorch's dtype of this name."""
        return getattr(self._torch, name)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new tensor of PyTorch's allocator, which orders what reuses memory by streams."""
        return self._torch.empty(shape, dtype=dtype, device=self._device)

    def upload(self, data: bytes, shape: Sequence[int], dtype: str) -> Any:
        """A tensor with cells from bytes, little-endian and row-major."""
        if not data:
            return self.empty(shape, self.dtype(dtype))
        cells = self._torch.frombuffer(bytearray(data), dtype=self._torch.uint8)
        return cells.view(self.dtype(dtype)).reshape(shape).to(self._device)

    def capture(self, run: Callable[[], list[Any]]) -> tuple[Callable[[], object], list[Any]]:
        """What replays the work that `run` launches as a CUDA graph, and what `run` returned.

        PyTorch's own stream for captures is of the device where it captured first, and a capture
        that fails does not give back the stream from before: so both are said here.
        """
        torch = self._torch
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(self._device)
        before = torch.cuda.stream(torch.cuda.current_stream(self.index))
        how = {"stream": stream, "capture_error_mode": "thread_local"}
        with _capturing, before, torch.cuda.graph(graph, **how):
            made = run()
        return graph.replay, made

    def is_capturing(self) -> bool:
        """Whether somebody captures the work of the current stream, of the current device."""
        return self._torch.cuda.is_current_stream_capturing()

    def after(self, stream: int) -> None:
        """Let the current stream wait for what another one has to do so far."""
        other = self._torch.cuda.ExternalStream(stream, device=self._device)
        self._torch.cuda.current_stream(self.index).wait_stream(other)

    def holds(self, tensor: Any) -> bool:
        """Whether a tensor is on the device."""
        return tensor.is_cuda and tensor.get_device() == self.index

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise DriverError(f"{name} failed: {self.failure(code)}", code)
