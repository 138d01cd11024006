"""Programs of others, compiled and not: results, gradients, and which operators stay PyTorch's."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from tapestry.importers.torch import Coverage, backend, recording
from tests.importers.torch.compare import compiled


def check_inference(model: Callable[..., Any], *args: Any, tolerance: float = 1e-5) -> Coverage:
    """Calls without gradients give what eager mode gives; memory is used again from the second."""
    own, want = copied(model), copied(model)
    fast = compiled(own)
    with torch.no_grad(), recording() as report:
        for _ in range(2):
            close(fast(*args), want(*args), tolerance)
    return report


def check_gradients(model: Callable[..., Any], *args: Any, tolerance: float = 1e-9) -> Coverage:
    """Results and gradients are those of eager mode, in float64."""
    own, other = copied(model, double=True), copied(model, double=True)
    fast = compiled(own)
    with recording() as report:
        for _ in range(2):
            close(gradients(fast, own, args), gradients(other, other, args), tolerance)
    return report


def copied(model: Callable[..., Any], *, double: bool = False) -> Callable[..., Any]:
    """A model of its own, in float64 if asked for; functions have no state."""
    if not isinstance(model, nn.Module):
        return model
    own = copy.deepcopy(model)
    return own.double() if double else own


def gradients(run: Callable[..., Any], model: Callable[..., Any], args: Any) -> list[Any]:
    """What a run gives, then the gradients of its inputs and parameters; also its buffers."""
    given = [_leaf(x) for x in args]
    made = run(*given)
    weights = list(model.parameters()) if isinstance(model, nn.Module) else []
    buffers = list(model.buffers()) if isinstance(model, nn.Module) else []
    sums = [_loss(x) for x in tensors(made) if x.requires_grad]
    wanted = [x for x in (*tensors(given), *weights) if x.requires_grad]
    slopes = torch.autograd.grad(sums, wanted, allow_unused=True) if sums and wanted else ()
    return [made, *slopes, *buffers]


def _leaf(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        wide = torch.complex128 if x.is_complex() else torch.float64
        return x.detach().to(wide).clone().requires_grad_()
    return x.clone() if isinstance(x, torch.Tensor) else x


def _loss(x: torch.Tensor) -> torch.Tensor:
    """A number on which every cell bears in its own way."""
    weights = torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).reshape(x.shape)
    flat = torch.view_as_real(x).sum(-1) if x.is_complex() else x
    return (flat * weights).sum()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in what a model takes or returns."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def close(got: Any, want: Any, tolerance: float) -> None:
    """The same structure, dtypes and shapes, and cells that are close."""
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def check_batches(model: nn.Module, *args: torch.Tensor) -> None:
    """A model that is traced for any batch gives what eager mode gives for two of them."""
    model = copied(model).eval()
    torch._dynamo.reset()
    fast = torch.compile(model, backend=backend, dynamic=True)
    with torch.no_grad():
        for given in (args, [torch.cat((x, x[:1])) for x in args]):
            close(fast(*given), model(*given), 1e-5)
