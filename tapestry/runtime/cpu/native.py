"""Functions in LLVM IR, compiled for this processor.

    function = compiled(text)           # `void @loop(ptr)`, as a function of an address
    function(arguments.ctypes.data)     # other threads go on meanwhile

LLVM comes with llvmlite, which takes a while to import, so that is done when there is something to
compile. What was compiled is kept in the cache of `tapestry.store`, by the text, the processor and
the versions: a later process loads it. Code is loaded from a file only if it is this user's own,
nobody else can write to it, and its digest is that of what was written under this key; somebody
who can write such files can as well change this program.

Without llvmlite, on processors without vectors of four numbers and fused multiplications, or where
TAPESTRY_COMPILE is 0, there are no such functions: `is_available` says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from base64 import b64decode, b64encode
from binascii import Error as EncodingError
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from logging import INFO, WARNING
from time import perf_counter
from typing import Any, Final, TypeAlias

from tapestry.diagnostics import UsageError
from tapestry.logs import channel
from tapestry.store import find_store, key_of

Compiled: TypeAlias = Callable[[Any], object]
"""A function of its arguments: their address, or what has them, as an array of ctypes or bytes."""

SWITCH: Final = "TAPESTRY_COMPILE"
"""The environment variable that is 0 to compile nothing for the processor."""

KIND: Final = "native"
"""The folder of compiled functions."""

_NEEDED: Final = {
    **dict.fromkeys(("x86_64", "AMD64"), ("avx2", "fma", "f16c")),
    **dict.fromkeys(("aarch64", "arm64"), ()),
}
"""Processors, and what they must have: LLVM would call a library for what they lack."""

_NAME: Final = "loop"
_SPEED: Final = 2


def is_available() -> bool:
    """Whether functions can be compiled here, as far as can be said without importing LLVM.

    UsageError where the environment says neither that they are, nor that they are not.
    """
    asked = os.environ.get(SWITCH) or "1"
    if asked not in ("0", "1"):
        raise UsageError(f"{SWITCH} is {asked!r}", hint="0, so that nothing is compiled, or 1")
    return asked == "1" and _is_possible()


@cache
def _is_possible() -> bool:
    return platform.machine() in _NEEDED and find_spec("llvmlite") is not None


def is_ready() -> bool:
    """Whether functions are compiled here: LLVM is there, and what it needs of the processor."""
    if not is_available():
        return False
    with _lock:
        return _machine() is not None


def registers() -> tuple[int, int]:
    """Floats of a vector register here, and how many such registers there are; if `is_ready`."""
    with _lock:
        machine = _machine()
    if platform.machine() in ("aarch64", "arm64"):
        return 4, 32
    wide = machine is not None and machine.features.get("avx512f", False)
    return (16, 32) if wide else (8, 16)


_FETCHING = ("znver1", "znver2", "znver3", "znver4")


def fetches_pages() -> bool:
    """Whether the processor fetches ahead what is read in order, beyond the end of a page as well.

    On a Zen 4, sums of 4 MB took 1.5 times as long where a loop asked for the next page, too, and
    those of more up to 1.2 times; others wait at the beginning of each page unless it is asked for:
    on a Zen 5, sums of 128 MB took 1.1 times as long, and the largest number 1.15 times.
    """
    if not is_available():
        return False
    with _lock:
        machine = _machine()
    return machine is not None and machine.name in _FETCHING


def stores_past_caches() -> bool:
    """Whether there are stores that do not read memory first to have what they write in a cache."""
    return platform.machine() in ("x86_64", "AMD64")


def compiled(text: str, about: str = "") -> Compiled | None:
    """A function, from a module's text; None on processors that lack what is needed.

    It is None too where LLVM fails, of which the first time is a warning. `about` is what the
    channel `kernels` calls it.
    """
    if not is_available():
        return None
    with _lock:
        if text not in _known:
            machine = _machine()
            _known[text] = None if machine is None else _tried(machine, text, about)
        return _known[text]


def _tried(machine: _Machine, text: str, about: str) -> Compiled | None:
    try:
        return machine.function(text, about)
    except (RuntimeError, OSError) as error:
        first = (str(error).splitlines() or ["no reason"])[0]
        message = "a loop %s could not be compiled, so NumPy computes it: %s"
        channel("kernels").log(INFO if _failed else WARNING, message, about, first)
        _failed.add(text)
        return None


_failed: set[str] = set()
"""What LLVM failed to compile."""


def address_of(function: Any) -> int:
    """Where a function of a library is, or one that was compiled."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def forget() -> None:
    """Know no function, as a process that begins; those that are in use go on."""
    with _lock:
        _known.clear()
        _failed.clear()


_known: dict[str, Compiled | None] = {}
_lock = threading.RLock()


class _Machine:
    """LLVM for this processor."""

    def __init__(self) -> None:
        llvm: Any = import_module("llvmlite.binding")  # which has no types
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm = llvm
        self.features: dict[str, bool] = dict(llvm.get_host_cpu_features())
        flags = llvm.get_host_cpu_features().flatten()
        self.name: str = llvm.get_host_cpu_name()
        self._target = llvm.Target.from_default_triple().create_target_machine(
            cpu=self.name, features=flags, opt=_SPEED, reloc="pic", codemodel="small"
        )
        self._made_by: dict[str, Any] = {
            "triple": self._target.triple,
            "processor": self.name,
            "features": flags,
            "llvmlite": version("llvmlite"),
            "llvm": list(llvm.llvm_version_info),
            "speed": _SPEED,
        }
        self._linker = llvm.create_lljit_compiler(self._target)
        self._loaded: list[Any] = []

    def function(self, text: str, about: str) -> Compiled:
        store = find_store(KIND)
        key = key_of({"text": text, **self._made_by})
        started = perf_counter()
        code = None
        if store is not None and (entry := store.read(key)) is not None:
            code = _decoded(entry.get("code"))
        found = code is not None
        if code is None:
            code = self._compile(text)
            if store is not None:
                store.write(key, {"code": b64encode(code).decode()})
        builder = self._llvm.JITLibraryBuilder().add_object_img(code).export_symbol(_NAME)
        library = builder.link(self._linker, f"{key}-{len(self._loaded)}")
        self._loaded.append(library)  # the code goes with it
        took, how = 1e3 * (perf_counter() - started), "found" if found else "compiled"
        channel("kernels").info("loop %s %s: %s in %.1f ms", key[:12], about, how, took)
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library[_NAME])

    def _compile(self, text: str) -> bytes:
        """The object file of a module."""
        llvm = self._llvm
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=_SPEED)
        builder = llvm.create_pass_builder(self._target, options)
        builder.getModulePassManager().run(module, builder)
        return self._target.emit_object(module)


def _decoded(text: object) -> bytes | None:
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else None
    except EncodingError:
        return None


@cache
def _machine() -> _Machine | None:
    try:
        machine = _Machine()
        # Threads wait in its code, and may be there when modules are taken down at the end.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(machine))
    except (ImportError, OSError, PackageNotFoundError, RuntimeError) as error:
        channel("kernels").info("no loops are compiled: %s", error)
        return None
    missing = [one for one in _NEEDED[platform.machine()] if not machine.features.get(one)]
    if missing:
        channel("kernels").info("no loops are compiled: the processor lacks %s", missing)
        return None
    return machine
