"""Expressions as users of NumPy write them: methods, its own functions, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapestry

X = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
ROWS = np.array([[0, 2], [1, 1]])

Program = Callable[[Any], Any]

METHODS: dict[str, Program] = {
    "sizes": lambda x: x.reshape(4, 3),
    "a size that is left": lambda x: x.reshape(2, -1),
    "one axis": lambda x: x.reshape(-1),
    "axes in reverse": lambda x: x.transpose(),
    "axes in order": lambda x: x.reshape(1, 3, 4).transpose(0, -1, 1),
    "another dtype": lambda x: x.astype(np.int32),
    "a dtype of Python": lambda x: x.astype(bool),
    "bounds": lambda x: x.clip(-0.5, 0.5),
    "a lower bound": lambda x: x.clip(0),
    "kept axes": lambda x: x.sum(axis=-1, keepdims=True),
    "no axis": lambda x: x.mean(axis=None),
    "the place of the greatest": lambda x: x.argmax(),
    "a sample": lambda x: x.std(axis=1, ddof=1),
    "product": lambda x: x.dot(x.T),
    "quotient and remainder": lambda x: divmod(x, 0.3)[1],
    "places by rows": lambda x: x[ROWS],
    "places by columns": lambda x: x[:, ROWS],
    "known truth values": lambda x: x[np.array([True, False, True])],
    "order": lambda x: x.argsort(axis=0),
    "places in pairs": lambda x: x[[0, 2, -1], [1, -4, 3]],
    "places in a grid": lambda x: x[np.ix_([0, 2], [3, 1, 0])],
    "places beside a number": lambda x: x[None][0, [2, 0]],
    "no places": lambda x: x[[]],
    "taken of all cells": lambda x: x.take([5, -1]),
    "taken along an axis": lambda x: x.take([2, 0], axis=1),
    "each cell again": lambda x: x.repeat(2),
    "each row again": lambda x: x.repeat(2, axis=0),
    "sums of truths": lambda x: (x > 0) + (x < -1) * (x < 2),
    "extrema of truths": lambda x: np.maximum(x > 1, x < -1) == np.minimum(x < 2, x != 0),
    "truths in order": lambda x: np.sort(x > 0, axis=1),
    "places of truths in order": lambda x: (x > 0).argsort(axis=1),
    "rounded": lambda x: round(x, 1) if not isinstance(x, np.ndarray) else x.round(1),
}

COMPOSITES: dict[str, Program] = {
    "median": np.median,
    "median of an even number": lambda x: np.median(x, axis=1, keepdims=True),
    "median beside NaN": lambda x: np.median(np.sqrt(x), axis=0),
    "extent": lambda x: np.ptp(x, axis=0),
    "average": lambda x: np.average(x, axis=1),
    "weighed": lambda x: np.average(x, axis=1, weights=np.array([1, 2, 0, 1], "f4")),
    "close": lambda x: np.isclose(x, np.round(x, 1), atol=0.02),
    "all close": lambda x: np.allclose(x, x + 1e-9),
    "equal": lambda x: np.array_equal(x, X),
    "selected": lambda x: np.select([x > 1, x > 0], [x, -x], 0.5),
    "numbers": lambda x: np.nan_to_num(np.log(x), nan=1.0, neginf=-3),
    "two axes": lambda x: np.atleast_2d(x[0]),
    "three axes": lambda x: np.atleast_3d(x[0]),
    "in depth": lambda x: np.dstack([x, 2 * x]),
    "columns": lambda x: np.column_stack([x[:, 0], x]),
    "unequal parts": lambda x: np.array_split(x, 3, axis=1)[0],
    "from left to right": np.fliplr,
    "upside down": np.flipud,
    "a matrix of a diagonal": lambda x: np.diag(x[0], k=-1),
    "a diagonal": lambda x: np.diag(x, k=1),
    "a grid": lambda x: np.meshgrid(x[0], x[:, 0])[1],
    "where it belongs": lambda x: np.searchsorted(np.sort(X[0]), x, side="right"),
    "where it belongs beside NaN": lambda x: np.searchsorted(np.sort(np.sqrt(X[0])), np.log(x)),
    "after NaN": lambda x: np.searchsorted(np.sort(np.sqrt(X[0])), np.log(x), side="right"),
    "product of all cells": lambda x: np.vdot(x, x + 1),
    "cross": lambda x: np.cross(x[:, :3], x[:, 1:]),
    "quotients and remainders": lambda x: np.divmod(x, 0.3)[0],
    "each again": lambda x: np.repeat(x, 3, axis=1),
    "along an axis": lambda x: np.take_along_axis(x, np.argsort(X, axis=1), axis=1),
    "how many": lambda x: np.count_nonzero(x > 0, axis=1),
    "blocks": lambda x: np.kron(x[:2, :2], x),
    "rounded half to even": lambda x: np.around(x, 1),
}

FUNCTIONS: dict[str, Program] = {
    "exp": np.exp,
    "subtract": lambda x: np.subtract(1.5, x),
    "an array first": lambda x: X + x @ X.T @ X,
    "a number of NumPy": lambda x: np.float32(2) * x,
    "compared": lambda x: np.less_equal(x, X[0]),
    "ratio of squares": lambda x: np.arctan2(np.square(x), np.hypot(x, x)),
    "reduced": lambda x: np.add.reduce(x, axis=1),
    "reduced by the first axis": np.maximum.reduce,
    "reduced by all axes": lambda x: np.add.reduce(x, axis=None),
    "ordered as one axis": lambda x: np.sort(x, axis=None),
    "places in order as one axis": lambda x: np.argsort(x, axis=None),
    "joined as one axis": lambda x: np.concatenate([x, X], axis=None),
    "taken of all cells": lambda x: np.take(x, ROWS * 4),
    "taken of columns": lambda x: np.take(x, ROWS, axis=1),
    "least norm": lambda x: np.linalg.norm(x, ord=-np.inf, axis=1),
    "no axes dropped": lambda x: np.squeeze(x[:, None], axis=()),
    "accumulated": lambda x: np.multiply.accumulate(x),
    "sum": lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    "largest": lambda x: np.max(x, axis=0),
    "spread": lambda x: np.std(x, axis=0),
    "spread of a sample": lambda x: np.var(x, ddof=1),
    "running sum": np.cumsum,
    "chosen": lambda x: np.where(x > 0, x, 0),
    "joined": lambda x: np.concatenate([x, X], axis=1),
    "stacked": lambda x: np.vstack([x, x[0]]),
    "padded": lambda x: np.pad(x, ((1, 0), (2, 1)), mode="edge"),
    "rolled": lambda x: np.roll(x, 2),
    "differences": lambda x: np.diff(x, n=2),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: np.tensordot(x, x, axes=(0, 0)),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "sorted": lambda x: np.sort(x, axis=0),
    "second half": lambda x: np.split(x, 2, axis=1)[1],
    "new axis": lambda x: np.expand_dims(x, (0, 2)),
    "repeated": lambda x: np.broadcast_to(x, (2, 3, 4)),
}


@pytest.mark.parametrize("name", [*METHODS, *COMPOSITES, *FUNCTIONS])
def test_as_numpy(name: str) -> None:
    program = {**METHODS, **COMPOSITES, **FUNCTIONS}[name]
    x = tapestry.input("x", (3, 4), "float32")
    with np.errstate(all="ignore"):
        made, want = program(x), np.asarray(program(X))
    got = tapestry.run(made, x=X)
    assert got.shape == made.shape == want.shape
    assert (got.dtype.kind, got.dtype) == (want.dtype.kind, made.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


REFUSED: dict[str, tuple[Program, str]] = {
    "a shape of other cells": (lambda x: x.reshape(5, 3), r"\[5, 3\]"),
    "truth values that are computed": (lambda x: x[x > 0], "how many cells are true"),
    "an output": (lambda x: np.exp(x, out=np.zeros((3, 4))), "takes no `out`"),
    "no metakernel": (np.cbrt, "np.cbrt does not take expressions"),
    "a function without": (np.unique, "np.unique does not take expressions"),
    "no alternatives": (lambda x: np.where(x > 0), "give both alternatives"),
    "another method": (lambda x: np.add.outer(x, x), "np.add.outer does not take expressions"),
    "a number apart from places": (lambda x: x[None][0, :, [0, 2]], "others between them"),
    "places of no common shape": (lambda x: x[[0, 1], [0, 1, 2]], "broadcast"),
    "a place of two that is not there": (lambda x: x[[0, 1], [0, 4]], "outside of its axis"),
    "nothing": (lambda x: x == None, "None is no operand"),  # noqa: E711
    "a number that does not fit": (lambda x: x.astype("uint8") + 300, "300 is no uint8"),
    "a dtype of two meanings": (lambda x: x.astype("i8"), "i8 is int64 in NumPy, and int8 in"),
    "no shape": (lambda _: tapestry.input("y", None), "cannot have the shape None"),
    "a shape of truth": (lambda _: tapestry.input("y", (True, 2)), "cannot have the shape"),
    "cells": (lambda x: x.tolist(), "nothing has run"),
    "change": (lambda x: x.__setitem__(0, 1), "cannot be changed"),
    "parts of a shard": (lambda x: tapestry.shard(x @ x.T, shards=1.5), "shards cannot be 1.5"),
    "an option of shards": (lambda x: tapestry.shard(x @ x.T, parts=2), "parts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_words(name: str) -> None:
    program, words = REFUSED[name]
    with pytest.raises((tapestry.TapestryError, TypeError), match=words):
        program(tapestry.input("x", (3, 4), "float32"))


WHOLE: dict[str, Program] = {
    "sum": lambda x: x.sum(),
    "sum along an axis": lambda x: x.sum(1, keepdims=True),
    "sum of a dtype": lambda x: x.sum(dtype="float32"),
    "product": lambda x: np.prod(x[:, :2], axis=1),
    "mean": lambda x: x.mean(0),
    "running sum": lambda x: x.cumsum(),
    "running product": lambda x: np.cumprod(x, axis=1),
    "reduced": np.add.reduce,
    "accumulated": lambda x: np.add.accumulate(x, axis=1),
    "counted": lambda x: (x == x.T[0][:, None]).sum(axis=1),
    "how many": lambda x: (x > 3).mean(),
    "stable order": lambda x: np.argsort(x + 0 * x, axis=1, kind="stable"),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_folded_as_numpy_folds_them(name: str, dtype: str) -> None:
    cells = np.array([[100, 100, 100, 3], [1, 0, 5, 120], [7, 7, 2, 2]]).astype(dtype)
    _same_as_numpy(WHOLE[name], cells)


def _same_as_numpy(program: Program, cells: np.ndarray[Any, Any]) -> None:
    """A program gives what it gives on NumPy's arrays; whole numbers exactly."""
    want = np.asarray(program(cells))
    got = tapestry.run(program(tapestry.input("x", cells.shape, str(cells.dtype))), x=cells)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12 if want.dtype == np.float64 else 0)


