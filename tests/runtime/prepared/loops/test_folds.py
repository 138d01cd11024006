"""Folds in loops by every operation, of special values that lie anywhere: the same cells as folds
one by one. Results over operands, too."""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.codegen.loops import Cell, Folded, Graph
from tapestry.codegen.loops.cells import combined
from tapestry.codegen.loops.graphs import FOLDS, ROUNDED
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop
from tests.runtime.prepared.loops.test_loops import _placed

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

KINDS = {"float": "f4", "double": "f8", "i8": "i1", "i32": "i4", "i64": "i8", "i1": "?"}


def _larger(a: Array, b: Array) -> Array:
    """The larger of floats by IEEE 754: NaN if one is, and +0 is larger than -0."""
    found = np.where(a > b, a, b)
    found = np.where((a == b) & np.signbit(b), a, found)
    return np.where(np.isnan(a) | np.isnan(b), np.nan, found).astype(a.dtype)


_NAIVE = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.maximumf": _larger,
    "arith.minimumf": lambda a, b: -_larger(-a, -b),
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}
assert set(_NAIVE) == FOLDS


def _values(kind: str, primitive: str, shape: tuple[int, ...], seed: int) -> Array:
    """Special values, and numbers that floats add and multiply exactly."""
    random, dtype = np.random.default_rng(seed), np.dtype(KINDS[kind])
    if dtype.kind == "b":
        return random.random(shape) < random.choice([0.1, 0.9])
    if dtype.kind == "i":
        most = np.iinfo(dtype)
        return random.integers(most.min, most.max, shape, dtype, endpoint=True)
    if primitive == "arith.addf":
        return random.integers(-8, 9, shape).astype(dtype)
    if primitive == "arith.mulf":
        return random.choice([-1.0, 1.0, -1.0, 1.0, 0.5, 2.0], shape).astype(dtype)
    some = [
        [0.0],
        [-0.0],
        [-1.0, -0.0, -np.inf],
        [1.0, 2.0, 0.0, -3.5, np.inf],
        [1.0, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan],
        [-np.inf],
    ][random.integers(6)]
    found = random.choice(some, shape).astype(dtype)
    if found.size and random.integers(4):  # one among many
        odd = (-found.flat[0], np.copysign(np.nan, -1), -np.inf)[random.integers(3)]
        found.flat[random.integers(found.size)] = odd
    return found


def _zero(primitive: str, dtype: np.dtype) -> float:
    if primitive in ("arith.maximumf", "arith.minimumf"):
        return -np.inf if primitive == "arith.maximumf" else np.inf
    if primitive in ("arith.maxsi", "arith.minsi"):
        limits = np.iinfo(dtype)
        return int(limits.min if primitive == "arith.maxsi" else limits.max)
    if primitive == "arith.andi":
        return -1 if dtype.kind == "i" else 1
    return 1 if "mul" in primitive else 0


@st.composite
def _folds(draw: st.DrawFn) -> tuple[str, str]:
    primitive = draw(st.sampled_from(sorted(FOLDS)))
    kinds = [kind for kind in KINDS if (kind in ("float", "double")) == primitive.endswith("f")]
    if primitive not in ("arith.andi", "arith.ori", "arith.xori"):
        kinds = [kind for kind in kinds if kind != "i1"]
    return primitive, draw(st.sampled_from(kinds))


@settings(max_examples=60, deadline=None)
@given(
    _folds(),
    st.lists(st.sampled_from([0, 1, 2, 5, 9, 31, 33, 70, 300]), min_size=1, max_size=2),
    st.integers(0, 999),
    st.integers(0, 4),
    st.integers(0, 4),
    st.data(),
)
def test_folds_of_special_values(
    kinds: tuple[str, str],
    extents: list[int],
    seed: int,
    how: int,
    operand: int,
    data: st.DataObject,
) -> None:
    """Of values that are read, or made of two that are: a cell on memory of any strides."""
    primitive, kind = kinds
    shape, dtype = tuple(extents), np.dtype(KINDS[kind])
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1))))
    x = _placed(_values(kind, primitive, shape, seed), how)
    own = [data.draw(st.sampled_from([1, extent])) for extent in shape]
    y = _placed(_values(kind, primitive, tuple(own), seed + 1), operand)
    zero = _zero(primitive, dtype)
    cell = Cell(lambda write, values: combined(primitive, write, *values), (0, 1), kind)
    folds = (Folded(0, primitive, zero), Folded(2, primitive, zero))
    first, second = Loop(Graph((kind, kind), (), (cell,), (), folds), shape, axes)([x, y])
    naive = _NAIVE[primitive]
    with np.errstate(all="ignore"):
        made = naive(x, np.broadcast_to(y, shape))
        for got, values in ((first, x), (second, made)):
            rows = np.moveaxis(values, axes, range(len(axes)))
            rows = rows.reshape(prod(shape[axis] for axis in axes), *rows.shape[len(axes) :])
            start = np.full(rows.shape[1:], zero, dtype)
            want = reduce(naive, rows, start).reshape(got.shape)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            if dtype.kind == "f" and primitive not in ROUNDED:
                missing = np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got) | missing, np.signbit(want) | missing)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 33, 70]), min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from([0, 1]),
    st.data(),
)
def test_maps_over_an_operand_in_any_memory(
    extents: list[int], how: int, over: int, data: st.DataObject
) -> None:
    """Both results are written over operands, in turn or crosswise; beside them nothing is."""
    shape, random = tuple(extents), np.random.default_rng(sum(extents))
    x, y = (random.integers(-99, 99, shape).astype(np.float32) for _ in range(2))
    mine, other = _placed(x.copy(), how), _placed(y.copy(), data.draw(st.integers(0, 3)))
    total = Cell(_two("fadd"), (0, 1), "float")
    difference = Cell(_two("fsub"), (0, 1), "float")
    loop = Loop(Graph(("float", "float"), (), (total, difference), (2, 3)), shape)
    loop([mine, other], [mine, other] if over else [other, mine])
    sums, differences = (mine, other) if over else (other, mine)
    np.testing.assert_array_equal(sums, x + y)
    np.testing.assert_array_equal(differences, x - y)
    for one in (mine, other):
        if one.base is not None and one.base.size == 2 * one.size:  # every second cell
            np.testing.assert_array_equal(one.base[..., 1::2], 0)


def _two(operation: str):
    def emit(write: Writer, values: list[Value]) -> Value:
        return write.binary(operation, *values)

    return emit
