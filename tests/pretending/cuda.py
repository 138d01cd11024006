"""A GPU that is pretended: PyTorch says that tensors of the CPU are on it, and kernels are run by
Triton's interpreter, on a driver that reads real cubins.

    with pretended(folder) as driver:
        program = tapestry.compile(x @ w, on="triton")
        program(x=a, w=b)               # compiled for sm_90, loaded, launched through ctypes

So what runs only with a GPU runs here: the calls of the driver, streams, graphs, what is said of
tensors' devices. Tensors of the CPU do not mix with pretended ones, nor those of `cuda:1` with
those of `cuda:0`, and work that a graph cannot hold is refused while one is captured.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

from tapestry.codegen import aot, bundle
from tapestry.codegen import driver as codegen_driver
from tapestry.codegen.specs import KernelSpec
from tapestry.runtime.triton import compiled
from tapestry.runtime.triton.interpreter import interpreted
from tests.codegen.standing import Standing, standing
from tests.pretending.driver import DEVICES, PretendDriver, digest

CAPTURING = "operation not permitted when stream is capturing"
_WAITS = {"cpu", "item", "tolist", "numpy", "__bool__", "__float__", "__int__"}
_MOVES = {"to", "copy_", "cpu", "set_"}


class Pretended(torch.Tensor):
    """A tensor of the CPU that says that it is on the GPU."""

    index = 0


class Second(Pretended):
    """One that says that it is on the second GPU."""

    index = 1


def _is_cuda(device: Any) -> bool:
    return device is not None and not isinstance(device, int) and torch.device(device).type != "cpu"


def _kind(device: Any) -> type[Pretended]:
    """The tensors of a GPU: of the one that is current where its number is not said."""
    index = torch.device(device).index
    return (Pretended, Second)[Cuda.index() if index is None else index]


class Tensors(TorchFunctionMode):
    """PyTorch's functions, of tensors that are pretended to be on the GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.capturing: list[Callable[[], object]] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        owner = getattr(getattr(func, "__self__", None), "__name__", "")
        flat = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        ours = [isinstance(one, Pretended) for one in flat]
        with torch._C.DisableTorchFunctionSubclass():
            if name == "__get__" and owner in ("device", "is_cuda") and ours and ours[0]:
                return torch.device("cuda", type(flat[0]).index) if owner == "device" else True
            if name == "get_device" and ours and ours[0]:
                return type(flat[0]).index
            if self.capturing is not None and any(ours) and name in _WAITS:
                raise RuntimeError(CAPTURING)
            if name == "numpy" and any(ours):
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            if name == "cpu":
                return func(*args, **kwargs).as_subclass(torch.Tensor)
            device = kwargs.get("device")
            there = _is_cuda(device)
            if name == "cuda":
                return args[0].clone().as_subclass(_kind("cuda"))
            kinds = list(dict.fromkeys(type(one) for one in flat if isinstance(one, Pretended)))
            own = kinds[0] if kinds else _kind("cuda")
            if name in ("to", "type_as", "view_as"):
                given = [one for one in args[1:] if isinstance(one, str | torch.device)]
                there = there or any(map(_is_cuda, given))
                asked = next(filter(_is_cuda, [device, *given]), None)
                own = own if asked is None else _kind(asked)
                away = bool(given or device is not None) and not there
                moved = tuple("cpu" if isinstance(o, str | torch.device) else o for o in args)
                kwargs |= {"device": "cpu"} if device is not None else {}
                made = func(*moved, **kwargs)
                kind = torch.Tensor if away or not (there or any(ours)) else own
                if self.capturing is not None and isinstance(args[0], Pretended) is away:
                    raise RuntimeError(CAPTURING)  # the host waits for such a copy
                if made is args[0] and kind is not type(made):
                    made = made.clone()
                return made if type(made) is kind else made.as_subclass(kind)
            if there:
                kwargs["device"], own = "cpu", _kind(device)
            plain = [o for o, ours_ in zip(flat, ours, strict=True) if not ours_ and _is_cpu(o)]
            if (len(kinds) > 1 or (kinds and plain)) and name not in _MOVES:
                raise RuntimeError(
                    f"{name}: Expected all tensors to be on the same device, but found at least "
                    "two devices, cuda:0 and cpu!"
                )
            made = func(*args, **kwargs)
            if self.capturing is not None:
                self.capturing.append(lambda: made)  # a graph keeps what is made for it
                if any(ours) and name in ("copy_", "clone", "fill_"):
                    self._capture(name, made, args)
            if there or (any(ours) and not (device is not None and not there)):
                return tree_map(partial(_there, own), made)
            return made

    def _capture(self, name: str, made: Any, args: Any) -> None:
        """Do again what was done, when the graph is replayed."""
        assert self.capturing is not None
        out = made.as_subclass(torch.Tensor)
        given = [o.as_subclass(torch.Tensor) if isinstance(o, torch.Tensor) else o for o in args]

        def again() -> None:
            with torch._C.DisableTorchFunction():
                if name == "clone":
                    out.copy_(given[0])
                else:
                    getattr(out, name)(*given[1:])

        self.capturing.append(again)


