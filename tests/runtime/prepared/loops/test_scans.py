"""Scans in loops: states along any axis of arrays that lie anywhere, by any monoid, in order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.codegen.loops import Cell, Graph, Merged
from tapestry.codegen.loops.vectors import Value, Writer
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.loop import Loop
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tests.runtime.prepared.loops.test_loops import _placed

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _composed(write: Writer, left: list[Value], right: list[Value]) -> list[Value]:
    """x -> a x + b, and then another one: they do not commute."""
    (a, b), (c, d) = left, right
    return [write.binary("mul", a, c), write.binary("add", write.binary("mul", c, b), d)]


def _composition(a: Array, b: Array, axis: int) -> tuple[Array, Array]:
    a, b = np.moveaxis(a, axis, 0).copy(), np.moveaxis(b, axis, 0).copy()
    with np.errstate(over="ignore"):
        for n in range(1, len(a)):
            a[n], b[n] = a[n - 1] * a[n], a[n] * b[n - 1] + b[n]
    return np.moveaxis(a, 0, axis), np.moveaxis(b, 0, axis)


_SUM = Cell(lambda write, values: write.binary("add", *values), (0, 1), "i64")
_COMPOSED = Graph(
    ("i64", "i64"), (), (_SUM,), (2,), (Merged((0, 2), _composed, (1, 0)),), running=True
)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_axis_of_arrays_that_lie_anywhere(data: st.DataObject) -> None:
    sizes = st.lists(st.sampled_from([1, 2, 3, 31, 33, 70]), min_size=1, max_size=3)
    shape = tuple(data.draw(sizes))
    axis = data.draw(st.integers(0, len(shape) - 1))
    random, given = np.random.default_rng(data.draw(st.integers(0, 99))), list[Array]()
    for _ in range(2):
        own = [data.draw(st.sampled_from([1, extent])) for extent in shape]
        given.append(_placed(random.integers(-9, 10, own), data.draw(st.integers(0, 4))))
    total, a, b = Loop(_COMPOSED, shape, (axis,))(given)
    x, y = (np.broadcast_to(one, shape) for one in given)
    np.testing.assert_array_equal(total, x + y)
    for have, want in zip((a, b), _composition(x, x + y, axis), strict=True):
        np.testing.assert_array_equal(have, want)


_RECURRENCE = """
loom.monoid @affine zero [1 : i32, 0 : i32]
    merge (%a: i32, %b: i32, %c: i32, %d: i32) {
  %ac = arith.muli %a, %c : i32
  %cb = arith.muli %c, %b : i32
  %e = arith.addi %cb, %d : i32
  loom.yield %ac, %e : i32, i32
}
!x = !loom.tensor<[2, 1] : [7, 70], i32>
!y = !loom.tensor<[2, 1] : [7, 70], i64>
func.func @main(%x: !x) -> (!y, !x) {
  %y = loom.operation @recurrence over <[2, 1] : [7, 70]> [KINDS] by @affine
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1)) domain(d0 + d1 >= 6)
         wrap (%c: i32) {
           %three = arith.constant 3 : i32
           loom.yield %three, %c : i32, i32
         }
         unwrap (%a: i32, %b: i32) { %w = arith.extsi %b : i32 to i64 loom.yield %w : i64 }
         : (!x) -> !y
  %z = loom.operation @largest over <[2, 1] : [7, 70]> [KINDS] by @max
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: i32) { loom.yield %c : i32 } : (!x) -> !x
  func.return %y, %z : !y, !x
}
"""


@pytest.mark.parametrize("kinds", ["map, scan", "scan, map"])
@pytest.mark.parametrize("loops", [Loops(0), None])
@pytest.mark.parametrize("cache", [1, 1 << 20])
@pytest.mark.parametrize("pipeline", ["", "loom-simplify,loom-fuse,loom-group"])
def test_programs(kinds: str, loops: Loops | None, cache: int, pipeline: str) -> None:
    """Points outside count nothing, and states go on over them."""
    text = _RECURRENCE.replace("KINDS", kinds)
    inputs = {"x": np.random.default_rng(0).integers(-9, 10, (5, 69), np.int32)}
    want = find_executor("reference").run(parse_text(text), inputs, NoWatch()).outputs
    module = parse_text(text)
    run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=2, cache=cache, loops=loops)
    prepared = PreparedProgram(module, parts=parts)
    assert not prepared.left
    for _ in range(2):
        for have, expected in zip(prepared([inputs["x"]]), want, strict=True):
            np.testing.assert_array_equal(have, expected)


def test_sums_are_as_near_as_those_of_numpy() -> None:
    graph = Graph(("float",), (), (), (), (_ADDED,), running=True)
    loop = Loop(graph, (1 << 16,), (0,))
    for seed in range(4):
        x = np.random.default_rng(seed).random(1 << 16).astype("f4")
        want = x.astype("f8").cumsum()
        assert np.abs(loop([x])[0] - want).max() <= np.abs(x.cumsum() - want).max()


@pytest.mark.parametrize("monoid", ["add", "mul"])
@pytest.mark.parametrize("rows", [2, 2048])
def test_floats_are_merged_one_by_one(monoid: str, rows: int) -> None:
    """Of three cells, the last two would overflow, or vanish, before the first one counts."""
    cells = {"add": [-3e38, 3e38, 3e38], "mul": [1e30, 1e-30, 1e-30]}[monoid]
    how = {"add": np.add, "mul": np.multiply}[monoid]
    x = np.full((rows, 70), how.identity, "f4")
    x[:, 40:43] = cells
    module = parse_text(f"""
!x = !loom.tensor<[0, 0] : [{rows}, 70], f32>
func.func @main(%x: !x) -> !x {{
  %y = loom.operation @scan over <[0, 0] : [{rows}, 70]> [map, scan] by @{monoid}
         ins(%x : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%c: f32) {{ loom.yield %c : f32 }} : (!x) -> !x
  func.return %y : !x
}}
""")
    prepared = PreparedProgram(module, parts=partial(in_parts, loops=Loops(0)))
    for _ in range(2):
        np.testing.assert_array_equal(prepared([x])[0], how.accumulate(x, axis=1))


_ADDED = Merged((0,), lambda write, a, b: [write.binary("fadd", a[0], b[0])], (0.0,))
