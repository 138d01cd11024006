"""What NVIDIA's driver is called with, by a driver and a PyTorch that stand in."""

# ruff: noqa: N802, ARG002 - functions are called, and take, what the driver's are and do

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapestry.codegen import driver
from tapestry.codegen.driver import Cuda, DriverError, LoadError, MemoryShortError, OldDriverError


class Driver:
    """Functions of libcuda: what they are called with, and what memory they set."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.codes: dict[str, int] = {}
        self.contexts: dict[int, int] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        def called(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            own = vars(type(self)).get(f"on_{name}")
            if own is not None:
                own(self, *arguments)
            return self.codes.get(name, 0)

        return called

    def on_cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> None:
        assert (attribute, device) == (97, 1)
        value._obj.value = 232448

    def on_cuDriverGetVersion(self, value: Any) -> None:
        value._obj.value = 12040

    def on_cuCtxGetCurrent(self, context: Any) -> None:
        context._obj.value = self.contexts.get(threading.get_ident())

    def on_cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> None:
        context._obj.value = 77 + device

    def on_cuCtxSetCurrent(self, context: Any) -> None:
        self.contexts[threading.get_ident()] = context.value

    def on_cuMemsetD8Async(self, at: Any, value: Any, count: Any, stream: Any) -> None:
        self._set(at.value, np.full(count.value, value.value, np.uint8))

    def on_cuMemsetD16Async(self, at: Any, value: Any, count: Any, stream: Any) -> None:
        self._set(at.value, np.full(count.value, value.value, np.uint16))

    def on_cuMemsetD32Async(self, at: Any, value: Any, count: Any, stream: Any) -> None:
        self._set(at.value, np.full(count.value, value.value, np.uint32))

    def on_cuMemsetD2D32Async(
        self, at: Any, pitch: Any, value: Any, width: Any, height: Any, stream: Any
    ) -> None:
        for row in range(height.value):
            self._set(at.value + row * pitch.value, np.full(width.value, value.value, np.uint32))

    def _set(self, address: int, cells: np.ndarray) -> None:
        ctypes.memmove(address, cells.ctypes.data, cells.nbytes)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.calls if called == name]


class Torch:
    """PyTorch, whose current device is the first of two."""

    def __init__(self) -> None:
        self.now = 0
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            current_device=lambda: self.now,
            get_device_capability=lambda _: (9, 0),
            device=self._device,
        )

    def device(self, kind: str, index: int) -> str:
        return f"{kind}:{index}"

    def empty(self, *_: Any, **__: Any) -> None: ...

    def _device(self, index: int) -> AbstractContextManager[None]:
        self.now = index
        return nullcontext()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> tuple[Cuda, Driver]:
    made = Driver()
    modules = {"torch": Torch(), "torch._C": SimpleNamespace(_cuda_getCurrentRawStream=lambda n: n)}
    monkeypatch.setattr(driver, "import_module", modules.__getitem__)
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda _: made)
    return Cuda(1), made


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", -np.inf),
        ("float64", np.inf),
        ("float64", 0.0),
        ("int64", -(1 << 62) + 5),
        ("int64", -1),
        ("float16", 1.5),
        ("int8", -7),
        ("bool", True),
    ],
)
def test_memory_is_filled_in_cells_of_every_size(cuda, dtype: str, value: float) -> None:
    device, _ = cuda
    cells = np.zeros(37, dtype)
    cell = np.asarray(value).astype(dtype).tobytes()
    assert device.fill(cells.ctypes.data, cell, 30, 5) == 0
    np.testing.assert_array_equal(cells[:30], np.full(30, value, dtype))
    assert not cells[30:].any()


def test_a_kernel_is_allowed_the_shared_memory_that_it_takes(cuda) -> None:
    device, made = cuda
    device.function(b"\x7fELF", "small", 1024)
    assert made.named("cuFuncSetAttribute") == made.named("cuFuncSetCacheConfig") == []
    made.codes["cuFuncSetCacheConfig"] = 1  # which is no reason not to run
    device.function(b"\x7fELF", "large", 100_000)
    assert [call[1:] for call in made.named("cuFuncSetAttribute")] == [(8, 100_000)]
    assert [call[1:] for call in made.named("cuFuncSetCacheConfig")] == [(1,)]
    with pytest.raises(LoadError, match="huge takes 300000 bytes .* and this GPU has 232448"):
        device.function(b"\x7fELF", "huge", 300_000)


def test_a_thread_without_a_context_gets_the_devices(cuda) -> None:
    device, made = cuda
    seen: list[bool] = []

    def thread() -> None:
        seen.append(device.is_current())
        with device.current():
            seen.append(device.is_current())

    one = threading.Thread(target=thread)
    one.start()
    one.join()
    assert seen == [False, True]
    assert len(made.named("cuCtxSetCurrent")) == 1
    assert 78 in made.contexts.values()


def test_a_refusal_of_the_driver_says_what_and_why(cuda) -> None:
    device, made = cuda
    made.codes["cuModuleLoadData"] = 209
    with pytest.raises(
        DriverError, match=r"cuModuleLoadData failed: .*\(CUDA error 209\)"
    ) as found:
        device.function(b"\x7fELF", "other", 0)
    assert found.value.code == 209


def test_a_driver_that_is_too_old_says_which_it_is(cuda) -> None:
    device, made = cuda
    made.codes["cuModuleLoadData"] = 222
    with pytest.raises(
        OldDriverError, match="kernel new cannot be loaded.* of CUDA 12.4, .*update"
    ):
        device.function(b"\x7fELF", "new", 0)


@pytest.mark.parametrize("name", ["cuModuleLoadData", "cuModuleGetFunction"])
def test_a_kernel_that_finds_no_memory_says_so(cuda, name: str) -> None:
    device, made = cuda
    made.codes[name] = 2
    with pytest.raises(MemoryShortError, match=f"kernel big cannot be loaded: {name} failed"):
        device.function(b"\x7fELF", "big", 0)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, cuda) -> None:
    del cuda

    def no_driver(_: str) -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(driver.ctypes, "CDLL", no_driver)
    with pytest.raises(LoadError, match="NVIDIA's driver cannot be loaded"):
        Cuda(1)

    def no_torch(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(driver, "import_module", no_torch)
    with pytest.raises(LoadError, match="PyTorch is not installed"):
        Cuda()
