"""Prepared programs as plain data: what is read does what was written, and nothing else is read."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from tapestry.algebra.functions import as_dtype
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.stored import NotStorableError, restored, stored

_LAYERS = """
!t = !loom.tensor<[0, 0] : [16, 16], f32>
func.func @main(%x: !t, %w: !t) -> (!t, !t) {
  %h = weft.apply @matmul(%x, %w) : (!t, !t) -> !t
  %r = weft.apply @gelu(%h) : (!t) -> !t
  %s = weft.apply @softmax(%r) : (!t) -> !t
  func.return %r, %s : !t, !t
}
"""


@pytest.mark.parametrize("small", [0, 1 << 23])
def test_what_is_read_does_what_was_written(small: int) -> None:
    module = parse_text(_LAYERS)
    run_pipeline(module, "default")
    library = Library()
    parts = partial(in_parts, small=small, threads=2, cache=1024)
    prepared = PreparedProgram(module, library, parts)
    data = json.loads(json.dumps(stored(prepared.run, library)))
    same = restored(data, library)
    given = [np.random.default_rng(n).random((16, 16), np.float32) for n in range(2)]
    for _ in range(2):
        for want, have in zip(prepared(given), same(given), strict=True):
            np.testing.assert_array_equal(have, want)


def test_what_is_shared_stays_so_and_constants_stay_as_they_are() -> None:
    script = Script()
    x = script.argument()
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    same = partial(as_dtype, np.dtype("f8"))
    slot = script.constant(fixed)
    made = [script.call(same, (x,)), script.call(same, (x,)), slot]
    run = restored(stored(script.finish(made), Library()), Library())
    assert run.lines[0].function is run.lines[1].function
    assert not run.room[0].flags.writeable
    np.testing.assert_array_equal(run([np.float32([1, 2])])[1], [1, 2])


@pytest.mark.parametrize("number", [np.float64(3), np.complex128(2 - 1j), np.float32(1), 2.5, 1j])
def test_numbers_keep_their_types(number: complex) -> None:
    """`float64` is a float of Python's, which has no dtype."""
    data = json.loads(json.dumps(stored(partial(np.add, number), Library())))
    (read,) = restored(data, Library()).args
    assert type(read) is type(number)
    assert read == number


def test_the_functions_of_a_host_are_those_of_its_library() -> None:
    def multiply(a, b):
        return np.matmul(a, b)

    library = Library(multiply)
    data = stored(partial(multiply), library)
    other = Library()
    assert restored(data, library).func is multiply
    assert restored(data, other).func is np.matmul


def test_the_threads_of_a_host_are_those_of_its_library() -> None:
    class Team:
        def count(self) -> int:
            return 1

        def run(self, function: int, rows: object) -> None: ...

        def step(self, rows: object) -> None: ...

    library, other, without = (Library(loops=Loops(1, team)) for team in (Team(), Team(), None))
    data = stored(library.loops, library)
    assert restored(data, library) == library.loops
    assert restored(data, other) == other.loops
    with pytest.raises(LookupError):
        restored(data, without)


@pytest.mark.parametrize(
    "value", [lambda x: x, object(), np.zeros(1 << 14), np.array([None]), open]
)
def test_what_has_no_form_is_not_written(value: object) -> None:
    with pytest.raises(NotStorableError):
        stored(partial(np.add, value), Library())


@pytest.mark.parametrize(
    "row",
    [
        ["named", "os", "system"],
        ["named", "tapestry.runtime.cpu.threads", "share"],
        ["named", "tapestry.runtime.prepared.views", "partial"],
        ["named", "tapestry.runtime.prepared.views", "np"],
        ["object", "tapestry.runtime.prepared.cells", "masked", []],
        ["numpy", "load"],
        ["host", "system"],
        ["array", "float32", [2], "AAAA", True, True],
        ["exec", "1"],
        [],
    ],
)
def test_nothing_else_is_read(row: list[object]) -> None:
    with pytest.raises((AttributeError, LookupError, TypeError, ValueError)):
        restored({"rows": [row], "value": ["row", 0]}, Library())
