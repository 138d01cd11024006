"""Whether numbers are finite, as compiled functions say it."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.checking import finite_step
from tapestry.runtime.executor import Array

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _says(matrix: Array) -> bool:
    step = finite_step(matrix)
    assert step is not None
    arguments = np.array(step.arguments, np.int64)
    arguments[step.address] = matrix.ctypes.data
    arguments[-1] = 77  # what was found before is forgotten
    step.function(arguments.ctypes.data)
    return not arguments[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 32), (2, 4, 65), (64, 1)])
def test_one_number_of_all(dtype: type, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    most = np.finfo(dtype).max
    for turned in (False, True):
        for wrong in (np.inf, -np.inf, np.nan, -np.nan, most, -most, 0.0):
            for _ in range(4):
                # Around a matrix is what it does not have.
                whole = np.full([extent + 3 for extent in shape], np.nan, dtype)
                matrix = whole[tuple(slice(1, 1 + extent) for extent in shape)]
                matrix[...] = rng.normal(size=shape)
                matrix[tuple(rng.integers(0, extent) for extent in shape)] = wrong
                given = matrix.mT if turned else matrix
                assert _says(given) == bool(np.isfinite(given).all())


def test_other_arrays() -> None:
    assert finite_step(np.zeros((4, 4), np.int32)) is None
    assert finite_step(np.zeros(4, np.float32)) is None
    assert finite_step(np.zeros((8, 8), np.float32)[:, ::2]) is None
