"""What is taken row by row is what NumPy takes cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.runtime.arrays.taking import taken
from tapestry.runtime.executor import Array


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_indices(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tapestry.runtime.arrays.taking._EACH", data.draw(st.sampled_from([1, 4096])))
        _check_any_indices(data)


def _check_any_indices(data: st.DataObject) -> None:
    rank, axes = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    extents = [data.draw(st.integers(1, 4)) for _ in range(axes)]
    shape = [data.draw(st.integers(1, 5)) for _ in range(rank)]
    array = np.arange(np.prod(shape)).reshape(shape)
    if data.draw(st.booleans()):
        array = array.T.copy().T
    at: list[Array] = []
    for extent in shape:
        own = [n if data.draw(st.booleans()) else 1 for n in extents]
        count = int(np.prod(own))
        if count <= extent and data.draw(st.booleans()):
            line = data.draw(st.integers(0, extent - count)) + np.arange(count)
        else:
            line = np.array(
                data.draw(st.lists(st.integers(0, extent - 1), min_size=count, max_size=count))
            )
        at.append(line.astype(np.int64).reshape(own))
    np.testing.assert_array_equal(taken(array, at), array[tuple(at)])


class _Watched(np.ndarray):
    """An array that is not to be gone through cell by cell."""

    def __getitem__(self, at: object) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert isinstance(at, tuple)
        assert all(isinstance(one, slice) for one in at)  # pyright: ignore[reportUnknownVariableType]
        return super().__getitem__(at)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_taken_whole(axis: int) -> None:
    shape = (5, 6, 7)
    cells = np.arange(210).reshape(shape)
    order = np.roll(np.arange(shape[axis]), 2)
    at = [
        (order if n == axis else np.arange(extent)).reshape([-1 if m == n else 1 for m in range(3)])
        for n, extent in enumerate(shape)
    ]
    got = taken(cells.view(_Watched), at)
    np.testing.assert_array_equal(np.asarray(got), np.roll(cells, 2, axis))


def test_what_a_batch_shares_is_taken_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapestry.runtime.arrays.taking._EACH", 1)
    cells = np.arange(120).reshape(3, 4, 10)
    at = np.array([[9, 0, 3], [1, 1, 2], [5, 8, 7]]).reshape(3, 1, 3)
    batch, rows = np.arange(3).reshape(3, 1, 1), np.arange(4).reshape(1, 4, 1)
    got = taken(cells.view(_Watched), [batch, rows, at])
    np.testing.assert_array_equal(np.asarray(got), cells[batch, rows, at])
