"""Loops on arrays of any strides, folds along any axes, and results over operands."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from mmap import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.codegen.loops import Cell, Folded, Graph, Number, loop_text
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops import loop as loops
from tapestry.runtime.prepared.loops.loop import Loop

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _emit(operation: str):
    def emit(write: Writer, values: list[Value]) -> Value:
        return write.binary(operation, *values)

    return emit


PRODUCT = Cell(_emit("fmul"), (0, 1), "float")
SUM = Cell(_emit("fadd"), (2, 1), "float")


def _placed(array: Array, how: int) -> Array:
    """An array of the same cells that lies otherwise in memory."""
    match how:
        case 0:
            return array
        case 1:  # the last axis first
            return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, 0)), 0, -1)
        case 2:  # backwards
            flipped = (slice(None, None, -1),) * array.ndim
            return np.ascontiguousarray(array[flipped])[flipped]
        case 3:  # every second cell
            wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            wide[..., ::2] = array
            return wide[..., ::2]
        case _:  # at an odd address
            room = np.zeros(array.nbytes + 1, np.uint8)
            moved = room[1:].view(array.dtype).reshape(array.shape)
            moved[...] = array
            return moved


@st.composite
def _operands(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Array]]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 31, 33, 70]), min_size=1, max_size=3)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    found: list[Array] = []
    for _ in range(2):
        own = [draw(st.sampled_from([1, extent])) for extent in shape]
        values = random.integers(-8, 9, own).astype(np.float32)
        found.append(_placed(values, draw(st.integers(0, 4))))
    return shape, found


@settings(max_examples=40, deadline=None)
@given(_operands())
def test_maps_of_any_strides(case: tuple[tuple[int, ...], list[Array]]) -> None:
    shape, (x, y) = case
    graph = Graph(("float", "float"), (), (PRODUCT, SUM), (2, 3))
    product, total = Loop(graph, shape)([x, y])
    np.testing.assert_array_equal(product, np.broadcast_to(x * y, shape))
    np.testing.assert_array_equal(total, np.broadcast_to(x * y + y, shape))


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("cut", [slice(None), slice(300, 940)])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_long_arrays_which_are_fetched_ahead_up_to_their_end(
    cut: slice, axes: tuple[int, ...], pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []

    def noted(graph: Graph, layout: loops.Layout) -> str:
        texts.append(loop_text(graph, layout))
        return texts[-1]

    monkeypatch.setattr(loops, "loop_text", noted)
    monkeypatch.setattr(native, "fetches_pages", lambda: pages)
    room = mmap(-1, 128 * 1024 * 4)  # nothing of ours is behind it
    x = np.frombuffer(room, np.float32).reshape(128, 1024)
    x[...] = np.random.default_rng(0).integers(-8, 9, x.shape)
    x = x[:, cut]
    graph = Graph(("float", "float"), (), (PRODUCT,), (2,), (Folded(0, "arith.addf", 0.0),))
    product, total = Loop(graph, x.shape, axes)([x, x])
    np.testing.assert_array_equal(product, x * x)
    np.testing.assert_array_equal(total, x.sum(axes, keepdims=True))
    # Rows that are not one after another no processor fetches by itself.
    is_whole = x.flags.c_contiguous
    assert ["prefetch" in text for text in texts] == [not (pages and is_whole)]


@settings(max_examples=40, deadline=None)
@given(_operands(), st.data())
def test_folds_along_any_axes(
    case: tuple[tuple[int, ...], list[Array]], data: st.DataObject
) -> None:
    shape, (x, y) = case
    axes = tuple(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1)))
    folds = (Folded(2, "arith.addf", 0.0), Folded(2, "arith.maximumf", float("-inf")))
    graph = Graph(("float", "float"), (), (PRODUCT,), (2,), folds)
    product, sums, largest = Loop(graph, shape, axes)([x, y])
    want = np.broadcast_to(x * y, shape)
    np.testing.assert_array_equal(product, want)
    np.testing.assert_array_equal(sums, want.sum(axes, keepdims=True))  # of small integers: exact
    np.testing.assert_array_equal(largest, want.max(axes, keepdims=True))


@dataclass
class _Team:
    """One thread, which calls what others would."""

    threads: int
    shared: list[int] = field(default_factory=list[int])
    """How many parts there were, call by call."""

    def count(self) -> int:
        return self.threads

    def run(self, function: int, rows: Array) -> None:
        assert rows.flags.c_contiguous
        self.shared.append(len(rows))
        for row in rows[::-1]:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(row.ctypes.data)

    def step(self, rows: object) -> None:
        """None: nothing is linked."""


@settings(max_examples=60, deadline=None)
@given(_operands(), st.integers(2, 7), st.data())
def test_what_a_team_shares_is_the_same(
    case: tuple[tuple[int, ...], list[Array]], threads: int, data: st.DataObject
) -> None:
    shape, (x, y) = case
    axes = tuple(data.draw(st.sets(st.sampled_from(range(len(shape))))))
    x, y = x / np.float32(3), y / np.float32(7)  # whose sums depend on the order
    folds = (Folded(2, "arith.addf", 0.0),) if axes else ()
    graph = Graph(("float", "float"), (), (PRODUCT,), (2,), folds)
    team = _Team(threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "SHARE", 1)
        shared = Loop(graph, shape, axes, team=team)([x, y])
    for want, have in zip(Loop(graph, shape, axes)([x, y]), shared, strict=True):
        np.testing.assert_array_equal(have, want)
    assert all(2 <= parts <= threads for parts in team.shared)


def test_little_is_not_shared() -> None:
    graph, team = Graph(("float", "float"), (), (PRODUCT,), (2,)), _Team(4)
    for count, parts in ((1 << 15, []), (1 << 18, [2]), (1 << 20, [2, 4])):
        x = np.ones((count // 64, 64), "f4")
        Loop(graph, x.shape, team=team)([x, x])
        assert team.shared == parts


@pytest.mark.parametrize(
    ("shape", "folded", "parts"),
    [
        ((4096, 100), (), [3]),  # rows
        ((3, 4096), (), [3]),  # there are few rows, so vectors of all
        ((4096, 100), (0,), [3]),  # of the columns, which are kept, there are vectors
        ((4096, 20), (0,), []),
        ((4096, 100), (0, 1), []),
    ],
)
def test_a_kept_axis_is_shared(
    shape: tuple[int, ...], folded: tuple[int, ...], parts: list[int]
) -> None:
    x, y = np.ones(shape, "f4"), np.ones((1, shape[1]), "f4")
    fold = (Folded(2, "arith.addf", 0.0),) if folded else ()
    graph, team = Graph(("float", "float"), (), (PRODUCT,), () if fold else (2,), fold), _Team(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "SHARE", 1)
        Loop(graph, shape, folded, team=team)([x, y])
    assert team.shared == parts


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000])
def test_results_over_operands(count: int) -> None:
    x, y = np.arange(count, dtype="f4"), np.full(count, 3, "f4")
    graph = Graph(("float", "float"), (), (PRODUCT, SUM), (2, 3))
    Loop(graph, (count,))([x, y], [y, x])
    np.testing.assert_array_equal(y, 3 * np.arange(count))
    np.testing.assert_array_equal(x, 3 * np.arange(count) + 3)


def test_nothing_beside_an_array_is_touched() -> None:
    room = np.full(100, 7, "f4")
    graph = Graph(("float",), (Number(2.0, "float"),), (PRODUCT,), (2,))
    Loop(graph, (37,))([np.ones(37, "f4")], [room[10:47]])
    np.testing.assert_array_equal(room, [7] * 10 + [2] * 37 + [7] * 53)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_sums_are_as_near_as_those_of_numpy(dtype: str) -> None:
    own = np.float32 if dtype == "float" else np.float64
    graph = Graph((dtype,), (), (), (), (Folded(0, "arith.addf", 0.0),))
    loop = Loop(graph, (1 << 18,), (0,))
    worst, numpy_worst = 0.0, 0.0
    for seed in range(8):
        x = np.random.default_rng(seed).random(1 << 18).astype(own)
        want = x.astype(np.longdouble).sum()
        worst = max(worst, abs(float(loop([x])[0][0] - want)))
        numpy_worst = max(numpy_worst, abs(float(x.sum() - want)))
    assert worst <= 2 * numpy_worst


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_of_nan_and_zeros(kind: str, sign: int, axis: int) -> None:
    """+0 is larger than -0, and NaN than all, as it is smaller than all."""
    dtype = np.float32 if kind == "float" else np.float64
    primitive = "arith.maximumf" if sign > 0 else "arith.minimumf"
    graph = Graph((kind,), (), (), (), (Folded(0, primitive, -sign * float("inf")),))
    for length in (5, 64, 77, 300):
        shape = (length, 3) if axis == 0 else (1, length)
        loop = Loop(graph, shape, (axis,))
        for at in (0, length // 2, length - 1):
            x = np.full(shape, -0.0 * sign, dtype)
            assert (np.signbit(loop([x])[0]) == (sign > 0)).all()
            x[(at,) if axis == 0 else (0, at)] = 0.0 * sign
            assert (np.signbit(loop([x])[0]) == (sign < 0)).all()
            x[(at,) if axis == 0 else (0, at)] = np.copysign(np.nan, -sign)
            assert np.isnan(loop([x])[0]).all()


@pytest.mark.parametrize(
    "other", [np.ones((2, 3), np.float32), np.ones((1, 4), np.float64), np.ones(4, np.float32)]
)
def test_arrays_that_a_loop_is_not_for_are_refused(other: Array) -> None:
    loop = Loop(Graph(("float", "float"), (), (PRODUCT,), (2,)), (2, 4))
    fitting = np.ones((2, 4), np.float32)
    loop([fitting, fitting])
    with pytest.raises(ValueError, match=r"in a loop of float32 over \(2, 4\)"):
        loop([fitting, other])
