"""Certificates: programs that agree exactly in the ring, on branches that their real values took.

Agreement by chance is bounded for rational functions of the inputs and their exponentials: two
different ones of degree d agree at a random point with a probability of at most d / 2^60, and where
only a share r of the inputs takes the branches that were taken, of at most d / (r 2^60).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import is_float
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.inputs import BITS, Draw
from tapestry.proving.residues import CELL, Residues
from tapestry.proving.ring import Ring
from tapestry.runtime.executor import Array
from tapestry.runtime.program import outputs as outputs_of

LARGEST_DEGREE = 2.0**40
"""No bound is given for rational functions of a larger degree."""


@dataclass(frozen=True)
class Certificate:
    """Agreement on several draws, and the bound on chance where there is one."""

    draws: int
    bound: float | None
    share: float

    def __str__(self) -> str:
        said = f"exactly so in a ring of 305 bits, on {self.draws} draws"
        if self.bound is None:
            return f"{said}; no bound on chance is known"
        return f"{said}; by chance with a probability of at most {self.bound:.0e}" + (
            "" if self.share == 1 else f" where branches are taken like in {self.share:.0%} of them"
        )


def certify(a: ModuleOp, b: ModuleOp, draws: Sequence[Sequence[Draw]]) -> Certificate | None:
    """A certificate that two programs agree; None where they do not, or it is not known.

    Of programs without floats it knows nothing.
    """
    if not any(is_float(kind.element_type) for kind in outputs_of(a)):
        return None
    paths: Counter[tuple[bytes, bytes]] = Counter()
    degree, exact = 0.0, True
    for seed, inputs in enumerate(draws):
        ring = Ring.of(seed)
        sides = [Residues(ring), Residues(ring)]
        outputs = [
            evaluate_program(module, [side.admit(draw) for draw in inputs], side)
            for module, side in zip((a, b), sides, strict=True)
        ]
        for x, y in zip(*outputs, strict=True):
            if x.dtype == CELL:
                overflown = any(side.overflows for side in sides)
                if not _agree(x, y, ring) or (overflown and not np.isfinite(x["real"]).all()):
                    return None
                tops = np.maximum(x["top"] + y["bottom"], y["top"] + x["bottom"])
                degree = max(degree, float(np.max(tops, initial=0)))
        exact = exact and all(side.algebra.bounded for side in sides)
        paths[sides[0].path, sides[1].path] += 1
    share = min(paths.values()) / len(draws)
    bounded = exact and degree < LARGEST_DEGREE
    # Draws are independent, but so few that the bound of one is what is said.
    bound = max(degree, 1.0) / (share * 2.0**BITS) if bounded else None
    return Certificate(len(draws), bound, share)


def _agree(x: Array, y: Array, ring: Ring) -> bool:
    """Whether all cells agree in the digits that are known of both, which are some."""
    finite = np.isfinite(x["real"])
    digits = np.minimum(x["digits"], y["digits"])
    if np.any(finite & (digits <= 0)):
        return False
    powers = np.asarray([ring.prime**n for n in range(6)], object)[np.maximum(digits, 0)]
    gap = (x["residue"] - y["residue"]) % powers
    return not np.any(finite & (gap != 0))
