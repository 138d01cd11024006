"""What tests of the backend share.

Triton decides when it is imported whether it interprets kernels, and Dynamo imports it.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tapestry.runtime.triton_interpreter import interpreted

if find_spec("torch") is not None and find_spec("triton") is not None:
    import torch

    if not torch.cuda.is_available():
        with interpreted():
            import triton  # noqa: F401


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
