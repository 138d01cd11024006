"""Domains on arrays: which points of a box are inside.

>>> causal = Domain.of([[1, -1]])                             # d0 - d1 >= 0
>>> inside_mask(causal, Range((0, 0), (2, 3))).astype(int).tolist()
[[1, 0, 0], [1, 1, 0]]
>>> inside_mask(causal, Range((7, 0), (9, 3))) is None        # every point is inside
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from tapestry.runtime.executor import Array
from tapestry.zspace import Domain, Range

_LIMIT = 1 << 62


def inside_mask(domain: Domain | None, box: Range) -> Array | None:
    """Which points of `box` are inside, with an axis per dimension; None when all are.

    An axis that no row depends on has extent 1.
    """
    rest = None if domain is None else domain.within(box)
    if rest is None:
        return None
    key = rest.rows.terms, rest.rows.apply(box.start), box.shape
    mask = _masks.get(key)
    if mask is None:
        mask = _masks[key] = _mask(*key)
    return mask


_Terms: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]

_masks: WeakValueDictionary[tuple[_Terms, Sequence[int], tuple[int, ...]], Array]
_masks = WeakValueDictionary()
"""Those that somebody has: the parts of an operation may have as many that are equal."""


def _mask(rows: _Terms, at_start: Sequence[int], extents: tuple[int, ...]) -> Array:
    """Where every row holds, of their terms and what they are at the first point of a box."""
    mask = np.ones((1,) * len(extents), np.bool_)
    for terms, first in zip(rows, at_start, strict=True):
        # Counted from the start of the box: a row that holds for some of its points and not for
        # others stays small there, wherever the box is.
        reach = abs(first) + sum(abs(c) * extents[dim] for c, dim in terms)
        dtype = np.dtype(object if reach >= _LIMIT else np.int64)
        value = np.full(mask.ndim * (1,), first, dtype)
        for coefficient, dim in terms:
            shape = [1] * mask.ndim
            shape[dim] = extents[dim]
            value = value + np.arange(extents[dim]).astype(dtype).reshape(shape) * coefficient
        mask = mask & np.asarray(value >= 0, dtype=np.bool_)
    mask.flags.writeable = False  # it may be somebody else's too
    return mask
