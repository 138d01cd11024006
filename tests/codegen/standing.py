"""A device that stands in for a GPU: its memory is this process's, its driver Triton's interpreter.

A "function" is the name of a kernel. A launch is what the driver gets: numbers, and a table of
addresses of parameters. What lies at those addresses are pointers into tensors that the device
made, anywhere in them, so kernels run on the places that the caller has chosen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from tapestry.codegen.aot import CompiledKernel
from tapestry.codegen.driver import LoadError
from tapestry.codegen.launches import Launches
from tapestry.codegen.module_files import load_kernels
from tapestry.codegen.specs import KernelSpec
from tapestry.runtime.triton.compiled import compiled_launches
from tapestry.runtime.triton.devices import PrintedProgram
from tapestry.runtime.triton.interpreter import interpreted

_OWN = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64", "i1": "bool"}
_OWN |= {f"{s}{n}": f"{'u' * (s == 'u')}int{n}" for s in "iu" for n in (8, 16, 32, 64)}
_OWN |= {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}


def named(dtype: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


class Tensor:
    """What launches ask of a tensor of PyTorch, on an array.

    While a device captures, copies are captured too.
    """

    capturing: ClassVar[list[Callable[[], object]] | None] = None

    requires_grad = False

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.device = "standing"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def element_size(self) -> int:
        return self.array.itemsize

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def is_neg(self) -> bool:
        return False

    def is_conj(self) -> bool:
        return False

    def contiguous(self) -> Tensor:
        return Tensor(aligned(self.array))

    def clone(self) -> Tensor:
        made = Tensor(aligned(self.array))
        if Tensor.capturing is not None:
            Tensor.capturing.append(lambda: made.copy_(self))
        return made

    def copy_(self, other: Tensor) -> None:
        self.array[...] = other.array

    def view(self, dtype: np.dtype[Any]) -> Tensor:
        return Tensor(self.array.view(dtype))

    def reshape(self, shape: Sequence[int]) -> Tensor:
        return Tensor(self.array.reshape(tuple(shape)))

    def __getitem__(self, box: Any) -> np.ndarray:
        return self.array[box]


def aligned(array: np.ndarray, offset: int = 0) -> np.ndarray:
    """The same cells at a multiple of 256 bytes, and so many bytes after it."""
    room = np.zeros(array.nbytes + 512, np.uint8)
    start = -room.ctypes.data % 256 + offset
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class Standing:
    """`kernels` is the module of a printed program, `signatures` the types of each kernel's
    operands, by name. `short` makes allocations of as many bytes or more fail; `codes` are error
    codes that launches of a kernel return."""

    def __init__(
        self,
        kernels: Path,
        signatures: dict[str, Sequence[str]],
        options: dict[str, dict[str, Any]],
        *,
        capability: int = 90,
    ) -> None:
        with interpreted():
            self._kernels = vars(load_kernels(kernels))
        self.signatures, self._options = signatures, options
        self._capability = capability
        self.queue = 7
        self.short: int | None = None
        self.shared = 227 * 1024
        self.codes: dict[str, int] = {}
        self.loaded: list[str] = []
        self.uploads = 0
        self.empties: list[int] = []
        self.launched: list[tuple[str, int, int]] = []
        self.filled: list[tuple[int, bytes, int]] = []
        self.poison = True
        self.capturing: list[Callable[[], object]] | None = None
        self.captures = 0
        self._pool: list[np.ndarray] = []
        self.uncapturable = False
        self.waited: list[int] = []

    def capability(self) -> int:
        return self._capability

    def function(self, cubin: bytes, name: str, shared: int) -> Any:
        assert cubin.startswith(b"\x7fELF")
        if shared > self.shared:
            raise LoadError(f"{name} takes {shared} bytes of shared memory per block")
        self.loaded.append(name)
        return name

    def fill(self, address: int, cell: bytes, count: int, stream: int) -> int:
        assert stream == self.queue
        if self.capturing is not None:
            self.capturing.append(lambda: ctypes.memmove(address, cell * count, len(cell) * count))
            return 0
        ctypes.memmove(address, cell * count, len(cell) * count)
        self.filled.append((address, cell, count))
        return 0

    def failure(self, code: int) -> str:
        return f"CUDA error {code}"

    def stream(self) -> int:
        return self.queue

    def capture(self, run: Callable[[], list[Any]]) -> tuple[Callable[[], object], list[Any]]:
        """Nothing runs while it is captured; what is replayed has the operands of that time."""
        if self.uncapturable:
            raise RuntimeError("operation not permitted when stream is capturing")
        captured: list[Callable[[], object]] = []
        self.capturing, self.captures = captured, self.captures + 1
        Tensor.capturing = captured
        try:
            made = run()
        finally:
            self.capturing = Tensor.capturing = None
        return lambda: [one() for one in captured], made

    def is_capturing(self) -> bool:
        return self.capturing is not None

    def after(self, stream: int) -> None:
        self.waited.append(stream)

    def is_current(self) -> bool:
        return True

    def current(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def dtype(self, name: str) -> np.dtype[Any]:
        return named(name)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Tensor:
        array = np.empty(tuple(shape), dtype)
        if self.short is not None and array.nbytes >= self.short:
            raise OutOfMemoryError(f"tried to allocate {array.nbytes} bytes")
        self.empties.append(array.nbytes)
        made = aligned(array)
        if self.poison and made.size:
            made.reshape(-1).view(np.uint8)[...] = 0xA5
        if self.capturing is not None:
            self._pool.append(made)  # which a graph keeps
        return Tensor(made)

    def upload(self, data: bytes, shape: Sequence[int], dtype: str) -> Tensor:
        self.uploads += 1
        return Tensor(aligned(np.frombuffer(data, named(dtype)).reshape(tuple(shape))))

    def holds(self, tensor: Any) -> bool:
        return tensor.device == "standing"

    def launch(
        self,
        function: str,
        x: int,
        y: int,
        z: int,
        threads: int,
        *rest: Any,
    ) -> int:
        ty, tz, shared, stream, table, extra = rest
        assert (y, z, ty, tz, extra) == (1, 1, 1, 1, None)
        assert stream.value == self.queue
        if function in self.codes:
            return self.codes[function]
        kinds, options = self.signatures[function], self._options[function]
        assert threads == 32 * options["num_warps"]
        values = [_value(kind, address) for kind, address in zip(kinds, table, strict=False)]

        def run() -> None:
            with interpreted():
                self._kernels[function][(x,)](*values, **options)
            self.launched.append((function, x, shared))

        if self.capturing is None:
            run()
        else:
            self.capturing.append(run)
        return 0


class OutOfMemoryError(RuntimeError):
    """As PyTorch's is called."""


