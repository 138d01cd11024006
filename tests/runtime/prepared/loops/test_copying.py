"""Arrays whose neighbours lie across the last axis: copies of them, and loops that read them."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike

from tapestry.codegen.loops import Cell, Folded, Graph
from tapestry.codegen.loops.transposing import ROWS
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.arrays.matrices import as_matrix
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops import copying
from tapestry.runtime.prepared.loops.copying import (
    copy_to,
    in_rows,
    ordered_by,
    reshaped,
    traced_view,
)
from tapestry.runtime.prepared.loops.loop import Loop

compiled = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

SIZES = (8, 15, 31, 32, 33, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 17)


def _numbers(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a few cells count as large."""
    monkeypatch.setattr(copying, "_LARGE", 1)


@compiled
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("rows", SIZES)
def test_copies_of_any_extents(rows: int, columns: int) -> None:
    for dtype in (np.int8, np.float16, np.float32, np.float64):
        turned = _numbers((columns, rows), dtype).T
        made = in_rows(turned)
        assert made.flags.c_contiguous
        assert not np.shares_memory(made, turned)
        np.testing.assert_array_equal(made, turned)


@compiled
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_copies_of_any_order_of_axes_and_gaps_between_them(order: tuple[int, ...]) -> None:
    for dtype in (bool, np.uint16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int64):
        whole = _numbers((20, 40, 70), dtype)
        for part in (whole, whole[1:, ::2, 3:], whole[::-1, ::-1]):
            np.testing.assert_array_equal(in_rows(part.transpose(order)), part.transpose(order))


@compiled
@pytest.mark.usefixtures("small")
def test_a_shape_that_a_view_has_is_a_view() -> None:
    turned = _numbers((40, 64), np.float32).T
    assert np.shares_memory(reshaped((8, 8, 40), turned), turned)
    flat = reshaped((64 * 40,), turned)
    assert not np.shares_memory(flat, turned)
    np.testing.assert_array_equal(flat, turned.reshape(-1))


def test_copies_are_known_by_their_cells_in_order() -> None:
    array = _numbers((6, 5, 8), np.float32)
    matrix = partial(as_matrix, (1, 0, 2), (5, 6, 8), (1, 2), None)
    for function in (matrix, partial(reshaped, (16, 15)), partial(reshaped, (-1,))):
        for given in (array, array.T.copy().T, array[::-1]):
            ordered = ordered_by(function, given)
            assert ordered is not None
            assert np.shares_memory(ordered.cells, given)
            np.testing.assert_array_equal(ordered.of(ordered.cells.copy()), function(given))
    assert ordered_by(matrix, array.astype(np.float16)) is None  # which is made wider
    assert ordered_by(np.ravel, array) is None


def test_other_arrays_are_as_they_are() -> None:
    array = np.zeros((1024, 1024), np.float32)
    for same in (array, array.T[:8], array[:, :1].T, np.zeros((4, 4)).T, array[:0].T):
        assert in_rows(same) is same


@compiled
def test_rows_that_are_short_are_copied_along_what_is_long() -> None:
    tiles = _numbers((8, 16, 2, 2, 32, 32), np.float32).transpose(0, 1, 4, 2, 5, 3)
    for apart in (tiles, _numbers((1024, 1024), np.float32)[:, ::2]):
        made = in_rows(apart)
        assert made.flags.c_contiguous
        np.testing.assert_array_equal(made, apart)


@compiled
@pytest.mark.usefixtures("small")
def test_what_is_written_to_may_lie_in_any_way() -> None:
    for dtype in (bool, np.float16, np.complex64, np.complex128, ml_dtypes.bfloat16):
        array = _numbers((6, 40, 9), dtype)
        whole = np.zeros((9, 50, 12), dtype)
        for place in (whole[:, 5:45, ::2].T, whole[::-1, 3:43, :6].T, whole.T[:6, :40]):
            for one in (array, np.asfortranarray(array), np.broadcast_to(array[:1], array.shape)):
                copy_to(place, one)
                np.testing.assert_array_equal(place, one)


def test_where_nothing_is_compiled_numpy_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = _numbers((1024, 1024), np.float32).T
    monkeypatch.setenv(native.SWITCH, "0")
    assert in_rows(turned) is turned
    np.testing.assert_array_equal(reshaped((-1,), turned), turned.reshape(-1))


def _emit(operation: str):
    def emit(write: Writer, values: list[Value]) -> Value:
        return write.binary(operation, *values)

    return emit


@compiled
@pytest.mark.parametrize("folded", [(), (0,), (1,), (0, 1)])
def test_loops_that_read_some_arrays_across(folded: tuple[int, ...]) -> None:
    """A product of two, one of them across, is kept, or summed along either axis or both."""
    cell = Cell(_emit("fmul"), (0, 1), "float")
    folds = (Folded(2, "arith.addf", 0.0),) if folded else ()
    graph = Graph(("float", "float"), (), (cell,), () if folded else (2,), folds)
    for shape in ((100, 70), (3, 90), (200, 9)):
        loop = Loop(graph, shape, folded)
        x, y = _numbers(shape, np.float32), _numbers(shape[::-1], np.float32).T
        wanted = x * y
        if folded:
            wanted = wanted.sum(folded, keepdims=True)
        for pair in ((x, y), (y, x)):
            (made,) = loop(pair)
            np.testing.assert_array_equal(made, wanted)


@compiled
def test_loops_over_three_axes_with_what_is_the_same_along_some() -> None:
    """The axis that neighbours lie along need not be beside the last one."""
    cells = (Cell(_emit("fadd"), (0, 1), "float"), Cell(_emit("fmul"), (3, 2), "float"))
    loop = Loop(Graph(("float", "float", "float"), (), cells, (4,)), (70, 5, 40))
    x = _numbers((40, 5, 70), np.float32).transpose(2, 1, 0)
    row, column = _numbers((70, 1, 1), np.float32), _numbers((1, 1, 40), np.float32)
    (made,) = loop([x, row, column])
    np.testing.assert_array_equal(made, (x + row) * column)
    crossed = _numbers((5, 40, 70), np.float32).transpose(2, 0, 1)
    (made,) = loop([crossed, row, column])
    np.testing.assert_array_equal(made, (crossed + row) * column)


@compiled
def test_what_threads_share_is_not_copied_within_a_program() -> None:
    for rows, is_traced in ((1 << 11, True), (1 << 12, False)):
        array = np.zeros((rows, 64), np.float32).T
        assert (traced_view(partial(reshaped, (rows, 64)), array) is not None) == is_traced
    assert traced_view(np.transpose, np.zeros((4, 4))) is None
