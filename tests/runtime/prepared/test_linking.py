"""Programs that are one call of compiled code: what they are, and that results are as without."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.diagnostics import TapestryError
from tapestry.frontend import parse_text
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram, linking
from tests.amounts import drawn
from tests.runtime.prepared.linked import (
    SHAPE,
    Expression,
    by_script,
    check,
    inputs,
    named,
    prepared,
)

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _norm(x: Expression) -> Expression:
    apart = x - tapestry.mean(x, axis=1, keepdims=True)
    return apart / tapestry.sqrt(tapestry.mean(apart * apart, axis=1, keepdims=True) + 1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: tapestry.softmax(x, axis=1) * y,
        lambda x, y: tapestry.softmax(_norm(x) + y, axis=0),
        lambda x, y: tapestry.sum(x * y),
        lambda x, y: (tapestry.max(x, axis=0), tapestry.tanh(x + y) * y),
        lambda x, y: (_norm(x), tapestry.argmax(y, axis=1)),
        lambda x, y: tapestry.cumsum(x * y, axis=1),
        lambda x, y: tapestry.transpose(tapestry.exp(x) * y + x * x, (1, 0)) * 2,
    ],
)
def test_loops_are_one_call(function: Callable[..., Any]) -> None:
    check(prepared(function(*named(2))), inputs(2))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float64"])
def test_dtypes_are_those_of_the_program(dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    (x,) = named(1, dtype)
    arrays = [np.abs(one).astype(kind) for one in inputs(1)]
    check(prepared((x * x - x * x * x, tapestry.where(x > 1, x, 0))), arrays)
    if dtype != "uint8":
        check(prepared((tapestry.max(x, axis=1), tapestry.sum(x * x, axis=0))), arrays)


@pytest.mark.parametrize("channels", [1, 3, 32])
def test_convolutions_are_calls_too(channels: int) -> None:
    """With what factors are copied to between the calls."""
    shapes = {"x": (1, 3, 20, 20), "w": (channels, 3, 3, 3), "v": (8, channels, 5, 5)}
    x, w, v = (tapestry.input(name, shape, "float32") for name, shape in shapes.items())
    inner = tapestry.relu(tapestry.conv2d(x, w, padding=(1, 1)))
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, shape).astype("f4") for shape in shapes.values()]
    check(prepared(tapestry.conv2d(inner, v, stride=(2, 2))), arrays)


def test_arrays_that_lie_otherwise_are_for_the_script() -> None:
    x, y = named(2)
    program = prepared(tapestry.softmax(x, axis=1) * y)
    plain = inputs(2)
    others = [np.asfortranarray(plain[0]), np.repeat(plain[1], 2, axis=1)[:, ::2]]
    others += [plain[0][::-1], np.broadcast_to(plain[1][:1], SHAPE)]
    program(plain)
    program(plain)
    for one in others:
        assert program.run.at_once([one, plain[1]]) is None
        assert program.run.at_once([plain[0], one]) is None
        for pair in ([one, plain[1]], [plain[0], one]):
            want = by_script(prepared(tapestry.softmax(x, axis=1) * y), pair)
            np.testing.assert_allclose(program(pair)[0], want[0], rtol=1e-6)


def test_the_first_arrays_may_lie_in_any_way() -> None:
    x, y = named(2)
    wide = np.random.default_rng(0).standard_normal((96, 80)).astype("f4")
    arrays = [wide[::-2, 1::2], np.asfortranarray(wide[:48, :40])]
    program = prepared(tapestry.softmax(x, axis=1) * y)
    program(arrays)
    for pair in (arrays, [one + 1 for one in arrays]):
        np.testing.assert_allclose(program(pair)[0], by_script(program, pair)[0], rtol=1e-6)


def test_one_array_may_be_given_twice_and_overlap() -> None:
    x, y = named(2)
    program = prepared(tapestry.exp(x - tapestry.max(y, axis=1, keepdims=True)))
    room = np.random.default_rng(0).standard_normal((2 * SHAPE[0], SHAPE[1])).astype("f4")
    first, second, across = room[: SHAPE[0]], room[SHAPE[0] :], room[7:][: SHAPE[0]]
    program([first, first])  # what is linked are two arrays all the same
    for pair in ([first, second], [first, across], [across, first], [second, second]):
        assert program.run.at_once(pair) is not None
        want = np.exp(pair[0] - pair[1].max(1, keepdims=True))
        np.testing.assert_allclose(program(pair)[0], want, rtol=1e-5)


def test_results_are_the_callers_alone() -> None:
    (x,) = named(1)
    program = tapestry.compile((_norm(x), tapestry.sum(x, axis=1)))
    (array,) = inputs(1)
    first = program(array)
    second = program(array)
    kept = [one.copy() for one in second]
    third = program(array + 1)
    for one in (*first, *second, *third):
        assert one.flags.writeable
        assert one.flags.c_contiguous
        one[...] = 0
    np.testing.assert_array_equal(program(array)[0], kept[0])


@pytest.mark.parametrize("function", [lambda x: x, lambda x: tapestry.transpose(x, (1, 0))])
def test_what_is_given_is_never_given_back(function: Callable[..., Any]) -> None:
    (x,) = named(1)
    program = tapestry.compile((function(x), tapestry.softmax(x, axis=1)))
    (array,) = inputs(1)
    for _ in range(3):
        assert not np.shares_memory(program(array)[0], array)


def test_one_result_asked_for_twice_is_two_arrays() -> None:
    (x,) = named(1)
    same = tapestry.softmax(x, axis=1)
    program = tapestry.compile((same, same))
    (array,) = inputs(1)
    for _ in range(3):
        first, second = program(array)
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, second)


def test_products_are_those_of_blas() -> None:
    x, y = named(2)
    turned = tapestry.transpose(y, (1, 0))
    check(prepared(tapestry.exp(tapestry.softmax(x, axis=1) @ turned)), inputs(2))
    row = tapestry.mean(x, axis=0, keepdims=True)
    check(prepared(tapestry.softmax(row @ turned, axis=1)), inputs(2))
    # NumPy computes half of a matrix by itself turned.
    own = prepared(tapestry.exp(x @ tapestry.transpose(x, (1, 0))))
    check(own, inputs(1), linked=False)


def test_a_small_network_is_one_call() -> None:
    random = np.random.default_rng(0)
    for rows in (1, 7):
        shapes = {"x": (rows, 64), "w": (64, 32), "b": (32,), "v": (32, 10), "c": (10,)}
        x, w, b, v, c = (tapestry.input(name, shape) for name, shape in shapes.items())
        result = tapestry.softmax(tapestry.relu(x @ w + b) @ v + c, axis=1)
        arrays = [random.standard_normal(shape).astype("f4") for shape in shapes.values()]
        check(prepared(result), arrays)


def test_checked_places_are_for_the_script() -> None:
    (x,) = named(1)
    places = tapestry.input("i", (64,), "int32")
    program = tapestry.compile(tapestry.softmax(tapestry.take(x, places), axis=1))
    (array,) = inputs(1)
    where = np.arange(64, dtype=np.int32) % SHAPE[0]
    for _ in range(3):
        got = program(array, where)
        want = np.exp(array[where] - array[where].max(1, keepdims=True))
        np.testing.assert_allclose(got, want / want.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(tapestry.TapestryError):
        program(array, where + SHAPE[0])


def test_threads_have_what_is_between_for_themselves() -> None:
    (x,) = named(1)
    program = prepared(tapestry.softmax(_norm(x), axis=0) * _norm(x))
    arrays = [one + n for n, one in enumerate(inputs(1) * 8)]
    program(arrays[:1])
    want = [by_script(program, [one])[0] for one in arrays]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: program([arrays[n % 8]])[0], range(400)))
    for n, got in enumerate(made):
        np.testing.assert_array_equal(got, want[n % 8])


@pytest.mark.parametrize(
    ("name", "kind"), [("f8E5M2", ml_dtypes.float8_e5m2), ("f8E4M3FN", ml_dtypes.float8_e4m3fn)]
)
def test_types_that_numpy_cannot_name(name: str, kind: Any) -> None:
    text = f"""
