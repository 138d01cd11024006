"""How many points of a block match the rows of a program, where nobody knows the keys.

    expected_matches(loop, {"BLOCK_P": 4096, "BLOCK_K": 1024})    # of 50257 rows of 1024: 0.08

Rows are taken to be equally frequent.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr

from tapestry.dialects import triton


def expected_matches(loop: scf.ForOp, sizes: Mapping[str, int]) -> float:
    """The steps of a loop over matches (`triton.MATCHES`), of blocks of some sizes."""
    numbers = cast("ArrayAttr[IntegerAttr]", loop.attributes[triton.MATCHES])
    values = [number.value.data for number in numbers]
    found, size = float(sizes["BLOCK_K"]), sizes["BLOCK_P"]
    for extent, inner, several in zip(values[::3], values[1::3], values[2::3], strict=True):
        # A block may begin and end inside rows.
        rows = 1 + (size - gcd(size, inner)) / inner if inner else 1.0
        share = min(1.0, rows / extent)
        if several and inner:
            # Some go on in the next run of rows, and may have any row then.
            run = extent * inner
            more = min(1.0, (size - gcd(size, run)) / run)
            share += more * (1 - share)
        found *= share
    return found
