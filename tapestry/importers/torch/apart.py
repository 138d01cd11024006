"""Operators that PyTorch has no decompositions of, or wrong ones, in terms of others."""

# pyright: basic
# Methods of PyTorch's tensors have no complete types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tapestry.importers.torch.bags import embedding_bag
from tapestry.importers.torch.sampling import grid_sampler, resized_by_matrices


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


def fake_quantize_channels(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """`aten.fake_quantize_per_channel_affine_cachemask`: each place along an axis by its own."""
    beside = [1] * x.ndim
    beside[axis] = -1
    scale, zero_point = scale.view(beside), zero_point.view(beside)
    steps = torch.round(x * (1 / scale)) + zero_point
    inside = (steps >= quant_min) & (steps <= quant_max)
    return ((steps.clamp(quant_min, quant_max) - zero_point) * scale).to(x.dtype), inside


def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """`aten.multilabel_margin_loss_forward`: a row's labels are those before its first -1.

    PyTorch's own decomposition counts label 0 for each place after it.
    """
    rows, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    size = rows.shape[1]
    there = (labels >= 0).to(torch.int64).cumprod(1).bool()
    at = torch.where(there, labels, 0)
    chosen = (at.unsqueeze(2) == torch.arange(size, device=x.device)) & there.unsqueeze(2)
    is_target = chosen.any(1)
    slack = (1 - rows.gather(1, at).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0) / size
    counts = there.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = torch.where(counts, slack, 0).sum((1, 2)).reshape(x.shape[:-1])
    loss = (loss, loss.mean(), loss.sum())[reduction]
    return loss, is_target.to(x.dtype).reshape(target.shape)


def nll_loss_gradient(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """`aten.nll_loss_backward`: minus the gradient at the classes that are meant, 0 elsewhere.

    PyTorch's own scatters. The loss looked its classes up, so here they are only compared.
    """
    axis = min(1, x.ndim - 1)
    meant = (target[0] if x.ndim == 1 and target.ndim else target).unsqueeze(axis)
    beside = [1] * axis + [x.shape[axis]] + [1] * (x.ndim - axis - 1)
    here = torch.arange(x.shape[axis], device=x.device).view(beside) == meant
    each = grad / total_weight if reduction == 1 else grad
    if each.ndim:
        each = each.unsqueeze(axis)
    if weight is not None:
        each = each * weight.view(beside)
    return torch.where(here & (meant != ignore_index), -each, 0)


APART: dict[str, Callable[..., Any]] = {
    "_weight_norm_interface_backward.default": weight_norm_gradient,
    "median.default": median,
    "median.dim": median_dim,
    "multilabel_margin_loss_forward.default": multilabel_margin_loss,
    "fake_quantize_per_tensor_affine_cachemask.default": fake_quantize,
    "fake_quantize_per_channel_affine_cachemask.default": fake_quantize_channels,
    "nll_loss_backward.default": nll_loss_gradient,
    "nll_loss2d_backward.default": nll_loss_gradient,
    "_embedding_bag.default": embedding_bag,
    "_embedding_bag_forward_only.default": embedding_bag,
    "grid_sampler_2d.default": grid_sampler,
    "grid_sampler_3d.default": grid_sampler,
    "_upsample_bilinear2d_aa.default": resized_by_matrices(2),
    "_upsample_bicubic2d_aa.default": resized_by_matrices(4),
}
"""By the name of the overload of ATen, what it computes."""

WITH_GRADIENTS = frozenset(
    {
        "_embedding_bag.default",
        "grid_sampler_2d.default",
        "grid_sampler_3d.default",
        "_upsample_bilinear2d_aa.default",
        "_upsample_bicubic2d_aa.default",
    }
)
"""Those whose gradients are of their parts: PyTorch's own are operators without decompositions."""
