"""In which order a fold walks its dimensions: the neighbours of what it reads most of come last.

    y[i, j] = sum over k of x[k, j, i]      points (j, i), so that threads read neighbours
    y[n, i] = sum over c, k of x[i + k, c] w[n, k, c]       a product walks (k, c) as one axis

Index dimensions come in the order of the outputs, which are small where much is folded. Points may
be taken in any order; what is folded, too, where the monoid commutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tapestry.algebra.dtypes import byte_size
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, linear_access
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor

_SHARE = 4
"""How many times the bytes of the outputs a tensor has whose order is taken."""

_BLOCK = 128
"""About the side of a product's tile: so many products are made of each cell that is read."""

_POINTS = 1024
"""As many points as fill some programs of a fold, the last of which they fill in part."""


def walking_order(fold: MapFold) -> tuple[int, ...] | None:
    """The index dimensions in the order in which axes walk them; None where that is their own."""
    largest = max(fold.ins, key=lambda tensor: _bytes(fold, tensor), default=None)
    written = sum(out.box.size * byte_size(out.element) for out in fold.outs)
    if largest is None or _bytes(fold, largest) < _SHARE * written:
        return None
    factors, shape = _factors(fold, largest), fold.index.shape
    found = [dim for dim, factor in enumerate(factors) if abs(factor) == 1 and shape[dim] > 1]
    if len(found) != 1:
        return None
    (last,) = found
    folded = last in fold.fold_dims
    alike = fold.fold_dims if folded else fold.kept_dims
    if max(dim for dim in alike if shape[dim] > 1) == last:
        return None
    if folded and (fold.monoid is None or not fold.monoid.commutative):
        return None
    return (*(dim for dim in range(fold.index.rank) if dim != last), last)


def product_order(fold: MapFold, axes: Sequence[str]) -> tuple[int, ...] | None:
    """The index dimensions in the order in which the tile axes of a product walk them.

    Those of an axis come in the order in which the largest input that moves along all of them has
    them. For rows and columns that counts where the fold is long: a factor is then read far more
    often than what is written. Sums are reassociated, as by any product of tiles. None where the
    order is that of the index.
    """
    shape, depth = fold.index.shape, prod(fold.index.shape[d] for d in fold.fold_dims)
    order = list(range(fold.index.rank))
    for axis in ("M", "N", FOLD_AXIS):
        places = [d for d in order if axes[d] == axis and shape[d] > 1]
        if axis != FOLD_AXIS and depth < _SHARE * _BLOCK:
            continue
        for tensor in sorted(fold.ins, key=lambda tensor: -_bytes(fold, tensor)):
            steps = _factors(fold, tensor)
            if _bytes(fold, tensor) and all(steps[d] for d in places):
                walked = sorted(places, key=lambda d: -abs(steps[d]))
                for place, dim in zip(places, walked, strict=True):
                    order[place] = dim
                break
    return None if order == sorted(order) else tuple(order)


def scanning_order(fold: MapFold) -> tuple[int, ...] | None:
    """The index dimensions of a scan, mapped ones in the order of how far apart they are written.

    A tile then has points that are neighbours. None where the order is that of the index.
    """
    steps = _factors(fold, max(fold.outs, key=lambda tensor: _bytes(fold, tensor)))
    mapped = [dim for dim in range(fold.index.rank) if dim != fold.scan_dim]
    walked = iter(sorted(mapped, key=lambda dim: -abs(steps[dim])))
    order = tuple(dim if dim == fold.scan_dim else next(walked) for dim in range(fold.index.rank))
    return None if order == tuple(range(fold.index.rank)) else order


def dims_apart(fold: MapFold) -> frozenset[int]:
    """Outer dimensions of which each program of a fold has one point; it has many of the others.

    Where an input is read along what is folded and not along the last dimensions, as the weights of
    a window of each channel are, all points of a program read the same cells of it then. Only where
    there are points enough to fill programs.
    """
    shape, kept = fold.index.shape, [d for d in fold.kept_dims if fold.index.shape[d] > 1]
    for last in range(len(kept) - 1, 0, -1):
        inner = kept[last:]
        if prod(shape[d] for d in inner) < _POINTS:
            continue
        for tensor in fold.ins:
            steps = _factors(fold, tensor)
            same = not any(steps[d] for d in inner)
            if same and all(any(steps[d] for d in dims) for dims in (kept[:last], fold.fold_dims)):
                return frozenset(kept[:last])
    return frozenset()


def _factors(fold: MapFold, tensor: Tensor) -> tuple[int, ...]:
    """How many cells apart neighbours along each index dimension are in a tensor."""
    rank = fold.index.rank
    return linear_access(tensor.projection, tensor.box, range(rank), rank).coefficients


def _bytes(fold: MapFold, tensor: Tensor) -> int:
    """The bytes that are read of a tensor, cell by cell; of boxes that points choose, none."""
    if any(extent > 1 for extent in tensor.projection.shape):
        return 0
    pairs = zip(fold.index.shape, _factors(fold, tensor), strict=True)
    return prod(extent for extent, factor in pairs if factor) * byte_size(tensor.element)
