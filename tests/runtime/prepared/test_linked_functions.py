"""What functions of a script are compiled code alone: loops, products, parts, pools, and boxes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.copying import ready_copy
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.tapes import driven
from tests.runtime.prepared.linked import (
    SHAPE,
    check,
    check_same,
    inputs,
    prepared,
)
from tests.runtime.prepared.tapes.test_driven import HEADS
from tests.runtime.prepared.teams import OneByOne

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def test_factors_that_are_computed_are_one_loop_beside_others() -> None:
    shapes = {"x": (128, 512), "g": (512,), "b": (512,), "w": (512, 512)}
    x, g, b, w = (tapestry.input(name, shape) for name, shape in shapes.items())
    program = prepared(tapestry.relu((x * g + b) @ w))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for shape in shapes.values()]
    check(program, arrays)
    linked = program.run.linked
    assert linked is not None
    assert len(linked.chain.steps) == 3  # the factor, the product, and what is done with sums


@pytest.mark.parametrize(("heads", "length", "depth"), [(2, 16, 8), (3, 64, 32)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_one_call(heads: int, length: int, depth: int, causal: bool) -> None:
    """Also where it looks whether what it multiplies is finite, as long as that is so."""
    shape = (heads, length, depth)
    q, k, v = (tapestry.input(name, shape) for name in "qkv")
    program = prepared(tapestry.scaled_dot_product_attention(q, k, v, causal=causal))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for _ in "qkv"]
    check(program, arrays)
    arrays[2][0, -1, 0] = np.inf
    (made,) = program(arrays)
    seen = np.isfinite(made[0, :, 0])
    assert seen.tolist() == [causal] * (length - 1) + [False]
    assert np.isfinite(made[1:]).all()


@pytest.mark.parametrize("rows", [40, 400])
def test_what_is_copied_in_order_is_a_call(rows: int) -> None:
    """A product that is turned before its cells are in another shape, and an input that is."""
    shapes = {"x": (rows, 64), "w": (64, 80), "v": (rows, 5), "u": (64, 3)}
    x, w, v, u = (tapestry.input(name, shape) for name, shape in shapes.items())
    turned = np.reshape(np.transpose(x @ w), (80, rows)) @ v
    shifted = np.reshape(np.transpose(x), (rows, 64)) @ u
    other = np.reshape(np.transpose(x @ w), (rows, 80))[:, :64] @ u
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for shape in shapes.values()]
    program = prepared([turned, shifted, other])
    check(program, arrays)
    (*_, made) = program(arrays)
    wanted = (arrays[0] @ arrays[1]).T.reshape(rows, 80)[:, :64] @ arrays[3]
    np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-3)


def test_pools_and_what_is_joined_are_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPESTRY_THREADS", "1")
    x = tapestry.input("x", (2, 3, 96, 96), "float32")
    y = tapestry.input("y", (2, 3, 48, 48), "float32")
    pooled = tapestry.max_pool2d(x, (2, 2), (2, 2))
    program = prepared(tapestry.relu(tapestry.concat([pooled, y], axis=1)))
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((2, 3, n, n)).astype("f4") for n in (96, 48)]
    check(program, arrays)


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
    check(program, [x])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("pipeline", "cache"),
    [("weft-apply,loom-simplify,loom-fuse,loom-group", 4096), ("default", 1 << 20)],
)
def test_threads_copy_heads_of_their_own_sequences(
    pipeline: str, cache: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each to memory of its own, to be rows that a matrix multiplies; or rows to the output."""
    copied: list[object] = []

    def noted(*given: Any) -> Any:
        copied.append(given)
        return ready_copy(*given)

    monkeypatch.setattr(driven, "ready_copy", noted)
    module = parse_text(HEADS)
    run_pipeline(module, pipeline)
    loops = Loops(1, OneByOne(threads))
    parts = partial(in_parts, small=0, cache=cache, loops=loops)
    program = PreparedProgram(module, Library(loops=loops), parts)
    random, heads = np.random.default_rng(0), (3, 2, 20, 16)
    shapes = (heads, heads, heads, (2, 16, 24))
    q, k, v, w = (random.standard_normal(shape).astype("f4") for shape in shapes)
    check(program, [q, k, v, w])
    assert copied
    scores = np.exp(q @ k.swapaxes(2, 3) / 4)
    want = np.einsum("bhid,hdn->bin", scores / scores.sum(-1, keepdims=True) @ v, w)
    np.testing.assert_allclose(program([q, k, v, w])[0], want, rtol=1e-4, atol=1e-4)


_GATHERED = """
!x = !loom.tensor<[0, 0, 0] : [6, 40, 32], f32>
!w = !loom.tensor<[0, 0, 0] : [8, 32, 48], f32>
!i = !loom.tensor<[0] : [6], i64>
!y = !loom.tensor<[0, 0, 0] : [6, 40, 48], f32>
func.func @main(%x: !x, %w: !w, %at: !i) -> !y {
  %y = loom.operation @experts over <[0, 0, 0, 0] : [6, 40, 48, 32]> [map, map, map, fold] by @add
    ins(%x : (b, i, n, k) -> (b, i, k), %w : (b, i, n, k) -> (0, k, n) :> [8, 1, 1],
        %at : (b, i, n, k) -> (b))
    outs((b, i, n) -> (b, i, n))
    wrap (%a: f32, %rows: !loom.block<[8, 1, 1], f32>, %j: i64) {
      %zero = arith.constant 0 : i64
      %c = loom.read %rows[%j, %zero, %zero] : f32
      %p = arith.mulf %a, %c : f32
      loom.yield %p : f32
    } : (!x, !w, !i) -> !y
  func.return %y : !y
}
"""


@pytest.mark.parametrize("products", [True, False])
def test_factors_that_are_read_at_computed_places(products: bool) -> None:
    """A matrix for each of a batch, out of some; also where another library multiplies."""
    loops = Loops(1)
    parts = partial(in_parts, threads=1, products=products, loops=loops)
    program = PreparedProgram(parse_text(_GATHERED), Library(loops=loops), parts)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype("f4") for shape in ((6, 40, 32), (8, 32, 48)))
    for at in (np.array([7, 0, 3, 3, 1, 2]), np.arange(6)):
        check(program, [x, w, at])
        np.testing.assert_allclose(program([x, w, at])[0], x @ w[at], rtol=1e-4, atol=1e-4)
    with pytest.raises(BlockIndexError, match="index 8 is out of range"):
        program([x, w, np.full(6, 8)])


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
    program = prepared(tapestry.softmax(tapestry.take(x, i) * 2 + 1, axis=1))
    cells = np.random.default_rng(0).standard_normal((100, 64)).astype("f4")
    places = np.arange(32) * 3
    check_same(program, [cells, places])
    with pytest.raises(tapestry.TapestryError, match="out of range"):
        program([cells, places + 50])
    check_same(program, [cells, places + 1])


def test_single_numbers_are_arrays_too() -> None:
    x, n = tapestry.input("x", SHAPE, "float32"), tapestry.input("n", (), "int64")
    program = prepared((tapestry.softmax(x, axis=1) + 1, n + 1))
    for count in (np.array(5), np.array(-3)):
        check_same(program, [*inputs(1), count])
