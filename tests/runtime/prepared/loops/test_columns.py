"""Rows that are shorter than a vector, gone along as one long row, whose columns may be folded."""

from __future__ import annotations

from functools import reduce

import ml_dtypes
import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Folded, Graph
from tapestry.codegen.loops.graphs import FOLDS, Merged
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.loop import Loop
from tests.runtime.prepared.loops.layouts import noted
from tests.runtime.prepared.loops.test_folds import _NAIVE, KINDS, _values, _zero
from tests.runtime.prepared.teams import OneByOne

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

COLUMNS = (2, 3, 4, 6, 8, 12, 16, 24)
ROWS = (1, 5, 33, 400, 1025)


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Few numbers are many; in how many columns those were that were folded."""
    return noted(monkeypatch, lambda layout: layout.columns)


_KINDS = {True: ("float", "double"), False: ("i8", "i64")}
"""Of folds of floats, and of others."""


@pytest.mark.parametrize(
    ("primitive", "kind"),
    [(fold, kind) for fold in sorted(FOLDS) for kind in _KINDS[fold.endswith("f")]],
)
def test_every_fold_of_special_values(primitive: str, kind: str, columns: list[int]) -> None:
    zero = _zero(primitive, np.dtype(KINDS[kind]))
    graph = Graph((kind,), (), (), (), (Folded(0, primitive, zero),))
    for width in COLUMNS:
        for rows in ROWS:
            x = _values(kind, primitive, (rows, width), width + rows)
            (found,) = Loop(graph, x.shape, (0,))([x])
            with np.errstate(all="ignore"):
                want = reduce(_NAIVE[primitive], x)
            np.testing.assert_array_equal(found[0], want)
    assert [one for one in columns if one > 1] == [n for n in COLUMNS for _ in ROWS[1:]]


def _scaled(write: Writer, values: list[Value]) -> Value:
    return write.binary("fadd", write.binary("fmul", values[0], values[1]), values[2])


def _pair(write: Writer, left: list[Value], right: list[Value]) -> list[Value]:
    """Of sums and products: (a, p), (b, q) -> (a + b, p + q + a b)."""
    (a, p), (b, q) = left, right
    product = write.binary("fmul", a, b)
    total = write.binary("fadd", write.binary("fadd", p, q), product)
    return [write.binary("fadd", a, b), total]


@pytest.mark.parametrize("width", COLUMNS)
def test_states_are_merged_and_nothing_is_written_beside(width: int, columns: list[int]) -> None:
    """Sums, and those of products of different cells; of each column."""
    x = np.random.default_rng(0).integers(-2, 3, (300, width)).astype("f4")
    fold = Merged((0, 1), _pair, (0.0, 0.0))
    graph = Graph(("float", "float"), (), (), (), (fold,))
    memory = np.full((2, 2, 64), 77, "f4")
    outs = [one[:, :width][:1] for one in memory]
    Loop(graph, x.shape, (0,))([x, np.zeros((1, 1), "f4")], outs)
    total, products = (one[0] for one in outs)
    np.testing.assert_array_equal(total, x.sum(0))
    np.testing.assert_array_equal(products, (x.sum(0) ** 2 - (x * x).sum(0)) / 2)
    assert (memory[:, 0, width:] == 77).all()
    assert (memory[:, 1] == 77).all()
    assert columns == [width]


def _all(write: Writer, values: list[Value]) -> Value:
    """x * g + b - s"""
    scaled = write.binary("fadd", write.binary("fmul", values[0], values[1]), values[2])
    return write.binary("fsub", scaled, values[3])


TYPES = {"float": np.float32, "half": np.float16, "bfloat": ml_dtypes.bfloat16, "double": "f8"}


@pytest.mark.parametrize("team", [None, OneByOne(3)], ids=["one", "three"])
@pytest.mark.parametrize("kind", TYPES)
def test_what_columns_or_rows_have_in_common(
    kind: str, team: OneByOne | None, columns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "SHARE", 1)
    random, dtype = np.random.default_rng(0), np.dtype(TYPES[kind])
    for width in (2, 3, 5, 8, 10, 12, 16, 24, 30):
        for shape in ((1, width), (7, width), (33, width), (200, width), (3, 41, width)):
            row, one = (*shape[:-1], 1), (1,) * len(shape)
            column = (*one[:-1], width)
            x, g, b, s = (
                random.integers(-4, 5, n).astype(dtype) for n in (shape, row, column, one)
            )
            held = "float" if kind in ("half", "bfloat") else kind
            graph = Graph((kind,) * 4, (), (Cell(_all, (0, 1, 2, 3), held),), (4,))
            room = np.full(x.size + 64, 77, held.replace("float", "f4").replace("double", "f8"))
            out = room[: x.size].reshape(shape)
            Loop(graph, shape, team=team)([x, g, b, s], [out])
            np.testing.assert_array_equal(out, (x * g + b - s).astype(out.dtype))
            assert (room[x.size :] == 77).all()
    assert set(columns) == {1, 2, 3, 5, 8, 10, 12, 16, 24, 30}
    assert columns.count(1) <= len(columns) // 3  # one row, and of few rows the long axis
    assert team is None or team.rows > len(columns)


def test_what_is_computed_of_columns_or_rows_alone(columns: list[int]) -> None:
    """It is as often as there are of these: of whole numbers, and written to two places."""

    def negated(write: Writer, values: list[Value]) -> Value:
        return write.binary("sub", write.number(0, "i32"), values[0])

    def times(write: Writer, values: list[Value]) -> Value:
        return write.binary("mul", *values)

    cells = (
        Cell(negated, (1,), "i32"),  # 3: of rows
        Cell(times, (2, 2), "i32"),  # 4: of columns
        Cell(times, (3, 4), "i32"),  # 5: of both
        Cell(times, (5, 0), "i32"),
    )
    for width in (3, 8, 10):
        x = np.arange(40 * width, dtype="i4").reshape(40, width)
        g, b = np.arange(40, dtype="i4")[:, None], np.arange(width, dtype="i4")[None]
        both, found = Loop(Graph(("i32",) * 3, (), cells, (5, 6)), x.shape)([x, g, b])
        np.testing.assert_array_equal(both, -g * b * b)
        np.testing.assert_array_equal(found, -g * b * b * x)
    assert columns == [3, 8, 10]


def test_what_is_written_over_the_rows_themselves(columns: list[int]) -> None:
    x = np.arange(700, dtype="f4").reshape(100, 7)
    g = np.arange(100, dtype="f4")[:, None]
    want = x * g + g
    Loop(Graph(("float",) * 2, (), (Cell(_scaled, (0, 1, 1), "float"),), (2,)), x.shape)(
        [x, g], [x]
    )
    np.testing.assert_array_equal(x, want)
    assert columns == [7]


@pytest.mark.parametrize("shape", [(700, 8), (3, 50, 6), (2, 2, 41, 24)])
def test_rows_of_several_arrays_and_a_number(shape: tuple[int, ...], columns: list[int]) -> None:
    """Two folds: of what is computed, and of what is read."""
    random, axis = np.random.default_rng(0), len(shape) - 2
    x, y = (random.integers(-4, 5, shape).astype("f4") for _ in range(2))
    scale = np.full((1,) * len(shape), 2, "f4")
    cells = (Cell(_scaled, (0, 2, 1), "float"),)
    folds = (Folded(3, "arith.addf", 0.0), Folded(1, "arith.maximumf", -np.inf))
    total, largest = Loop(Graph(("float",) * 3, (), cells, (), folds), shape, (axis,))(
        [x, y, scale]
    )
    np.testing.assert_array_equal(total, (2 * x + y).sum(axis, keepdims=True))
    np.testing.assert_array_equal(largest, y.max(axis, keepdims=True))
    assert columns == [shape[-1]]


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x[:, ::2],  # cells are apart
        lambda x: x[::2],  # rows are
        lambda x: x[:, :5],  # and they begin nowhere again soon
        lambda x: np.broadcast_to(x[:1], x.shape),  # all are one
    ],
)
def test_other_rows_are_folded_one_by_one(cut: object, columns: list[int]) -> None:
    x = cut(np.arange(800, dtype="f4").reshape(100, 8))
    graph = Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),))
    (found,) = Loop(graph, x.shape, (0,))([x])
    np.testing.assert_array_equal(found[0], x.sum(0))
    assert columns == [1]


def test_sums_of_many_floats_lose_little(columns: list[int]) -> None:
    x = np.random.default_rng(0).random((1 << 20, 3), np.float32)
    graph = Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),))
    (found,) = Loop(graph, x.shape, (0,))([x])
    np.testing.assert_allclose(found[0], x.sum(0, dtype=np.float64), rtol=3e-7)
    assert columns == [3]
