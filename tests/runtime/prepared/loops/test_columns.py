"""Columns of rows that are shorter than a vector, folded as one long row."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Folded, Graph
from tapestry.codegen.loops.graphs import FOLDS
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.loop import Loop
from tests.runtime.prepared.loops.test_folds import _NAIVE, KINDS, _values, _zero

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

COLUMNS = (2, 3, 4, 6, 8, 12, 16, 24)
ROWS = (1, 5, 33, 400, 1025)


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Few numbers are many; in how many columns those were that were folded."""
    found: list[int] = []
    written = loops.loop_text

    def kept(graph: Graph, layout: loops.Layout) -> str:
        found.append(layout.columns)
        return written(graph, layout)

    monkeypatch.setattr(loops, "_LONG", 1)
    monkeypatch.setattr(loops, "loop_text", kept)
    return found


@pytest.mark.parametrize("kind", ["float", "double", "i8", "i64"])
@pytest.mark.parametrize("primitive", sorted(FOLDS))
def test_every_fold_of_special_values(primitive: str, kind: str, columns: list[int]) -> None:
    if (kind in ("float", "double")) != primitive.endswith("f"):
        pytest.skip("no such fold")
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


def _fma(write: Writer, values: list[Value]) -> Value:
    return write.binary("fadd", write.binary("fmul", values[0], values[1]), values[2])


@pytest.mark.parametrize("shape", [(700, 8), (3, 50, 6), (2, 2, 41, 24)])
def test_rows_of_several_arrays_and_a_number(shape: tuple[int, ...], columns: list[int]) -> None:
    """Two folds of what is computed, of which one is of half a float."""
    random, axis = np.random.default_rng(0), len(shape) - 2
    x, y = (random.integers(-4, 5, shape).astype("f4") for _ in range(2))
    scale = np.full((1,) * len(shape), 2, "f4")
    cells = (Cell(_fma, (0, 2, 1), "float"),)
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
