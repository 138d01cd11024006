"""A list of launches on a GPU: handles, arguments and places in memory are found once.

    run = Launches(plan, functions, Cuda(), constants)
    (y,) = run([x, w])              # tensors on the GPU: contiguous, of the plan's shapes

`plan` is what `Plan.as_json` says. Every buffer has a cell with its address, and every launch a
table of the cells that its kernel takes, so a call writes a few addresses and walks one list.
Temporaries lie in one arena, which is taken from PyTorch's allocator at each call: the allocator
orders by streams what reuses the memory, and programs that run one after another share it.

Threads may share a `Launches`: calls take turns on the host; on different streams they may overlap
on the GPU. This file is part of what `tapestry compile` writes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from tapestry.codegen.driver import SHORT, Device, DriverError, MemoryShortError


class Function(NamedTuple):
    """A kernel as it is launched: its handle, threads and shared bytes per block, and parameters.

    `parameters` counts all that the kernel takes: after its own operands Triton adds scratch
    memory, and memory for profiling.
    """

    handle: Any
    threads: int
    shared: int
    parameters: int


Calls: TypeAlias = Mapping[str, Callable[[Sequence[Any], Sequence[Any], Mapping[str, Any]], None]]
Follow: TypeAlias = Callable[[int, Callable[[], None]], None]
_Ready: TypeAlias = tuple[Callable[..., int], tuple[Any, ...]]


class Launches:
    """A plan on a device: called with a tensor per input, it returns one per result.

    A result that is an input is that tensor, under the result's shape; all others are on memory of
    their own. `calls` are the functions that the plan calls by name.
    """

    def __init__(
        self,
        plan: Mapping[str, Any],
        functions: Mapping[str, Function],
        device: Device,
        constants: Mapping[int, Any],
        calls: Calls | None = None,
    ) -> None:
        self.device = device
        self._arena: int = plan["arena"]
        self._steps: list[Mapping[str, Any]] = plan["steps"]
        self._buffers: list[Mapping[str, Any]] = plan["buffers"]
        self._functions = functions
        self._constants = dict(constants)
        self._calls = calls or {}
        self._lock = Lock()
        kinds: dict[str, list[int]] = {}
        for place, buffer in enumerate(self._buffers):
            kinds.setdefault(buffer["kind"], []).append(place)
        self._inputs = kinds.get("input", [])
        self._outputs = [(at, *self._kind(at)) for at in kinds.get("output", [])]
        self._offsets = [(at, self._buffers[at]["offset"]) for at in kinds.get("temporary", [])]
        self._returned = [(one["buffer"], tuple(one["shape"])) for one in plan["returned"]]
        self._byte = device.dtype("uint8")
        self._base: int | None = None
        self._stream: int | None = None
        self._ready: list[_Ready] = []
        self._live: dict[int, Any] = {}
        self._cells, self._tables = self._addressed()

    def __call__(
        self,
        inputs: Sequence[Any],
        out: Sequence[Any] | None = None,
        follow: Follow | None = None,
    ) -> list[Any]:
        """The results; `out` are tensors that they are to be written to, one for each.

        `follow` is given the number of each step, and what runs it.
        """
        with self._lock:
            try:
                if self.device.is_current():
                    return self._run(inputs, out, follow)
                with self.device.current():
                    return self._run(inputs, out, follow)
            except Exception as error:
                if type(error).__name__ != "OutOfMemoryError":
                    raise
                results = sum(self._buffers[at]["bytes"] for at, _, _ in self._outputs)
                raise MemoryShortError(
                    f"the program takes {self._arena} bytes of GPU memory for temporaries and "
                    f"{results} for results, and there are not as many free"
                ) from error
            finally:
                self._live = {}

    @property
    def calls(self) -> bool:
        """Whether it calls functions that are no kernels."""
        return any("call" in step for step in self._steps)

    def input_of(self, result: int) -> int | None:
        """Which input a result is, if it is one."""
        buffer = self._returned[result][0]
        return self._inputs.index(buffer) if buffer in self._inputs else None

    def _run(
        self, inputs: Sequence[Any], out: Sequence[Any] | None, follow: Follow | None
    ) -> list[Any]:
        device, cells, live = self.device, self._cells, self._live
        stream = device.stream()
        if stream != self._stream:
            self._bind(stream)
        for at, given in zip(self._inputs, inputs, strict=True):
            tensor, address = given, given.data_ptr()
            if address & 15:  # kernels are compiled for multiples of 16 bytes
                tensor = given.clone()
                address = tensor.data_ptr()
            live[at] = tensor
            cells[at] = address
        direct = {} if out is None else self._direct(inputs, out)
        for at, shape, dtype in self._outputs:
            tensor = direct.get(at)
            if tensor is None:
                tensor = device.empty(shape, dtype)
            live[at] = tensor
            cells[at] = tensor.data_ptr()
        if self._arena:
            live[-1] = arena = device.empty((self._arena,), self._byte)
            base = arena.data_ptr()
            if base != self._base:
                for at, offset in self._offsets:
                    cells[at] = base + offset
                self._base = base
        if follow is not None:
            self._followed(follow)
            return self._results(inputs, out)
        for launch, arguments in self._ready:
            code = launch(*arguments)
            if code:
                self._fail(arguments, code)
        return self._results(inputs, out)

    def _followed(self, follow: Follow) -> None:
        """Run every step, one at a time."""

        def step(launch: Callable[..., int], arguments: tuple[Any, ...]) -> None:
            code = launch(*arguments)
            if code:
                self._fail(arguments, code)

        for number, ready in enumerate(self._ready):
            follow(number, partial(step, *ready))

    def _results(self, inputs: Sequence[Any], out: Sequence[Any] | None) -> list[Any]:
        results: list[Any] = []
        given = dict(zip(self._inputs, inputs, strict=True))
        for place, (buffer, shape) in enumerate(self._returned):
            again = any(buffer == other for other, _ in self._returned[:place])
            if buffer in given:
                result = given[buffer]
            elif buffer in self._constants:
                result = self._constants[buffer].clone()
            else:
                result = self._live[buffer].clone() if again else self._live[buffer]
            if tuple(result.shape) != shape:
                result = result.reshape(shape)
            if out is not None and out[place].data_ptr() != result.data_ptr():
                out[place].copy_(result)
            results.append(result if out is None else out[place])
        return results

    def _direct(self, inputs: Sequence[Any], out: Sequence[Any]) -> dict[int, Any]:
        """The tensors of the caller's that kernels may write to: others are copied to.

        A kernel may read an input after it wrote a result, so they must lie apart, and results too.
        """
        taken = [_span(tensor) for tensor in inputs]
        direct: dict[int, Any] = {}
        for (buffer, shape), tensor in zip(self._returned, out, strict=True):
            if tuple(tensor.shape) != shape or tensor.dtype != self._kind(buffer)[1]:
                want = f"{self._buffers[buffer]['dtype']} of shape {list(shape)}"
                have = f"{tensor.dtype} of shape {list(tensor.shape)}"
                raise TypeError(f"a result is {want}, and `out` has {have} for it")
            start, end = _span(tensor)
            apart = all(end <= low or high <= start for low, high in taken)
            plain = tensor.is_contiguous() and not (tensor.is_neg() or tensor.is_conj())
            if apart and plain and start % 16 == 0 and buffer not in direct:
                direct[buffer] = tensor
            taken.append((start, end))
        return direct

    def _addressed(self) -> tuple[Any, list[Any]]:
        """A cell for each buffer and each number; for each step the table of those it takes."""
        count = len(self._buffers)
        numbers: dict[int, int] = {0: count}
        for step in self._steps:
            for number in step.get("numbers", ()):
                numbers.setdefault(number, count + len(numbers))
        # A kernel reads as many bytes of a cell as its parameter has: numbers are little-endian.
        cells = (ctypes.c_uint64 * (count + len(numbers)))()
        for number, cell in numbers.items():
            cells[cell] = number & ((1 << 64) - 1)
        for buffer, tensor in self._constants.items():
            cells[buffer] = tensor.data_ptr()
        start = ctypes.addressof(cells)
        tables: list[Any] = []
        for step in self._steps:
            if "kernel" not in step:
                tables.append(None)
                continue
            taken = [*step["buffers"], *(numbers[number] for number in step["numbers"])]
            hidden = self._functions[step["kernel"]].parameters - len(taken)
            scratch = [step["scratch"]] if "scratch" in step else []
            taken += scratch + [numbers[0]] * (hidden - len(scratch))
            tables.append((ctypes.c_void_p * len(taken))(*(start + 8 * cell for cell in taken)))
        return cells, tables

    def _bind(self, stream: int) -> None:
        """Make ready what a call goes through, on a stream."""
        queue = ctypes.c_void_p(stream)
        self._ready = []
        for step, table in zip(self._steps, self._tables, strict=True):
            if "kernel" in step:
                handle, threads, shared, _ = self._functions[step["kernel"]]
                grid = (step["programs"], 1, 1, threads, 1, 1)
                arguments = (handle, *grid, shared, queue, table, None)
                self._ready.append((self.device.launch, arguments))
            elif "fill" in step:
                cell = bytes.fromhex(step["cell"])
                buffer: int = step["fill"]
                count: int = self._buffers[buffer]["bytes"] // len(cell)
                self._ready.append((self._fill, (buffer, cell, count, stream)))
            else:
                self._ready.append((self._call, (step,)))
        self._stream = stream

    def _fill(self, buffer: int, cell: bytes, count: int, stream: int) -> int:
        return self.device.fill(self._cells[buffer], cell, count, stream)

    def _call(self, step: Mapping[str, Any]) -> int:
        """Run a function that is no kernel, on boxes of tensors."""
        pairs = zip(step["buffers"], step["shapes"], strict=True)
        tensors = [self._tensor(buffer).reshape(tuple(shape)) for buffer, shape in pairs]
        for row in step["rows"]:
            parts: list[Any] = []
            ends = iter(row)
            for tensor in tensors:
                box = tuple(slice(next(ends), next(ends)) for _ in tensor.shape)
                parts.append(tensor[(..., *box)])
            split = step["inputs"]
            self._calls[step["call"]](parts[:split], parts[split:], step["parameters"])
        return 0

    def _tensor(self, buffer: int) -> Any:
        """A buffer of the call that runs, as a tensor."""
        entry = self._buffers[buffer]
        shape, dtype = self._kind(buffer)
        for known in (self._live, self._constants):
            if buffer in known:
                return known[buffer].reshape(shape)
        held = self._live[-1][entry["offset"] : entry["offset"] + entry["bytes"]]
        return held.view(dtype).reshape(shape)

    def _kind(self, buffer: int) -> tuple[tuple[int, ...], Any]:
        entry = self._buffers[buffer]
        return tuple(entry["shape"]), self.device.dtype(entry["dtype"])

    def _fail(self, arguments: tuple[Any, ...], code: int) -> None:
        """Say which step failed."""
        place = next(n for n, (_, own) in enumerate(self._ready) if own is arguments)
        step = self._steps[place]
        what = f"kernel {step['kernel']} ({step['operation']})" if "kernel" in step else "a fill"
        message = f"{what} failed: {self.device.failure(code)}"
        if code == SHORT:
            raise MemoryShortError(message)
        raise DriverError(message, code, step.get("kernel"))


def _span(tensor: Any) -> tuple[int, int]:
    """Where a tensor's cells start and end in memory."""
    if 0 in tensor.shape:
        return 0, 0
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()
