"""Reads that leave their tensors: parts are where all points read inside, or none does."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.dialects import loom
from tapestry.dialects._loom_reads import Read
from tapestry.frontend import parse_text
from tapestry.runtime.arrays.access import coordinates
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.fitting import BFLOAT16
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.looping import ONCE, Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.tapes.regions import Regions, inside_box
from tapestry.zspace import Projection, Range

_ALL = partial(in_parts, small=0, loops=Loops(0))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_points_that_read_inside(data: st.DataObject) -> None:
    """Whatever is found is right; of rows of one dimension each, something is found."""
    small = st.integers(-3, 3)
    rows = data.draw(st.lists(st.tuples(small, small, st.booleans()), min_size=1, max_size=2))
    matrix = [[a, 0] if first else [0, a] for a, _, first in rows]
    projection = Projection.of(matrix, offset=[b for _, b, _ in rows])
    starts = data.draw(st.lists(small, min_size=len(rows), max_size=len(rows)))
    box = Range(tuple(starts), tuple(low + 4 for low in starts))
    index = Range((-2, 1), (5, 6))
    at = [
        sum((a * coordinates(index)(d) for d, a in enumerate(row) if a), np.zeros((1, 1))) + b
        for row, (_, b, _) in zip(matrix, rows, strict=True)
    ]
    want = np.ones(index.shape, np.bool_)
    for one, low, high in zip(at, box.start, box.end, strict=True):
        want &= (low <= one) & (one < high)
    found = inside_box(projection, box, index)
    have = np.zeros(index.shape, np.bool_)
    if found is not None:
        have[found.slices(index)] = True
    np.testing.assert_array_equal(have, want)


def test_what_is_read_through_several_dimensions_has_no_regions() -> None:
    window, index = Projection.of([[1, 1]], offset=[-1]), Range.of((4, 3))
    assert inside_box(window, Range.of((4,)), index) is None
    blocks = Projection.of([[1, 0]], shape=[2])
    assert inside_box(blocks, Range.of((4,)), index) is None


def _reads(text: str) -> tuple[loom.OperationOp, list[Read]]:
    (op,) = (op for op in parse_text(text).walk() if isinstance(op, loom.OperationOp))
    return op, list(op.in_reads)


_JOINED = """
!a = !loom.tensor<[0, 0] : [6, 40], f32>
!b = !loom.tensor<[0, 0] : [9, 40], f32>
!y = !loom.tensor<[0, 0] : [40, 15], f32>
func.func @main(%a: !a, %b: !b) -> !y {
  %y = loom.operation @joined over <[0, 0] : [40, 15]> [map, map]
         ins(%a : (i, j) -> (j, i) clip 2.0 : f32, %b : (i, j) -> (j - 6, i) clip 3.0 : f32)
         outs((i, j) -> (i, j))
         wrap (%x: f32, %z: f32) { %s = arith.addf %x, %z : f32  loom.yield %s : f32 }
         : (!a, !b) -> !y
  func.return %y : !y
}
"""


def test_halves_that_are_joined() -> None:
    op, reads = _reads(_JOINED)
    regions = Regions.of(op.index, reads, (0, 1))
    halves = Range((0, 0), (40, 6)), Range((0, 6), (40, 15))
    assert regions.boxes == halves
    assert [regions.kind(box) for box in halves] == [(True, False), (False, True)]
    # Parts that cannot be cut there read cells one by one.
    assert Regions.of(op.index, reads, (0,)).boxes == (op.index,)


def _agrees(text: str, *arrays: np.ndarray) -> None:
    op, _ = _reads(text)
    names = [argument.name_hint or "" for argument in op.parent_block().args]
    named = dict(zip(names, arrays, strict=True))
    (want,) = find_executor("reference").run(parse_text(text), named, NoWatch()).outputs
    for loops in (None, Loops(0), Loops(ONCE)):
        for threads, cache in ((1, 1 << 20), (2, 256)):
            run = in_parts(op, small=0, threads=threads, cache=cache, loops=loops)
            assert isinstance(run, Mapped)
            for _ in range(3):
                np.testing.assert_array_equal(run(arrays)[0], want)


def test_each_half_reads_a_slice_and_a_number() -> None:
    random = np.random.default_rng(0)
    _agrees(_JOINED, *(random.standard_normal((n, 40)).astype("f4") for n in (6, 9)))


@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i1", "bf16", "ui8"])
@pytest.mark.parametrize("step", ["i - 2", "2 * i - 2", "5 - i"])
def test_what_is_padded_is_copied(kind: str, step: str) -> None:
    fill = "true" if kind == "i1" else f"{7 if 'i' in kind else 7.0} : {kind}"
    text = f"""
    !x = !loom.tensor<[0, 0] : [5, 40], {kind}>
    !y = !loom.tensor<[0, 0] : [9, 50], {kind}>
    func.func @main(%x: !x) -> !y {{
      %y = loom.operation @padded over <[0, 0] : [9, 50]> [map, map]
             ins(%x : (i, j) -> ({step}, j - 5) clip {fill}) outs((i, j) -> (i, j))
             wrap (%a: {kind}) {{ loom.yield %a : {kind} }} : (!x) -> !y
      func.return %y : !y
    }}"""
    random = np.random.default_rng(0).standard_normal((5, 40)) * 4
    dtypes = {"f32": "f4", "f64": "f8", "i32": "i4", "i1": "?", "bf16": BFLOAT16, "ui8": "u1"}
    _agrees(text, (random if kind != "ui8" else abs(random)).astype(dtypes[kind]))


def test_compiled_code_pads_by_itself() -> None:
    """No part is left to frames, whichever part reads inside."""
    if not native.is_ready():
        pytest.skip("nothing is compiled here")
    x = tapestry.input("x", (6, 70, 70), "float32")
    padded = tapestry.pad(x, before=[0, 2, 3], after=[0, 1, 4])
    prepared = PreparedProgram(tapestry.compile(padded).lowered, parts=partial(_ALL, threads=2))
    (line,) = prepared.run.script.lines
    run = line.function
    assert isinstance(run, Mapped)
    assert len(run.tapes.recorded) == 9
    array = np.random.default_rng(0).standard_normal((6, 70, 70)).astype("f4")
    want = np.pad(array, [(0, 0), (2, 1), (3, 4)])
    for _ in range(3):
        np.testing.assert_array_equal(prepared([array])[0], want)
    made = [np.empty(want.shape, "f4")]
    assert run._driven.run(run.tapes.wholes([array]), made, 2) == []
    np.testing.assert_array_equal(made[0], want)
