"""A counterexample made small, and fit to be replayed.

Inputs that part two programs are first rounded to the types of their arguments, so that any
executor can take them, then set to zero cell by cell as long as the programs still part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tapestry.proving.comparing import Difference
from tapestry.proving.inputs import Draw

Part = Callable[[Sequence[Draw]], Difference | None]
"""Where the programs part on some inputs; None where they agree, or nothing can be said."""


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Inputs on which two programs part; `exact` when the arguments' own types hold them.

    `programs` are the ones that part, which may be smaller copies of those compared; `where` names
    the first operation at which they do, where that is known.
    """

    kind: str
    seed: int
    sizes: str
    programs: tuple[ModuleOp, ModuleOp]
    names: tuple[str, ...]
    inputs: tuple[Draw, ...]
    difference: Difference
    exact: bool
    where: str = ""


def shrink(found: Counterexample, part: Part, runs: int) -> Counterexample:
    """The smallest counterexample that is found in about so many runs, or `found` itself."""
    inputs, difference = found.inputs, found.difference
    rounded = tuple(draw.rounded() for draw in inputs)
    parted = part(rounded)
    exact = parted is not None
    if parted is not None:
        inputs, difference = rounded, parted
    best = list(inputs)
    left = runs
    for place in range(len(best)):
        cells = np.flatnonzero(best[place].numbers)
        size = len(cells)
        while size and left > 0:
            for first in range(0, len(cells), size):
                where = _mask(best[place], cells[first : first + size])
                tried = [*best[:place], best[place].zeroed(where), *best[place + 1 :]]
                left -= 1
                parted = part(tried)
                if parted is not None:
                    best, difference = tried, parted
                if left <= 0:
                    break
            cells = np.flatnonzero(best[place].numbers)
            size = min(size, len(cells) + 1) // 2
    return replace(found, inputs=tuple(best), difference=difference, exact=exact)


def _mask(draw: Draw, cells: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(draw.numbers.size, np.bool_)
    mask[cells] = True
    return mask.reshape(draw.numbers.shape)
