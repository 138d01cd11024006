"""A script gives what its functions give, at the first call and at all others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from tapestry.runtime.prepared import memory
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.views import plain_view

N = 3

_FUNCTIONS = {
    "add": (np.add, 2),
    "multiply": (np.multiply, 2),
    "negative": (np.negative, 1),
    "product": (np.matmul, 2),
    "fold": (lambda x: x.sum(0, keepdims=True) + x, 1),
    "same": (lambda x: x, 1),  # which may be a view of what it takes
}
_VIEWS = {
    "turned": lambda x: x.transpose(1, 0),
    "same": lambda x: x,
    "spread": lambda x: x[:, None][:, 0].reshape(1, N, N)[0],
    "reversed": lambda x: x[::-1],
    "merged": lambda x: x.reshape(N * N).reshape(N, N),
    "first": lambda x: np.broadcast_to(x[:1], x.shape),
    "windows": lambda x: sliding_window_view(x.reshape(N * N)[: 2 * N - 1], N),
}


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large is written into memory of the pool, and let go of early."""
    monkeypatch.setattr(memory, "_LARGE", 1)


@st.composite
def _lines(draw: st.DrawFn) -> tuple[list[tuple[str, str, list[int]]], list[int]]:
    """Lines of a script of two arguments and a constant, and its results."""
    lines: list[tuple[str, str, list[int]]] = []
    for slot in range(3, 3 + draw(st.integers(1, 8))):
        reads = st.integers(0, slot - 1)
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(_FUNCTIONS)))
            lines.append(("call", name, [draw(reads) for _ in range(_FUNCTIONS[name][1])]))
        else:
            lines.append(("view", draw(st.sampled_from(sorted(_VIEWS))), [draw(reads)]))
    ends = st.integers(0, 2 + len(lines))
    return lines, draw(st.lists(ends, min_size=1, max_size=3))


@given(_lines(), st.booleans())
def test_calls_give_what_the_functions_give(program, turned: bool) -> None:
    lines, results = program
    script = Script()
    slots = [script.argument(), script.argument(), script.constant(np.eye(N))]
    for how, name, ins in lines:
        read = [slots[n] for n in ins]
        if how == "call":
            slots.append(script.call(_FUNCTIONS[name][0], read, new=name == "product" or None))
        else:
            slots.append(script.view(_VIEWS[name], *read))
    run = script.finish([slots[n] for n in results])
    kept = []
    for call in range(3):
        x = np.random.default_rng(call).integers(-3, 4, (2, N, N)).astype("f8")
        a, b = (x[0].T if turned and call else x[0]), x[1]
        before = a.copy(), b.copy()
        values = [a.copy(), b.copy(), np.eye(N)]
        for how, name, ins in lines:
            function = _FUNCTIONS[name][0] if how == "call" else _VIEWS[name]
            values.append(np.array(function(*(values[n] for n in ins))))
        made = run([a, b])
        kept.append((made, [values[n] for n in results]))
        np.testing.assert_array_equal(a, before[0])
        np.testing.assert_array_equal(b, before[1])
        for have, want in kept:  # later calls leave the results of earlier ones alone
            for one, other in zip(have, want, strict=True):
                np.testing.assert_array_equal(one, other)


def test_results_are_written_over_what_is_needed_no_more() -> None:
    script = Script()
    x = script.argument()
    y = script.call(np.add, (x, x))
    run = script.finish([script.call(np.negative, (script.call(np.multiply, (y, y)),))], [x])
    run([np.ones(4)])
    given = np.ones(4)
    (made,) = run([given])
    assert made is given
    assert made.tolist() == [-4.0] * 4


def test_windows_that_overlap_are_not_written_over() -> None:
    script = Script()
    x, y = script.argument(), script.argument()
    doubled = script.call(np.add, (x, x))
    windows = script.view(lambda cells: as_strided(cells, (3, 4), 2 * cells.strides), doubled)
    run = script.finish([script.call(np.multiply, (windows, y))])
    given = [np.arange(6.0), np.full((3, 4), 2.0)]
    for _ in range(2):
        (made,) = run(given)
        assert made[:, 0].tolist() == [0, 4, 8]
        assert made[2].tolist() == [8, 12, 16, 20]


def test_views_that_turn_axes_are_one_function() -> None:
    x = np.zeros((1, 4, 5))
    (turned,) = plain_view(lambda a: a[0].reshape(4, 1, 5).transpose(2, 0, 1), x) or ()
    assert turned(np.arange(20).reshape(1, 4, 5))[3, 2].tolist() == [13]
    assert plain_view(lambda a: a.reshape(1, 4, 5), x) == ()
    assert plain_view(lambda a: a[0, 0], np.zeros((1, 1))) is None  # a number, not an array
    for other in (lambda a: a[:, ::2], lambda a: a + 1, lambda a: a.reshape(4 * 5), np.copy):
        assert plain_view(other, x) is None


def test_constants_that_are_results_are_not_written_to() -> None:
    script = Script()
    made = script.call(np.arange, (script.constant(4),))
    (turned,) = script.finish([script.view(lambda x: x[::-1], made)])([])
    assert not turned.flags.writeable
