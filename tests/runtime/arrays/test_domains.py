"""Masks of domains, which parts of the same form have in common."""

from __future__ import annotations

import gc

import numpy as np

from tapestry.runtime.arrays.domains import _masks, inside_mask
from tapestry.zspace import Domain, Range


def test_equal_masks_are_one_while_somebody_has_it() -> None:
    causal = Domain.of([[0, 1, -1]])
    one, other = (inside_mask(causal, Range((row, 0, 0), (row + 1, 5, 5))) for row in (2, 3))
    assert one is other
    assert one is not None
    assert not one.flags.writeable
    np.testing.assert_array_equal(one[0], np.tri(5, dtype=bool))
    further = inside_mask(causal, Range((2, 1, 0), (3, 6, 5)))
    assert further is not None
    np.testing.assert_array_equal(further[0], np.tri(5, k=1, dtype=bool))
    count = len(_masks)
    del one, other, further
    gc.collect()
    assert len(_masks) == count - 2