def _is_cpu(one: torch.Tensor) -> bool:
    """Whether a tensor is surely on the CPU: a model's parameters stay what they are when moved."""
    return bool(one.dim()) and not isinstance(one, torch.nn.Parameter)


def _there(kind: type[Pretended], one: Any) -> Any:
    return one.as_subclass(kind) if isinstance(one, torch.Tensor) and type(one) is not kind else one


class Stream:
    """A stream of a device, by its number."""

    made = 0

    def __init__(self, device: Any = None, *, number: int | None = None, **_: Any) -> None:
        Stream.made += 1
        self.cuda_stream = 0x5000 + Stream.made if number is None else number
        self.index = Cuda.index(device)

    def wait_stream(self, other: Stream) -> None:
        assert isinstance(other, Stream)

    def synchronize(self) -> None: ...


class Event:
    """An event; times are the host's, and known only of what was waited for."""

    def __init__(self, *, enable_timing: bool = False) -> None:
        self.timed, self.at, self.done = enable_timing, 0.0, False

    def record(self, stream: Stream | None = None) -> None:
        del stream
        self.at, self.done = perf_counter(), False
        Cuda.pending.append(self)

    def synchronize(self) -> None:
        Cuda.refuse()
        self.done = True

    def elapsed_time(self, other: Event) -> float:
        both = self, other
        assert all(one.timed and one.at for one in both), "events were not recorded, or not timed"
        assert other.done, "device not ready"
        return (other.at - self.at) * 1e3


class Graph:
    """A CUDA graph: the work of its capture, again."""

    def __init__(self) -> None:
        self.work: list[Callable[[], object]] = []

    def replay(self) -> None:
        with torch._C.DisableTorchFunction():
            for one in self.work:
                one()


class Cuda:
    """What is asked of `torch.cuda`."""

    tensors: Tensors
    driver: PretendDriver
    now: ClassVar[list[Stream]] = []
    """The current stream of each device, in all threads."""
    pending: list[Event]
    thread = threading.local()

    @classmethod
    def begin(cls, driver: PretendDriver, tensors: Tensors) -> None:
        """Nothing is waited for, and streams are the default ones."""
        cls.driver, cls.tensors, cls.pending = driver, tensors, []
        cls.now = [Stream(device, number=0) for device in range(DEVICES)]
        driver.expected = lambda device: cls.now[device].cuda_stream

    @classmethod
    def index(cls, device: Any = None) -> int:
        """The number of a device: of the thread's current one, if none is said."""
        if isinstance(device, str | torch.device):
            device = torch.device(device).index
        return getattr(cls.thread, "index", 0) if device is None else device

    @classmethod
    @contextmanager
    def device(cls, device: Any) -> Iterator[None]:
        """Another device is this thread's; as PyTorch's, it asks for a context if it is another."""
        before = cls.index()
        cls._become(cls.index(device))
        try:
            yield
        finally:
            cls._become(before)

    @classmethod
    def _become(cls, index: int) -> None:
        if index != cls.index():
            cls.thread.index = index
            cls.driver.make_current(index)

    @classmethod
    def refuse(cls) -> None:
        """What waits for the GPU cannot be in a graph."""
        if cls.driver.capturing is not None:
            raise RuntimeError(CAPTURING)

    @classmethod
    def synchronize(cls, device: Any = None) -> None:
        del device
        cls.refuse()
        for event in cls.pending:
            event.done = True
        cls.pending.clear()

    @classmethod
    @contextmanager
    def stream(cls, stream: Stream) -> Iterator[None]:
        with cls.device(stream.index):
            before, cls.now[stream.index] = cls.now[stream.index], stream
            try:
                yield
            finally:
                cls.now[stream.index] = before

    @classmethod
    def current_stream(cls, device: Any = None) -> Stream:
        return cls.now[cls.index(device)]

    @classmethod
    def is_capturing(cls) -> bool:
        return cls.driver.capturing is not None

    @classmethod
    @contextmanager
    def graph(cls, graph: Graph, **options: Any) -> Iterator[None]:
        """A capture that was refused something leaves its stream the current one, as PyTorch's."""
        assert options.keys() <= {"pool", "stream", "capture_error_mode"}
        cls.synchronize()
        work: list[Callable[[], object]] = []
        cls.driver.capturing = cls.tensors.capturing = work
        own = options.get("stream") or Stream()
        index = own.index
        assert index == cls.index(), "a graph of a stream of another device"
        before, cls.now[index] = cls.now[index], own
        try:
            yield
        except RuntimeError as error:
            before = cls.now[index] if CAPTURING in str(error) else before
            raise
        finally:
            cls.driver.capturing = cls.tensors.capturing = None
            cls.now[index] = before
        graph.work = work

    @staticmethod
    def external(number: int, device: Any = None) -> Stream:
        return Stream(device, number=number)


