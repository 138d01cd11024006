"""Tapes played again and again: in the same memory, with the same results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

import tapestry
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.tapes import frames
from tapestry.runtime.prepared.tapes.frames import Frame
from tapestry.runtime.prepared.tapes.tape import Tape

Trace: TypeAlias = Callable[[FrameType, str, Any], Any]


def _chain() -> tuple[Tape, int]:
    """exp((x + 1) * x) + (x + 1)"""
    tape = Tape()
    x = tape.source()
    one = tape.constant(np.float32(1))
    more = tape.call(np.add, (x, one), "x + 1")
    y = tape.call(np.exp, (tape.call(np.multiply, (more, x)),))
    return tape, tape.call(np.add, (y, tape.call(np.add, (x, one), "x + 1")))


def test_the_same_call_is_written_once() -> None:
    tape, _ = _chain()
    assert [call.function for call in tape.calls] == [np.add, np.multiply, np.exp, np.add]


def test_every_part_is_computed_in_the_memory_of_the_first() -> None:
    tape, y = _chain()
    frame = Frame(tape, [y])
    random = np.random.default_rng(0)
    for _ in range(3):
        x = random.standard_normal((64, 32)).astype("f4")
        out = np.empty_like(x)
        frame.play([x], [out])
        np.testing.assert_array_equal(out, np.exp((x + 1) * x) + (x + 1))


def test_results_are_written_over_what_nothing_needs() -> None:
    tape = Tape()
    x = tape.source()
    y = x
    for _ in range(5):
        y = tape.call(np.negative, (y,))
    frame = Frame(tape, [y])
    for _ in range(2):
        (state,) = frame.state([np.ones((100, 100))])
        np.testing.assert_array_equal(state, -1)
        held = [value for value in frame._values if isinstance(value, np.ndarray)]
        assert len({value.ctypes.data for value in held}) == 1  # five results in one place


def test_an_output_is_computed_in_its_own_memory() -> None:
    tape = Tape()
    x = tape.source()
    y = x
    for _ in range(5):
        y = tape.call(np.negative, (y,))
    frame = Frame(tape, [y])
    x, out = np.ones((100, 100)), np.empty((100, 100))
    for _ in range(2):
        frame.play([x], [out])
        np.testing.assert_array_equal(out, -1)
        assert not any(isinstance(value, np.ndarray) for value in frame._values)


def test_what_is_still_read_is_not_written_over() -> None:
    tape = Tape()
    x = tape.source()
    y = tape.call(np.negative, (x,))
    turned = tape.view(np.transpose, y)
    z = tape.call(np.exp, (y,))
    out = tape.call(np.add, (turned, z))
    frame = Frame(tape, [out])
    for scale in (1.0, 2.0):
        x = scale * np.arange(16.0).reshape(4, 4)
        made = np.empty((4, 4))
        frame.play([x], [made])
        np.testing.assert_array_equal(made, -x.T + np.exp(-x))


def test_the_arrays_of_a_call_are_let_go_of() -> None:
    tape, y = _chain()
    frame = Frame(tape, [y])
    x, out = np.ones((8, 8), "f4"), np.empty((8, 8), "f4")
    for _ in range(2):
        frame.play([x], [out])
        assert not any(np.shares_memory(v, x) for v in frame._values if v is not None)
        assert not any(np.shares_memory(v, out) for v in frame._values if v is not None)


def test_a_state_is_an_array_of_its_own() -> None:
    tape = Tape()
    x = tape.source()
    frame = Frame(tape, [tape.call(np.negative, (x,))])
    first, second = (frame.state([np.full((3, 3), n)])[0] for n in (1.0, 2.0))
    assert (first[0, 0], second[0, 0]) == (-1, -2)


def test_what_is_seen_in_another_shape_is_written_over_too() -> None:
    tape = Tape()
    x = tape.source()
    product = tape.call(np.matmul, (x, x))
    apart = tape.view(lambda value: value.reshape(4, 1, 4), product)
    made = tape.call(np.exp, (tape.call(np.negative, (apart,)),))
    frame = Frame(tape, [made])
    for scale in (1.0, 2.0):
        x = scale * np.ones((4, 4))
        (out,) = frame.state([x])
        np.testing.assert_allclose(out[:, 0], np.exp(-(x @ x)))
    assert frame._values[product].ctypes.data == frame._values[3].ctypes.data


def test_an_output_is_computed_in_its_own_memory_from_the_product_on() -> None:
    tape = Tape()
    x, w, b = (tape.source() for _ in range(3))
    product = tape.call(np.matmul, (x, w))
    apart = tape.view(lambda value: value.reshape(8, 6, 1), product)
    made = tape.call(np.exp, (tape.call(np.add, (apart, b)),))
    frame = Frame(tape, [made])
    random = np.random.default_rng(0)
    whole = np.zeros((8, 12, 1))
    for first in (0, 6, 0):
        x, w, b = random.random((8, 5)), random.random((5, 6)), random.random((1, 6, 1))
        out = whole[:, first : first + 6]
        frame.play([x, w, b], [out])
        np.testing.assert_allclose(out, np.exp((x @ w)[..., None] + b))
    assert frame._plan is not None
    assert frame._plan.direct.keys() >= {product, made}


def test_a_product_that_lies_another_way_is_not_computed_there() -> None:
    tape = Tape()
    x, w = tape.source(), tape.source()
    turned = tape.view(lambda value: value.T, tape.call(np.matmul, (x, w)))
    made = tape.call(np.exp, (turned,))
    frame = Frame(tape, [made])
    for scale in (1.0, 2.0):
        x, w, out = scale * np.arange(9.0).reshape(3, 3), np.eye(3), np.empty((3, 3))
        frame.play([x, w], [out])
        np.testing.assert_allclose(out, np.exp(x @ w).T)


def test_a_frame_that_plays_within_another_has_memory_of_its_own() -> None:
    """As where a signal's handler runs a program: what the outer one has in between stays."""
    tapes = [_chain() for _ in range(2)]
    inner, outer = (Frame(tape, [y]) for tape, y in tapes)
    x, within = np.float32([[0.5, 1, 2]]), np.float32([[3, 4, 5]])
    want, told = (np.exp((one + 1) * one) + (one + 1) for one in (x, within))
    made, also = np.empty_like(x), np.empty_like(x)
    tape, _ = tapes[1]
    exp = tape.calls[2]

    def interrupted(*given: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        also[:] = 0
        inner.play([within], [also])
        np.testing.assert_array_equal(also, told)
        return np.exp(*given) if out is None else np.exp(*given, out=out)

    tape.calls[2] = replace(exp, function=interrupted)
    for _ in range(3):
        outer.play([x], [made])
        np.testing.assert_array_equal(made, want)


def test_a_program_may_be_called_while_it_is_called() -> None:
    """At some of the lines of what plays its parts."""
    x = tapestry.input("x", (16, 40), "float32")
    program = tapestry.compile(tapestry.softmax(x * x, axis=1) + tapestry.exp(x) * x)
    parts = partial(in_parts, small=0, threads=1, cache=1024, loops=None)
    run = PreparedProgram(program.lowered, Library(loops=None), parts).run.in_turn
    random = np.random.default_rng(0)
    one, other = (random.standard_normal((16, 40)).astype("f4") for _ in range(2))
    (want,), (told,) = run([one]), run([other])
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Trace | None:
        nonlocal lines
        del argument
        if frame.f_code.co_filename != frames.__file__:
            return None
        if event == "line":
            lines += 1
            if lines % 7 == 1:
                sys.settrace(None)
                np.testing.assert_array_equal(run([other])[0], told)
                sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        (made,) = run([one])
    finally:
        sys.settrace(before)
    np.testing.assert_array_equal(made, want)
    assert lines > 50
