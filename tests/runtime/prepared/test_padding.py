"""Arrays with a number outside, by NumPy and as compiled functions, and programs that read them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.linking import link
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.padding import Padding
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.script import Script, Whole
from tapestry.runtime.prepared.stored import restored, stored
from tapestry.zspace import Range

_PADDINGS = {
    "sides": (Range((0, 0), (5, 7)), Range((-1, -2), (6, 10))),
    "one side": (Range((0, 0), (5, 7)), Range((0, 0), (5, 8))),
    "a part": (Range((2, 0), (7, 7)), Range((0, 3), (4, 9))),
    "elsewhere": (Range((0, 0), (5, 7)), Range((5, 0), (9, 7))),
}


@pytest.mark.parametrize("case", _PADDINGS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?", "c16"])
def test_numbers_outside(case: str, dtype: str) -> None:
    box, over = _PADDINGS[case]
    x = np.random.default_rng(0).integers(0, 100, box.shape).astype(dtype)
    fill = np.asarray(1, dtype)
    padding = Padding(box, over, fill)
    want = np.full(over.shape, fill)
    for point in over.coords():
        if box.contains(point):
            at = tuple(n - low for n, low in zip(point, box.start, strict=True))
            want[tuple(n - low for n, low in zip(point, over.start, strict=True))] = x[at]
    np.testing.assert_array_equal(padding(x), want)
    again = restored(stored(padding, Library()), Library())
    np.testing.assert_array_equal(again(x.T.copy().T), want)
    if dtype == "c16" or not native.is_ready():
        assert padding.traced([x]) is None
        return
    script = Script()
    number = Padding(box, over, fill[()])  # which is no array, and nowhere for long
    whole = Whole(script.finish([script.call(number, [script.argument()], new=True)]))
    linked = link(whole, [x])
    assert linked is not None
    made = linked([x])
    assert made is not None
    np.testing.assert_array_equal(made[0], want)


_SHIFTED = """
!x = !loom.tensor<[0, 0] : [60, 64], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @turned over <[0, 0, 0] : [60, 4, 16]> [map, map, map]
       ins(%x : (i, h, k) -> (i, 16 * h + k + 8) clip 7.0 : f32,
           %x : (i, h, k) -> (i, 16 * h + k - 8) clip -1.0 : f32)
       outs((i, h, k) -> (i, 16 * h + k))
       wrap (%a: f32, %b: f32) {
         %s = math.sin %a : f32
         %r = arith.mulf %s, %b : f32
         loom.yield %r : f32
       } : (!x, !x) -> !x
  func.return %y : !x
}
"""

_SUMS = """
!x = !loom.tensor<[0, 0] : [60, 64], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @sums over <[0, 0, 0] : [60, 64, 5]> [map, map, fold] by @add
       ins(%x : (i, k, w) -> (i, k + w - 2) clip 0.5 : f32) outs((i, k) -> (i, k))
       wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  func.return %y : !x
}
"""

_BLOCKS = """
!x = !loom.tensor<[0, 0] : [60, 64], f32>
!i = !loom.tensor<[0] : [60], i64>
!y = !loom.tensor<[0, 0] : [60, 64], f32>
func.func @main(%x: !x, %at: !i) -> !y {
  %y = loom.operation @read over <[0, 0] : [60, 64]> [map, map]
       ins(%x : (i, k) -> (i, k - 2) :> [1, 5] clip 0.25 : f32, %at : (i, k) -> (i))
       outs((i, k) -> (i, k))
       wrap (%b: !loom.block<[1, 5], f32>, %j: i64) {
         %zero = arith.constant 0 : i64
         %r = loom.read %b[%zero, %j] : f32
         loom.yield %r : f32
       } : (!x, !i) -> !y
  func.return %y : !y
}
"""


def _given(text: str) -> list[Array]:
    random = np.random.default_rng(0)
    x = random.standard_normal((60, 64)).astype("f4")
    return [x, random.integers(0, 5, 60)] if text is _BLOCKS else [x]


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
@pytest.mark.parametrize(
    ("text", "parts"),
    [(_SHIFTED, True), (_SUMS, True), (_BLOCKS, True), (_SHIFTED, False)],
    ids=["shifted", "sums", "blocks", "shifted, whole"],
)
def test_programs_that_read_outside_are_linked(text: str, parts: bool) -> None:
    given = _given(text)
    names = ("x", "at")[: len(given)]
    arguments = dict(zip(names, given, strict=True))
    (want,) = find_executor("reference").run(parse_text(text), arguments, NoWatch()).outputs
    module = parse_text(text)
    run_pipeline(module, "default")
    loops = Loops(1)
    small = 0 if parts else 1 << 40
    own = loops if parts else None
    program = PreparedProgram(
        module,
        Library(loops=loops),
        partial(in_parts, small=small, threads=1, cache=1 << 20, loops=own),
    )
    for _ in range(3):
        (made,) = program(given)
        np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-6)
    assert program.run.linked is not None
