"""Rearranged cells and created tensors against NumPy, for any shapes and axes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError
from tests.metakernels.library.shapes import (
    DTYPES,
    QUICK,
    axes_of,
    axis_of,
    cells,
    result,
    same,
    shapes,
)

DATA = st.data()
STARTS = st.integers(-2, 2)


@QUICK
@given(DATA, shapes(), DTYPES, STARTS)
def test_orders_of_axes(data: Any, shape: Any, dtype: Any, start: int) -> None:
    rank, x = len(shape), cells(shape, dtype)
    order = data.draw(st.permutations(range(rank)))
    dims = [data.draw(st.sampled_from([axis, axis - rank])) for axis in order]
    same(result("permute", [x], start, dims=dims)[0], np.transpose(x, order))
    source = data.draw(axes_of(rank))
    target = data.draw(st.permutations(range(rank)))[: len(source)]
    (moved,) = result("movedim", [x], start, source=source, destination=target)
    same(moved, np.moveaxis(x, source, target))
    if rank:
        one, two = data.draw(axis_of(rank)), data.draw(axis_of(rank))
        same(result("swapaxes", [x], start, axis1=one, axis2=two)[0], np.swapaxes(x, one, two))


@QUICK
@given(DATA, shapes(), DTYPES, STARTS)
def test_flip_and_roll(data: Any, shape: Any, dtype: Any, start: int) -> None:
    x, axes = cells(shape, dtype), data.draw(axes_of(len(shape)))
    same(result("flip", [x], start, axes=axes)[0], np.flip(x, axes))
    shifts = [data.draw(st.integers(-7, 7)) for _ in axes]
    (rolled,) = result("roll", [x], start, shifts=shifts, axes=axes)
    same(rolled, np.roll(x, shifts, axes) if axes else x)


@QUICK
@given(DATA, shapes(sizes=st.integers(0, 3)), DTYPES, STARTS)
def test_copies(data: Any, shape: Any, dtype: Any, start: int) -> None:
    x = cells(shape, dtype)
    repeats = data.draw(st.lists(st.integers(0, 3), max_size=4))
    same(result("tile", [x], start, repeats=repeats)[0], np.tile(x, repeats))
    if len(repeats) >= len(shape):
        same(result("repeat", [x], start, repeats=repeats)[0], np.tile(x, repeats))
    if shape:
        axis, times = data.draw(axis_of(len(shape))), data.draw(st.integers(0, 3))
        (got,) = result("repeat_interleave", [x], start, repeats=times, axis=axis)
        same(got, np.repeat(x, times, axis))


@QUICK
@given(DATA, shapes(sizes=st.sampled_from([0, 1, 1, 2, 3])), DTYPES, STARTS)
def test_axes_of_size_one(data: Any, shape: Any, dtype: Any, start: int) -> None:
    x, rank = cells(shape, dtype), len(shape)
    same(result("squeeze", [x], start)[0], np.squeeze(x))
    axes = [axis for axis in data.draw(axes_of(rank)) if shape[axis] == 1]
    if axes:
        same(result("squeeze", [x], start, axes=axes)[0], np.squeeze(x, tuple(axes)))
    places = [*data.draw(st.lists(st.integers(0, rank), unique=True, max_size=1)), -1]
    if rank + len(places) - 1 not in places:
        (got,) = result("unsqueeze", [x], start, axes=places)
        same(got, np.expand_dims(x, tuple(places)))
    wide = data.draw(st.lists(st.integers(1, 3), max_size=2)) + [
        data.draw(st.integers(1, 3)) if size == 1 else size for size in shape
    ]
    same(result("broadcast_to", [x], start, shape=wide)[0], np.broadcast_to(x, wide))
    kept = [-1 if data.draw(st.booleans()) and d >= len(wide) - rank else size
            for d, size in enumerate(wide)]  # fmt: skip
    full = [x.shape[d - len(wide)] if size == -1 else size for d, size in enumerate(kept)]
    same(result("expand", [x], start, shape=kept)[0], np.broadcast_to(x, full))


@QUICK
@given(DATA, shapes(), DTYPES)
def test_flatten_and_unflatten(data: Any, shape: Any, dtype: Any) -> None:
    x, rank = cells(shape, dtype), max(len(shape), 1)
    low = data.draw(st.integers(0, rank - 1))
    high = data.draw(st.integers(low, rank - 1))
    (got,) = result("flatten", [x], start=low, end=high - rank)
    sizes = shape or [1]
    middle = sizes[low : high + 1]
    same(got, x.reshape([*sizes[:low], int(np.prod(middle)), *sizes[high + 1 :]]))
    (back,) = result("unflatten", [got], axis=low, sizes=middle)
    same(back, x.reshape(sizes))


@QUICK
@given(shapes(most=1), st.integers(1, 2), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3))
def test_pixel_shuffle(batch: Any, c: int, h: int, w: int, f: int) -> None:
    x = cells([*batch, c * f * f, h, w])
    b = len(batch)
    order = [*range(b), b, b + 3, b + 1, b + 4, b + 2]
    wanted = x.reshape(*batch, c, f, f, h, w).transpose(order).reshape(*batch, c, h * f, w * f)
    (got,) = result("pixel_shuffle", [x], factor=f)
    same(got, wanted)
    same(result("pixel_unshuffle", [got], factor=f)[0], x)


@QUICK
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_arange(start: int, stop: int, step: int) -> None:
    (got,) = result("arange", [], start=start, stop=stop, step=step)
    same(got, np.arange(start, stop, step))


@QUICK
@given(st.floats(-8, 8, width=16), st.floats(-8, 8, width=16), st.integers(0, 7))
def test_linspace(start: float, stop: float, count: int) -> None:
    (got,) = result("linspace", [], start=start, stop=stop, count=count, dtype="f64")
    np.testing.assert_allclose(got, np.linspace(start, stop, count), rtol=1e-12, atol=1e-12)
    if count > 1:
        assert (got[0], got[-1]) == (start, stop)


@QUICK
@given(st.integers(0, 4), st.integers(0, 4), st.integers(-4, 4))
def test_eye(rows: int, cols: int, k: int) -> None:
    same(result("eye", [], rows=rows, cols=cols, k=k, dtype="i32")[0],
         np.eye(rows, cols, k, np.int32))  # fmt: skip


@QUICK
@given(shapes(), st.sampled_from([np.float32, np.int8, ml_dtypes.bfloat16]))
def test_values(shape: Any, dtype: Any) -> None:
    x = cells(shape, dtype)
    same(result("full_like", [x], value=3)[0], np.full_like(x, 3))
    same(result("zeros_like", [x])[0], np.zeros_like(x))
    same(result("ones_like", [x])[0], np.ones_like(x))
    same(result("full", [], shape=shape, value=2.5)[0], np.full(shape, 2.5, np.float32))
    same(result("zeros", [], shape=shape, dtype="i64")[0], np.zeros(shape, np.int64))
    same(result("ones", [], shape=shape, dtype="f16")[0], np.ones(shape, np.float16))
    same(result("clone", [x])[0], x)


@QUICK
@given(st.lists(st.integers(-2, 5), max_size=5), st.integers(1, 4))
def test_one_hot(ids: Any, classes: int) -> None:
    x = np.array(ids, np.int32)
    wanted = (x[:, None] == np.arange(classes)).astype(np.int64)
    same(result("one_hot", [x], classes=classes)[0], wanted)


@pytest.mark.parametrize(
    ("name", "parameters", "kind"),
    [
        ("permute", {"dims": [0]}, "requirement"),
        ("permute", {"dims": [0, 0]}, "parameter"),
        ("movedim", {"source": [0], "destination": [0, 1]}, "requirement"),
        ("flip", {"axes": [2]}, "parameter"),
        ("roll", {"shifts": [1, 2], "axes": [0]}, "requirement"),
        ("repeat", {"repeats": [2]}, "requirement"),
        ("tile", {"repeats": [-1]}, "requirement"),
        ("expand", {"shape": [3]}, "requirement"),
        ("expand", {"shape": [3, 5]}, "broadcast_mismatch"),
        ("broadcast_to", {"shape": [5, 3]}, "broadcast_mismatch"),
        ("unsqueeze", {"axes": [3]}, "parameter"),
        ("flatten", {"start": 1, "end": 0}, "requirement"),
        ("unflatten", {"axis": 0, "sizes": [4]}, "size_mismatch"),
        ("pixel_shuffle", {"factor": 2}, "rank_mismatch"),
    ],
)
def test_refusals(name: str, parameters: Any, kind: str) -> None:
    with pytest.raises(WeftError) as caught:
        result(name, [cells([2, 3])], **parameters)
    assert caught.value.kind == kind, caught.value
