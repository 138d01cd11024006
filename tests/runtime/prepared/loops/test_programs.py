# pyright: basic
"""Programs whose scalar operations are loops, in parts of any size, give what `reference` gives."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.loop import Loop
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.stored import restored, stored
from tapestry.runtime.program import arguments
from tests.end_to_end.operations import random_program
from tests.end_to_end.programs import Program, programs

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_PIPELINES = ["weft-apply", "weft-apply,loom-simplify,loom-fuse", "default"]


@settings(max_examples=15, deadline=None, suppress_health_check=_CHECKS)
@given(
    program=programs(),
    pipeline=st.sampled_from(_PIPELINES),
    cache=st.integers(1, 4096),
    threads=st.integers(0, 3),
)
def test_any_program(program: Program, pipeline: str, cache: int, threads: int) -> None:
    """With 0 threads as a library would have it: small maps and bodies beside products, whole."""
    want = program.naive()
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=threads, cache=cache, loops=Loops(0))
    library = Library(loops=Loops(0))
    prepared = PreparedProgram(module, library, parts if threads else None)
    given = [program.inputs[argument.name] for argument in arguments(module)]
    for _ in range(2):
        program.compare(prepared(given), want)


@settings(max_examples=15, deadline=None, suppress_health_check=_CHECKS)
@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_any_program_of_raw_operations(seed: int, cache: int) -> None:
    program = random_program(seed)
    inputs, module = program.inputs(), parse_text(program.text)
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    run_pipeline(module, "loom-simplify,loom-fuse,loom-group")
    parts = partial(in_parts, small=0, threads=2, cache=cache, loops=Loops(0))
    prepared = PreparedProgram(module, parts=parts)
    given = [inputs[argument.name] for argument in arguments(module)]
    for _ in range(2):
        for have, expected in zip(prepared(given), want, strict=True):
            assert have.dtype == expected.dtype
            np.testing.assert_array_equal(have, expected)


_DENSE = """
!x = !loom.tensor<[0, 0] : [37, 20], f32>
!w = !loom.tensor<[0, 0] : [20, 33], f32>
!b = !loom.tensor<[0] : [33], f32>
!y = !loom.tensor<[0, 0] : [37, 33], f32>
func.func @main(%x: !x, %w: !w, %b: !b) -> (!y, !y) {
  %y, %z = loom.operation @dense over <[0, 0, 0] : [37, 33, 20]> [map, map, fold] by @add
       ins(%x : (i, n, k) -> (i, k), %w : (i, n, k) -> (k, n)) extra(%b : (i, n) -> (n))
       outs((i, n) -> (i, n), (i, n) -> (i, n))
       wrap (%p: f32, %q: f32) { %r = arith.mulf %p, %q : f32  loom.yield %r : f32 }
       unwrap (%s: f32, %c: f32) {
         %t = arith.addf %s, %c : f32
         %u = math.tanh %t : f32
         loom.yield %t, %u : f32, f32
       } : (!x, !w, !b) -> (!y, !y)
  func.return %y, %z : !y, !y
}
"""


def test_what_follows_a_product_is_one_loop(caplog: pytest.LogCaptureFixture) -> None:
    module, random = parse_text(_DENSE), np.random.default_rng(0)
    shapes = ((37, 20), (20, 33), (33,))
    x, w, b = (random.standard_normal(shape, np.float32) for shape in shapes)
    native.forget()
    with caplog.at_level(logging.INFO, "tapestry.kernels"):
        y, z = PreparedProgram(module, Library(loops=Loops(0)))([x, w, b])
    assert [one.getMessage().split(":")[0].split(" ", 2)[2] for one in caplog.records] == [
        "of 2 operations over 37x33"
    ]
    np.testing.assert_allclose(y, x @ w + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(z, np.tanh(x @ w + b), rtol=1e-5, atol=1e-5)


def test_without_a_compiler_all_runs_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.SWITCH, "0")
    module, x = parse_text(_DENSE), np.ones((37, 20), np.float32)
    y, _ = PreparedProgram(module, Library(loops=Loops(0)))(
        [x, x[:20, :1] + np.zeros(33, "f4"), x[0, :1] * np.zeros(33, "f4")]
    )
    np.testing.assert_array_equal(y, np.full((37, 33), 20.0))


_REPEATED = """
!x = !loom.tensor<[0] : [40], f32>
func.func @main(%x: !x) -> !x {
  %y = loom.operation @repeated over <[0, 0] : [3, 40]> [fold, map] by @add
       ins(%x : (k, i) -> (i)) outs((i) -> (i))
       wrap (%a: f32) { %b = math.exp2 %a : f32  loom.yield %b : f32 } : (!x) -> !x
  func.return %y : !x
}
"""


def test_a_fold_does_not_write_over_what_it_folds() -> None:
    x = np.arange(40, dtype="f4") % 5
    parts = partial(in_parts, small=0, threads=1, loops=Loops(0))
    prepared = PreparedProgram(parse_text(_REPEATED), parts=parts)
    for _ in range(2):  # the second time exp2, which loops lack, is where its sum might go
        np.testing.assert_array_equal(prepared([x])[0], 3 * np.exp2(x))


_EXTREME = """
func.func @main(%x: {x}) -> ({value}, {place}) {{
  %v, %p = loom.operation @extreme over <[0, 0] : [{n}, {m}]> [{kinds}] by @{name}
       ins(%x : (i, j) -> (i, j)) outs((k) -> (k), (k) -> (k)) {domain}
       wrap (%a: {kind}) {{ %i = loom.index {axis} : i64  loom.yield %a, %i : {kind}, i64 }}
       : ({x}) -> ({value}, {place})
  func.return %v, %p : {value}, {place}
}}
"""


@settings(max_examples=20, deadline=None, suppress_health_check=_CHECKS)
@given(
    name=st.sampled_from(["argmax", "argmin"]),
    kind=st.sampled_from(["f32", "f64", "i32", "i8"]),
    extents=st.tuples(st.sampled_from([1, 3, 34]), st.sampled_from([1, 5, 33, 130])),
    axis=st.integers(0, 1),
    domain=st.booleans(),
    seed=st.integers(0, 999),
    cache=st.sampled_from([1, 300, 1 << 16]),
    threads=st.integers(0, 2),
)
def test_places_of_extremes(
    name: str,
    kind: str,
    extents: tuple[int, int],
    axis: int,
    domain: bool,
    seed: int,
    cache: int,
    threads: int,
) -> None:
    """States of several parts fold in loops, too: the first of equals, and of NaN, is found."""
    (n, m), kept = extents, extents[1 - axis]
    text = _EXTREME.format(
        x=f"!loom.tensor<[0, 0] : [{n}, {m}], {kind}>",
        value=f"!loom.tensor<[0] : [{kept}], {kind}>",
        place=f"!loom.tensor<[0] : [{kept}], i64>",
        kinds="fold, map" if axis == 0 else "map, fold",
        domain="domain(d0 - d1 + 2 >= 0)" if domain else "",
        n=n,
        m=m,
        name=name,
        kind=kind,
        axis=axis,
    )
    random = np.random.default_rng(seed)
    dtype = {"f32": "f4", "f64": "f8", "i32": "i4", "i8": "i1"}[kind]
    some = [0, -1, 1, 2, 3] if kind[0] == "i" else [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
    x = random.choice(np.array(some[: random.integers(1, len(some) + 1)], dtype), extents)
    want = find_executor("reference").run(parse_text(text), {"x": x}, NoWatch()).outputs
    parts = partial(in_parts, small=0, threads=threads, cache=cache, loops=Loops(0))
    library = Library(loops=Loops(0))
    prepared = PreparedProgram(parse_text(text), library, parts if threads else None)
    for _ in range(2):
        for have, expected in zip(prepared([x]), want, strict=True):
            assert have.dtype == expected.dtype
            np.testing.assert_array_equal(have, expected)


def test_places_of_extremes_are_one_loop(caplog: pytest.LogCaptureFixture) -> None:
    x, seen = np.random.default_rng(0).standard_normal((64, 300), np.float32), caplog.records
    shown = tapestry.compile(tapestry.input("x", x.shape).argmax(axis=1)).lowered
    parts = partial(in_parts, small=0, threads=1, cache=1 << 30, loops=Loops(0))
    native.forget()
    with caplog.at_level(logging.INFO, "tapestry.kernels"):
        (places,) = PreparedProgram(shown, parts=parts)([x])
    loops = [text for one in seen if " over " in (text := one.getMessage())]
    assert len(loops) == 1, loops
    np.testing.assert_array_equal(places, x.argmax(1))


_ENDS = """
loom.monoid @ends commutative zero [2147483647 : i32, -1.0 : f32]
  merge (%a: i32, %p: f32, %b: i32, %q: f32) {{
    %l = arith.cmpi slt, %a, %b : i32
    %v = arith.select %l, %a, %b : i32
    %m = arith.maximumf %p, %q : f32
    %o = arith.constant -1.0 : f32
    %n = arith.maximumf %m, %o : f32
    loom.yield %v, %n : i32, f32
  }}
