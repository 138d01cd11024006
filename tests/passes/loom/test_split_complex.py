"""Split complex programs: every scalar operation, groups, kernels, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.algebra.complexes import find_complex
from tapestry.diagnostics import TapestryError
from tapestry.runtime.executor import Array
from tapestry.runtime.triton.arrays import as_pairs, from_pairs

UNARY = (
    *("conj", "cos", "exp", "expm1", "log", "log1p", "neg", "rsqrt", "sign", "sin", "sqrt"),
    *("tan", "tanh"),
)
BINARY = ("add", "sub", "mul", "div", "pow")

# Parts in all quadrants, on the axes, tiny, large, and near the unit circle.
_PARTS = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-4, -2.5, 6.0, 0.9999])
_SPECIAL = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])


def _all(parts: Array, dtype: str) -> Array:
    real, imaginary = np.meshgrid(parts, parts)
    made = np.empty(real.size, dtype)
    made.real, made.imag = real.ravel(), imaginary.ravel()
    return made


def _program(kind: str, size: int, lines: str, result: str | None = None) -> str:
    x, y = (f"!loom.tensor<[2] : [{2 + size}], {cell}>" for cell in (kind, result or kind))
    return f"""func.func @main(%a: {x}, %b: {x}) -> {y} {{
      %y = loom.operation @map over <[2] : [{2 + size}]> [map]
        ins(%a : (d0) -> (d0), %b : (d0) -> (d0)) outs((d0) -> (d0))
        wrap (%c: {kind}, %d: {kind}) {{ {lines} loom.yield %v : {result or kind} }}
        : ({x}, {x}) -> {y}
      func.return %y : {y}
    }}"""


def _both(text: str, pipeline: str, *inputs: Array) -> tuple[Array, Array]:
    """What the reference executor makes of a program, and of what the pipeline makes of it."""
    module = tapestry.parse_module(text)
    names = [argument.name for argument in tapestry.arguments(module)]
    given = dict(zip(names, inputs, strict=True))
    (want,) = tapestry.run(module, given, on="reference").outputs
    tapestry.run_pipeline(module, pipeline)
    assert find_complex(module) is None
    assert [argument.name for argument in tapestry.arguments(module)] == names
    pairs = {name: as_pairs(array) for name, array in given.items()}
    (got,) = tapestry.run(module, pairs, on="reference").outputs
    return want, from_pairs(got, want.dtype)


def _assert_close(got: Array, want: Array, tolerance: float) -> None:
    """Close by the size of the number, not of each part."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want)
        size = np.abs(want)
    bad = ~((error <= tolerance * (1 + size)) | np.isnan(want) | (got == want))
    assert not bad.any(), list(zip(got[bad], want[bad], strict=True))[:5]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_operations_that_make_complex_numbers(name: str, bits: int) -> None:
    kind, dtype = f"complex<f{bits}>", f"complex{2 * bits}"
    x = _all(_PARTS, dtype)
    y = np.random.default_rng(0).permutation(x)
    operands = "%c, %d" if name in BINARY else "%c"
    text = _program(kind, x.size, f"%v = complex.{name} {operands} : {kind}")
    want, got = _both(text, "loom-split-complex", x, y)
    if name in ("add", "sub", "mul", "neg", "conj"):
        np.testing.assert_array_equal(got, want)
    else:
        finite = np.isfinite(want) & np.isfinite(got)
        assert np.count_nonzero(~finite) <= np.count_nonzero(~np.isfinite(want)) + 2
        _assert_close(got[finite], want[finite], 1e-5 if bits == 32 else 1e-13)


def test_products_that_overflow_on_the_way() -> None:
    x = np.array([1e30 + 1e30j, 1e30 + 1e30j, 1e20 + 1e20j, complex("inf")], np.complex64)
    y = np.array([1e30 - 1e30j, 1e-30 - 1e-30j, 1e20 + 1e20j, 2j], np.complex64)
    text = _program("complex<f32>", x.size, "%v = complex.mul %c, %d : complex<f32>")
    want, got = _both(text, "loom-split-complex", x, y)
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(want.real, np.array([inf, 2, nan, nan], np.float32))
    np.testing.assert_array_equal(want.imag, np.array([nan, 0, inf, inf], np.float32))
    np.testing.assert_array_equal(got.view(np.float32), want.view(np.float32))
    for executor in ("numpy", "triton"):
        (again,) = tapestry.run(tapestry.parse_module(text), {"a": x, "b": y}, on=executor).outputs
        np.testing.assert_array_equal(again.view(np.float32), want.view(np.float32))


