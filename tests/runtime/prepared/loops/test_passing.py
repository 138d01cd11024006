"""What is written past the caches: the same cells, and no others, wherever they begin."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Graph
from tapestry.codegen.loops.graphs import Folded
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.loop import Loop

pytestmark = [
    pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here"),
    pytest.mark.skipif(not native.stores_past_caches(), reason="stores go to caches here"),
]

LENGTHS = (1, 2, 15, 31, 32, 33, 47, 64, 100, 1000)
KINDS = {"float": "f4", "double": "f8", "i8": "i1", "i64": "i8", "half": "f2", "i1": "?"}


@pytest.fixture(autouse=True)
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All results are as if no cache had them; the texts of what is compiled."""
    found: list[str] = []
    compiled = loops.compiled

    def kept(text: str, about: str = "") -> object:
        found.append(text)
        return compiled(text, about)

    monkeypatch.setattr(loops, "passes_caches", lambda _: True)
    monkeypatch.setattr(loops, "_PASSING", 0)
    monkeypatch.setattr(loops, "compiled", kept)
    return found


def _sum(kind: str) -> Cell:
    def emit(write: Writer, values: list[Value]) -> Value:
        if kind == "i1":
            return write.binary("or", *values)
        return write.binary("fadd" if kind in ("float", "double", "half") else "add", *values)

    return Cell(emit, (0, 1), kind)


def _room(shape: tuple[int, ...], dtype: str, before: int, pitch: int) -> tuple[Array, Array]:
    """Memory from a line's start, and an array in it, so many cells further, with longer rows."""
    size = np.dtype(dtype).itemsize
    rows = shape[0] if len(shape) > 1 else 1
    room = np.zeros((before + rows * (shape[-1] + pitch) + 200) * size + 64, np.uint8)
    room = room[-room.ctypes.data % 64 :]
    cells = room[: room.size // size * size].view(dtype)
    cells[:] = 77
    inside = cells[before:][: rows * (shape[-1] + pitch)]
    return cells, inside.reshape(rows, shape[-1] + pitch)[:, : shape[-1]].reshape(shape)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("before", [0, 1, 5, 63])
def test_rows_begin_anywhere(kind: str, before: int, texts: list[str]) -> None:
    random, dtype = np.random.default_rng(before), KINDS[kind]
    for length in LENGTHS:
        for shape, pitch in (((length,), 0), ((3, length), 1), ((4, length), 32)):
            x, y = (random.integers(-9, 9, shape).astype(dtype) for _ in range(2))
            cells, out = _room(shape, dtype, before, pitch)
            assert np.shares_memory(cells, out)
            untouched = cells.size - out.size
            Loop(Graph((kind, kind), (), (_sum(kind),), (2,)), shape)([x, y], [out])
            np.testing.assert_array_equal(out, x + y)
            if kind != "i1":  # of which all but 0 are alike
                assert (cells == 77).sum() - (out == 77).sum() == untouched
    past = ["!nontemporal !0\n" in text for text in texts]
    assert past.count(False) <= 3  # of one cell, or rows of one: nothing is along their last axis


def test_cells_at_odd_addresses_go_to_caches(texts: list[str]) -> None:
    """As before, and after others of the same strides did not."""
    loop, x = (
        Loop(Graph(("float", "float"), (), (_sum("float"),), (2,)), (100,)),
        np.ones(100, "f4"),
    )
    for odd in (0, 1, 0, 1):
        out = np.zeros(401, np.uint8)[odd : 400 + odd].view("f4")
        loop([x, x], [out])
        np.testing.assert_array_equal(out, 2)
    assert ["!nontemporal !0\n" in text for text in texts] == [True, False]


def test_what_is_written_over_an_operand(texts: list[str]) -> None:
    x, y = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    Loop(Graph(("float", "float"), (), (_sum("float"),), (2,)), (1000,))([x, y], [x])
    np.testing.assert_array_equal(x, np.arange(1, 1001))
    assert "!nontemporal !0\n" in texts[0]


def test_short_rows_go_to_caches(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """They would begin and end within lines; one after another, they are one long row."""
    monkeypatch.setattr(loops, "_PASSING", 1 << 10)
    for width, apart in ((255, 1), (256, 1), (255, 0)):
        x = np.ones((9, width + apart), "f4")[:, :width]
        loop = Loop(Graph(("float", "float"), (), (_sum("float"),), (2,)), x.shape)
        loop([x, x], [np.empty((9, width + apart), "f4")[:, :width]])
    assert ["!nontemporal !0\n" in text for text in texts] == [False, True, True]


@pytest.mark.parametrize("folded", [(0,), (1,)])
def test_what_is_folded_goes_to_caches(folded: tuple[int, ...], texts: list[str]) -> None:
    x = np.arange(600, dtype="f4").reshape(20, 30)
    graph = Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),))
    (found,) = Loop(graph, x.shape, folded)([x])
    np.testing.assert_array_equal(found, x.sum(folded, keepdims=True))
    assert "!nontemporal !0\n" not in texts[0]