TOGETHER: dict[str, Program] = {
    "range": lambda x: x.max(0) - x.min(0),
    "product of both": lambda x: x.max(1) * x.min(1),
    "mean of some": lambda x: x.sum(1) // np.count_nonzero(x > 3, axis=1).astype(x.sum(1).dtype),
    "joined, without a sign": lambda x: -np.concatenate([x, x[:1]]),
    "joined, in another type": lambda x: np.concatenate([x, x[:1]]).astype("float32") / 2,
    "turned, and halved": lambda x: np.roll(x, 1, axis=1) >> 1,
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("name", TOGETHER)
def test_whole_numbers_that_are_computed_together(name: str, dtype: str) -> None:
    cells = np.array([[100, 101, 99, 3], [1, 8, 5, 120], [7, 7, 2, 4]]).astype(dtype)
    _same_as_numpy(TOGETHER[name], cells)


def test_places_that_are_computed_count_from_the_end_too() -> None:
    x, i, j = (
        tapestry.input("x", (3, 4)),
        tapestry.input("i", (2,), "int8"),
        tapestry.input("j", (2,), "int64"),
    )
    pairs = tapestry.compile(x[i, j])
    for rows, columns in (([0, -1], [3, -4]), ([2, 1], [0, 1])):
        given = np.array(rows, np.int8), np.array(columns)
        np.testing.assert_array_equal(pairs(x=X, i=given[0], j=given[1]), X[given])
    with pytest.raises(tapestry.TapestryError, match="out of range"):
        pairs(x=X, i=np.array([0, 0], np.int8), j=np.array([0, 4]))  # not the cell (1, 0)


def test_metakernels_are_completed_as_methods() -> None:
    names = dir(tapestry.input("x", (3, 4)))
    assert {"softmax", "relu", "reshape", "shape"} <= {*names}
    assert "concat" not in names
