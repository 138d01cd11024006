"""Domains on arrays: which points of a box are inside.

>>> causal = Domain.of([[1, -1]])                             # d0 - d1 >= 0
>>> inside_mask(causal, Range((0, 0), (2, 3))).astype(int).tolist()
[[1, 0, 0], [1, 1, 0]]
>>> inside_mask(causal, Range((7, 0), (9, 3))) is None        # every point is inside
True
"""

from __future__ import annotations

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
    mask: Array | None = None
    at_start = rest.rows.apply(box.start)
    for terms, first in zip(rest.rows.terms, at_start, strict=True):
        # Counted from the start of the box: a row that holds for some of its points and not for
        # others stays small there, wherever the box is.
        reach = abs(first) + sum(abs(c) * box.shape[dim] for c, dim in terms)
        dtype = np.dtype(object if reach >= _LIMIT else np.int64)
        value = np.full((1,) * box.rank, first, dtype)
        for coefficient, dim in terms:
            shape = [1] * box.rank
            shape[dim] = box.shape[dim]
            value = value + np.arange(box.shape[dim]).astype(dtype).reshape(shape) * coefficient
        holds = np.asarray(value >= 0, dtype=np.bool_)
        mask = holds if mask is None else mask & holds
    return mask
