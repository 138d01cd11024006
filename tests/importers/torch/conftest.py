"""Triton decides when it is imported whether it interprets kernels, and Dynamo imports it."""

from importlib.util import find_spec

from tapestry.runtime.triton_interpreter import interpreted

if find_spec("torch") is not None and find_spec("triton") is not None:
    import torch

    if not torch.cuda.is_available():
        with interpreted():
            import triton  # noqa: F401
