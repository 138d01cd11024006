"""Programs some of whose functions are more than compiled code: all between them is linked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Graph
from tapestry.frontend import parse_text
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared import PreparedProgram, segments
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.loop import Loop
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.script import Finished, Script, Whole
from tapestry.runtime.prepared.segments import Segment

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_SHAPE = (40, 48)


_LOOKED_UP = """
!x = !loom.tensor<[0, 0] : [50, 8], f32>
!i = !loom.tensor<[0, 0] : [900, 8], i64>
!y = !loom.tensor<[0, 0] : [900, 8], f32>
func.func @main(%x: !x, %i: !i) -> !y {
  %a = loom.operation @doubled over <[0, 0] : [50, 8]> [map, map]
    ins(%x : (i, k) -> (i, k)) outs((i, k) -> (i, k))
    wrap (%c: f32) { %d = arith.addf %c, %c : f32  loom.yield %d : f32 } : (!x) -> !x
  %b = loom.operation @read over <[0, 0] : [900, 8]> [map, map]
    ins(%a : (i, k) -> (0, k) :> [50, 1], %i : (i, k) -> (i, k)) outs((i, k) -> (i, k))
    wrap (%rows: !loom.block<[50, 1], f32>, %j: i64) {
      %zero = arith.constant 0 : i64
      %half = arith.constant 0.5 : f32
      %c = loom.read %rows[%j, %zero] : f32
      %d = arith.mulf %c, %half : f32
      loom.yield %d : f32
    } : (!x, !i) -> !y
  %s = loom.external @sort over <[0] : [900]> ins(%b : (i) -> (i, 0) :> [1, 8])
    outs((i) -> (i, 0) :> [1, 8]) : (!y) -> !y
  func.return %s : !y
}
"""


class _Looped:
    """A sum of two arrays by a loop."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        cell = Cell(lambda write, values: write.binary("fadd", *values), (0, 1), "float")
        self._loop = Loop(Graph(("float", "float"), (), (cell,), (2,)), shape)

    def __call__(self, given: Sequence[Any]) -> Sequence[Array]:
        return self._loop(given)

    def traced(self, given: Sequence[Array]) -> Any:
        return self._loop.traced(given)


def _sum(script: Script, one: int, other: int, shape: tuple[int, ...] = _SHAPE) -> int:
    return script.calls(_Looped(shape), [one, other], 1, new=True)[0]


def _sorted(array: Array) -> Array:
    return np.sort(array, 0)


def _sorted_and_two_sums() -> tuple[Script, int]:
    """A script of two arguments, and the slot of its result."""
    script = Script()
    x, y = script.argument(), script.argument()
    one = script.call(_sorted, [x])
    two = _sum(script, one, y)
    three = _sum(script, two, y)
    return script, three


def _given(count: int) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(_SHAPE).astype("f4") for _ in range(count)]


def _segments(script: Finished) -> list[Segment]:
    return [line.function for line in script.lines if isinstance(line.function, Segment)]


def _check(script: Script, results: Sequence[int], given: Sequence[Array]) -> list[Segment]:
    """What calls give is what the first one does; the segments, all of which are linked."""
    whole = Whole(script.finish(results))
    other = [one[::-1].copy() for one in given]
    want, wanted = (
        [np.array(one) for one in whole.script.again()(each)] for each in (given, other)
    )
    for _ in range(4):
        for made, by in zip(whole(given), want, strict=True):
            np.testing.assert_array_equal(made, by)
    for made, by in zip(whole(other), wanted, strict=True):
        np.testing.assert_array_equal(made, by)
    assert whole.linked is None
    found = _segments(whole.script)
    assert all(one.whole.linked is not None for one in found)
    return found


def test_what_is_before_and_after() -> None:
    script = Script()
    x, y = script.argument(), script.argument()
    one = _sum(script, x, y)
    two = _sum(script, one, y)
    three = script.call(_sorted, [two])
    four = _sum(script, three, one)
    five = _sum(script, four, two)
    (first, second) = _check(script, [five, one], _given(2))
    assert [len(each.whole.script.lines) for each in (first, second)] == [2, 2]
    # What is read after the sort, and given back: not what only the next function reads.
    assert [len(each.whole.script.results) for each in (first, second)] == [2, 1]


def test_views_are_made_where_they_are_read() -> None:
    script = Script()
    x, y = script.argument(), script.argument()
    turned = script.view(np.transpose, y)
    back = script.view(np.transpose, turned)
    one = _sum(script, x, back)
    across = script.view(np.transpose, one)
    two = _sum(script, turned, across, _SHAPE[::-1])
    three = script.call(_sorted, [script.view(np.transpose, two)])
    four = _sum(script, three, script.view(np.transpose, across))
    five = _sum(script, four, one)
    assert len(_check(script, [five, script.view(np.transpose, two), across], _given(2))) == 2


