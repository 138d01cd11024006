"""16-bit floats in loops: every one of them, what float32 rounds to, and states of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tapestry.algebra.computing import computed
from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import Cell, Graph, Merged
from tapestry.codegen.loops.cells import cast_between, is_known, written
from tapestry.codegen.loops.vectors import Value, Writer, kind_of
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def _same(have: Array, want: Array) -> None:
    """The same bits, but for those of NaN."""
    assert have.dtype == want.dtype
    wide = want.astype("f8")
    bits = f"u{want.itemsize}"
    np.testing.assert_array_equal(np.isnan(have.astype("f8")), np.isnan(wide))
    number = ~np.isnan(wide)
    np.testing.assert_array_equal(have.view(bits)[number], want.view(bits)[number])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["arith.addf", "arith.mulf", "arith.divf", "math.sqrt"])
def test_every_number(dtype: np.dtype[Any], name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    y = np.random.default_rng(0).permutation(1 << 16).astype(np.uint16).view(dtype)
    given = [x] if name == "math.sqrt" else [x, y]
    op, kind = Scalar(name, (dtype,) * len(given), dtype), str(kind_of(dtype))
    assert is_known(op)
    cell = Cell(partial(written, op), tuple(range(len(given))), kind)
    (got,) = Loop(Graph((kind,) * len(given), (), (cell,), (len(given),)), (1 << 16,))(given)
    _same(got, computed(op, *given))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("step", [1, 2], ids=["dense", "apart"])
def test_what_float32_rounds_to(dtype: np.dtype[Any], step: int) -> None:
    """Bits at random, and what is halfway between neighbours, or next to that."""
    random = np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, np.uint32)
    lowest = 12 if dtype == np.float16 else 15
    halfway = random >> (lowest + 1) << (lowest + 1) | np.uint32(1 << lowest)
    bits = np.concatenate([random, halfway, halfway - 1, halfway + 1])
    x = np.repeat(bits.view(np.float32), step)[::step]
    cast = cast_between(x.dtype, dtype)
    assert cast is not None

    def emit(write: Writer, values: list[Value]) -> Value:
        return cast(write, values[0])

    graph = Graph(("float",), (), (Cell(emit, (0,), str(kind_of(dtype))),), (1,))
    out = np.zeros(step * len(x), dtype)
    Loop(graph, x.shape)([x], [out[::step]])
    with np.errstate(all="ignore"):
        _same(out[::step], x.astype(dtype))
    assert not out[1::2].any() or step == 1


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("running", [False, True])
def test_states(dtype: np.dtype[Any], axis: int, running: bool) -> None:
    """In the type of the state, of numbers that are exact in it."""
    x = np.random.default_rng(2).integers(0, 2, (37, 41)).astype(dtype)
    op, kind = Scalar("arith.addf", (dtype, dtype), dtype), str(kind_of(dtype))

    def merge(write: Writer, left: list[Value], right: list[Value]) -> list[Value]:
        return [written(op, write, [left[0], right[0]])]

    graph = Graph((kind,), (), (), (), (Merged((0,), merge, (0.0,)),), running=running)
    (got,) = Loop(graph, x.shape, (axis,))([x])
    wide = x.astype("f4")
    want = wide.cumsum(axis) if running else wide.sum(axis, keepdims=True)
    _same(got, want.astype(dtype))
