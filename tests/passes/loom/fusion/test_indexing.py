"""Tensors that are taken at places along one axis after another are read once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

import tapestry

X = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)


def _taken(axes: Sequence[int], count: int = 3) -> tapestry.Expression:
    """`x` taken at places `p0`, `p1` ..., one after another."""
    made = tapestry.input("x", X.shape)
    for number, axis in enumerate(axes):
        made = tapestry.take(made, tapestry.input(f"p{number}", (count,), "int64"), axis=axis)
    return made


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_one_operation_takes_along_several_axes(axes: tuple[int, ...]) -> None:
    made = _taken(axes)
    module = tapestry.compile(made).module.clone()
    tapestry.run_pipeline(module, "default")
    assert str(module).count("loom.operation @") == 1
    random, wanted, places = np.random.default_rng(0), X, {}
    for number, axis in enumerate(axes):
        own = random.integers(-X.shape[axis], X.shape[axis], 3)
        wanted, places[f"p{number}"] = np.take(wanted, own, axis=axis), own
    for on in ("numpy", "triton"):
        np.testing.assert_array_equal(tapestry.run(made, x=X, on=on, **places), wanted)


@pytest.mark.parametrize("on", ["numpy", "reference"])
@pytest.mark.parametrize("axis", range(3))
def test_a_place_outside_is_an_error_as_before(axis: int, on: str) -> None:
    places = {f"p{n}": np.array([0, 2, X.shape[n] if n == axis else 1]) for n in range(3)}
    with pytest.raises(tapestry.TapestryError, match=f"index {X.shape[axis]} is out of range"):
        tapestry.run(_taken([0, 1, 2]), x=X, on=on, **places)


@pytest.mark.parametrize("on", ["numpy", "reference", "triton"])
def test_of_one_row_no_other_is_there(on: str) -> None:
    x = tapestry.input("x", (7, 6))
    row = tapestry.take(x, tapestry.input("p", (1,), "int64"), axis=0)
    places = [tapestry.input(name, (3,), "int64") for name in ("f", "s")]
    made = tapestry.take_pairs(row, *places, axis=0)
    given = {"p": np.array([4]), "s": np.array([0, 5, 2])}
    table = np.arange(42, dtype=np.float32).reshape(7, 6)
    of_first = tapestry.run(made, x=table, f=np.array([0, 0, 0]), on=on, **given)
    np.testing.assert_array_equal(of_first, [table[4, [0, 5, 2]]] * 3)
    with pytest.raises(tapestry.TapestryError, match="out of range|outside"):
        tapestry.run(made, x=table, f=np.array([0, 5, 0]), on=on, **given)


def test_a_place_that_nobody_reads_is_no_error() -> None:
    """What is not read is not computed; each operation whole computes it, and says so."""
    given = {"p0": np.array([0, 99, 1]), "p1": np.array([0, 2, 0])}
    made = _taken([0, 0])
    np.testing.assert_array_equal(tapestry.run(made, x=X, on="numpy", **given), X[[0, 1, 0]])
    with pytest.raises(tapestry.TapestryError, match="index 99 is out of range"):
        tapestry.run(made, x=X, on="reference", **given)
