"""Images sampled where a grid says, and resized with filters that see all that they shrink.

    grid_sampler(x, grid, 0, 0, False)           # aten.grid_sampler_2d, and of volumes _3d
    resized_by_matrices(2)(x, [4, 5], False)     # aten._upsample_bilinear2d_aa

A grid holds for each cell of the result a place, from -1 to 1 along each axis, the last axis
first. PyTorch's own decomposition has other gradients where a place lies on the border.
"""

# pyright: basic
# Methods of PyTorch's tensors have no complete types.

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_NEAREST, _CUBIC = 1, 2
_ZEROS, _BORDER, _REFLECTION = range(3)


def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    """`aten.grid_sampler_2d` and `_3d`: between the cells around each place, or by the nearest."""
    sizes = x.shape[2:]
    number = torch.zeros((), dtype=torch.int64, device=x.device)
    inside, weight = number == 0, torch.ones((), dtype=x.dtype, device=x.device)
    for axis, size in enumerate(sizes):
        place, share = _taps(_scaled(grid[..., -1 - axis], size, align), size, mode, padding, align)
        before = (1,) * axis  # each axis has its taps in a dimension of its own
        place, share = (t.reshape(*t.shape[:-1], *before, t.shape[-1]) for t in (place, share))
        here = (place >= 0) & (place < size)
        at = torch.where(here, place, 0).to(torch.int64)
        number = number.unsqueeze(-1) * size + at
        inside, weight = inside.unsqueeze(-1) & here, weight.unsqueeze(-1) * share
    weight = torch.where(inside, weight, 0).unsqueeze(1)
    wide = number.flatten(1).unsqueeze(1).expand(-1, x.shape[1], -1)
    found = x.flatten(2).gather(2, wide).unflatten(2, number.shape[1:])
    return torch.where(inside.unsqueeze(1), found * weight, 0).flatten(-len(sizes)).sum(-1)


def _taps(place: Tensor, size: int, mode: int, padding: int, align: bool) -> tuple[Tensor, Tensor]:
    """The whole places along an axis that a cell of the result is made of, and their shares."""

    def moved(place: Tensor) -> Tensor:
        if padding == _REFLECTION:
            place = _reflected(place, size, align)
        return place if padding == _ZEROS else _clipped(place, size)

    if mode == _CUBIC:
        low = place.floor()
        return torch.stack([moved(low + k) for k in (-1, 0, 1, 2)], -1), _cubic(place - low)
    place = moved(place)
    if mode == _NEAREST:
        # The share is 1, with a gradient that is 0 and not none, as PyTorch's is.
        share = torch.where(torch.zeros_like(place, dtype=torch.bool), place, 1)
        return place.round().unsqueeze(-1), share.unsqueeze(-1)
    low = place.floor()
    return torch.stack([low, low + 1], -1), torch.stack([low + 1 - place, place - low], -1)


def _scaled(place: Tensor, size: int, align: bool) -> Tensor:
    """From -1 to 1, to the numbers of cells."""
    return (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2


def _clipped(place: Tensor, size: int) -> Tensor:
    """Nearest inside: on the border itself there is no gradient any more."""
    return torch.where(place <= 0, 0, torch.where(place >= size - 1, size - 1, place))


def _reflected(place: Tensor, size: int, align: bool) -> Tensor:
    """Back and forth between the outer cells, or between their outer edges."""
    low, span = (0.0, size - 1) if align else (-0.5, size)
    if span == 0:
        return torch.zeros_like(place)
    place = place - low
    place = torch.where(place < 0, -place, place)
    extra, turns = torch.fmod(place, span), torch.floor(place / span)
    return torch.where(torch.fmod(turns, 2) == 0, extra + low, span - extra + low)


def _cubic(part: Tensor) -> Tensor:
    """Keys' shares of the four cells around a place that is `part` after the second, A = -0.75."""
    a = -0.75

    def near(t: Tensor) -> Tensor:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return torch.stack([far(part + 1), near(part), near(1 - part), far(2 - part)], -1)


def resized_by_matrices(taps: int) -> Callable[..., Tensor]:
    """`aten._upsample_bilinear2d_aa` (2 taps) and `_upsample_bicubic2d_aa` (4).

    Each axis is a product with a matrix of weights, which only the sizes decide.
    """

    def resized(
        x: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        if not x.is_floating_point():
            return NotImplemented  # bytes are computed in fixed point
        rows = _weights(x, x.shape[2], output_size[0], align_corners, scales_h, taps)
        columns = _weights(x, x.shape[3], output_size[1], align_corners, scales_w, taps)
        return rows @ (x @ columns.mT)

    return resized


def _weights(
    x: Tensor, have: int, want: int, align: bool, scale: float | None, taps: int
) -> Tensor:
    """The share of each cell in each cell of the result: (want, have)."""
    if align:
        step = (have - 1) / (want - 1) if want > 1 else 0.0
    else:
        step = 1 / scale if scale is not None and scale > 0 else have / want
    reach = taps / 2 * max(step, 1.0)
    centre = step * (torch.arange(want, device=x.device, dtype=x.dtype)[:, None] + 0.5)
    first = (centre - reach + 0.5).trunc().clamp(min=0)
    after = (centre + reach + 0.5).trunc().clamp(max=have)
    cell = torch.arange(have, device=x.device, dtype=x.dtype)
    apart = ((cell - centre + 0.5) / max(step, 1.0)).abs()
    if taps == 2:
        shares = (1 - apart).clamp(min=0)
    else:
        a = -0.5
        near = ((a + 2) * apart - (a + 3)) * apart * apart + 1
        far = (((apart - 5) * apart + 8) * apart - 4) * a
        shares = torch.where(apart < 1, near, torch.where(apart < 2, far, 0))
    shares = torch.where((cell >= first) & (cell < after), shares, 0)
    return shares / shares.sum(1, keepdim=True)
