"""Operators on lists of tensors against NumPy, for any shapes, axes and partitions."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.metakernels.library.shapes import (
    DTYPES,
    QUICK,
    axis_of,
    cells,
    result,
    same,
    shapes,
)

DATA = st.data()
STARTS = st.integers(-2, 2)


@QUICK
@given(DATA, shapes(1), DTYPES, STARTS)
def test_concat(data: Any, shape: Any, dtype: Any, start: int) -> None:
    axis = data.draw(axis_of(len(shape)))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    arrays: list[Any] = []
    for n in sizes:
        shape[axis] = n
        arrays.append(cells(shape, dtype))
    (got,) = result("concat", [arrays], start, axis=axis)
    same(got, np.concatenate(arrays, axis))


@QUICK
@given(DATA, shapes(), DTYPES, STARTS, st.integers(1, 4))
def test_stack_and_its_inverses(data: Any, shape: Any, dtype: Any, start: int, count: int) -> None:
    axis = data.draw(axis_of(len(shape) + 1))
    arrays = [(cells(shape) + 100 * k).astype(dtype) for k in range(count)]
    (got,) = result("stack", [arrays], start, axis=axis)
    same(got, np.stack(arrays, axis))
    for name in ("unbind", "unstack"):
        for one, other in zip(result(name, [got], start, axis=axis), arrays, strict=True):
            same(one, other)


@QUICK
@given(DATA, shapes(1), DTYPES, STARTS)
def test_split_and_chunk(data: Any, shape: Any, dtype: Any, start: int) -> None:
    x = cells(shape, dtype)
    axis, size = data.draw(axis_of(len(shape))), data.draw(st.integers(1, 5))
    n = shape[axis]
    cuts = list(range(size, n, size))
    for got, wanted in zip(
        result("split", [x], start, chunk=size, axis=axis), np.split(x, cuts, axis), strict=True
    ):
        same(got, wanted)
    pieces = result("chunk", [x], start, chunks=size, axis=axis)
    same(np.concatenate(pieces, axis), x)
    if n:
        assert len(pieces) <= size
        assert {piece.shape[axis] for piece in pieces[:-1]} <= {-(-n // size)}


@QUICK
@given(DATA, shapes(1), DTYPES, STARTS)
def test_split_with_sizes(data: Any, shape: Any, dtype: Any, start: int) -> None:
    axis = data.draw(axis_of(len(shape)))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    x = cells(shape, dtype)
    wanted = np.split(x, np.cumsum(sizes)[:-1].tolist(), axis)
    got = result("split_with_sizes", [x], start, sizes=sizes, axis=axis)
    for one, other in zip(got, wanted, strict=True):
        same(one, other)


@QUICK
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.sampled_from(["ij", "xy"]), STARTS)
def test_meshgrid(sizes: Any, indexing: Any, start: int) -> None:
    vectors = [cells([n], np.float32) * (k + 1) for k, n in enumerate(sizes)]
    got = result("meshgrid", [vectors], start, indexing=indexing)
    for one, other in zip(got, np.meshgrid(*vectors, indexing=indexing), strict=True):
        same(one, other)


@QUICK
@given(DATA, shapes(1), DTYPES, st.integers(1, 3))
def test_interleave(data: Any, shape: Any, dtype: Any, count: int) -> None:
    axis = data.draw(axis_of(len(shape)))
    arrays = [(cells(shape) + 50 * k).astype(dtype) for k in range(count)]
    (got,) = result("interleave", [arrays], axis=axis)
    wanted = list(shape)
    wanted[axis] *= count
    same(got, np.stack(arrays, axis % len(shape) + 1).reshape(wanted))
