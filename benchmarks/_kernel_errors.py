"""How far what a kernel made is from float64, by the worst of its rows.

    error_of(torch, got, want, "f16") <= TOLERANCES["f16"]

One row of thousands that is wrong changes the norm of a matrix little, and its own by all of it.
Rows of little beside the others are held against a tenth of what rows are like, and cells that a
type has no full precision for against the least that it has it for.
"""

from __future__ import annotations

from typing import Any

EPSILONS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
"""The distance of 1 and the next number."""

TOLERANCES = {
    "f16": 2 * EPSILONS["f16"],
    "bf16": 2 * EPSILONS["bf16"],
    "f32": 16 * EPSILONS["f32"],
    "f64": 64 * EPSILONS["f64"],
}
"""What errors of rows are at most: roundings of the output, and in wider types those of sums;
of float64 that what it is held against has them, too."""

LEAST = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
"""The least number of full precision."""

LIKE = 0.1
"""The share of what rows are like that an error is held against at least."""

CHUNK = 1024
"""The cells of a row of what has one axis."""


def error_of(torch: Any, got: Any, want: Any, dtype: str) -> float:
    """The greatest error of a row, relative to it; tensors of any type, `want` in float64."""
    assert got.shape == want.shape, (got.shape, want.shape)
    wanted, off = _rows(torch, want.double()), _rows(torch, got.double() - want.double())
    width = wanted.shape[-1]
    sizes = torch.linalg.vector_norm(wanted, dim=-1)
    like = float(torch.linalg.vector_norm(sizes)) / max(1, len(sizes)) ** 0.5
    floor = max(LIKE * like, LEAST[dtype] * width**0.5)
    return float((torch.linalg.vector_norm(off, dim=-1) / sizes.clamp_min(floor)).max())


def _rows(torch: Any, cells: Any) -> Any:
    """Cells as rows along their last axis; those of one axis in chunks, filled with zeros."""
    if cells.dim() > 1:
        return cells.reshape(-1, cells.shape[-1])
    flat = cells.reshape(-1)
    width = max(1, min(CHUNK, flat.numel()))
    return torch.nn.functional.pad(flat, (0, -flat.numel() % width)).reshape(-1, width)