@pytest.mark.parametrize("name", ["abs", "angle"])
@pytest.mark.parametrize("parts", [_PARTS, _SPECIAL], ids=["finite", "special"])
def test_sizes_and_angles(name: str, parts: Array) -> None:
    x = _all(parts, "complex128")
    text = _program("complex<f64>", x.size, f"%v = complex.{name} %c : complex<f64>", "f64")
    want, got = _both(text, "loom-split-complex", x, x)
    np.testing.assert_allclose(got, want, rtol=1e-15)


@pytest.mark.parametrize("name", ["eq", "neq"])
def test_comparisons(name: str) -> None:
    x = _all(_SPECIAL, "complex64")
    y = np.where(np.arange(x.size) % 2, x, np.roll(x, 1))
    text = _program("complex<f32>", x.size, f"%v = complex.{name} %c, %d : complex<f32>", "i1")
    want, got = _both(text, "loom-split-complex", x, y)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["exp", "sqrt", "log", "sign", "div"])
def test_results_of_infinities_are_infinite_where_they_were(name: str) -> None:
    x = _all(np.array([0.0, 1.0, -2.0, np.inf, -np.inf]), "complex128")
    operands = "%c, %d" if name == "div" else "%c"
    text = _program("complex<f64>", x.size, f"%v = complex.{name} {operands} : complex<f64>")
    want, got = _both(text, "loom-split-complex", x, np.full_like(x, 3 - 4j))
    known = np.isfinite(want)
    np.testing.assert_allclose(got[known], want[known], rtol=1e-15, atol=1e-15)


def test_bits() -> None:
    x = _all(_SPECIAL, "complex64")
    lines = """%n = complex.bitcast %c : complex<f32> to i64
      %f = complex.bitcast %c : complex<f32> to f64
      %m = arith.bitcast %f : f64 to i64
      %same = arith.cmpi eq, %n, %m : i64
      %back = complex.bitcast %n : i64 to complex<f32>
      %again = complex.bitcast %f : f64 to complex<f32>
      %v = arith.select %same, %back, %again : complex<f32>"""
    want, got = _both(_program("complex<f32>", x.size, lines), "loom-split-complex", x, x)
    np.testing.assert_array_equal(got.view(np.int64), x.view(np.int64))
    np.testing.assert_array_equal(want.view(np.int64), x.view(np.int64))


_MATMUL = """
!a = !loom.tensor<[0, 0] : [4, 6], complex<f32>>
!b = !loom.tensor<[0, 0] : [6, 5], complex<f32>>
!c = !loom.tensor<[0, 0] : [4, 5], complex<f32>>
!s = !loom.tensor<[0] : [4], complex<f32>>
func.func @main(%a: !a, %b: !b) -> !s {
  %t = loom.view %b : (d0, d1) -> (-d0 + 5, d1) : !b -> !b
  %c = loom.operation @matmul over <[0, 0, 0] : [4, 5, 6]> [map, map, fold] by @add
    ins(%a : (d0, d1, d2) -> (d0, d2), %t : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
    wrap (%x: complex<f32>, %y: complex<f32>) {
      %p = complex.mul %x, %y : complex<f32>
      loom.yield %p : complex<f32>
    } : (!a, !b) -> !c
  %e = loom.operation @conj over <[0, 0] : [4, 5]> [map, map]
    ins(%c : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
    wrap (%x: complex<f32>) {
      %p = complex.conj %x : complex<f32>
      loom.yield %p : complex<f32>
    } : (!c) -> !c
  %s = loom.operation @sum over <[0, 0] : [4, 5]> [map, fold] by @add
    ins(%e : (d0, d1) -> (d0, d1)) extra(%c : (d0) -> (d0, 0)) outs((d0) -> (d0))
    wrap (%x: complex<f32>) { loom.yield %x : complex<f32> }
    unwrap (%t: complex<f32>, %x: complex<f32>) {
      %p = complex.sub %t, %x : complex<f32>
      loom.yield %p : complex<f32>
    } : (!c, !c) -> !s
  func.return %s : !s
}"""


