"""A kernel that is compiled for a target: what of, where its answer is kept, and who is asked.

    job = Job(unit_of(source, spec.name), spec, 90, Store(cache))
    answer = job.known() or job.run()

An answer is what `aot_worker.py` says of a kernel. It is kept by the source that the kernel is
compiled from and how, so a kernel that another program has too is not compiled again.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from tapestry.codegen.aot_processes import CompilerDiedError, compiler
from tapestry.codegen.module_files import temporary_folder, write_module
from tapestry.codegen.specs import KernelSpec
from tapestry.diagnostics import TapestryError
from tapestry.store import Store, key_of

LONGEST: Final = 600.0
"""Seconds of a processor after which a compiler that works on one kernel is ended."""


class CompileError(TapestryError):
    """Kernels that Triton does not compile; the message is about the first.

    `kernels` has for each what is wrong with it; it is empty where that is no kernel's fault. Of
    these some are `miscompiled` for some targets: with another schedule they may be right.
    """

    kind = "compile"

    def __init__(
        self,
        message: str,
        kernels: Mapping[str, str] | None = None,
        *,
        miscompiled: Mapping[tuple[str, int], str] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kernels = dict(kernels or {})
        self.miscompiled = dict(miscompiled or {})


@dataclass(frozen=True)
class Job:
    """A kernel to compile for a target (90 for sm_90).

    `unit` is the source of a module with that kernel alone. It may take `seconds` of a processor.
    """

    unit: str
    kernel: KernelSpec
    target: int
    store: Store | None
    seconds: float = LONGEST

    @cached_property
    def key(self) -> str:
        """What the answer is kept by."""
        return key_of(
            {
                "source": self.unit,
                "kernel": asdict(self.kernel),
                "target": self.target,
                "triton": installed(),
                "fp_fusion": False,  # as the worker says
            }
        )

    def known(self) -> Mapping[str, Any] | None:
        """The answer, if it is kept."""
        found = None if self.store is None else self.store.read(self.key)
        return None if found is None else {**found, "cached": True}

    def run(self) -> Mapping[str, Any]:
        """The answer of a process; that it died of the kernel is an answer too.

        What Triton refuses is not kept. Raises CompileError for what is no kernel's fault, and
        TapestryError where there is no room for a file.
        """
        answer = {**self.asked(), "cached": False}
        if self.store is not None and "error" not in answer:
            self.store.write(self.key, answer)
        return answer

    def asked(self) -> Mapping[str, Any]:
        """What a process says."""
        request = {
            "path": str(self.written()),
            "kernel": asdict(self.kernel),
            "target": self.target,
            "seconds": self.seconds,
        }
        try:
            with compiler() as process:
                return process.ask(request)
        except OSError as error:
            raise self._not_here(str(error)) from None
        except CompilerDiedError as died:
            if died.status >= 0:  # no kernel's fault: Triton is not there, or the module is wrong
                raise self._not_here(died.said) from None
            why = f"the compiler died of signal {-died.status}"
            if -died.status == signal.SIGXCPU:
                why = f"that takes more than {self.seconds:.0f} seconds"
            return {"name": self.kernel.name, "target": self.target, "error": why}

    def written(self) -> Path:
        """The file that holds the unit: in the cache, where answers are kept at all."""
        folder = None if self.store is not None else temporary_folder()
        return write_module(self.unit, folder, self.kernel.name)

    def _not_here(self, why: str) -> CompileError:
        """Nothing compiles on this machine, as it is."""
        return CompileError(
            f"compiling {self.kernel.name} failed: {why}",
            hint="compiling takes Triton, and a few megabytes in the folder for temporary files",
        )


def installed() -> str:
    """The version of Triton that is installed."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return "none"
