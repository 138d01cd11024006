"""Scalar operations by name: all that those know of them who compute without IR.

    Scalar("arith.cmpf", (np.dtype("f4"), np.dtype("f4")), np.dtype("?"), predicate=4)

`scalar_of` (in `tapestry.algebra.scalars`) makes one of an operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """An operation of a body, with the dtypes of its operands and of its result.

    `predicate` is the number of a comparison's, and 0 of others.
    """

    name: str
    operands: tuple[np.dtype[Any], ...]
    result: np.dtype[Any]
    predicate: int = 0
