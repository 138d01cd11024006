"""Which results of a graph share memory with its arguments or each other, where PyTorch runs it.

    y = x * 2
    return y, y.T, y[0], x[1:]      # the second and third are views of the first, the last of x

Whoever writes to one of them writes to all. A graph says so by the memory that its nodes hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from tapestry.importers.torch.memory import View
from tapestry.importers.torch.sizes import OpenSizeError, Sizes


def memory_of(held: object) -> object:
    """What identifies the memory that a node's tensor is in, None of what is no tensor."""
    return StorageWeakRef(held.untyped_storage()) if isinstance(held, torch.Tensor) else None


def find_views(
    outputs: Sequence[object], arguments: Sequence[fx.Node], sizes: Sizes, *, of_open_sizes: bool
) -> dict[int, View]:
    """Which outputs are cells of an argument or of another output, by position.

    That output fills its memory (`order_of`), and has all of their cells. `of_open_sizes` leaves
    out views of outputs that PyTorch makes itself: those whose sizes are numbers in the graph.
    """
    given: dict[object, int] = {}
    for place, argument in enumerate(arguments):
        given.setdefault(memory_of(_plain(argument)), place)
    found: dict[int, View] = {}
    groups: dict[object, list[int]] = {}
    for place, output in enumerate(outputs):
        tensor = _plain(output)
        if tensor is None or output in arguments:
            continue
        base = given.get(memory := memory_of(tensor))
        if base is None:
            groups.setdefault(memory, []).append(place)
        elif (whole := _plain(arguments[base])) is not None:
            view = _view(tensor, whole, base, sizes, given=True)
            found.update({place: view} if view is not None else {})
    for group in groups.values():
        found.update(_within(group, outputs, sizes, of_open_sizes=of_open_sizes))
    return found


def order_of(tensor: torch.Tensor, sizes: Sizes) -> tuple[int, ...] | None:
    """The axes along which a tensor's cells lie one after another; None where they do not."""
    size, stride = _numbers(tensor.shape, sizes), _numbers(tensor.stride(), sizes)
    order = tuple(sorted(range(len(size)), key=lambda axis: (-stride[axis], -size[axis])))
    step = 1
    for axis in reversed(order):
        if size[axis] != 1 and stride[axis] != step:
            return None
        step *= size[axis]
    return order


def _within(
    group: Sequence[int], outputs: Sequence[object], sizes: Sizes, *, of_open_sizes: bool
) -> Mapping[int, View]:
    """Which outputs of one memory are cells of one of them."""
    held = {place: tensor for place in group if (tensor := _plain(outputs[place])) is not None}
    views = [place for place in held if not of_open_sizes or _is_open(held[place])]
    if len(held) < 2 or not views:
        return {}
    whole = [place for place in held if order_of(held[place], sizes) is not None]
    if not whole:
        return {}
    # What PyTorch makes views of itself, it has returned after the results.
    last = reversed(whole) if of_open_sizes else whole
    cells = {place: sizes.number(held[place].numel()) for place in whole}
    base = max(last, key=lambda place: (cells[place], held[place].is_contiguous()))
    found: dict[int, View] = {}
    for place in views:
        twice = of_open_sizes and outputs[place] is outputs[base]  # two results that were equal
        view = _view(held[place], held[base], base, sizes, given=False)
        if place != base and not twice and view is not None:
            found[place] = view
    return found


def _view(
    tensor: torch.Tensor, base: torch.Tensor, place: int, sizes: Sizes, *, given: bool
) -> View | None:
    """A tensor as cells on the memory of another one; None where there are others."""
    if tensor.dtype != base.dtype:
        return None
    try:
        size, stride = _numbers(tensor.shape, sizes), _numbers(tensor.stride(), sizes)
        offset = sizes.number(tensor.storage_offset() - base.storage_offset())
    except OpenSizeError:
        return None
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    inside = 0 not in size and offset >= 0 and last < sizes.number(base.numel())
    return View(place, given, size, stride, offset) if inside or given else None


def _plain(node: object) -> torch.Tensor | None:
    """The tensor of a node, if its cells are those in memory."""
    held: object = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(held, torch.Tensor) or held.is_conj() or held.is_neg():
        return None
    return held


def _is_open(tensor: torch.Tensor) -> bool:
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    return not all(isinstance(number, int) for number in numbers)


def _numbers(values: Sequence[int | torch.SymInt], sizes: Sizes) -> tuple[int, ...]:
    return tuple(map(sizes.number, values))
