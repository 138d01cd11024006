"""What operators of PyTorch are taken apart into before lowerings see them.

The table of core ATen, with some changes: some operators stay whole because they have lowerings
that say more than their parts (a lookup's gradient is one fold), some that core ATen leaves whole
have decompositions of PyTorch's own or in `apart`, and fast paths of attention are undone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import _decomp

from tapestry.importers.torch.apart import APART
from tapestry.importers.torch.fast_paths import FAST_PATHS

_pytorch: Any = _decomp  # whose types are not complete

_WHOLE = ("embedding_dense_backward", "index_add", "index_copy", "index_fill")

_APART = (
    "upsample_nearest2d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "dist", "narrow_copy", "ldexp", "normal", "uniform", "exponential", "cauchy",
    "geometric", "log_normal", "rrelu_with_noise_backward", "batch_norm_backward",
)  # fmt: skip


_MEANS = ("mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward")
"""Gradients that PyTorch divides by the number of cells, also where there are none."""

Table: TypeAlias = "dict[Any, Callable[..., Any]]"


@cache
def decompositions() -> Table:
    """By overload, what an operator is computed as instead; to be read, not changed."""
    aten: Any = torch.ops.aten
    apart: Table = _pytorch.get_decompositions([getattr(aten, name) for name in _APART])
    table: Table = {**_pytorch.core_aten_decompositions(), **apart}
    for name in _MEANS:
        table[getattr(aten, name).default] = _none_of_nothing(table[getattr(aten, name).default])
    select_scatter = aten.select_scatter.default
    table[select_scatter] = _into_its_type(table[select_scatter])
    for name, function in FAST_PATHS.items():
        table[getattr(aten, name).default] = function
    for name, function in APART.items():
        packet, overload = name.split(".")
        table[getattr(getattr(aten, packet), overload)] = function
    for name in _WHOLE:
        packet = getattr(aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    return table


def _none_of_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss's gradient, which has no cells where what the loss is of has none."""

    def run(grad: torch.Tensor, x: torch.Tensor, *rest: Any) -> Any:
        return function(grad, x, *rest) if x.numel() else torch.empty_like(x)

    return run


def _into_its_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """What puts a tensor into another one, whose type it takes."""

    def run(x: torch.Tensor, source: torch.Tensor, *rest: Any, **named: Any) -> Any:
        return function(x, source.to(x.dtype), *rest, **named)

    return run
