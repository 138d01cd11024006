"""Slices and what replaces them against NumPy, for any shapes, axes, starts and steps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError
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
ENDS = st.integers(-7, 7)


def along(axis: int, rank: int, place: Any) -> Any:
    return tuple(place if d == axis % rank else slice(None) for d in range(rank))


@QUICK
@given(DATA, shapes(1), DTYPES, STARTS, ENDS, ENDS, st.integers(1, 4))
def test_slice_and_slice_scatter(
    data: Any, shape: Any, dtype: Any, start: int, low: int, high: int, step: int
) -> None:
    axis = data.draw(axis_of(len(shape)))
    x, place = cells(shape, dtype), along(axis, len(shape), slice(low, high, step))
    parameters = {"start": low, "stop": high, "step": step, "axis": axis}
    (got,) = result("slice", [x], start, **parameters)
    same(got, x[place])
    source = (-x[place]).astype(dtype)
    wanted = x.copy()
    wanted[place] = source
    (scattered,) = result("slice_scatter", [x, source], start, **parameters)
    same(scattered, wanted)


@QUICK
@given(DATA, shapes(1, sizes=st.integers(1, 4)), DTYPES, STARTS)
def test_select_narrow_and_select_scatter(data: Any, shape: Any, dtype: Any, start: int) -> None:
    axis = data.draw(axis_of(len(shape)))
    n, x = shape[axis], cells(shape, dtype)
    index = data.draw(st.integers(-n, n - 1))
    place = along(axis, len(shape), index)
    (got,) = result("select", [x], start, index=index, axis=axis)
    same(got, x[place])
    wanted = x.copy()
    wanted[place] = 0
    (scattered,) = result(
        "select_scatter", [x, np.zeros_like(x[place])], start, index=index, axis=axis
    )
    same(scattered, wanted)
    length = data.draw(st.integers(0, n - index % n))
    (narrowed,) = result("narrow", [x], start, start=index, length=length, axis=axis)
    same(narrowed, x[along(axis, len(shape), slice(index % n, index % n + length))])


@QUICK
@given(DATA, shapes(2), DTYPES, st.integers(-5, 5))
def test_diagonal(data: Any, shape: Any, dtype: Any, offset: int) -> None:
    one, two = data.draw(st.permutations(range(len(shape))))[:2]
    x = cells(shape, dtype)
    (got,) = result("diagonal", [x], offset=offset, axis1=one, axis2=two - len(shape))
    same(got, np.diagonal(x, offset, one, two))


@QUICK
@given(shapes(2), DTYPES, st.integers(-2, 2))
def test_diagonal_scatter(shape: Any, dtype: Any, offset: int) -> None:
    x = cells(shape, dtype)
    source = np.diagonal(x, offset, -2, -1) * 0
    if source.shape[-1]:
        (got,) = result("diagonal_scatter", [x, source], offset=offset)
        want = x.copy()
        places = np.arange(source.shape[-1])
        want[..., places - min(offset, 0), places + max(offset, 0)] = 0
        same(got, want)


@QUICK
@given(shapes(2), DTYPES, st.integers(-5, 5))
def test_triangles(shape: Any, dtype: Any, k: int) -> None:
    x = cells(shape, dtype)
    same(result("tril", [x], k=k)[0], np.tril(x, k))
    same(result("triu", [x], k=k)[0], np.triu(x, k))


@QUICK
@given(DATA, shapes(1, sizes=st.integers(1, 5)), DTYPES, st.integers(1, 3))
def test_unfold(data: Any, shape: Any, dtype: Any, step: int) -> None:
    axis = data.draw(axis_of(len(shape)))
    size = data.draw(st.integers(1, shape[axis]))
    x = cells(shape, dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    (got,) = result("unfold", [x], size=size, step=step, axis=axis)
    same(got, windows[along(axis, len(shape) + 1, slice(None, None, step))] if axis >= 0 else
         windows[along(axis % len(shape), len(shape) + 1, slice(None, None, step))])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("slice", {"step": 0}),
        ("select", {"index": 3}),
        ("select", {"index": -4}),
        ("narrow", {"start": 2, "length": 2}),
        ("narrow", {"start": 0, "length": -1}),
        ("unfold", {"size": 4}),
        ("diagonal", {"axis1": 0, "axis2": -1}),
    ],
)
def test_what_is_not_there(name: str, parameters: Any) -> None:
    x = cells([3, 3] if name == "diagonal" else [3])
    parameters = {"axis1": 0, "axis2": 0} if name == "diagonal" else parameters
    with pytest.raises(WeftError) as caught:
        result(name, [x], **parameters)
    assert caught.value.kind == "requirement"
