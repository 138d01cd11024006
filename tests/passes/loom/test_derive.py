"""`loom-derive`: what it says, and that it stays fast as programs grow."""

from __future__ import annotations

import sys

import numpy as np

from tapestry.dialects import loom
from tapestry.explaining import derivation_steps, why_not_derived
from tapestry.frontend import parse_module, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

_MAX_SUM = """
  %m{n} = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x{n} : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {{ loom.yield %c : f32 }} : (!x) -> !y
  %l{n} = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x{n} : (i, j) -> (i, j), %m{n} : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {{
           %d = arith.subf %c, %b : f32
           %e = math.{function} %d : f32
           loom.yield %e : f32 }} : (!x, !y) -> !y
  %x{next} = loom.operation @next over <[0, 0] : [4, 6]> [map, map]
         ins(%x{n} : (i, j) -> (i, j), %l{n} : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%c: f32, %b: f32) {{
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 }} : (!x, !y) -> !x"""


def _program(times: int, function: str = "exp") -> str:
    body = "".join(_MAX_SUM.format(n=n, next=n + 1, function=function) for n in range(times))
    return f"""
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
func.func @main(%x0: !x) -> !x {{{body}
  func.return %x{times} : !x
}}"""


def test_what_is_derived_is_recorded():
    module = parse_module(_program(1))
    run_pipeline(module, "loom-derive")
    (derived,) = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.monoid]
    assert derivation_steps(derived) == (
        "max = max of x1: a part of the state",
        "sum = sum of exp(-max + x1)",
        "sum is the sum of exp(from max); from another centre it is [sum]*exp(to max)",
        "sum = [sum]",
    )


def test_what_is_not_derived_has_a_reason():
    module = parse_module(_program(1, "tanh"))
    run_pipeline(module, "loom-derive")
    first, second, _ = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert why_not_derived(first) is None
    assert why_not_derived(second) == ("math.tanh of a running value is no exponential polynomial")


def test_other_types_ride_along():
    """Integers that are folded beside are parts of their own type, and finish as they were."""
    module = parse_module("""
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!i = !loom.tensor<[0] : [4], i64>
func.func @main(%x: !x, %w: !y) -> (!y, !i) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @count over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %z = arith.constant 0.0 : f32
           %p = arith.cmpf ogt, %c, %z : f32
           %k = arith.extui %p : i1 to i64
           loom.yield %k : i64 } : (!x) -> !i
  %l = loom.operation @sum over <[0, 0] : [4, 6]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i), %n : (i, j) -> (i), %w : (i, j) -> (i))
         outs((i) -> (i))
         wrap (%c: f32, %b: f32, %n: i64, %w: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           %f = arith.sitofp %n : i64 to f32
           %h = arith.mulf %e, %f : f32
           %k = arith.mulf %h, %w : f32
           loom.yield %k : f32 } : (!x, !y, !i, !y) -> !y
  func.return %l, %n : !y, !i
}""")
    inputs = {"x": np.arange(24, dtype="f4").reshape(4, 6) % 7 - 3, "w": np.ones(4, "f4")}
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    run_pipeline(module, "loom-derive")
    (derived,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert [str(kind) for kind in derived.state_types] == ["f32", "i64", "f32"]
    assert len(derived.ins) == 1
    assert len(derived.extras) == 1
    got = find_executor("numpy").run(module, inputs, NoWatch()).outputs
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    assert np.array_equal(got[1], want[1])


def test_a_maximum_says_whether_a_row_has_cells_that_are_not_masked():
    """Rows of -inf, of -inf and NaN, of NaN, and with numbers: asked cell by cell, and at once."""
    module = parse_module("""
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!y = !loom.tensor<[0] : [4], f32>
!t = !loom.tensor<[0] : [4], i1>
func.func @main(%x: !x) -> (!y, !t) {
  %m = loom.operation @max over <[0, 0] : [4, 6]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  %n = loom.operation @any over <[0, 0] : [4, 6]> [map, fold] by @or
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%c: f32) {
           %i = arith.constant 0xff800000 : f32
           %f = arith.constant false
           %e = arith.cmpf oeq, %c, %i : f32
           %u = arith.cmpi eq, %e, %f : i1
           loom.yield %u : i1 } : (!x) -> !t
  func.return %m, %n : !y, !t
}""")
    x = np.full((4, 6), -np.inf, "f4")
    x[1, 4], x[2], x[3, 2:] = np.nan, np.nan, 1.0
    want = find_executor("reference").run(module, {"x": x}, NoWatch()).outputs[1]
    assert list(want) == [False, True, True, True]
    run_pipeline(module, "loom-derive")
    (fold,) = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.fold_dims]
    assert fold.monoid_name == "max"
    assert np.array_equal(find_executor("numpy").run(module, {"x": x}, NoWatch()).outputs[1], want)


def test_equal_derivations_share_a_monoid():
    module = parse_module(_program(3))
    run_pipeline(module, "loom-derive")
    monoids = [op for op in module.walk() if isinstance(op, loom.MonoidOp)]
    assert len(monoids) == 1
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.monoid_name]
    assert len(folds) == 3


def test_the_cost_grows_as_the_program_does():
    """Three times the program may cost five times as much, not nine times."""

    def calls(times: int) -> int:
        module = parse_module(_program(times))
        count = 0

        def watch(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(watch)
        try:
            run_pipeline(module, "loom-derive")
        finally:
            sys.setprofile(None)
        return count

    calls(1)
    assert calls(36) < 5 * calls(12)
