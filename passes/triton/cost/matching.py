"""How many points of a block match the rows of a program, where nobody knows the keys.

    expected_matches(loop, {"BLOCK_P": 4096, "BLOCK_K": 1024})    # of 50257 rows of 1024: 0.08

Rows are taken to be equally frequent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr

from tapestry.dialects import triton


def expected_matches(loop: scf.ForOp, sizes: Mapping[str, int]) -> float:
    """The steps of a loop over matches (`triton.MATCHES`), of blocks of some sizes."""
    numbers = cast("ArrayAttr[IntegerAttr]", loop.attributes[triton.MATCHES])
    values = [number.value.data for number in numbers]
    found = float(sizes["BLOCK_K"])
    for extent, inner in zip(values[::2], values[1::2], strict=True):
        rows = max(1.0, sizes["BLOCK_P"] / inner) if inner else 1.0
        found *= min(1.0, rows / extent)
    return found