@pytest.mark.parametrize(
    "pipeline",
    [
        "loom-split-complex",
        "loom-split-complex,loom-simplify,loom-fuse,loom-shard{shards=3}",
        "loom-shard{shards=3},loom-split-complex,loom-expand-shards{arity=2}",
        "loom-shard{shards=3},loom-expand-shards{arity=2},loom-split-complex",
        "loom-group,loom-split-complex",
        "loom-group,loom-shard{shards=2},loom-expand-shards,loom-split-complex,loom-ungroup",
    ],
)
def test_programs(pipeline: str) -> None:
    draw = np.random.default_rng(0).integers(-4, 5, (4, 6, 6))
    a = (draw[0] + 1j * draw[1])[:4].astype(np.complex64)
    b = (draw[2] + 1j * draw[3])[:, :5].astype(np.complex64)
    want, got = _both(_MATMUL, pipeline, a, b)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(want, np.conj(a @ b[::-1]).sum(1) - (a @ b[::-1])[:, 0])


_PARTS_APART = """
!x = !loom.tensor<[0, 0] : [3, 4], complex<f32>>
!y = !loom.tensor<[0, 0] : [5, 4], complex<f32>>
!o = !loom.tensor<[0, 0] : [3, 5], complex<f32>>
loom.monoid @both commutative
    zero [#complex.number<:f32 0.0, 0.0> : complex<f32>,
          #complex.number<:f32 0.0, 0.0> : complex<f32>]
    merge (%a: complex<f32>, %b: complex<f32>, %c: complex<f32>, %d: complex<f32>) {
  %m = complex.add %a, %c : complex<f32>
  %n = complex.add %b, %d : complex<f32>
  loom.yield %m, %n : complex<f32>, complex<f32>
}
func.func @main(%x: !x, %y: !y) -> !o {
  %o = loom.operation @o over <[0, 0, 0] : [3, 5, 4]> [map, map, fold] by @both
     ins(%x : (i, j, k) -> (i, k), %y : (i, j, k) -> (j, k)) outs((i, j) -> (i, j))
     wrap (%a: complex<f32>, %b: complex<f32>) {
       %r = complex.re %a : complex<f32>
       %z = arith.constant 1.0 : f32
       %c = complex.create %r, %z : complex<f32>
       loom.yield %c, %b : complex<f32>, complex<f32> }
     unwrap (%a: complex<f32>, %b: complex<f32>) {
       %p = complex.mul %a, %b : complex<f32>
       loom.yield %p : complex<f32>
     } : (!x, !y) -> !o
  func.return %o : !o
}
"""


def test_parts_of_states_keep_their_dimensions() -> None:
    draw = np.random.default_rng(0).integers(-4, 5, (4, 5, 4))
    x = (draw[0] + 1j * draw[1])[:3].astype(np.complex64)
    y = (draw[2] + 1j * draw[3]).astype(np.complex64)
    pipeline = "loom-shard{grid=1,1,2},loom-expand-shards,loom-split-complex"
    want, got = _both(_PARTS_APART, pipeline, x, y)
    np.testing.assert_array_equal(got, want)


def test_constants_of_files(tmp_path: Path) -> None:
    cells = _all(_PARTS[:3], "complex64")
    np.savez(tmp_path / "w.npz", w=cells)
    x = f"!loom.tensor<[1] : [{1 + cells.size}], complex<f32>>"
    program = tmp_path / "p.mlir"
    program.write_text(f"""func.func @main() -> {x} {{
      %w = loom.constant file "w.npz" entry "w" : {x}
      func.return %w : {x}
    }}""")
    module = tapestry.load_module(program)
    (on_triton,) = tapestry.run(module, {}, on="triton").outputs
    tapestry.run_pipeline(module, "loom-split-complex")
    (pairs,) = tapestry.run(module, {}, on="reference").outputs
    np.testing.assert_array_equal(on_triton, cells, strict=True)
    np.testing.assert_array_equal(from_pairs(pairs, cells.dtype), cells, strict=True)


def test_an_external_kernel_is_refused_where_it_stands() -> None:
    x = "!loom.tensor<[0] : [4], complex<f32>>"
    module = tapestry.parse_module(
        f"""func.func @main(%x: {x}) -> {x} {{
          %y = loom.external @own over <[] : []> ins(%x : () -> (0) :> [4])
            outs(() -> (0) :> [4]) : ({x}) -> {x}
          func.return %y : {x}
        }}""",
        "p.mlir",
    )
    with pytest.raises(TapestryError, match=r"p.mlir:2:\d+: error: @own is on complex numbers"):
        tapestry.run_pipeline(module, "loom-split-complex")
