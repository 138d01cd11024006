"""Rows of few cells that are folded, as many at once as a vector has elements."""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Folded, Graph
from tapestry.codegen.loops.graphs import FOLDS, Merged
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.loop import Loop
from tests.runtime.prepared.loops.layouts import noted
from tests.runtime.prepared.loops.test_columns import TYPES
from tests.runtime.prepared.loops.test_folds import _NAIVE, KINDS, _values, _zero
from tests.runtime.prepared.teams import OneByOne

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

COLUMNS = (2, 3, 5, 8, 10, 16, 31)
ROWS = (1, 31, 32, 33, 201)


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Few numbers are many; of how many columns the rows were, 1 where they were not at once."""
    return noted(monkeypatch, lambda layout: layout.columns if layout.by_rows else 1)


_KINDS = {True: ("float", "double", "half"), False: ("i8", "i64")}
"""Of folds of floats, and of others."""


@pytest.mark.parametrize(
    ("primitive", "kind"),
    [(fold, kind) for fold in sorted(FOLDS) for kind in _KINDS[fold.endswith("f")]],
)
def test_every_fold_of_special_values(primitive: str, kind: str, columns: list[int]) -> None:
    dtype = np.dtype(np.float16 if kind == "half" else KINDS[kind])
    zero = _zero(primitive, dtype)
    graph = Graph((kind,), (), (), (), (Folded(0, primitive, zero),))
    for width in COLUMNS:
        for rows in ROWS:
            x = _values("float" if kind == "half" else kind, primitive, (rows, width), width + rows)
            x = x.astype(dtype)
            (found,) = Loop(graph, x.shape, (1,))([x])
            with np.errstate(all="ignore"):
                want = reduce(_NAIVE[primitive], x.astype(found.dtype).T)
            np.testing.assert_array_equal(found[:, 0], want)
            some = np.flatnonzero(want == want)  # signs of what is no number are any
            signs = (np.signbit(one[some]) for one in (found[:, 0], want))
            np.testing.assert_array_equal(*signs)
    assert [one for one in columns if one > 1] == [n for n in COLUMNS for _ in ROWS[1:]]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_sums_of_negative_zeros_start_from_zero(kind: str, columns: list[int]) -> None:
    graph = Graph((kind,), (), (), (), (Folded(0, "arith.addf", 0.0),))
    for width in (*COLUMNS, 7):
        (found,) = Loop(graph, (40, width), (1,))([np.full((40, width), -0.0, TYPES[kind])])
        assert not np.signbit(found).any()
    assert columns == [*COLUMNS, 7]


def _affine(write: Writer, values: list[Value]) -> Value:
    """x * g - s"""
    return write.binary("fsub", write.binary("fmul", values[0], values[1]), values[2])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_what_is_written_and_folded(
    kind: str, threads: int, columns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of cells, of a number for each column, and of one for each row; nothing is written beside."""
    monkeypatch.setattr(loops, "SHARE", 1)
    team = OneByOne(threads) if threads > 1 else None
    random, dtype = np.random.default_rng(0), np.dtype(TYPES[kind])
    held = "float" if kind in ("half", "bfloat") else kind
    wide = np.dtype(np.float64 if held == "double" else np.float32)
    folds = (Folded(3, "arith.addf", 0.0), Folded(0, "arith.maximumf", -np.inf))
    graph = Graph((kind,) * 3, (), (Cell(_affine, (0, 1, 2), held),), (3,), folds)
    for width in COLUMNS:
        for shape in ((7, width), (32, width), (200, width), (3, 41, width)):
            column, row = (*(1 for _ in shape[1:]), width), (*shape[:-1], 1)
            x, g, s = (random.integers(-4, 5, n).astype(dtype) for n in (shape, column, row))
            want = x.astype(wide) * g.astype(wide) - s.astype(wide)
            largest = x.max(-1, keepdims=True)
            room = [np.full(x.size + 64, 77, own) for own in (wide, wide, dtype)]
            outs = [
                own[: prod(n)].reshape(n) for own, n in zip(room, (shape, row, row), strict=True)
            ]
            Loop(graph, shape, (len(shape) - 1,), team=team)([x, g, s], outs)
            for out, own in zip(outs, (want, want.sum(-1, keepdims=True), largest), strict=True):
                np.testing.assert_array_equal(out, own)
            for out, own in zip(outs, room, strict=True):
                assert (own[out.size :] == 77).all()
    assert {*columns} == {1, *COLUMNS} - {31}  # which would be many instructions
    assert team is None or team.rows > len(columns)


def _pair(write: Writer, left: list[Value], right: list[Value]) -> list[Value]:
    """Of sums and products: (a, p), (b, q) -> (a + b, p + q + a b)."""
    (a, p), (b, q) = left, right
    product = write.binary("fmul", a, b)
    total = write.binary("fadd", write.binary("fadd", p, q), product)
    return [write.binary("fadd", a, b), total]


@pytest.mark.parametrize("width", COLUMNS)
def test_states_are_merged(width: int, columns: list[int]) -> None:
    """Sums, and those of products of different cells; rows along an axis that is not next to it."""
    x = np.random.default_rng(0).integers(-2, 3, (3, 70, width)).astype("f4")
    graph = Graph(("float", "float"), (), (), (), (Merged((0, 1), _pair, (0.0, 0.0)),))
    for given in (x, np.concatenate([x, x], 1)[:, :70]):
        total, products = Loop(graph, x.shape, (2,))([given, np.zeros((1, 1, 1), "f4")])
        sums = x.sum(-1, keepdims=True)
        np.testing.assert_array_equal(total, sums)
        np.testing.assert_array_equal(products, (sums**2 - (x * x).sum(-1, keepdims=True)) / 2)
    assert columns == [width, width]


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x[:, ::2],  # cells are apart
        lambda x: x[::2],  # rows are
        lambda x: x.reshape(25, 32),  # they are as long as a vector
    ],
)
def test_other_rows_are_folded_one_by_one(cut: object, columns: list[int]) -> None:
    x = cut(np.arange(800, dtype="f4").reshape(100, 8))
    graph = Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),))
    (found,) = Loop(graph, x.shape, (1,))([x])
    np.testing.assert_array_equal(found[:, 0], x.sum(1))
    assert columns == [1]


def test_truth_values_are_folded_one_by_one(columns: list[int]) -> None:
    x = np.random.default_rng(0).random((100, 3)) < 0.5
    graph = Graph(("i1",), (), (), (), (Folded(0, "arith.andi", 1),))
    (found,) = Loop(graph, x.shape, (1,))([x])
    np.testing.assert_array_equal(found[:, 0], x.all(1))
    assert columns == [1]


def test_sums_do_not_depend_on_which_rows_are_beside(columns: list[int]) -> None:
    x = np.random.default_rng(0).standard_normal((100, 11), np.float32)
    graph = Graph(("float",), (), (), (), (Folded(0, "arith.addf", 0.0),))
    (every,) = Loop(graph, x.shape, (1,))([x])
    for start in (1, 32, 67):
        own = x[start:]
        (found,) = Loop(graph, own.shape, (1,))([own])
        np.testing.assert_array_equal(found, every[start:])
    assert columns == [11] * 4
