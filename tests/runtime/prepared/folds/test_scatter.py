"""Scatters are folds: scatter-add and index_put, on every executor and sharded."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.algebra.led import Led
from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.algebra.one_hot import find_scatter
from tapestry.dialects import loom
from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.folds.scatters import Points, Scatter, ScatterLed
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.linking import link
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.operations import prepared_operation
from tapestry.runtime.prepared.parts import reading
from tapestry.runtime.prepared.script import Script, Whole
from tapestry.runtime.running import run
from tests.runtime.everywhere import agree, in_parts_of
from tests.runtime.prepared.teams import OneByOne

RNG = np.random.default_rng(0)

SHARDS = ["loom-shard{grid=2,1,3}", "loom-shard{shards=4}"]


def test_scatter_add():
    text = """
    !idx = !loom.tensor<[0] : [9], i64>
    !upd = !loom.tensor<[0, 0] : [9, 4], f32>
    !x = !loom.tensor<[0, 0] : [6, 4], f32>
    func.func @main(%x: !x, %idx: !idx, %upd: !upd) -> !x {
      %y = loom.operation @scatter_add over <[0, 0, 0] : [6, 4, 9]> [map, map, fold] by @add
             ins(%idx : (j, d, i) -> (i), %upd : (j, d, i) -> (i, d)) extra(%x : (j, d) -> (j, d))
             outs((j, d) -> (j, d))
             wrap (%at: i64, %u: f32) {
               %j = loom.index 0 : i64
               %here = arith.cmpi eq, %at, %j : i64
               %zero = arith.constant 0.0 : f32
               %v = arith.select %here, %u, %zero : f32
               loom.yield %v : f32
             }
             unwrap (%sum: f32, %old: f32) {
               %r = arith.addf %old, %sum : f32
               loom.yield %r : f32
             } : (!idx, !upd, !x) -> !x
      func.return %y : !x
    }"""
    x, upd = RNG.normal(size=(6, 4)).astype("f4"), RNG.normal(size=(9, 4)).astype("f4")
    idx = np.array([0, 5, 5, 2, 0, 5, 1, 7, -1])
    want = x.astype("f8")
    np.add.at(want, idx[:7], upd[:7])
    agree(text, {"x": x, "idx": idx, "upd": upd}, [want], pipelines=[*SHARDS, "loom-fold-to-read"])


def test_index_put_keeps_the_last_value_that_is_put():
    # The state is (position, value): the greatest position wins; no two values share one.
    text = """
    !idx = !loom.tensor<[0] : [9], i64>
    !upd = !loom.tensor<[0, 0] : [9, 4], i32>
    !x = !loom.tensor<[0, 0] : [6, 4], i32>
    loom.monoid @latest commutative zero [-9223372036854775808 : i64, 0 : i32]
        merge (%p: i64, %a: i32, %q: i64, %b: i32) {
      %later = arith.cmpi sgt, %q, %p : i64
      %r = arith.select %later, %q, %p : i64
      %one = arith.select %later, %b, %a : i32
      %both = arith.ori %a, %b : i32
      %same = arith.cmpi eq, %p, %q : i64
      %v = arith.select %same, %both, %one : i32
      loom.yield %r, %v : i64, i32
    }
    func.func @main(%x: !x, %idx: !idx, %upd: !upd) -> !x {
      %y = loom.operation @put over <[0, 0, 0] : [6, 4, 9]> [map, map, fold] by @latest
             ins(%idx : (j, d, i) -> (i), %upd : (j, d, i) -> (i, d)) extra(%x : (j, d) -> (j, d))
             outs((j, d) -> (j, d))
             wrap (%at: i64, %u: i32) {
               %i = loom.index 2 : i64
               %j = loom.index 0 : i64
               %here = arith.cmpi eq, %at, %j : i64
               %nobody = arith.constant -9223372036854775808 : i64
               %nothing = arith.constant 0 : i32
               %p = arith.select %here, %i, %nobody : i64
               %v = arith.select %here, %u, %nothing : i32
               loom.yield %p, %v : i64, i32
             }
             unwrap (%p: i64, %v: i32, %old: i32) {
               %zero = arith.constant 0 : i64
               %none = arith.cmpi slt, %p, %zero : i64
               %r = arith.select %none, %old, %v : i32
               loom.yield %r : i32
             } : (!idx, !upd, !x) -> !x
      func.return %y : !x
    }"""
    x, upd = RNG.integers(0, 99, (6, 4), "i4"), RNG.integers(100, 199, (9, 4), "i4")
    idx = np.array([0, 5, 5, 2, 0, 5, 1, 7, -1])
    want = x.copy()
    for at, row in zip(idx, upd, strict=True):
        if 0 <= at < 6:
            want[at] = row
    agree(text, {"x": x, "idx": idx, "upd": upd}, [want], pipelines=SHARDS)


def test_places_that_are_computed():
    # Where a point counts is read at the coordinates, and a comparison stands before it.
    text = """
    !at = !loom.tensor<[0] : [7], i64>
    !x = !loom.tensor<[0, 0, 0] : [3, 4, 2], f32>
    !y = !loom.tensor<[0, 0] : [6, 2], f32>
    func.func @main(%places: !at, %x: !x) -> !y {
      %y = loom.operation @overlap over <[0, 0, 0, 0] : [6, 2, 3, 4]> [map, map, fold, fold] by @add
             ins(%places : (h, d, i, j) -> (0) :> [7], %x : (h, d, i, j) -> (i, j, d))
             outs((h, d) -> (h, d))
             wrap (%all: !loom.block<[7], i64>, %u: f32) {
               %h = loom.index 0 : i64
               %i = loom.index 2 : i64
               %j = loom.index 3 : i64
               %n = arith.addi %i, %j : i64
               %at = loom.read %all[%n] : i64
               %here = arith.cmpi eq, %h, %at : i64
               %zero = arith.constant 0.0 : f32
               %v = arith.select %here, %u, %zero : f32
               loom.yield %v : f32
             } : (!at, !x) -> !y
      func.return %y : !y
    }"""
    x = RNG.normal(size=(3, 4, 2)).astype("f4")
    places = np.array([0, 2, 2, 5, 1, -3, 6])
    want = np.zeros((6, 2))
    for i, j in np.ndindex(3, 4):
        if 0 <= places[i + j] < 6:
            want[places[i + j]] += x[i, j]
    module, inputs = parse_text(text), {"places": places, "x": x}
    verify_module(module)
    for executor in ("reference", "numpy"):
        np.testing.assert_allclose(run(module, inputs, on=executor).outputs[0], want, atol=1e-5)
    np.testing.assert_allclose(in_parts_of(module, inputs)[0], want, atol=1e-5)
    (op,) = [op for op in parse_text(text).walk() if isinstance(op, loom.OperationOp)]
    found = find_scatter(op, accumulating_monoid_of(op))
    assert found is not None
    assert found[0] == 0


def test_parts_of_a_state_at_places_of_their_own(monkeypatch: pytest.MonkeyPatch):
    # What is long is folded in parts along a kept dimension, here of two of the three rows.
    monkeypatch.setattr("tapestry.runtime.prepared.operations.CELLS", 20)
    text = """
    !at = !loom.tensor<[0] : [9], i64>
    !x = !loom.tensor<[0, 0] : [9, 3], f32>
    !y = !loom.tensor<[0, 0] : [6, 3], f32>
    loom.monoid @sum_product commutative zero [0.0 : f32, 1.0 : f32]
        merge (%a: f32, %b: f32, %c: f32, %d: f32) {
      %s = arith.addf %a, %c : f32
      %m = arith.mulf %b, %d : f32
      loom.yield %s, %m : f32, f32
    }
    func.func @main(%p: !at, %q: !at, %x: !x) -> (!y, !y) {
      %s, %m = loom.operation @both over <[0, 0, 0] : [6, 3, 9]> [map, map, fold] by @sum_product
             ins(%p : (h, d, i) -> (i), %q : (h, d, i) -> (i), %x : (h, d, i) -> (i, d))
             outs((h, d) -> (h, d), (h, d) -> (h, d))
             wrap (%at: i64, %other: i64, %u: f32) {
               %h = loom.index 0 : i64
               %here = arith.cmpi eq, %h, %at : i64
               %zero = arith.constant 0.0 : f32
               %v = arith.select %here, %u, %zero : f32
               %there = arith.cmpi eq, %other, %h : i64
               %one = arith.constant 1.0 : f32
               %w = arith.select %there, %u, %one : f32
               loom.yield %v, %w : f32, f32
             } : (!at, !at, !x) -> (!y, !y)
      func.return %s, %m : !y, !y
    }"""
    x = RNG.normal(size=(9, 3)).astype("f4")
    p, q = RNG.integers(-1, 7, 9), RNG.integers(-1, 7, 9)
    total, times = np.zeros((6, 3)), np.ones((6, 3))
    np.add.at(total, p[(p >= 0) & (p < 6)], x[(p >= 0) & (p < 6)])
    np.multiply.at(times, q[(q >= 0) & (q < 6)], x[(q >= 0) & (q < 6)])
    module = parse_text(text)
    verify_module(module)
    inputs = {"p": p, "q": q, "x": x}
    for executor in ("reference", "numpy"):
        for got, want in zip(run(module, inputs, on=executor).outputs, (total, times), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    prepared = prepared_operation(op, Library())
    assert prepared is not None
    for got, want in zip(prepared([p, q, x]), (total, times), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("box", ["(b, i)", "(b, i, d)"])
def test_places_that_vary_along_what_is_kept(box: str):
    # Each batch has places of its own, or each cell of a row has.
    rank = box.count(",") + 1
    at_box = "[0, 0, 0] : [3, 9, 5]" if rank == 3 else "[0, 0] : [3, 9]"
    text = f"""
    !at = !loom.tensor<{at_box}, i64>
    !x = !loom.tensor<[0, 0, 0] : [3, 9, 5], f32>
    !y = !loom.tensor<[0, 0, 0] : [3, 40, 5], f32>
    func.func @main(%at: !at, %x: !x) -> !y {{
      %y = loom.operation @scatter over <[0, 0, 0, 0] : [3, 40, 5, 9]> [map, map, map, fold] by @add
             ins(%at : (b, h, d, i) -> {box}, %x : (b, h, d, i) -> (b, i, d))
             outs((b, h, d) -> (b, h, d))
             wrap (%place: i64, %u: f32) {{
               %h = loom.index 1 : i64
               %here = arith.cmpi eq, %place, %h : i64
               %zero = arith.constant 0.0 : f32
               %v = arith.select %here, %u, %zero : f32
               loom.yield %v : f32
             }} : (!at, !x) -> !y
      func.return %y : !y
    }}"""
    x = RNG.normal(size=(3, 9, 5)).astype("f4")
    at = RNG.integers(-2, 42, (3, 9, 5) if rank == 3 else (3, 9))
    at[:, 4:] = at[:, :5]
    want = np.zeros((3, 40, 5), "f4")
    for b, i, d in np.ndindex(3, 9, 5):
        place = at[b, i, d] if rank == 3 else at[b, i]
        if 0 <= place < 40:
            want[b, place, d] += x[b, i, d]
    agree(text, {"at": at, "x": x}, [want], pipelines=["loom-shard{grid=2,2,3,2}"])
    (op,) = [op for op in parse_text(text).walk() if isinstance(op, loom.OperationOp)]
    found = find_scatter(op, accumulating_monoid_of(op))
    assert found is not None
    assert found[0] == 1
    made = prepared_operation(op, Library())
    assert made is not None
    # Also where the points of a place are further from each other than its lanes.
    turned = np.ascontiguousarray(np.moveaxis(at, 1, 0))
    for lying in (at, np.asfortranarray(at), np.moveaxis(turned, 0, 1)):
        np.testing.assert_allclose(made([lying, x])[0], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("primitive", "ufunc", "dtype"),
    [
        ("arith.addf", np.add, "f4"),
        ("arith.addf", np.add, "f8"),
        ("arith.mulf", np.multiply, "f4"),
        ("arith.maxsi", np.maximum, "i4"),
        ("arith.addi", np.add, "i8"),
        ("arith.ori", np.bitwise_or, "?"),
        ("arith.addf", np.add, "f2"),
    ],
)
def test_rows_are_folded_where_they_go(primitive: str, ufunc: np.ufunc, dtype: str):
    # Rows that fill vectors and more, in memory of any order.
    values = RNG.integers(0, 2, (1, 70, 9)).astype(dtype).transpose(0, 2, 1)
    zero = np.full((), 1 if ufunc is np.multiply else 0, dtype)
    scatter = Scatter(Points(0, (1,), (2,), 3, (4, 9, 70)), ufunc, primitive, zero)
    at = np.array([3, 6, 4, 2, 4, 7, -1, 6, 4]).reshape(1, 9, 1)
    want = np.full((4, 70), zero)
    for n, place in enumerate(at.flat):
        if 3 <= place < 7:
            want[place - 3] = ufunc(want[place - 3], values[0, n])
    np.testing.assert_array_equal(scatter(values, at), want, strict=True)


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("width", [1, 9])
@pytest.mark.parametrize(("name", "dtype"), [("max", "f4"), ("min", "f4"), ("max", "f2")])
def test_extrema_at_places_tell_zeros_apart(
    name: str, dtype: str, width: int, looped: bool, monkeypatch: pytest.MonkeyPatch
):
    # A maximum of -0.0 and 0.0 is 0.0, a minimum -0.0, in any order; NaN is both.
    if not looped:
        monkeypatch.setattr(Scatter, "_loop", lambda *_: None)
    ufunc, sign = (np.maximum, 1) if name == "max" else (np.minimum, -1)
    zero = np.full((), -sign * np.inf, dtype)
    column = np.array([0.0, -0.0, -0.0, 0.0, -0.0, np.nan, 1.0, -1.0, 3.0], dtype)
    at = np.array([0, 0, 1, 1, 2, 3, 3, 4, 9])
    scatter = Scatter(Points(0, (1,), (2,), 0, (6, 9, width)), ufunc, f"arith.{name}imumf", zero)
    values = np.repeat(column[:, None], width, 1).T[None].transpose(0, 2, 1)
    made = scatter(values, at[None, :, None])
    both = 0.0 if name == "max" else -0.0
    want = np.array([both, both, -0.0, np.nan, -1.0, zero], dtype)
    assert made.dtype == dtype
    for row in made.T:
        np.testing.assert_array_equal(row, want)
        np.testing.assert_array_equal(np.signbit(row[:3]), np.signbit(want[:3]))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_parts_go_with_what_leads(largest: bool, later: bool, ties: bool):
    # Three lanes with places of their own, rows of two cells, and keys in any order, some of which
    # lead no more than the zero does, that points have elsewhere.
    keys = RNG.integers(0, 4, (1, 1, 1, 9))
    cells = RNG.normal(size=(3, 1, 2, 9)).astype("f4")
    at = RNG.integers(-2, 9, (3, 1, 1, 9))
    least = (1 if largest else 2) if ties else (-5 if largest else 5)
    if ties:
        keys[..., -1] = least
    zeros = (np.asarray(least), np.full((), 7, "f4"))
    points = Points(1, (3,), (0, 2), 1, (3, 6, 2, 9))
    key, cell = ScatterLed(points, Led(0, (0, 1), largest, later), zeros)([keys, cells, at])
    for lane, place, row in np.ndindex(3, 6, 2):
        best, chosen = zeros
        for n in range(9):
            here = at[lane, 0, 0, n] == place + 1
            own = keys[0, 0, 0, n] if here else zeros[0]
            beyond = own > best if largest else own < best
            if beyond or (later and own == best):
                best, chosen = own, cells[lane, 0, row, n] if here else zeros[1]
        assert key[lane, place, row] == best
        assert cell[lane, place, row] == chosen


def test_parts_that_nothing_leads_to():
    points = Points(0, (1,), (), 0, (3, 0))
    zeros = (np.asarray(-1), np.asarray(2.0, "f4"))
    none = np.empty((1, 0), np.int64)
    made = ScatterLed(points, Led(0, (0, 1), True, True), zeros)([none, none.astype("f4"), none])
    assert [part.tolist() for part in made] == [[-1] * 3, [2.0] * 3]


def test_what_leads_at_two_coordinates_is_not_found_by_one() -> None:
    """x[i, j] = v by choices of both: which point is last depends on the second one too."""
    text = """
    !idx = !loom.tensor<[0] : [9], i64>
    !upd = !loom.tensor<[0] : [9], i32>
    !x = !loom.tensor<[0, 0] : [6, 4], i32>
    loom.monoid @latest commutative zero [-9223372036854775808 : i64, 0 : i32]
        merge (%p: i64, %a: i32, %q: i64, %b: i32) {
      %later = arith.cmpi sge, %q, %p : i64
      %r = arith.maxsi %p, %q : i64
      %one = arith.select %later, %b, %a : i32
      loom.yield %r, %one : i64, i32
    }
    func.func @main(%x: !x, %i: !idx, %j: !idx, %v: !upd) -> !x {
      %y = loom.operation @put over <[0, 0, 0] : [6, 4, 9]> [map, map, fold] by @latest
             ins(%i : (r, c, n) -> (n), %j : (r, c, n) -> (n), %v : (r, c, n) -> (n))
             extra(%x : (r, c) -> (r, c)) outs((r, c) -> (r, c))
             wrap (%row: i64, %column: i64, %u: i32) {
               %r = loom.index 0 : i64
               %c = loom.index 1 : i64
               %n = loom.index 2 : i64
               %one = arith.cmpi eq, %row, %r : i64
               %other = arith.cmpi eq, %column, %c : i64
               %here = arith.andi %one, %other : i1
               %nobody = arith.constant -9223372036854775808 : i64
               %nothing = arith.constant 0 : i32
               %p = arith.select %here, %n, %nobody : i64
               %w = arith.select %here, %u, %nothing : i32
               loom.yield %p, %w : i64, i32
             }
             unwrap (%p: i64, %w: i32, %old: i32) {
               %zero = arith.constant 0 : i64
               %none = arith.cmpi slt, %p, %zero : i64
               %r = arith.select %none, %old, %w : i32
               loom.yield %r : i32
             } : (!idx, !idx, !upd, !x) -> !x
      func.return %y : !x
    }"""
    source = np.random.default_rng(0)
    x, v = source.integers(0, 99, (6, 4), "i4"), source.integers(100, 199, 9, "i4")
    i, j = source.integers(0, 6, 9), source.integers(0, 4, 9)
    want = x.copy()
    for row, column, value in zip(i, j, v, strict=True):
        want[row, column] = value
    (got,) = PreparedProgram(parse_text(text))([x, i, j, v])
    np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
@pytest.mark.parametrize(
    ("primitive", "ufunc"), [("arith.addf", np.add), ("arith.maximumf", np.maximum)]
)
@pytest.mark.parametrize("length", [1, 5, 40])
def test_rows_are_folded_by_a_call_of_compiled_code(
    primitive: str, ufunc: np.ufunc, length: int
) -> None:
    """Also those of places before the first one, and after the last one, which count nowhere."""
    points = Points(0, (2, 3), (1,), 3, (6, length, 7, 5))
    scatter = Scatter(points, ufunc, primitive, np.array(-1.0 if ufunc is np.maximum else 0, "f4"))
    script = Script()
    ins = [script.argument(), script.argument()]
    whole = Whole(script.finish([script.call(scatter, ins, new=True)]))
    values = RNG.normal(size=(1, length, 7, 5)).astype("f4")
    places = RNG.integers(0, 12, (1, 1, 7, 5))
    turned = np.moveaxis(np.moveaxis(values, 1, -1).copy(), -1, 1)
    for rows in (turned, values):  # of which one is copied before, where rows are more than a cell
        linked = link(whole, [rows, places])
        assert linked is not None
        assert len(linked.chain.steps) == 2 + (rows is values and length > 1)
        for at in (places, 11 - places, places - 20):
            made, want = linked([rows, at]), scatter(rows, at)
            assert made is not None
            np.testing.assert_array_equal(made[0].reshape(6, length), want.reshape(6, -1))


_PLACED = """
!t = !loom.tensor<[0] : [12], i64>
!i = !loom.tensor<[0, 0] : [64, 50], i64>
!s = !loom.tensor<[0, 0] : [64, 50], f32>
!x = !loom.tensor<[0, 0] : [64, 12], f32>
func.func @main(%x: !x, %t: !t, %i: !i, %s: !s) -> !x {
  %y = loom.operation @placed over <[0, 0, 0] : [64, 12, 50]> [map, map, fold] by @add
       ins(%t : (b, j, n) -> (0) :> [12], %i : (b, j, n) -> (b, n), %s : (b, j, n) -> (b, n))
       extra(%x : (b, j) -> (b, j)) outs((b, j) -> (b, j))
       wrap (%places: !loom.block<[12], i64>, %at: i64, %u: f32) {
         %place = loom.read %places[%at] : i64
         %j = loom.index 1 : i64
         %here = arith.cmpi eq, %place, %j : i64
         %zero = arith.constant 0.0 : f32
         %v = arith.select %here, %u, %zero : f32
         loom.yield %v : f32
       }
       unwrap (%sum: f32, %old: f32) {
         %r = arith.addf %old, %sum : f32
         loom.yield %r : f32
       } : (!t, !i, !s, !x) -> !x
  func.return %y : !x
}
"""


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
@pytest.mark.parametrize("threads", [1, 3])
def test_places_that_are_read_at_computed_places(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row has places of its own; all of it is compiled code."""
    monkeypatch.setattr(reading, "_SHARE", 1000)
    loops = Loops(1, OneByOne(threads))
    program = PreparedProgram(parse_text(_PLACED), Library(loops=loops))
    x, s = RNG.normal(size=(64, 12)).astype("f4"), RNG.normal(size=(64, 50)).astype("f4")
    table, i = RNG.permutation(14)[:12], RNG.integers(0, 12, (64, 50))
    want = np.pad(x, [(0, 0), (0, 2)]).astype("f8")
    np.add.at(want, (np.arange(64)[:, None], table[i]), s)
    for _ in range(4):
        np.testing.assert_allclose(program([x, table, i, s])[0], want[:, :12], rtol=1e-4, atol=1e-5)
    assert program.run.linked is not None
    i[40, 3] = 12
    with pytest.raises(BlockIndexError, match="index 12 is out of range"):
        program([x, table, i, s])
