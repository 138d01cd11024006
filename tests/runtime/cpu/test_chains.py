"""Steps one after another by one call: in order, each with its addresses, whatever the arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.runtime.cpu import chains, native
from tapestry.runtime.cpu.addresses import IS_READABLE, address
from tapestry.runtime.cpu.chains import Chain
from tapestry.runtime.cpu.native import compiled
from tapestry.runtime.cpu.steps import Place, Step

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_ADD = """
define void @loop(ptr %row) {
  %from_at = getelementptr i64, ptr %row, i64 1
  %more_at = getelementptr i64, ptr %row, i64 2
  %into = load ptr, ptr %row
  %from = load ptr, ptr %from_at
  %more = load i64, ptr %more_at
  %x = load i64, ptr %from
  %y = add i64 %x, %more
  store i64 %y, ptr %into
  ret void
}
"""
"""A number somewhere is one that is somewhere else and a constant."""


def _add(more: int, into: Place, of: Place) -> Step:
    return Step(compiled(_ADD), (0, 0, more), ((0, into), (1, of)))


@pytest.mark.parametrize("count", [1, 2, 100])
def test_steps_are_called_in_order(count: int) -> None:
    # From the second number of x into z, on and on there, and from there into y.
    steps = [_add(3, Place(2, 0), Place(0, 8))]
    steps += [_add(1, Place(2, 0), Place(2, 0)) for _ in range(count)]
    steps += [_add(0, Place(1, 16), Place(2, 0))]
    chain = Chain(steps, 3)
    for start in (5, -7):
        x, y, z = np.array([0, start]), np.zeros(3, np.int64), np.zeros(1, np.int64)
        chain.run([x, y, z])
        assert y.tolist() == [0, 0, start + 3 + count]
        assert x.tolist() == [0, start]


def test_addresses_that_are_known_stay() -> None:
    held, y = np.array([41]), np.zeros(1, np.int64)
    step = Step(compiled(_ADD), (0, address(held), 1), ((0, Place(0, 0)),))
    Chain([step], 1).run([y])
    assert y.tolist() == [42]


def test_arrays_are_where_their_first_cell_is() -> None:
    x, y = np.arange(10), np.zeros(2, np.int64)
    Chain([_add(100, Place(1, 0), Place(0, 0))], 2).run([x[3::2], y[1:]])
    Chain([_add(200, Place(1, 0), Place(0, 0))], 2).run([x[::-1], y])
    assert y.tolist() == [209, 103]


def test_too_many_numbers_do_not_fit() -> None:
    step = _add(1, Place(0, 0), Place(1, 0))
    assert Chain.fits([step])
    assert not Chain.fits([step] * chains.LARGEST)


_FAIL = """
define void @loop(ptr %row) {
  %status = getelementptr i64, ptr %row, i64 1
  %from = load ptr, ptr %row
  %x = load i64, ptr %from
  store i64 %x, ptr %status
  ret void
}
"""
"""Fails where a number is not zero."""


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_step_that_fails_is_the_last(at: int) -> None:
    steps = [_add(1, Place(1, 8 * n), Place(0, 8)) for n in range(2)]
    steps.insert(at, Step(compiled(_FAIL), (0, 0), ((0, Place(0, 0)),), may_fail=True))
    chain = Chain(steps, 2)
    for status in (0, 1, 0, -1):  # each call says it of itself
        x, y = np.array([status, 6]), np.zeros(2, np.int64)
        assert chain.run([x, y]) == (status == 0)
        assert y.tolist() == [7 if status == 0 or n < at else 0 for n in range(2)]
        y[:] = 0
        assert chain.run_at([address(x), address(y)]) == (status == 0)


def test_what_is_told_where_arrays_are_does_the_same() -> None:
    x, y = np.array([0, 5]), np.zeros(3, np.int64)
    chain = Chain([_add(3, Place(1, 16), Place(0, 8))], 2)
    chain.run_at([address(x), address(y)])
    assert y.tolist() == [0, 0, 8]


class _Own(np.ndarray):
    """An array of a type of its own."""


readable = pytest.mark.skipif(not IS_READABLE, reason="arrays are not looked into here")


@readable
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(np.arange(6).reshape(2, 3), id="shape"),
        pytest.param(np.arange(6).reshape(3, 2), id="strides"),
        pytest.param(np.arange(6), id="rank"),
        pytest.param(np.arange(6).reshape(2, 3).astype(np.uint64).T, id="dtype"),
        pytest.param(np.arange(6).astype(">i8").reshape(2, 3).T, id="order of bytes"),
        pytest.param(np.arange(6).reshape(2, 3).T.view(_Own), id="type"),
        pytest.param(np.int64(6), id="number"),
        pytest.param([[0, 3], [1, 4], [2, 5]], id="list"),
        pytest.param(None, id="nothing"),
        pytest.param(7, id="integer"),
    ],
)
@pytest.mark.parametrize("may_fail", [False, True])
def test_arrays_unlike_those_that_there_were_are_left(other: object, *, may_fail: bool) -> None:
    x, n, y = np.arange(6).reshape(2, 3).T, np.array(3), np.zeros(1, np.int64)
    steps = [_add(3, Place(2, 0), Place(1, 0)), _add(0, Place(2, 0), Place(0, 8))]
    if may_fail:
        steps.append(Step(compiled(_FAIL), (0, 0), ((0, Place(0, 0)),), may_fail=True))
    chain = Chain(steps, 3, [x, n])
    for given in ([other, n, y], [x, other, y], [other, other, y]):
        assert not chain.run_alike(given)
        assert y.tolist() == [0]
    assert chain.run_alike([x, n, y])
    assert chain.run_alike([x.copy(order="K") + 1, np.array(5), y]) == (not may_fail)
    assert y.tolist() == [2]  # the second cell in memory
    assert chain.failures == may_fail


@readable
def test_arrays_of_no_rank_and_of_none() -> None:
    n, y = np.array(3), np.zeros(1, np.int64)
    chain = Chain([_add(3, Place(1, 0), Place(0, 0))], 2, [n])
    assert chain.run_alike([np.array(8), y])
    assert y.tolist() == [11]
    assert Chain([_add(3, Place(0, 0), Place(0, 0))], 1).run_alike([y])
    assert y.tolist() == [14]
