"""What tests of the backend share.

Triton decides when it is imported whether it interprets kernels, and Dynamo imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tapestry.runtime.triton.interpreter import interpreted
from tests import on_gpu

if find_spec("torch") is not None and find_spec("triton") is not None:
    import torch

    if not torch.cuda.is_available():
        with interpreted():
            import triton  # noqa: F401


@pytest.fixture(autouse=on_gpu.ASKED)
def tensors_on_the_gpu_if_asked() -> Iterator[None]:
    """Tensors are made on the GPU, where eager mode keeps to float32 too."""
    rounding = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    torch.set_default_device("cuda")
    yield
    torch.set_default_device(None)
    torch.backends.cudnn.allow_tf32 = rounding


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """The graphs that were traced, with a cache of one's own."""
    from tapestry.importers.torch import tracing  # there may be no PyTorch

    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    seen: list[object] = []
    trace = tracing.traced

    def follow(graph, *arguments):
        seen.append(graph)
        return trace(graph, *arguments)

    monkeypatch.setattr(tracing, "traced", follow)
    return seen


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large results are computed again on the CPU too."""
    from tapestry.importers.torch import partitioning  # there may be no PyTorch

    monkeypatch.setattr(partitioning, "computes_again", lambda _: True)
