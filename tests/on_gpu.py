"""Tests on a GPU: kernels that are interpreted elsewhere are compiled there and launched.

    TAPESTRY_TESTS_ON=gpu pytest -n 8 tests/end_to_end tests/metakernels/library

Asked for so, what runs as kernels runs on the GPU; the library's entries, which are otherwise
checked on numpy, run as kernels too, and PyTorch's tensors are there from the start. Kernels are
compiled in the process of a test, not in one of their own that takes seconds to start. A program
that would run on numpy after all is an error. Without a GPU every test is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any
from unittest import mock

from tapestry.codegen import aot_worker
from tapestry.codegen.aot_jobs import Job
from tapestry.codegen.module_files import load_kernels
from tapestry.runtime.triton import ladder

SWITCH = "TAPESTRY_TESTS_ON"

ASKED = os.environ.get(SWITCH) == "gpu"
"""Whether tests are to run on the GPU."""

if ASKED:
    # What programs are compared with: on the GPU, JAX rounds factors to TF32, and takes all memory.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

_compiling = Lock()


def there_is_one() -> bool:
    """Whether PyTorch sees a GPU, and kernels are compiled for it."""
    if os.environ.get("TRITON_INTERPRET") == "1" or find_spec("torch") is None:
        return False
    torch: Any = import_module("torch")
    return bool(torch.cuda.is_available())


def executor(name: str) -> str:
    """The executor that tests run on where they would run on numpy: kernels, if that is asked."""
    return "triton" if ASKED and name == "numpy" else name


def device() -> str:
    """Where PyTorch's tensors are in tests."""
    return "cuda" if ASKED else "cpu"


def examples(count: int) -> int:
    """How many examples a test draws: fewer where each compiles kernels of its own."""
    return max(2, count // 3) if ASKED else count


@contextmanager
def kernels_on_gpu() -> Iterator[None]:
    """What tests run in: kernels are compiled here, and nothing runs on numpy instead."""
    environment = {"TRITON_ALWAYS_COMPILE": "1", "TRITON_DUMP_PTXAS_LOG": "1"}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(Job, "asked", _compiled_here),
        mock.patch.object(ladder.Ladder, "_say_numpy", _refuse),
    ):
        yield


def _compiled_here(job: Job) -> Mapping[str, Any]:
    """The answer of `aot_worker` in this process, which is not ended where that takes long."""
    kernel = job.kernel
    with _compiling:
        functions = vars(load_kernels(job.written()))
        return aot_worker.answer_of(functions[kernel.name], asdict(kernel), job.target)


def _refuse(_: ladder.Ladder, what: str, why: str, hint: str) -> None:
    raise AssertionError(f"{what} would run on numpy: {why} ({hint})")
