"""How to put cells in order: short rows by counting, longer ones by a kernel that sorts.

ordering("topk", 8)        # "topk_by_rank": 64 comparisons, a fold like any other
ordering("topk", 1000)     # "topk": the kernel `sort`, a call of its own
"""

from __future__ import annotations

_SHORT = 32
"""Cells of a row whose comparisons, each with each, are cheaper than a call between kernels."""


def ordering(metakernel: str, cells: int) -> str:
    """The metakernel that does what `sort` or `topk` does, for rows of so many cells."""
    return f"{metakernel}_by_rank" if cells <= _SHORT else metakernel
