"""Operators that PyTorch has no decompositions of, in terms of others."""

# pyright: basic
# Methods of PyTorch's tensors have no complete types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def weight_norm_gradient(
    grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """`aten._weight_norm_interface_backward`: of w = v g / |v|, with norms along all but `dim`."""
    others = [axis for axis in range(v.ndim) if axis != dim]
    along = (grad * v).sum(others, keepdim=True) / norms
    return g / norms * (grad - v * (along / norms)), along


def median_dim(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`aten.median.dim`: the lower of two in the middle; NaN where there is one."""
    size = x.shape[dim] if x.ndim else 1
    value, place = torch.kthvalue(x, (size + 1) // 2, dim, keepdim)
    if not x.is_floating_point():
        return value, place
    none = x.isnan()
    there, first = none.any(dim, keepdim), none.to(torch.uint8).argmax(dim, keepdim)
    return torch.where(there, torch.nan, value), torch.where(there, first, place)


def median(x: Tensor) -> Tensor:
    """`aten.median`: of all cells."""
    return median_dim(x.reshape(-1), 0)[0]


def fake_quantize(
    x: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """`aten.fake_quantize_per_tensor_affine_cachemask`: and which cells were not clamped."""
    steps = torch.round(x * (1 / scale) + zero_point)
    inside = (steps >= quant_min) & (steps <= quant_max)
    return (steps.clamp(quant_min, quant_max) - zero_point) * scale, inside


APART: dict[str, Callable[..., Any]] = {
    "_weight_norm_interface_backward.default": weight_norm_gradient,
    "median.default": median,
    "median.dim": median_dim,
    "fake_quantize_per_tensor_affine_cachemask.default": fake_quantize,
}
"""By the name of the overload of ATen, what it computes."""
