"""Sums of products over windows by PyTorch's convolutions, on the memory that the factors have.

    slid(signal, kernel, [Slide(cells=5, step=1, reach=1, start=0)])

A kernel that slides to fewer places than it has cells is the gradient of a convolution to its own
kernel: the result is what slides then, the signal its input, and the kernel the gradient of its
output. Both are oneDNN's where PyTorch has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import numpy as np
import torch

from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Slide
from tapestry.runtime.prepared.products import sliding

_AXES = 3
"""How many axes PyTorch's convolutions slide along, at most."""

_FLOATS = (np.dtype("f4"), np.dtype("f8"))

_tensor = cast("Callable[[Array], Any]", vars(torch)["from_numpy"])
_aten = cast("Any", torch.ops.aten)


def slid(signal: Array, kernel: Array, slides: Sequence[Slide]) -> Array:
    """As `Library.slide` says; sums over more than three axes, or of other numbers, are NumPy's."""
    if signal.dtype not in _FLOATS or len(slides) > _AXES:
        return sliding.slid(signal, kernel, slides)
    batch, rows, inner = signal.shape[:3]
    columns, reached = kernel.shape[1], kernel.shape[3:]
    cells = tuple(slide.cells for slide in slides)
    steps, reaches = [slide.step for slide in slides], [slide.reach for slide in slides]
    zeros = [0] * len(slides)
    turned = prod(reached) > prod(cells)
    signal, padding = _fitted(signal, reached, slides, reaches if turned else steps)
    if any(padding) and not np.isfinite(kernel).all():
        signal, padding = _padded(signal, [(n, n) for n in padding]), zeros
    if turned:
        outputs, inputs = (_channels(np.moveaxis(one, 2, 0)) for one in (kernel, signal))
        weights = _tensor(np.empty(1, kernel.dtype)).expand(batch * columns, rows, *cells)
        _, sums, _ = _aten.convolution_backward.default(
            *(outputs, inputs, weights, None, reaches, padding, steps),
            *(False, zeros, batch, [False, True, False]),
        )
        return sums.numpy().reshape(batch, columns, rows, *cells).swapaxes(1, 2)
    inputs = _channels(signal.swapaxes(0, 1))
    weights = _shared(kernel.reshape(batch * columns, inner, *reached))
    sums = _aten.convolution.default(
        inputs, weights, None, steps, padding, reaches, False, zeros, batch
    )
    return sums.numpy().reshape(rows, batch, columns, *cells).swapaxes(0, 1)


def _fitted(
    signal: Array, reached: Sequence[int], slides: Sequence[Slide], strides: Sequence[int]
) -> tuple[Array, list[int]]:
    """A signal and the zeros before and after each axis, of which as many cells are computed.

    PyTorch has as many zeros after as before: there may be fewer than `strides` that nothing reads.
    What is not read is left out; where more are needed after than before, all are copied.
    """
    at = [slice(None)] * signal.ndim
    zeros: list[tuple[int, int]] = []
    for axis, (count, slide, stride) in enumerate(zip(reached, slides, strides, strict=True), 3):
        have, needed = signal.shape[axis], slide.step * (slide.cells - 1)
        needed += slide.reach * (count - 1) + 1
        low, high = -slide.start, slide.start + needed - have
        if low < 0 or not 0 <= low - high < stride:
            first = min(max(0, slide.start), have)
            end = min(max(first, slide.start + needed), have)
            at[axis] = slice(first, end)
            low = min(max(0, low), needed)
            high = needed - low - (end - first)
        zeros.append((low, high))
    signal = signal[tuple(at)]
    sizes = zip(zeros, strides, strict=True)
    if signal.size and all(0 <= low - high < stride for (low, high), stride in sizes):
        return signal, [low for low, _ in zeros]
    return _padded(signal, [(low, max(0, high)) for low, high in zeros]), [0] * len(slides)


def _padded(signal: Array, zeros: Sequence[tuple[int, int]]) -> Array:
    """A signal with zeros before and after its axes."""
    return np.pad(signal, [(0, 0)] * 3 + [*zeros])


def _channels(signal: Array) -> Any:
    """A signal as PyTorch has it: channels are those of all groups, one after another."""
    first, second, third, *axes = signal.shape
    return _shared(signal.reshape(first, second * third, *axes))


def _shared(array: Array) -> Any:
    """An array as a tensor, on the same memory where PyTorch can."""
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    return _tensor(array)
