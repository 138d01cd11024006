"""`torch.compile` of models and tensors that are pretended to be on the GPU.

    with pretended(folder, driver), compiling(folder, driver):
        torch.compile(model, backend=tapestry.importers.torch.backend)(x)

PyTorch traces on the CPU, as if there was no GPU; what it gives to the backend is compiled for the
GPU, and run there. Backends that are not given, such as PyTorch's own compiler, which would compile
for a GPU that is not there, are the model as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from tapestry.importers.torch import compiling as importing
from tapestry.importers.torch import running
from tests.pretending.cuda import Pretended, pretended, really
from tests.pretending.driver import PretendDriver


@contextmanager
def placing(folder: Path, driver: PretendDriver) -> Iterator[None]:
    """While it lasts, graphs that PyTorch traces on the CPU are run on a pretended GPU."""
    own = running.runner

    def runner(*given: Any, **options: Any) -> Callable[[Sequence[Any]], tuple[object, ...]]:
        with pretended(folder, driver):
            run = own(*given, **options)

        def called(tensors: Sequence[Any]) -> tuple[object, ...]:
            # PyTorch watches its first call by a mode that knows no subclasses of tensors.
            with _disable_current_modes(), pretended(folder, driver):
                return run(tensors)

        return called

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "device_of", lambda _: torch.device("cuda", 0))
        for module in (running, importing):
            patch.setattr(module, "runner", runner)
        yield


@contextmanager
def compiling(folder: Path, driver: PretendDriver) -> Iterator[None]:
    """While it lasts, `torch.compile` takes models and tensors that are on a pretended GPU."""
    real = torch.compile

    def compile_(model: Any, *, backend: Any = None, **options: Any) -> Any:
        if backend is None:
            return model
        fast: list[Any] = []
        buffers = _buffers(model)

        def call(*inputs: Any) -> Any:
            with _disable_current_modes(), really(), _here_are(buffers):
                if not fast:
                    fast.append(real(model, backend=backend, **options))
                made = fast[0](*tree_map(_here, inputs))
            return tree_map(_there, made)

        return call

    with pytest.MonkeyPatch.context() as patch, placing(folder, driver):
        patch.setattr(torch, "compile", compile_)
        yield


Buffer = tuple[dict[str, Any], str, Any, Any]
"""Where a buffer of a model is, by name: as it is on the pretended GPU, and here."""


def _buffers(model: Any) -> list[Buffer]:
    """The buffers of a model that are on the pretended GPU; parameters are both there and here."""
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    held = [(part._buffers, name, one) for part in parts for name, one in part._buffers.items()]
    return [(*at, one, _here(one)) for *at, one in held if isinstance(one, Pretended)]


@contextmanager
def _here_are(buffers: Sequence[Buffer]) -> Iterator[None]:
    """While it lasts, buffers are here; cells are the same."""
    for own, name, _, here in buffers:
        own[name] = here
    try:
        yield
    finally:
        for own, name, there, _ in buffers:
            own[name] = there


def _here(one: Any) -> Any:
    return one.as_subclass(torch.Tensor) if isinstance(one, Pretended) else one


def _there(one: Any) -> Any:
    return one.as_subclass(Pretended) if isinstance(one, torch.Tensor) else one
