"""Which results of a graph share memory with each other, where PyTorch runs it.

    y = x * 2
    return y, y.T, y[0]         # the second and the third are views of the first

Whoever writes to one of them writes to all. A graph says so by the memory that its nodes hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from tapestry.importers.torch.memory import View
from tapestry.importers.torch.sizes import Sizes


def memory_of(held: object) -> object:
    """What identifies the memory that a node's tensor is in, None of what is no tensor."""
    return StorageWeakRef(held.untyped_storage()) if isinstance(held, torch.Tensor) else None


def find_views(
    outputs: Sequence[object], given: Collection[object], sizes: Sizes
) -> dict[int, View]:
    """Which outputs are cells of another one, by position.

    That one is contiguous, and has all of their cells; those whose memory is `given` are left out.
    """
    held: dict[int, torch.Tensor] = {}
    groups: dict[object, list[int]] = {}
    for place, output in enumerate(outputs):
        tensor = output.meta.get("val") if isinstance(output, fx.Node) else None
        if not isinstance(tensor, torch.Tensor) or tensor.is_conj() or tensor.is_neg():
            continue
        memory = memory_of(tensor)
        if memory not in given:
            held[place] = tensor
            groups.setdefault(memory, []).append(place)
    found: dict[int, View] = {}
    for group in groups.values():
        whole = [place for place in group if held[place].is_contiguous()]
        if len(group) < 2 or not whole:
            continue
        base = max(whole, key=lambda place: sizes.number(held[place].numel()))
        for place in group:
            view = _view(held[place], held[base], base, sizes) if place != base else None
            if view is not None:
                found[place] = view
    return found


def _view(tensor: torch.Tensor, base: torch.Tensor, place: int, sizes: Sizes) -> View | None:
    """A tensor as cells of another one on its memory; None where it has others."""
    if tensor.dtype != base.dtype:
        return None
    size, stride = (tuple(map(sizes.number, own)) for own in (tensor.shape, tensor.stride()))
    offset = sizes.number(tensor.storage_offset()) - sizes.number(base.storage_offset())
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    inside = 0 not in size and offset >= 0 and last < sizes.number(base.numel())
    return View(place, size, stride, offset) if inside else None