!x = !loom.tensor<[0] : [64], {name}>
!y = !loom.tensor<[0] : [64], f32>
func.func @main(%x: !x) -> !y {{
  %y = loom.operation @widen over <[0] : [64]> [map]
    ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%e: {name}) {{
      %w = arith.extf %e : {name} to f32
      loom.yield %w : f32
    }} : (!x) -> !y
  func.return %y : !y
}}
"""
    program = PreparedProgram(parse_text(text))
    array = np.arange(64).astype(kind)
    for _ in range(3):
        np.testing.assert_array_equal(program([array])[0], array.astype("f4"))


def test_cells_that_are_far_apart_are_not_linked() -> None:
    (x,) = named(1)
    program = prepared(tapestry.softmax(x, axis=1))
    room = np.zeros((SHAPE[0], 1 << 21), np.float32)
    for _ in range(3):
        np.testing.assert_allclose(program([room[:, : SHAPE[1]]])[0], 1 / SHAPE[1], rtol=1e-6)
    assert program.run.at_once([room[:, : SHAPE[1]]]) is None


def test_what_is_between_shares_memory() -> None:
    """Of ten values of which each needs the one before, two are there at once."""
    (x,) = named(1)
    for _ in range(10):
        x = tapestry.cumsum(tapestry.softmax(x, axis=1), axis=0)
    program = prepared(x)
    check(program, inputs(1))
    linked = program.run.linked
    assert linked is not None
    assert len(linked.chain.steps) >= 10
    assert linked.between <= 4 * 4 * SHAPE[0] * SHAPE[1]


@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_without_room_for_all_a_program_is_not_linked(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise error

    (x,) = named(1)
    program = prepared(tapestry.softmax(x, axis=1))
    monkeypatch.setattr(linking, "reserved", full)
    check(program, inputs(1), linked=False)


def test_there_may_be_no_cells() -> None:
    x = tapestry.input("x", (0, 5), "float32")
    program = tapestry.compile((tapestry.softmax(x, axis=1), tapestry.sum(x)))
    for _ in range(3):
        first, second = program(np.zeros((0, 5), "f4"))
        assert (first.shape, float(second)) == ((0, 5), 0)


_STEPS: list[Callable[..., Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * tapestry.tanh(y),
    lambda x, y: x - tapestry.max(y, axis=1, keepdims=True),
    lambda x, y: x * tapestry.mean(y, axis=0, keepdims=True),
    lambda x, y: tapestry.where(x > y, x, -y),
    lambda x, y: tapestry.softmax(x + y, axis=1),
    lambda x, y: tapestry.cumsum(x, axis=0) - y,
]


@settings(deadline=None, max_examples=drawn(25))
@given(
    st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 5), st.integers(0, 5)), max_size=5)
)
def test_any_program_gives_what_its_script_does(
    steps: list[tuple[Callable[..., Any], int, int]],
) -> None:
    values = named(2)
    values.append(values[0] * values[1])
    for function, first, second in steps:
        values.append(function(values[first % len(values)], values[second % len(values)]))
    program = prepared((values[-1], values[-2] * 2))
    arrays = inputs(2)
    program(arrays)
    for given_arrays in (arrays, arrays[::-1], [arrays[0], arrays[0]]):
        made, want = program(given_arrays), by_script(program, given_arrays)
        for got, one in zip(made, want, strict=True):
            np.testing.assert_array_equal(got, one)


def test_arrays_that_lie_otherwise_or_are_none_are_taken_as_at_first() -> None:
    program = tapestry.compile(tapestry.softmax(tapestry.input("x", (3, 5), "float32") * 2, axis=1))
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    want = program(x)
    for alike in (x, x, np.asfortranarray(x), x.tolist(), x[::-1][::-1], x.astype(">f4"), x):
        np.testing.assert_allclose(program(alike), want, rtol=1e-6)
    for wrong in (x.T, x[:2], x.ravel(), None):
        with pytest.raises(TapestryError, match="x"):
            program(wrong)
    with pytest.raises(TapestryError):
        program(x, x)
    np.testing.assert_array_equal(program(x), want)
