"""Folds split into trees of any arity give the fold: every monoid, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, Array, NoWatch, find_executor

_AFFINE = """
loom.monoid @affine zero [1 : i32, 0 : i32] merge (%a: i32, %b: i32, %c: i32, %d: i32) {
  %ac = arith.muli %a, %c : i32
  %cb = arith.muli %c, %b : i32
  %e = arith.addi %cb, %d : i32
  loom.yield %ac, %e : i32, i32
}
"""

_VALUE = "wrap (%c: T) { loom.yield %c : T }"

_PLACE = """wrap (%c: T) {
    %i = loom.index 1 : i64
    %w = arith.constant 7 : i64
    %r = arith.muli %i, %w : i64
    %j = loom.index 2 : i64
    %k = arith.addi %r, %j : i64
    loom.yield %c, %k : T, i64
  }
  unwrap (%v: T, %k: i64) { %r = arith.trunci %k : i64 to i32 loom.yield %r : i32 }"""

_LOGSUMEXP = """wrap (%c: T) { %one = arith.constant 1.0 : T loom.yield %c, %one : T, T }
  unwrap (%m: T, %s: T) {
    %l = math.log %s : T
    %r = arith.addf %m, %l : T
    loom.yield %r : T
  }"""

_WELFORD = """wrap (%c: T) {
    %one = arith.constant 1.0 : T
    %zero = arith.constant 0.0 : T
    loom.yield %one, %c, %zero : T, T, T
  }
  unwrap (%n: T, %m: T, %q: T) { %r = arith.divf %q, %n : T loom.yield %r : T }"""

_TRIPLED = """wrap (%c: T) { %k = arith.constant 3 : T loom.yield %k, %c : T, T }
  unwrap (%a: T, %b: T) { loom.yield %b : T }"""

_FOLDS = [
    ("add", "i32", "i32", _VALUE),
    ("add", "f32", "f32", _VALUE),
    ("mul", "i32", "i32", _VALUE),
    ("max", "f32", "f32", _VALUE),
    ("min", "i8", "i8", _VALUE),
    ("and", "i1", "i1", _VALUE),
    ("or", "i32", "i32", _VALUE),
    ("argmax", "f32", "i32", _PLACE),
    ("argmin", "i32", "i32", _PLACE),
    ("logsumexp", "f32", "f32", _LOGSUMEXP),
    ("welford", "f32", "f32", _WELFORD),
    ("affine", "i32", "i32", _TRIPLED),
]

_FLOATS = [("min", "f32", "f32", _VALUE), ("argmin", "f32", "i32", _PLACE)]


def _program(monoid: str, element: str, result: str, bodies: str) -> ModuleOp:
    """A fold over both columns and planes of a 3 x 5 x 7 tensor that starts off the origin."""
    x, y = f"!loom.tensor<[1, 0, 0] : [4, 5, 7], {element}>", f"!loom.tensor<[1] : [4], {result}>"
    return parse_text(f"""{_AFFINE if monoid == "affine" else ""}
func.func @main(%x: {x}) -> {y} {{
  %y = loom.operation @fold over <[1, 0, 0] : [4, 5, 7]> [map, fold, fold] by @{monoid}
         ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0) -> (d0))
         {bodies.replace("T", element)} : ({x}) -> {y}
  func.return %y : {y}
}}""")


def _values(element: str) -> Array:
    kind = type_named(element)
    assert kind is not None
    generator = np.random.default_rng(8)
    if element == "i1":
        return generator.integers(0, 9, (3, 5, 7)) > 0
    return generator.integers(-4, 5, (3, 5, 7)).astype(numpy_dtype(kind))


def _run(on: str, module: ModuleOp, x: Array) -> Array:
    verify_module(module)
    return find_executor(on).run(module, {"x": x}, NoWatch()).outputs[0]


def _same(element: str, got: Array, want: Array) -> None:
    if element == "f32":
        np.testing.assert_allclose(got, want, rtol=2e-6)
    else:
        np.testing.assert_array_equal(got, want)


def _cuts(low: int, high: int) -> st.SearchStrategy[list[int]]:
    inner = st.sets(st.integers(low + 1, high - 1), max_size=4)
    return inner.map(lambda found: [low, *sorted(found), high])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("fold", _FOLDS, ids=lambda fold: "-".join(fold[:2]))
def test_any_tree_equals_the_fold(fold: tuple[str, str, str, str]) -> None:
    x = _values(fold[1])
    want = _run("reference", _program(*fold), x)

    @settings(max_examples=8, deadline=None)
    @given(
        _cuts(1, 4),
        _cuts(0, 5),
        _cuts(0, 7),
        st.sampled_from(["", "{arity=2}", "{arity=3}", "{arity=5}"]),
        st.sampled_from(["reference", "numpy"]),
    )
    def law(rows: list[int], columns: list[int], planes: list[int], arity: str, on: str) -> None:
        module = _program(*fold)
        if fold[0] == "affine":
            # What does not commute is cut along planes only where columns are single.
            columns = list(range(6))
        partition = f"grid {[rows, columns, planes]}"
        run_pipeline(module, f'loom-shard{{partition="{partition}"}},loom-expand-shards{arity}')
        _same(fold[2], _run(on, module, x), want)

    law()


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("fold", _FOLDS, ids=lambda fold: "-".join(fold[:2]))
def test_binary_trees(on: str, fold: tuple[str, str, str, str]) -> None:
    x = _values(fold[1])
    want = _run("reference", _program(*fold), x)
    module = _program(*fold)
    run_pipeline(module, "loom-shard{grid=1,5,2},loom-expand-shards{arity=2}")
    merges = [op for op in module.walk() if isinstance(op, loom.MergeOp)]
    assert all(len(op.states) == 2 * len(_parts(op)) for op in merges)
    assert sum(op.is_partial for op in merges) == len(merges) - 1 == 8
    _same(fold[2], _run(on, module, x), want)


def _parts(op: loom.MergeOp) -> tuple[object, ...]:
    """The parts of the state that a merge merges."""
    kernel = loom.find_kernel(op, op.kernel_name)
    assert kernel is not None
    return kernel.state_types


def test_runs_that_make_no_boxes_merge_at_once() -> None:
    # Two by three shards: two of three columns are a box, a row and a half is not.
    module = _program(*_FOLDS[0])
    run_pipeline(module, "loom-shard{grid=1,2,3},loom-expand-shards{arity=4}")
    sizes = [len(op.states) for op in module.walk() if isinstance(op, loom.MergeOp)]
    assert sizes == [3, 3, 2]


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("pipeline", ["", "loom-shard{grid=3,2,3},loom-expand-shards{arity=2}"])
@pytest.mark.parametrize("monoid", ["max", "min", "argmax", "argmin"])
def test_nan_wins_and_ties_go_to_the_first(on: str, pipeline: str, monoid: str) -> None:
    x = _values("f32")
    x[1, 2, 3] = x[1, 4, 0] = np.nan
    x[2] = 1.0
    flat = x.reshape(3, 35)
    # NumPy does as PyTorch does: NaN wins, and the first of equals has the position.
    want = {"max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}[monoid](flat, 1)
    module = _program(*next(fold for fold in [*_FOLDS, *_FLOATS] if fold[:2] == (monoid, "f32")))
    run_pipeline(module, pipeline)
    np.testing.assert_array_equal(_run(on, module, x), want)
