"""Bags of rows, `aten._embedding_bag`, in terms of lookups and sums at places.

table[[1, 2, 4, 5]] in bags that begin at [0, 3]    # table[1] + table[2] + table[4], table[5]
"""

# pyright: basic
# Methods of PyTorch's tensors have no complete types.

from __future__ import annotations

import torch
from torch import Tensor

_SUM, _MEAN, _MAX = range(3)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,  # noqa: ARG001 (gradients are dense)
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What bags of rows are folded to, the bag of each row, the sizes of bags, and the largest.

    An empty bag is folded to zeros. Rows of `padding_idx`, unless it is negative, are in no bag.
    """
    bags = len(offsets) - include_last_offset
    starts, ones = offsets[:bags], torch.ones_like(offsets[:bags])
    begun = offsets.new_zeros(len(indices) + 1).index_add(0, starts, ones)
    bag = begun[:-1].cumsum(0) - 1
    rows = torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, False)
    there = None if padding_idx < 0 else indices != padding_idx
    each = torch.ones_like(bag) if there is None else there.to(offsets.dtype)
    sizes = offsets.new_zeros(bags).index_add(0, bag, each)
    nothing = rows.new_zeros(bags, rows.shape[1])
    if mode == _MAX:
        chosen = _largest(rows, bag, there, nothing)
        found = rows.gather(0, chosen.clamp(max=len(indices) - 1))
        folded = torch.where(sizes[:, None] > 0, found, 0)
        return folded, bag, sizes, chosen
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    folded = nothing.index_add(0, bag, _where(there, rows, 0))
    if mode == _MEAN:
        folded = folded / sizes.clamp(min=1)[:, None]
    return folded, bag, sizes, sizes


def _where(there: Tensor | None, rows: Tensor, otherwise: float) -> Tensor:
    """The rows that are in a bag, and a number in the others; None says that all are."""
    return rows if there is None else torch.where(there[:, None], rows, otherwise)


def _largest(rows: Tensor, bag: Tensor, there: Tensor | None, nothing: Tensor) -> Tensor:
    """Of each bag and column, the first row that holds the largest cell: its gradient is there."""
    held = rows.detach()
    each = bag[:, None].expand(held.shape)
    least = torch.full_like(nothing, -torch.inf)
    most = least.scatter_reduce(0, each, _where(there, held, -torch.inf), "amax")
    places = torch.arange(len(rows), device=rows.device)[:, None].expand(held.shape)
    wins = held == most.gather(0, each)
    if there is not None:
        wins = wins & there[:, None]
    last = torch.full_like(nothing, len(rows), dtype=torch.int64)
    return last.scatter_reduce(0, each, torch.where(wins, places, len(rows)), "amin")
