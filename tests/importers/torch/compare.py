"""Compiled against eager: outputs, gradients, and what a training step leaves behind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from tapestry.importers.torch import Coverage, backend, recording


def compiled(model: Callable[..., Any], **options: object) -> Callable[..., Any]:
    """A model through the backend; every test compiles anew."""
    torch._dynamo.reset()
    return torch.compile(model, backend=backend, options=options)


def check_forward(
    model: Callable[..., Any], *args: Any, rtol: float = 1e-5, atol: float = 1e-5, **options: object
) -> Coverage:
    """The compiled model gives what it gives without; returns what was native."""
    with torch.no_grad(), recording() as report:
        got = compiled(model, **options)(*args)
        want = model(*args)
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol)
    return report


def check_training(
    model: nn.Module,
    loss: Callable[..., torch.Tensor],
    args: Sequence[torch.Tensor],
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    steps: int = 1,
    optimizer: Callable[[Any], torch.optim.Optimizer] = lambda p: torch.optim.SGD(p, 0.1),
) -> Coverage:
    """Losses, gradients, parameters and buffers after some steps are those of eager training."""
    own, other = model, copy.deepcopy(model)
    first, second = optimizer(own.parameters()), optimizer(other.parameters())
    fast = compiled(own)
    with recording() as report:
        for _ in range(steps):
            results: list[torch.Tensor] = []
            for stepper, run in ((first, fast), (second, other)):
                stepper.zero_grad()
                value = loss(run, *args)
                value.backward()
                stepper.step()
                results.append(value.detach())
            torch.testing.assert_close(*results, rtol=rtol, atol=atol)
    for (name, got), want in zip(own.named_parameters(), other.parameters(), strict=True):
        message = f"the gradient of {name}: {{}}".format
        torch.testing.assert_close(got.grad, want.grad, rtol=rtol, atol=atol, msg=message)
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol)
    for got, want in zip(own.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol)
    return report