@contextmanager
def pretended(folder: Path, driver: PretendDriver | None = None) -> Iterator[PretendDriver]:
    """A GPU is pretended; the driver is one from before, or its library is built in a folder."""
    with interpreted():
        knobs: Any = import_module("triton.knobs")
    driver = driver or PretendDriver.built(folder)
    driver.asked = lambda found: _kept(folder / "known" / found)
    tensors = Tensors()
    Cuda.begin(driver, tensors)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        # The switch alone: in the environment it would say that no GPU is wanted.
        patch.setitem(vars(knobs.runtime), "interpret", True)
        patch.delenv("TRITON_INTERPRET", raising=False)
        for name, value in _cuda().items():
            patch.setattr(torch.cuda, name, value, raising=False)
        patch.setattr(torch, "Generator", Generator)
        current = lambda index: Cuda.now[index].cuda_stream  # noqa: E731
        patch.setattr(torch._C, "_cuda_getCurrentRawStream", current, raising=False)
        own = ctypes.CDLL

        def opened(name: Any, *args: Any, **kwargs: Any) -> Any:
            return own(str(driver.path) if name == "libcuda.so.1" else name, *args, **kwargs)

        patch.setattr(codegen_driver.ctypes, "CDLL", opened)
        compiling = _compiling(driver)
        for module in (aot, bundle, compiled):
            patch.setattr(module, "compile_kernels", compiling)
        stack.enter_context(tensors)
        yield driver


def _cuda() -> dict[str, Any]:
    return {
        "is_available": lambda: True,
        "device_count": lambda: DEVICES,
        "current_device": Cuda.index,
        "device": Cuda.device,
        "is_current_stream_capturing": Cuda.is_capturing,
        "get_device_name": lambda _=None: "NVIDIA H200",
        "get_device_capability": lambda _=None: (9, 0),
        "get_device_properties": lambda _=None: SimpleNamespace(multi_processor_count=132),
        "mem_get_info": lambda _=None: (1 << 36, 1 << 37),
        "current_stream": Cuda.current_stream,
        "synchronize": Cuda.synchronize,
        "stream": Cuda.stream,
        "graph": Cuda.graph,
        "Stream": Stream,
        "ExternalStream": Cuda.external,
        "Event": Event,
        "CUDAGraph": Graph,
    }


class Generator(torch.Generator):
    """A generator of random numbers, on whichever device."""

    def __new__(cls, device: Any = "cpu") -> Self:
        del device
        return super().__new__(cls, "cpu")


@contextmanager
def really() -> Iterator[None]:
    """While it lasts, PyTorch says what there is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _REAL.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(torch, "Generator", _GENERATOR)
        yield


_REAL = {name: getattr(torch.cuda, name) for name in _cuda()}
_GENERATOR = torch.Generator


def _compiling(driver: PretendDriver) -> Callable[..., Any]:
    """`compile_kernels`, which also says what a launch of each cubin is to run."""
    real = aot.compile_kernels

    def compiling(path: Path, kernels: Any, **options: Any) -> Any:
        made = real(path, kernels, **options)
        device = standing(path, kernels)
        for one in made:
            driver.knows(one.cubin, _running(device))
            _keep(driver.path.parent / "known" / digest(one.cubin), path, kernels)
        return made

    return compiling


def _keep(folder: Path, path: Path, kernels: Any) -> None:
    """Let other processes know what a launch of a cubin is to run."""
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.{threading.get_ident()}")
        partial.mkdir(parents=True)
        (partial / "kernels.py").write_text(path.read_text())
        (partial / "specs.json").write_text(json.dumps([asdict(one) for one in kernels]))
        with contextlib.suppress(OSError):  # another one was faster
            partial.rename(folder)


def _kept(folder: Path) -> Callable[[str, int, int, Any], None] | None:
    """What another process keeps of a cubin."""
    if not folder.exists():
        return None
    rows = json.loads((folder / "specs.json").read_text())
    return _running(standing(folder, [KernelSpec(**row) for row in rows]))


def _running(device: Standing) -> Callable[[str, int, int, Any], None]:
    def run(name: str, programs: int, threads: int, table: Any) -> None:
        queue = ctypes.c_void_p(device.queue)
        with torch._C.DisableTorchFunction():
            device.launch(name, programs, 1, 1, threads, 1, 1, 0, queue, table, None)

    return run
