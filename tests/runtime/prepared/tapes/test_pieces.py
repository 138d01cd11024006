"""Places that are affine in pieces: parts between these read slices, and nothing is gathered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.dialects import loom
from tapestry.frontend import parse_text
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared.loops.looping import ONCE, Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.prepared.tapes.meanings import Placed
from tapestry.runtime.prepared.tapes.pieces import _runs, placed_reads
from tapestry.zspace import AffineMap

_PLACES = {
    "rolled": "%s = arith.addi %i, %c59 : i64  %p = arith.remsi %s, %c64 : i64",
    "reflected": """%s = arith.subi %i, %c3 : i64  %a = math.absi %s : i64
        %t = arith.subi %c63, %a : i64  %u = math.absi %t : i64  %p = arith.subi %c63, %u : i64""",
    "replicated": """%s = arith.subi %i, %c3 : i64  %a = arith.maxsi %s, %c0 : i64
        %p = arith.minsi %a, %c63 : i64""",
    "halved": "%p = arith.divsi %i, %c3 : i64",
    "backward": "%p = arith.subi %c63, %i : i64",
    "fixed": "%p = arith.addi %c0, %c59 : i64",
}


def _program(place: str, rows: bool, wrap: str = "%v") -> str:
    """`y[i, j] = x[p(i), j]`, or of columns."""
    extent = 70 if place in ("reflected", "replicated") else 64
    own = f"{extent}, 40" if rows else f"40, {extent}"
    kept, box = ("(0, j)", "[64, 1]") if rows else ("(i, 0)", "[1, 64]")
    x = "[64, 40]" if rows else "[40, 64]"
    at = "%p, %c0" if rows else "%c0, %p"
    numbers = "".join(f"%c{n} = arith.constant {n} : i64\n" for n in (0, 3, 59, 63, 64))
    return f"""
    !x = !loom.tensor<[0, 0] : {x}, f32>
    !y = !loom.tensor<[0, 0] : [{own}], f32>
    func.func @main(%x: !x, %z: !y) -> !y {{
      %y = loom.operation @taken over <[0, 0] : [{own}]> [map, map]
             ins(%x : (i, j) -> {kept} :> {box}, %z : (i, j) -> (i, j)) outs((i, j) -> (i, j))
             wrap (%b: !loom.block<{box}, f32>, %w: f32) {{
               {numbers} %i = loom.index {0 if rows else 1} : i64
               {_PLACES[place]}
               %v = loom.read %b[{at}] : f32
               %sum = arith.addf %v, %w : f32
               loom.yield {wrap} : f32
             }} : (!x, !y) -> !y
      func.return %y : !y
    }}"""


def _operation(text: str) -> loom.OperationOp:
    (op,) = (op for op in parse_text(text).walk() if isinstance(op, loom.OperationOp))
    return op


@pytest.mark.parametrize("wrap", ["%v", "%sum"])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("place", _PLACES)
def test_what_is_taken_is_the_same(place: str, rows: bool, wrap: str) -> None:
    text = _program(place, rows, wrap)
    op = _operation(text)
    random = np.random.default_rng(0)
    x = random.standard_normal((64, 40) if rows else (40, 64)).astype("f4")
    z = random.standard_normal(op.index.shape).astype("f4")
    named = {"x": x, "z": z}
    (want,) = find_executor("reference").run(parse_text(text), named, NoWatch()).outputs
    for loops in (None, Loops(0), Loops(ONCE)):
        for threads, cache in ((1, 1 << 20), (2, 256)):
            run = in_parts(op, small=0, threads=threads, cache=cache, loops=loops)
            assert run is not None
            for lying in ([x, z], [np.asfortranarray(x), z], [x[::-1].copy()[::-1], z]):
                np.testing.assert_array_equal(run(lying)[0], want)
    placed = placed_reads([(op, AffineMap.identity(2))], op.operands, op.index)
    assert len(placed) == (place != "halved")
    assert isinstance(run, Mapped) or place in ("backward", "fixed", "halved")
    gathers = [
        call
        for one in (run.tapes.recorded if isinstance(run, Mapped) else ())
        for call in one.tape.calls
        if isinstance(call.meaning, Placed)
    ]
    assert place == "halved" or not gathers


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-9, 9), st.integers(1, 6)), min_size=1),
    st.integers(-5, 5),
)
def test_pieces_are_all_of_the_places(pieces: list[tuple[int, int, int]], low: int) -> None:
    places = np.concatenate([first + step * np.arange(n) for step, first, n in pieces])
    runs = list(_runs(places, low))
    assert len(runs) <= 2 * len(pieces)
    ends = [start for start, _, _ in runs[1:]] + [low + len(places)]
    made = [
        factor * at + offset
        for (start, factor, offset), end in zip(runs, ends, strict=True)
        for at in range(start, end)
    ]
    assert made == places.tolist()


def test_rolled_and_mirrored_arrays() -> None:
    x = np.random.default_rng(1).standard_normal((3, 30, 41)).astype("f4")
    given = tapestry.input("x", x.shape, "float32")
    for made, want in (
        (np.roll(given, (2, -7), (1, 2)), np.roll(x, (2, -7), (1, 2))),
        (tapestry.exp(np.roll(given, 5, 2)) + given, np.exp(np.roll(x, 5, 2)) + x),
    ):
        program = tapestry.compile(made)
        for _ in range(3):
            np.testing.assert_allclose(program(x), want, rtol=1e-6, atol=1e-6)
