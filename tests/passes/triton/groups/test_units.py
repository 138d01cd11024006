"""Computed sides of products beside float16: their rows are of any size, and nothing overflows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func, math

import tapestry
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.frontend import parse_module, run_pipeline
from tapestry.passes.triton.groups.folding import greatest_weight
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

Cells: TypeAlias = "NDArray[np.float64]"

_TEXT = """
!x = !loom.tensor<[0, 0] : [70, 24], f16>
!w = !loom.tensor<[0, 0] : [24, 90], f16>
!s = !loom.tensor<[0, 0] : [70, 90], f32>
!v = !loom.tensor<[0, 0] : [90, 40], f16>
!y = !loom.tensor<[0, 0] : {shape}, f16>
func.func @main(%a: !x, %w: !w, %v: !v) -> !y {{
  %s = loom.operation @first over <[0, 0, 0] : [70, 90, 24]> [map, map, fold] by @add
         ins(%a : (k, j, c) -> (k, c), %w : (k, j, c) -> (c, j)) outs((k, j) -> (k, j))
         wrap (%x: f16, %y: f16) {{
           %l = arith.extf %x : f16 to f32
           %r = arith.extf %y : f16 to f32
           %p = arith.mulf %l, %r : f32
           loom.yield %p : f32
         }} : (!x, !w) -> !s
  %t = loom.operation @second over <[0, 0, 0] : [70, 40, 90]> [map, map, fold] by @add
         ins(%s : (i, j, k) -> (i, k), %v : (i, j, k) -> (k, j)) outs((i, j) -> {out})
         {domain}
         wrap (%x: f32, %y: f16) {{
           %e = math.{function} %x : f32
           %r = arith.extf %y : f16 to f32
           %p = arith.mulf %e, %r : f32
           loom.yield %p : f32
         }}
         unwrap (%z: f32) {{ %h = arith.truncf %z : f32 to f16  loom.yield %h : f16 }}
         {{assumes = ["finite(s)", "finite(v)"]}} : (!s, !v) -> !y
  func.return %t : !y
}}
"""


def _text(*, turned: bool = False, domain: str = "", function: str = "exp") -> str:
    shape, out = ("[40, 70]", "(j, i)") if turned else ("[70, 40]", "(i, j)")
    return _TEXT.format(shape=shape, out=out, domain=domain, function=function)


def _run(text: str, a: Cells, w: Cells, v: Cells) -> tuple[Cells, Cells, Cells]:
    """What comes out, and as float64 what is scored and what is multiplied."""
    module = parse_module(text)
    run_pipeline(module, "loom-group")
    given = {name: x.astype(np.float16) for name, x in (("a", a), ("w", w), ("v", v))}
    with np.errstate(all="ignore"):  # the interpreter is NumPy
        (found,) = TritonExecutor(tile=256).run(module, given, NoWatch()).outputs
    s = given["a"].astype(float) @ given["w"].astype(float)
    return np.asarray(found, float), s, given["v"].astype(float)


def _inputs(size: float) -> tuple[Cells, Cells, Cells]:
    """Scores of rows between `-size` and `size`, by and large."""
    random = np.random.default_rng(5)
    a = random.normal(size=(70, 24)) * np.linspace(0, size, 70)[:, None] / 5
    return a, random.normal(size=(24, 90)), random.normal(size=(90, 40))


def test_they_are_multiplied_in_float16() -> None:
    module = parse_module(_text())
    run_pipeline(module, "loom-group,loom-to-triton{device=h200}")
    dots = [op for op in module.walk() if isinstance(op, triton.DotOp)]
    assert len(dots) == 2
    assert {str(element_of(side)) for op in dots for side in (op.a, op.b)} == {"f16"}


@pytest.mark.parametrize("numerics", ["strict", "mixed"])
def test_only_strictly_they_are_float32(numerics: str) -> None:
    module = parse_module(_text())
    run_pipeline(module, f"loom-group,loom-to-triton{{numerics={numerics}}}")
    dots = [op for op in module.walk() if isinstance(op, triton.DotOp)]
    assert (str(element_of(dots[-1].a)) == "f32") == (numerics == "strict")


def test_what_cannot_overflow_needs_none() -> None:
    """Weights of a softmax are at most 1, and so are those that a dropout leaves."""
    q, k, v = (tapestry.input(name, (4, 256, 64), "float16") for name in "qkv")
    kept = tapestry.input("kept", (4, 256, 256), "bool")
    weights = tapestry.softmax((q @ k.transpose(0, 2, 1)).astype("float32"), axis=-1)
    left = tapestry.where(kept, weights * (1 / 0.9), 0.0)
    module = tapestry.compile((left @ v.astype("float32")).astype("float16"), on="triton").lowered
    LoomToTriton(device="h200").lower(Context(), module)
    dots = [op for op in module.walk() if isinstance(op, triton.DotOp)]
    assert {str(element_of(side)) for op in dots for side in (op.a, op.b)} == {"f16"}
    assert not any(isinstance(op, math.AbsFOp) for op in module.walk())


_SIZES = """
func.func @main(%x: f32, %i: i1, %m: f32) -> (f32, f32, f32, f32, f32, f32, f32, f32) {
  %two = arith.constant -2.0 : f32
  %zero = arith.constant 0.0 : f32
  %d = arith.subf %x, %m : f32
  %e = math.exp %d : f32
  %a = arith.mulf %e, %two : f32
  %n = arith.mulf %m, %zero : f32
  %u = arith.uitofp %i : i1 to f32
  %c = arith.select %i, %a, %u : f32
  %w = arith.select %i, %c, %x : f32
  %t = math.tanh %x : f32
  %tiny = arith.constant 1.0e-6 : f32
  %k = arith.mulf %e, %tiny : f32
  func.return %e, %a, %n, %u, %c, %w, %t, %k : f32, f32, f32, f32, f32, f32, f32, f32
}
"""


def test_what_is_known_of_weights() -> None:
    (main,) = (op for op in parse_module(_SIZES).walk() if isinstance(op, func.FuncOp))
    x, _, m = main.body.block.args
    ends = main.body.block.last_op
    assert ends is not None
    inf = float("inf")
    sizes = [greatest_weight(value, {x: m}) for value in ends.operands]
    assert sizes == [1.0, 2.0, 0.0, 1.0, 2.0, inf, inf, inf]
    assert greatest_weight(ends.operands[0], {}) == inf


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("domain", ["", "domain(d0 - d2 >= 0)"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 12.0])
def test_rows_of_any_size_keep_their_digits(size: float, domain: str, turned: bool) -> None:
    a, w, v = _inputs(size)
    v *= 2.0**-8
    found, s, v16 = _run(_text(turned=turned, domain=domain), a, w, v)
    found = found.T if turned else found
    side = np.exp(s)
    i, _, k = np.indices((70, 40, 90), sparse=True)
    terms = side[:, None, :] * v16.T[None] * ((i >= k) if domain else True)
    want, most = terms.sum(2), np.abs(terms).sum(2)
    fits = np.abs(want) < 65504
    assert np.exp(s).max() > 65504 or size < 12
    assert np.isinf(found[~fits]).all()
    # Both the side and the result are rounded to 11 bits; the least that float16 has is 2^-24.
    error = np.abs(found - want)
    assert (error <= 2**-10 * most + 2**-24)[fits].all()


@pytest.mark.parametrize("size", [1e-7, 1e-3])
def test_small_rows_keep_their_digits(size: float) -> None:
    """Where no cell of a row is of ordinary size, though none could overflow."""
    a, w, v = np.full((70, 24), 2.0**-3), np.full((24, 90), size / 3), np.full((90, 40), 1500.0)
    found, s, v16 = _run(_text(function="tanh"), a, w, v)
    np.testing.assert_allclose(found, np.tanh(s) @ v16, rtol=2e-3)


@pytest.mark.parametrize("score", [-20.0, -80.0, -85.0])
def test_the_smallest_exponentials_keep_their_digits(score: float) -> None:
    q, k, v = (tapestry.input(name, (2, 96, 16), "float16") for name in "qkv")
    weights = tapestry.exp(q.astype("float32") @ k.transpose(0, 2, 1).astype("float32"))
    made = (weights @ v.astype("float32")) / tapestry.sum(weights, axis=-1, keepdims=True)
    program = tapestry.compile(made.astype("float16"), on="triton")
    random = np.random.default_rng(3)
    a = np.full((2, 96, 16), score / 16, np.float16)
    b = (1 + random.normal(size=(2, 96, 16)) / 100).astype(np.float16)
    c = random.normal(size=(2, 96, 16)).astype(np.float16)
    s = a.astype(float) @ b.astype(float).transpose(0, 2, 1)
    want = np.exp(s) @ c.astype(float) / np.exp(s).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(program(q=a, k=b, v=c), float), want, atol=2e-3)


_RIGHT = """
!x = !loom.tensor<[0, 0] : [70, 40], f16>
!w = !loom.tensor<[0, 0] : [70, 90], f32>
!y = !loom.tensor<[0, 0] : [40, 90], f16>
func.func @main(%a: !x, %w: !w) -> !y {
  %t = loom.operation @second over <[0, 0, 0] : [40, 90, 70]> [map, map, fold] by @add
         ins(%a : (i, j, k) -> (k, i), %w : (i, j, k) -> (k, j)) outs((i, j) -> (i, j))
         wrap (%x: f16, %y: f32) {
           %r = arith.extf %x : f16 to f32
           %e = math.exp %y : f32
           %p = arith.mulf %r, %e : f32
           loom.yield %p : f32
         }
         unwrap (%z: f32) { %h = arith.truncf %z : f32 to f16  loom.yield %h : f16 }
         : (!x, !w) -> !y
  %m = loom.operation @neg over <[0, 0] : [40, 90]> [map, map]
         ins(%t : (i, j) -> (i, j)) outs((i, j) -> (i, j))
         wrap (%x: f16) { %n = arith.negf %x : f16 loom.yield %n : f16 } : (!y) -> !y
  func.return %m : !y
}
"""


@pytest.mark.parametrize("tile", [256, 8192])
def test_the_computed_side_may_be_of_columns(tile: int) -> None:
    module = parse_module(_RIGHT)
    run_pipeline(module, "loom-group")
    random = np.random.default_rng(0)
    a = (random.normal(size=(70, 40)) * 2.0**-9).astype(np.float16)
    w = (random.normal(size=(70, 90)) * np.linspace(0.1, 4, 90)).astype(np.float32)
    (found,) = TritonExecutor(tile=tile).run(module, {"a": a, "w": w}, NoWatch()).outputs
    side, terms = np.exp(w.astype(float)), a.astype(float).T
    error = np.abs(np.asarray(found, float) + terms @ side)
    assert (error <= 2**-10 * (np.abs(terms) @ side) + 2**-24).all()


def test_a_cell_of_a_row_may_be_far_greater_than_the_others() -> None:
    """What is 2^-30 of another cell of its row is a number yet."""
    a, w, v = np.zeros((70, 24)), np.zeros((24, 90)), np.zeros((90, 40))
    a[:, 0] = np.linspace(0.1, 1, 70)
    w[0] = -20.0
    w[0, 77] = 1.0
    v[:76, :] = 2000.0
    found, s, v16 = _run(_text(), a, w, v)
    want = np.exp(s) @ v16
    assert want.max() > 1
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=2**-12)


def test_cells_that_a_column_leaves_out_are_no_size_for_it() -> None:
    """Only the first column has the first cell of a row, which is 2^37 of the others."""
    a, w, v = np.zeros((70, 24)), np.zeros((24, 90)), np.full((90, 40), 2.0**-7)
    a[:, 0], w[0], w[0, 0], v[0, 0] = 1, -6, 20, 2.0**-20
    found, s, v16 = _run(_text(domain="domain(d2 - d1 >= 0)"), a, w, v)
    k, j = np.indices((90, 40))
    np.testing.assert_allclose(found, np.exp(s) @ np.where(k >= j, v16, 0), rtol=2e-3)


def test_what_is_not_finite_stays_in_its_row() -> None:
    a, w, v = _inputs(1.0)
    a[3] = 3000 * np.sign(w[:, 50])  # exp of it is infinite
    a[4] = np.nan
    a[5] = -1e4 * np.sign(w[:, 50])
    v = np.abs(v) + 0.1
    found, s, v16 = _run(_text(), a, w, v)
    with np.errstate(all="ignore"):
        want = (np.exp(np.clip(s, -1e3, 700))) @ v16
    assert np.isinf(found[3]).all()
    assert np.isnan(found[4]).all()
    rest = np.delete(np.arange(70), [3, 4, 5])
    np.testing.assert_allclose(found[rest], want[rest], rtol=2e-3)


def test_rows_of_zeros_are_zero() -> None:
    a, w, v = _inputs(1.0)
    found, _, _ = _run(_text(function="sqrt"), a * 0, w, v)
    assert (found == 0).all()
