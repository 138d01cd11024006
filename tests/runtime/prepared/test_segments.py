"""Programs some of whose functions are more than compiled code: all between them is linked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Graph
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop
from tapestry.runtime.prepared.script import Finished, Script, Whole
from tapestry.runtime.prepared.segments import Segment

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_SHAPE = (40, 48)


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


def test_arrays_that_lie_otherwise_later() -> None:
    script = Script()
    x, y = script.argument(), script.argument()
    one = script.call(_sorted, [x])
    two = _sum(script, one, y)
    three = _sum(script, two, y)
    whole = Whole(script.finish([three]))
    a, b = _given(2)
    for given in ([a, b], [a, b], [a, b], [a, np.asfortranarray(b)], [a, b]):
        (made,) = whole(given)
        np.testing.assert_array_equal(made, (np.sort(a, 0) + b) + b)
    assert len(_segments(whole.script)) == 1