!x = !loom.tensor<[0, 0] : [34, 130], i32>
!y = !loom.tensor<[0] : [130], f32>
!v = !loom.tensor<[0] : [34], i32>
!p = !loom.tensor<{box}, f32>
func.func @main(%x: !x, %y: !y) -> (!v, !p) {{
  %v, %p = loom.operation @ends over <[0, 0] : [34, 130]> [map, fold] by @ends
     ins(%x : (i, j) -> (i, j), %y : (i, j) -> (j)) outs((k) -> (k), (k) -> ({out}))
     wrap (%a: i32, %b: f32) {{ loom.yield %a, %b : i32, f32 }} : (!x, !y) -> (!v, !p)
  func.return %v, %p : !v, !p
}}
"""


@pytest.mark.parametrize(("box", "out"), [("[0] : [34]", "k"), ("[] : []", "")])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_part_that_is_the_same_for_all_that_is_kept(box: str, out: str, threads: int) -> None:
    module, random = parse_text(_ENDS.format(box=box, out=out)), np.random.default_rng(0)
    x = random.integers(-9, 9, (34, 130)).astype(np.int32)
    y = random.choice(np.array([1, 2, -3, 0.5], np.float32), 130)
    want = find_executor("reference").run(module, {"x": x, "y": y}, NoWatch()).outputs
    parts = partial(in_parts, small=0, threads=threads, cache=4096, loops=Loops(0))
    prepared = PreparedProgram(module, Library(loops=Loops(0)), parts if threads else None)
    for _ in range(2):
        for have, expected in zip(prepared([x, y]), want, strict=True):
            np.testing.assert_array_equal(have, expected, strict=True)


_AGAIN = """
!x = !loom.tensor<[0, 0] : [8, 40], f32>
!b = !loom.tensor<[0] : [40], f32>
func.func @main(%x: !x, %b: !b) -> !x {
  %y = loom.operation @weighed over <[0, 0] : [8, 40]> [map, map]
     ins(%x : (i, j) -> (i, j), %b : (i, j) -> (j)) outs((i, j) -> (i, j))
     wrap (%a: f32, %c: f32) {
       %t = math.tanh %c : f32
       %u = arith.mulf %t, %c : f32
       %v = arith.mulf %u, %a : f32
       loom.yield %v : f32
     } : (!x, !b) -> !x
  func.return %y : !x
}
"""


def test_what_is_the_same_for_each_row_is_computed_once(caplog: pytest.LogCaptureFixture) -> None:
    random = np.random.default_rng(0)
    x, b = random.normal(size=(8, 40)).astype("f4"), random.normal(size=40).astype("f4")
    parts = partial(in_parts, small=0, threads=1, loops=Loops(0))
    native.forget()
    with caplog.at_level(logging.INFO, "tapestry.kernels"):
        (have,) = PreparedProgram(parse_text(_AGAIN), parts=parts)([x, b])
    loops = [one.getMessage() for one in caplog.records]
    assert sum("of 2 operations over 1x40" in one for one in loops) == 1
    assert sum("of 1 operations over 8x40" in one for one in loops) == 1
    np.testing.assert_allclose(have, np.tanh(b) * b * x, rtol=1e-6)


def test_what_loops_alone_touch_lies_along_the_long_axis() -> None:
    """Of weights that are computed once for eight planes, three neighbours are planes too."""
    text = """
    !x = !loom.tensor<[0, 0, 0, 0] : [2, 8, 40, 3], f32>
    !b = !loom.tensor<[0, 0, 0] : [2, 40, 3], f32>
    !y = !loom.tensor<[0, 0, 0] : [2, 8, 40], f32>
    func.func @main(%x: !x, %b: !b) -> !y {
      %y = loom.operation @weighed over <[0, 0, 0, 0] : [2, 8, 40, 3]> [map, map, map, fold] by @max
         ins(%x : (i, c, j, k) -> (i, c, j, k), %b : (i, c, j, k) -> (i, j, k))
         outs((i, c, j) -> (i, c, j))
         wrap (%a: f32, %c: f32) {
           %t = math.tanh %c : f32
           %u = arith.mulf %t, %c : f32
           %v = arith.mulf %u, %a : f32
           loom.yield %v : f32
         } : (!x, !b) -> !y
      func.return %y : !y
    }"""
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 8, 40, 3)).astype("f4")
    b = random.normal(size=(2, 40, 3)).astype("f4")
    parts = partial(in_parts, small=0, threads=1, loops=Loops(0))
    prepared = PreparedProgram(parse_text(text), parts=parts)
    found: list[tuple[int, ...]] = []
    plain = Loop.ready

    def seen(loop: Loop, given: list[np.ndarray], arrays: list[np.ndarray], *others: Any) -> object:
        own = (one for one in arrays if one.shape == (2, 1, 40, 3))
        found.extend(one.strides for one in own if not np.shares_memory(one, b))
        return plain(loop, given, arrays, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "ready", seen)
        for _ in range(2):
            (have,) = prepared([x, b])
            want = ((np.tanh(b) * b)[:, None] * x).max(-1)
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    assert found
    assert {strides[2] for strides in found} == {4}, found


def test_what_a_fold_takes_may_be_taken_by_a_loop_before_it_as_well() -> None:
    """Bounds of windows, of which others are computed that are the same for several cells too."""
    x = tapestry.input("x", (2, 3, 11, 13), "float32")
    program = tapestry.adaptive_max_pool2d_with_indices(x, size=[3, 4])
    array = np.random.default_rng(0).standard_normal((2, 3, 11, 13)).astype("f4")
    wants = tapestry.compile(program, on="reference")(array)
    parts = partial(in_parts, small=0, threads=1, loops=Loops(0))
    prepared = PreparedProgram(tapestry.compile(program).lowered, parts=parts)
    for _ in range(2):
        for have, want in zip(prepared([array]), wants, strict=True):
            np.testing.assert_array_equal(have, want)


_PLACED = """
!x = !loom.tensor<[2, 3] : [{row}, {column}], f32>
!p = !loom.tensor<[2, 3] : [{row}, {column}], i64>
func.func @main(%x: !x, %p: !p, %w: !loom.tensor<[0] : [1], f32>) -> !x {{
  %y = loom.operation @placed over <[2, 3, 0] : [{row}, {column}, 1]> [map, map, fold] by @add
       ins(%x : (i, j, k) -> (i, j), %w : (i, j, k) -> (k))
       extra(%p : (i, j) -> (i, j)) outs((i, j) -> (i, j))
       wrap (%a: f32, %b: f32) {{ %c = arith.mulf %a, %b : f32  loom.yield %c : f32 }}
       unwrap (%s: f32, %q: i64) {{
         %j = loom.index 1 : i64
         %e = arith.cmpi eq, %q, %j : i64
         %z = arith.constant 0.0 : f32
         %r = arith.select %e, %s, %z : f32
         loom.yield %r : f32
       }} : (!x, !loom.tensor<[0] : [1], f32>, !p) -> !x
  func.return %y : !x
}}
"""


@pytest.mark.parametrize("extents", [(1, 1), (3, 5), (7, 33), (40, 130)])
def test_what_is_done_with_a_state_knows_where_it_is(extents: tuple[int, int]) -> None:
    """A loop compares with coordinates, which are in what is written down of a program."""
    n, m = extents
    module = parse_text(_PLACED.format(row=2 + n, column=3 + m))
    random = np.random.default_rng(n)
    x = random.normal(size=extents).astype("f4")
    places = random.integers(3, 3 + m, extents)
    library = Library(loops=Loops(0))
    prepared = PreparedProgram(module, library)
    data = json.loads(json.dumps(stored(prepared.run, library)))
    want = np.where(places == np.arange(3, 3 + m), 2 * x, np.float32(0))
    for run in (prepared, restored(data, library)):
        (made,) = run([x, places, np.float32([2])])
        np.testing.assert_array_equal(made, want)