def _value(kind: str, address: int) -> Any:
    """The operand at the address of a parameter."""
    cell = ctypes.c_uint64.from_address(address).value
    if not kind.startswith("*"):
        return int(np.uint64(cell).astype(np.int64))
    assert cell % 16 == 0
    dtype = named(_OWN[kind[1:]])
    return _Pointer(cell, dtype)


class _Pointer:
    """An address as an operand of the interpreter, which copies no storage that is on the CPU."""

    def __init__(self, address: int, dtype: np.dtype[Any]) -> None:
        self.dtype = str(dtype)
        self._address = address

    def data_ptr(self) -> int:
        return self._address

    def untyped_storage(self) -> _Pointer:
        return self

    def cpu(self) -> _Pointer:
        return self

    def new_empty(self, *_: Any, **__: Any) -> _Pointer:
        return self

    def set_(self, *_: Any) -> None: ...

    def copy_(self, *_: Any) -> None: ...

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return (0,)

    def stride(self) -> tuple[int, ...]:
        return (1,)


def standing(folder: Path, specs: Any, **options: Any) -> Standing:
    """A device for the kernels of specs, in the `kernels.py` of a folder."""
    signatures = {one.name: [kind for _, kind in one.signature] for one in specs}
    how = {one.name: one.options for one in specs}
    path = folder / "kernels.py" if folder.is_dir() else folder
    return Standing(path, signatures, how, **options)


class Gpu:
    """What the executor asks of a GPU, on a device that stands in for one."""

    tile = 256
    target = "numpy"
    model = "none"
    capability = 90

    def __init__(self, change: Callable[[Standing], None] = lambda _: None) -> None:
        self._change = change
        self.devices: list[Standing] = []
        self.launches: Launches | None = None

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def put(self, array: np.ndarray) -> Tensor:
        return Tensor(aligned(array))

    def get(self, tensor: Tensor) -> np.ndarray:
        return tensor.array

    def functions(self) -> dict[str, Any]:
        return {}

    def wait(self) -> None: ...

    def is_capturing(self) -> bool:
        return False

    def prepared(self, program: PrintedProgram, calls: Any) -> Launches:
        device = standing(program.path, program.kernels)
        self._change(device)
        self.devices.append(device)
        self.launches = compiled_launches(
            *(program.path, program.kernels, program.plan, device, calls),
            judge=program.refuses,
        )
        return self.launches


def compiled_at_once(
    path: Path, specs: Sequence[KernelSpec], *, targets: Sequence[int], **_: Any
) -> tuple[CompiledKernel, ...]:
    """What `compile_kernels` gives, without a compiler: the stand-in runs no cubin."""
    assert path.exists()
    return tuple(
        CompiledKernel(
            name=spec.name,
            target=target,
            ptx=f".entry {spec.name}({'.param' * (len(spec.signature) + 2)})",
            cubin=b"\x7fELF",
            scratch=0,
            registers=32,
            spills=0,
            shared=0,
            warnings=(),
        )
        for spec in specs
        for target in targets
    )
