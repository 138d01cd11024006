"""Programs that are one call of compiled code: what they are, and that results are as without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.frontend import parse_text
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tests.runtime.prepared.teams import OneByOne

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

SHAPE = (48, 40)
Expression = Any
Array = np.ndarray


def _norm(x: Expression) -> Expression:
    apart = x - tapestry.mean(x, axis=1, keepdims=True)
    return apart / tapestry.sqrt(tapestry.mean(apart * apart, axis=1, keepdims=True) + 1e-5)


def _inputs(count: int, dtype: Any = np.float32) -> list[Array]:
    random = np.random.default_rng(0)
    return [(4 * random.standard_normal(SHAPE)).astype(dtype) for _ in range(count)]


def _prepared(results: Sequence[Expression] | Expression) -> PreparedProgram:
    return PreparedProgram(tapestry.compile(results).lowered)


def _named(count: int, dtype: str = "float32") -> list[Expression]:
    return [tapestry.input(name, SHAPE, dtype) for name in "xyz"[:count]]


def _by_script(program: PreparedProgram, arrays: Sequence[Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.array(one) for one in program.run.script(arrays)]


def _check(program: PreparedProgram, arrays: Sequence[Array], *, linked: bool = True) -> None:
    """Several calls give what the script does, the later ones by one call."""
    program(arrays)
    assert (program.run.at_once(arrays) is not None) == linked
    again = [one[::-1].copy() for one in arrays]
    for one in (arrays, again):
        for got, want in zip(program(one), _by_script(program, one), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got.astype("f8"), want.astype("f8"))


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
    _check(_prepared(function(*_named(2))), _inputs(2))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float64"])
def test_dtypes_are_those_of_the_program(dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    (x,) = _named(1, dtype)
    arrays = [np.abs(one).astype(kind) for one in _inputs(1)]
    _check(_prepared((x * x - x * x * x, tapestry.where(x > 1, x, 0))), arrays)
    if dtype != "uint8":
        _check(_prepared((tapestry.max(x, axis=1), tapestry.sum(x * x, axis=0))), arrays)


@pytest.mark.parametrize("channels", [1, 3, 32])
def test_convolutions_are_calls_too(channels: int) -> None:
    """With what factors are copied to between the calls."""
    shapes = {"x": (1, 3, 20, 20), "w": (channels, 3, 3, 3), "v": (8, channels, 5, 5)}
    x, w, v = (tapestry.input(name, shape, "float32") for name, shape in shapes.items())
    inner = tapestry.relu(tapestry.conv2d(x, w, padding=(1, 1)))
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, shape).astype("f4") for shape in shapes.values()]
    _check(_prepared(tapestry.conv2d(inner, v, stride=(2, 2))), arrays)


def test_arrays_that_lie_otherwise_are_for_the_script() -> None:
    x, y = _named(2)
    program = _prepared(tapestry.softmax(x, axis=1) * y)
    plain = _inputs(2)
    others = [np.asfortranarray(plain[0]), np.repeat(plain[1], 2, axis=1)[:, ::2]]
    others += [plain[0][::-1], np.broadcast_to(plain[1][:1], SHAPE)]
    program(plain)
    program(plain)
    for one in others:
        assert program.run.at_once([one, plain[1]]) is None
        assert program.run.at_once([plain[0], one]) is None
        for pair in ([one, plain[1]], [plain[0], one]):
            want = _by_script(_prepared(tapestry.softmax(x, axis=1) * y), pair)
            np.testing.assert_allclose(program(pair)[0], want[0], rtol=1e-6)


def test_the_first_arrays_may_lie_in_any_way() -> None:
    x, y = _named(2)
    wide = np.random.default_rng(0).standard_normal((96, 80)).astype("f4")
    arrays = [wide[::-2, 1::2], np.asfortranarray(wide[:48, :40])]
    program = _prepared(tapestry.softmax(x, axis=1) * y)
    program(arrays)
    for pair in (arrays, [one + 1 for one in arrays]):
        np.testing.assert_allclose(program(pair)[0], _by_script(program, pair)[0], rtol=1e-6)


def test_one_array_may_be_given_twice_and_overlap() -> None:
    x, y = _named(2)
    program = _prepared(tapestry.exp(x - tapestry.max(y, axis=1, keepdims=True)))
    room = np.random.default_rng(0).standard_normal((2 * SHAPE[0], SHAPE[1])).astype("f4")
    first, second, across = room[: SHAPE[0]], room[SHAPE[0] :], room[7:][: SHAPE[0]]
    program([first, first])  # what is linked are two arrays all the same
    for pair in ([first, second], [first, across], [across, first], [second, second]):
        assert program.run.at_once(pair) is not None
        want = np.exp(pair[0] - pair[1].max(1, keepdims=True))
        np.testing.assert_allclose(program(pair)[0], want, rtol=1e-5)


def test_results_are_the_callers_alone() -> None:
    (x,) = _named(1)
    program = tapestry.compile((_norm(x), tapestry.sum(x, axis=1)))
    (array,) = _inputs(1)
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
    (x,) = _named(1)
    program = tapestry.compile((function(x), tapestry.softmax(x, axis=1)))
    (array,) = _inputs(1)
    for _ in range(3):
        assert not np.shares_memory(program(array)[0], array)


def test_one_result_asked_for_twice_is_two_arrays() -> None:
    (x,) = _named(1)
    same = tapestry.softmax(x, axis=1)
    program = tapestry.compile((same, same))
    (array,) = _inputs(1)
    for _ in range(3):
        first, second = program(array)
        assert not np.shares_memory(first, second)
        np.testing.assert_array_equal(first, second)


def test_products_are_those_of_blas() -> None:
    x, y = _named(2)
    turned = tapestry.transpose(y, (1, 0))
    _check(_prepared(tapestry.exp(tapestry.softmax(x, axis=1) @ turned)), _inputs(2))
    row = tapestry.mean(x, axis=0, keepdims=True)
    _check(_prepared(tapestry.softmax(row @ turned, axis=1)), _inputs(2))
    # NumPy computes half of a matrix by itself turned.
    own = _prepared(tapestry.exp(x @ tapestry.transpose(x, (1, 0))))
    _check(own, _inputs(1), linked=False)


def test_a_small_network_is_one_call() -> None:
    random = np.random.default_rng(0)
    for rows in (1, 7):
        shapes = {"x": (rows, 64), "w": (64, 32), "b": (32,), "v": (32, 10), "c": (10,)}
        x, w, b, v, c = (tapestry.input(name, shape) for name, shape in shapes.items())
        result = tapestry.softmax(tapestry.relu(x @ w + b) @ v + c, axis=1)
        arrays = [random.standard_normal(shape).astype("f4") for shape in shapes.values()]
        _check(_prepared(result), arrays)


def test_checked_places_are_for_the_script() -> None:
    (x,) = _named(1)
    places = tapestry.input("i", (64,), "int32")
    program = tapestry.compile(tapestry.softmax(tapestry.take(x, places), axis=1))
    (array,) = _inputs(1)
    where = np.arange(64, dtype=np.int32) % SHAPE[0]
    for _ in range(3):
        got = program(array, where)
        want = np.exp(array[where] - array[where].max(1, keepdims=True))
        np.testing.assert_allclose(got, want / want.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(tapestry.TapestryError):
        program(array, where + SHAPE[0])


def test_threads_have_what_is_between_for_themselves() -> None:
    (x,) = _named(1)
    program = _prepared(tapestry.softmax(_norm(x), axis=0) * _norm(x))
    arrays = [one + n for n, one in enumerate(_inputs(1) * 8)]
    program(arrays[:1])
    want = [_by_script(program, [one])[0] for one in arrays]
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
    (x,) = _named(1)
    program = _prepared(tapestry.softmax(x, axis=1))
    room = np.zeros((SHAPE[0], 1 << 21), np.float32)
    for _ in range(3):
        np.testing.assert_allclose(program([room[:, : SHAPE[1]]])[0], 1 / SHAPE[1], rtol=1e-6)
    assert program.run.at_once([room[:, : SHAPE[1]]]) is None


def test_what_is_between_shares_memory() -> None:
    """Of ten values of which each needs the one before, two are there at once."""
    (x,) = _named(1)
    for _ in range(10):
        x = tapestry.cumsum(tapestry.softmax(x, axis=1), axis=0)
    program = _prepared(x)
    _check(program, _inputs(1))
    linked = program.run.linked
    assert linked is not None
    assert len(linked.chain.steps) >= 10
    assert linked.between <= 4 * 4 * SHAPE[0] * SHAPE[1]


def test_factors_that_are_computed_are_one_loop_beside_others() -> None:
    shapes = {"x": (128, 512), "g": (512,), "b": (512,), "w": (512, 512)}
    x, g, b, w = (tapestry.input(name, shape) for name, shape in shapes.items())
    program = _prepared(tapestry.relu((x * g + b) @ w))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for shape in shapes.values()]
    _check(program, arrays)
    linked = program.run.linked
    assert linked is not None
    assert len(linked.chain.steps) == 3  # the factor, the product, and what is done with sums


@pytest.mark.parametrize(("heads", "length", "depth"), [(2, 16, 8), (3, 64, 32)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_one_call(heads: int, length: int, depth: int, causal: bool) -> None:
    """Also where it looks whether what it multiplies is finite, as long as that is so."""
    shape = (heads, length, depth)
    q, k, v = (tapestry.input(name, shape) for name in "qkv")
    program = _prepared(tapestry.scaled_dot_product_attention(q, k, v, causal=causal))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for _ in "qkv"]
    _check(program, arrays)
    arrays[2][0, -1, 0] = np.inf
    (made,) = program(arrays)
    seen = np.isfinite(made[0, :, 0])
    assert seen.tolist() == [causal] * (length - 1) + [False]
    assert np.isfinite(made[1:]).all()


def test_pools_and_what_is_joined_are_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPESTRY_THREADS", "1")
    x = tapestry.input("x", (2, 3, 96, 96), "float32")
    y = tapestry.input("y", (2, 3, 48, 48), "float32")
    pooled = tapestry.max_pool2d(x, (2, 2), (2, 2))
    program = _prepared(tapestry.relu(tapestry.concat([pooled, y], axis=1)))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((2, 3, n, n)).astype("f4") for n in (96, 48)]
    _check(program, arrays)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tapestry.sum(x),
        lambda x: (tapestry.mean(x), tapestry.max(x)),
        lambda x: tapestry.sum(x, axis=0),
        lambda x: tapestry.sqrt(tapestry.sum(x * x)),
        lambda x: tapestry.argmax(x, axis=0),
        lambda x: tapestry.softmax(x, axis=1),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_parts_of_what_is_large_are_calls(function: Callable[..., Any], threads: int) -> None:
    """Those of a fold are each given to a thread, and their states merged by one."""
    shape = (1024, 1024)
    loops = Loops(1, OneByOne(threads))
    parts = partial(in_parts, products=False, loops=loops, cache=1 << 20)
    module = tapestry.compile(function(tapestry.input("x", shape, "float32"))).lowered
    program = PreparedProgram(module, Library(loops=loops), parts)
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    _check(program, [x])


_FLIPPED = """
!x = !loom.tensor<[0, 0] : [256, 64], f32>
!w = !loom.tensor<[0, 0] : [64, 128], f32>
!y = !loom.tensor<[0, 0] : [256, 128], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = loom.operation @product over <[0, 0, 0] : [256, 128, 64]> [map, map, fold] by @add
    ins(%x : (d0, d1, d2) -> (READ, d2), %w : (d0, d1, d2) -> (d2, d1))
    outs((d0, d1) -> (WRITE, d1))
    wrap (%a: f32, %b: f32) {
      %c = arith.addf %a, %a : f32
      %d = arith.mulf %c, %b : f32
      loom.yield %d : f32
    } : (!x, !w) -> !y
  func.return %y : !y
}
"""


@pytest.mark.parametrize(("read", "write"), [("255 - d0", "d0"), ("d0", "255 - d0")])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_begin_where_arrays_are_gone_along_backwards(
    read: str, write: str, threads: int
) -> None:
    """What a thread begins with is before the first cell of the array in memory."""
    loops = Loops(1, OneByOne(threads))
    text = _FLIPPED.replace("READ", read).replace("WRITE", write)
    program = PreparedProgram(parse_text(text), Library(loops=loops))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for shape in ((256, 64), (64, 128))]
    for _ in range(4):
        want = ((2 * arrays[0]) @ arrays[1])[::-1]
        np.testing.assert_allclose(program(arrays)[0], want, rtol=1e-4, atol=1e-4)
    assert program.run.linked is not None


def test_what_fails_again_and_again_is_for_the_script() -> None:
    shape = (2, 16, 8)
    q, k, v = (tapestry.input(name, shape) for name in "qkv")
    program = tapestry.compile(tapestry.scaled_dot_product_attention(q, k, v, causal=True))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for _ in "qkv"]
    program(*arrays)
    program(*arrays)
    prepared = PreparedProgram(program.lowered)
    prepared(arrays)
    assert prepared.run.at_once(arrays) is not None
    arrays[2][0, -1, 0] = np.inf
    for _ in range(5):
        made = prepared(arrays)[0]
        assert np.isfinite(made[0, :-1]).all()
        assert np.isinf(made[0, -1, 0])
        np.testing.assert_array_equal(program(*arrays), made)
    assert not prepared.run.linked.is_possible()
    assert prepared.run.linked.chain.failures == 3


def test_of_more_threads_there_may_be_more() -> None:
    team = OneByOne(1)
    x, w = (tapestry.input(name, (512, 512), "float32") for name in "xw")
    module = tapestry.compile(tapestry.relu((tapestry.exp(x) * x + x) @ w)).lowered
    program = PreparedProgram(module, Library(loops=Loops(1, team)))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((512, 512)).astype("f4") for _ in "xw"]
    want = program(arrays)[0].copy()
    for threads in (1, 3, 1, 2):
        team.threads = threads
        for _ in range(3):
            np.testing.assert_array_equal(program(arrays)[0], want)
        linked = program.run.linked
        assert linked is not None
        assert linked.threads is not None
        assert linked.threads[0] == threads
        assert linked.is_possible()


def test_boxes_are_read_by_calls_too() -> None:
    """And what is not there is for the script, which says so."""
    x, i = tapestry.input("x", (100, 64)), tapestry.input("i", (32,), "int64")
    program = _prepared(tapestry.softmax(tapestry.take(x, i) * 2 + 1, axis=1))
    cells = np.random.default_rng(0).standard_normal((100, 64)).astype("f4")
    places = np.arange(32) * 3
    _check_same(program, [cells, places])
    with pytest.raises(tapestry.TapestryError, match="out of range"):
        program([cells, places + 50])
    _check_same(program, [cells, places + 1])


def test_single_numbers_are_arrays_too() -> None:
    x, n = tapestry.input("x", SHAPE, "float32"), tapestry.input("n", (), "int64")
    program = _prepared((tapestry.softmax(x, axis=1) + 1, n + 1))
    for count in (np.array(5), np.array(-3)):
        _check_same(program, [*_inputs(1), count])


def _check_same(program: PreparedProgram, arrays: Sequence[Array]) -> None:
    for _ in range(3):
        for got, want in zip(program(arrays), _by_script(program, arrays), strict=True):
            np.testing.assert_array_equal(got, want)
    assert program.run.linked is not None


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


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 5), st.integers(0, 5)), max_size=5)
)
def test_any_program_gives_what_its_script_does(
    steps: list[tuple[Callable[..., Any], int, int]],
) -> None:
    values = _named(2)
    values.append(values[0] * values[1])
    for function, first, second in steps:
        values.append(function(values[first % len(values)], values[second % len(values)]))
    program = _prepared((values[-1], values[-2] * 2))
    arrays = _inputs(2)
    program(arrays)
    for given_arrays in (arrays, arrays[::-1], [arrays[0], arrays[0]]):
        made, want = program(given_arrays), _by_script(program, given_arrays)
        for got, one in zip(made, want, strict=True):
            np.testing.assert_array_equal(got, one)
