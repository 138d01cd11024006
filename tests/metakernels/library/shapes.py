"""Random arrays for operators that move cells: every cell has a value of its own."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from tests.metakernels.library.applying import run

DTYPES = st.sampled_from([np.float32, np.int64, np.int8, np.float64])
QUICK = settings(max_examples=20, deadline=None)


def shapes(least: int = 0, most: int = 3, sizes: Any = None) -> Any:
    """Shapes with sizes 0 and 1 among them."""
    return st.lists(st.integers(0, 4) if sizes is None else sizes, min_size=least, max_size=most)


def cells(shape: Any, dtype: Any = np.float32) -> Any:
    """The cells counted from 1."""
    count: Any = np.prod(shape, dtype=int)
    numbers: Any = np.arange(1, count + 1, dtype=np.int64)
    return numbers.astype(dtype).reshape(tuple(shape))


def axis_of(rank: int) -> Any:
    return st.integers(-rank, rank - 1)


def axes_of(rank: int) -> Any:
    """Some axes, each counted from either end."""
    places = st.lists(st.integers(0, rank - 1), unique=True, max_size=rank) if rank else st.just([])
    return places.flatmap(
        lambda axes: st.tuples(*(st.sampled_from([axis, axis - rank]) for axis in axes)).map(list)
    )


def result(name: str, arrays: Any, start: int = 0, /, **parameters: Any) -> Any:
    """All results of an application, whose tensors start anywhere."""
    return list(run(name, arrays, parameters, "numpy", starts=(start, 1 - start)))


def same(got: Any, wanted: Any) -> None:
    """Equal in shape, dtype and every cell."""
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