def test_too_few_stay_as_they_are() -> None:
    script = Script()
    x, y = script.argument(), script.argument()
    seen = script.view(np.transpose, x)
    one = _sum(script, script.view(np.transpose, seen), y)
    two = script.call(_sorted, [one])
    three = _sum(script, two, script.constant(np.ones(_SHAPE, "f4")))
    assert not _check(script, [three], _given(2))


def test_constants_are_those_of_the_segments() -> None:
    script = Script()
    x = script.argument()
    ones = script.constant(np.ones(_SHAPE, "f4"))
    one = script.call(_sorted, [x])
    two = _sum(script, one, ones)
    three = _sum(script, two, ones)
    four = script.call(_sorted, [three])
    found = _check(script, [four, two], _given(1))
    assert len(found) == 1
    assert len(found[0].whole.script.results) == 2


def test_a_value_that_is_no_array() -> None:
    """A function may make anything that others take."""
    script = Script()
    x, y = script.argument(), script.argument()
    pair = script.call(lambda array: (array, 2), [x])
    one = script.call(lambda given, array: given[0] * given[1] + array, [pair, y])
    two = _sum(script, one, x)
    three = _sum(script, two, y)
    assert len(_check(script, [three], _given(2))) == 1


@pytest.mark.parametrize("is_sorted", [False, True])
def test_what_is_too_much_to_link_is_called_in_turn(is_sorted: bool) -> None:
    """All of a program may be compiled code, or a run of it, with too much between functions."""
    shape = (1024, 1536)
    script = Script()
    x, y = script.argument(), script.argument()
    one = _sum(script, x, y, shape)
    two = _sum(script, one, x, shape)
    three = _sum(script, two, one, shape)
    last = script.call(_sorted, [three]) if is_sorted else three
    whole = Whole(script.finish([last]))
    a, b = (np.full(shape, n, "f4") for n in (1, 2))
    for _ in range(5):
        (made,) = whole([a, b])
        np.testing.assert_array_equal(made, np.full(shape, 7, "f4"))
    assert whole.linked is None


def test_without_memory_all_is_called_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Array:
        raise MemoryError

    monkeypatch.setattr(segments, "like", fail)
    script, three = _sorted_and_two_sums()
    assert not _check(script, [three], _given(2))


def test_numbers_that_nobody_wrote_are_no_news() -> None:
    """Programs are traced on memory as it is, which may hold what cannot be converted."""

    def converted(array: Array) -> Array:
        return (array + np.float32(70000)).astype(np.float16)

    script = Script()
    x, y = script.argument(), script.argument()
    one = script.call(_sorted, [x])
    two = script.view(converted, one)
    three = _sum(script, script.call(lambda a: a.astype("f4"), [two]), y)
    four = _sum(script, three, y)
    whole = Whole(script.finish([four]))
    x, y = _given(2)
    with np.errstate(all="raise"):
        for _ in range(3):
            (made,) = whole([x, y])
    assert len(_segments(whole.script)) == 1
    np.testing.assert_array_equal(made, np.full(_SHAPE, np.inf))


def test_a_failure_in_a_segment_is_said() -> None:
    """A function that fails at some cells fails in its segment, which is called in turn then."""
    program = PreparedProgram(
        parse_text(_LOOKED_UP), Library(loops=Loops(1)), partial(in_parts, loops=Loops(1))
    )
    random = np.random.default_rng(0)
    x, places = random.standard_normal((50, 8)).astype("f4"), random.integers(0, 50, (900, 8))
    want = np.sort(np.take_along_axis(x, places, 0), 1)
    for _ in range(4):
        (made, *_) = program([x, places])
        np.testing.assert_array_equal(made, want)
    assert _segments(program.run.script)
    wrong = places.copy()
    wrong[5, 2] = 50
    for _ in range(2):
        with pytest.raises(BlockIndexError, match="index 50 is out of range"):
            program([x, wrong])
        np.testing.assert_array_equal(program([x, places])[0], want)


def test_threads_whose_calls_meet() -> None:
    script, three = _sorted_and_two_sums()
    whole = Whole(script.finish([three]))
    given = _given(2)
    want = np.sort(given[0], 0) + given[1] + given[1]
    with ThreadPoolExecutor(4) as pool:
        for (made,) in pool.map(whole, [given] * 40):
            np.testing.assert_array_equal(made, want)


def test_arrays_that_lie_otherwise_later() -> None:
    script, three = _sorted_and_two_sums()
    whole = Whole(script.finish([three]))
    a, b = _given(2)
    for given in ([a, b], [a, b], [a, b], [a, np.asfortranarray(b)], [a, b]):
        (made,) = whole(given)
        np.testing.assert_array_equal(made, (np.sort(a, 0) + b) + b)
    assert len(_segments(whole.script)) == 1
