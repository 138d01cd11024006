"""Which steps of a program were hardly sampled: roundings, and divisions of integers.

    floor(0.001 * x) and floor(0.002 * x) are -1 and 0 alike on all numbers that are small

A step whose results take so few values says little of where its other steps lie.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tapestry.diagnostics import TapestryError
from tapestry.proving.covering import Site, sites
from tapestry.proving.evaluation import evaluate_program
from tapestry.proving.floats import NARROW, FloatArithmetic
from tapestry.proving.inputs import Draw
from tapestry.runtime.executor import Array

_ROUNDINGS = (math.FloorOp, math.CeilOp, math.RoundOp, math.RoundEvenOp, math.TruncOp)
_CONVERSIONS = (arith.FPToSIOp, arith.FPToUIOp)
_QUOTIENTS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
_REMAINDERS = (arith.RemSIOp, arith.RemUIOp)

_FEW = 2
"""So many values, on either side of zero, are taken at any scale. Remainders may have no more."""


def steps(module: ModuleOp) -> Iterator[Site]:
    """The steps that a program makes of what it reads."""
    return sites(module, (*_ROUNDINGS, *_CONVERSIONS, *_QUOTIENTS, *_REMAINDERS))


class Watched(FloatArithmetic):
    """Floats, and what some operations made."""

    def __init__(self, watched: Sequence[Operation]) -> None:
        super().__init__(NARROW)
        self.folds_whole = False  # the merge may be watched
        self._watched = frozenset(watched)
        self.taken: dict[Operation, set[float]] = defaultdict(set)
        self.saturated: set[Operation] = set()
        """Conversions that were given a number beyond the range of their result."""

    def compute(self, op: Operation, operands: Sequence[Array]) -> Array:
        result = super().compute(op, operands)
        if op in self._watched:
            self.taken[op].update(np.unique(result[np.isfinite(result)])[: _FEW + 1].tolist())
            if isinstance(op, _CONVERSIONS):
                bits = 8 * result.itemsize - isinstance(op, arith.FPToSIOp)
                if np.any(np.abs(operands[0]) > 2.0**bits):
                    self.saturated.add(op)
        return result


def flat_steps(module: ModuleOp, draws: Sequence[Sequence[Draw]]) -> list[str]:
    """The steps that took few values, or never saturated, on all of some inputs, in words."""
    found = list(steps(module))
    if not found:
        return []
    watched = Watched([site.op for site in found])
    for draw in draws:
        try:
            evaluate_program(module, [x.as_cells(NARROW) for x in draw], watched)
        except TapestryError:
            continue  # the program takes no such inputs
    inside = [
        f"{site.op.name} in @{site.label} beyond the range of its result"
        for site in found
        if isinstance(site.op, _CONVERSIONS) and site.op not in watched.saturated
    ]
    few = [(site, 1 if isinstance(site.op, _REMAINDERS) else _FEW) for site in found]
    return inside + [
        f"{site.op.name} in @{site.label} taking more than {most} value{'s' if most > 1 else ''}"
        for site, most in few
        if len(watched.taken[site.op]) <= most
    ]
