"""Coordinates that loops keep in 32 bits while they fold: the same places are found."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute

import tapestry
from tapestry.algebra.monoids import builtin_monoid
from tapestry.codegen.loops.graphs import Graph, Merged
from tapestry.runtime.prepared.folds.halves import merging_of
from tapestry.runtime.prepared.loops import loop
from tapestry.runtime.prepared.loops.merging import compared_parts
from tapestry.runtime.prepared.tapes import sources


def _values(kind: str, length: int) -> np.ndarray:
    rng = np.random.default_rng(length)
    x = rng.integers(-50, 50, (3, length)).astype("f4")
    match kind:
        case "least":
            x[:] = -np.inf  # what an empty fold is, too
        case "missing":
            x[0, rng.integers(0, length, 3)] = np.nan
            x[1] = np.nan
        case "zeros":
            x[:] = np.where(x < 0, -0.0, 0.0)
        case _:
            pass
    return x


@pytest.mark.parametrize("kind", ["numbers", "least", "missing", "zeros"])
@pytest.mark.parametrize("kept", [1 << 20, 64])
@pytest.mark.parametrize("length", [1, 31, 1000, 1 << 17])
def test_the_first_of_the_greatest(
    kind: str, kept: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a row's coordinates are too many to keep, and parts count their own."""
    monkeypatch.setattr(sources, "_KEPT", kept)
    x = _values(kind, length)
    for name in ("argmax", "argmin"):
        for axis in (0, 1, None):
            given = tapestry.input("x", x.shape if axis is not None else (x.size,), "f32")
            found = tapestry.compile(getattr(given, name)(axis=axis or 0))
            array = x if axis is not None else x.ravel()
            wanted = getattr(array, name)(axis=axis or 0)
            for _ in range(2):  # the second time as it is known to lie
                np.testing.assert_array_equal(found(array), wanted)


def test_loops_know_that(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[Graph] = []
    text = loop.loop_text

    def noted(graph: Graph, layout: loop.Layout) -> str:
        graphs.append(graph)
        return text(graph, layout)

    monkeypatch.setattr(loop, "loop_text", noted)
    x = np.random.default_rng(0).normal(size=(300, 5000)).astype("f4")
    found = tapestry.compile(tapestry.input("x", x.shape, "f32").argmax(axis=1))
    np.testing.assert_array_equal(found(x), x.argmax(1))
    folds = [fold for graph in graphs for fold in graph.folds if isinstance(fold, Merged)]
    assert {fold.narrow for fold in folds} == {frozenset({1})}


@pytest.mark.parametrize(
    ("name", "state", "parts"),
    [
        ("argmax", (f32, i64), {1}),
        ("argmin", (i64, i64), {0, 1}),
        ("argmax", (f32, i32), set[int]()),
        ("add", (i64,), set[int]()),
    ],
)
def test_parts_that_are_compared_alone(
    name: str, state: tuple[Attribute, ...], parts: set[int]
) -> None:
    monoid = builtin_monoid(name, state)
    assert monoid is not None
    merging = merging_of(monoid)
    assert merging is not None
    assert compared_parts(merging) == parts
