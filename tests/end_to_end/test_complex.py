"""Complex numbers: bodies, folds, scans and matrix products, whole, sharded and spelled out.

Parts are small whole numbers, so that what has no division or root in it is exact in any order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.algebra.dtypes import ELEMENT_TYPES, is_complex, numpy_dtype, type_named
from tapestry.proving.equality import compare_programs
from tapestry.runtime.executor import Array
from tapestry.tools.tapestry import main

KINDS = [str(element) for element in ELEMENT_TYPES if is_complex(element)]
RUNS = [
    ("reference", ""),
    ("numpy", "loom-simplify,loom-fuse"),
    ("numpy", "loom-shard{shards=3}"),
    ("numpy", "loom-shard{shards=3},loom-expand-shards"),
    ("triton", "loom-simplify,loom-fuse,loom-shard{shards=3},loom-expand-shards"),
]


def _cells(kind: str, *shape: int) -> Array:
    element = type_named(kind)
    assert element is not None
    drawn = np.random.default_rng(len(shape)).integers(-4, 5, (2, *shape))
    return (drawn[0] + 1j * drawn[1]).astype(numpy_dtype(element))


def _run(text: str, run: tuple[str, str], *inputs: Array) -> Array:
    on, pipeline = run
    module = tapestry.parse_module(text)
    tapestry.run_pipeline(module, pipeline)
    names = [argument.name for argument in tapestry.arguments(module)]
    (got,) = tapestry.run(module, dict(zip(names, inputs, strict=True)), on=on).outputs
    return got


def _map(kind: str, result: str, lines: str) -> str:
    x, y = (f"!loom.tensor<[0, 1] : [4, 6], {cell}>" for cell in (kind, result))
    same = "(d0, d1) -> (d0, d1)"
    return f"""func.func @main(%x: {x}, %w: {x}) -> {y} {{
      %y = loom.operation @map over <[0, 1] : [4, 6]> [map, map]
        ins(%x : {same}, %w : {same}) outs({same})
        wrap (%a: {kind}, %b: {kind}) {{ {lines} loom.yield %v : {result} }} : ({x}, {x}) -> {y}
      func.return %y : {y}
    }}"""


def _fold(kind: str, monoid: str, iterators: str = "[map, fold]", extra: str = "") -> str:
    x = f"!loom.tensor<[0, 1] : [4, 6], {kind}>"
    y, out = (
        (x, "(d0, d1) -> (d0, d1)")
        if "scan" in iterators
        else (
            f"!loom.tensor<[0] : [4], {kind}>",
            "(d0) -> (d0)",
        )
    )
    return f"""{extra}
    func.func @main(%x: {x}) -> {y} {{
      %y = loom.operation @fold over <[0, 1] : [4, 6]> {iterators} by @{monoid}
        ins(%x : (d0, d1) -> (d0, d1)) outs({out})
        wrap (%a: {kind}) {{ loom.yield %a : {kind} }} : ({x}) -> {y}
      func.return %y : {y}
    }}"""


_EXACT = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
}
_UNARY = {
    "neg": np.negative,
    "conj": np.conjugate,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sign": np.sign,
}
_PARTS = {"re": np.real, "im": np.imag, "abs": np.abs, "angle": np.angle}


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_scalar_operations(kind: str, run: tuple[str, str]) -> None:
    x, w = _cells(kind, 4, 5), _cells(kind, 4, 5)[::-1].copy()
    part = kind.removeprefix("complex<").removesuffix(">")
    for name, function in _EXACT.items():
        got = _run(_map(kind, kind, f"%v = complex.{name} %a, %b : {kind}"), run, x, w)
        np.testing.assert_array_equal(got, function(x, w), strict=True)
    for name, function in _UNARY.items():
        got = _run(_map(kind, kind, f"%v = complex.{name} %a : {kind}"), run, x, w)
        np.testing.assert_allclose(got, function(x), rtol=1e-6, strict=True)
    for name, function in _PARTS.items():
        got = _run(_map(kind, part, f"%v = complex.{name} %a : {kind}"), run, x, w)
        np.testing.assert_allclose(got, function(x), rtol=1e-6, strict=True)
    for name, wanted in (("eq", x == w), ("neq", x != w)):
        got = _run(_map(kind, "i1", f"%v = complex.{name} %a, %b : {kind}"), run, x, w)
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_taken_apart_and_put_together(kind: str) -> None:
    x, w = _cells(kind, 4, 5), _cells(kind, 4, 5) + 1
    part = kind.removeprefix("complex<").removesuffix(">")
    lines = f"""
      %r = complex.re %a : {kind}
      %i = complex.im %b : {kind}
      %p = complex.create %i, %r : {kind}
      %k = complex.constant [0.0 : {part}, 2.0 : {part}] : {kind}
      %q = complex.mul %p, %k : {kind}
      %e = complex.eq %a, %b : {kind}
      %v = arith.select %e, %a, %q : {kind}"""
    for run in RUNS:
        got = _run(_map(kind, kind, lines), run, x, w)
        np.testing.assert_array_equal(got, np.where(x == w, x, (np.imag(w) + 1j * np.real(x)) * 2j))
        assert got.dtype == x.dtype


def test_a_part_that_is_not_finite_stays_alone() -> None:
    x = np.full((4, 5), complex(np.inf, np.nan), np.complex64)
    lines = """
      %r = complex.re %a : complex<f32>
      %z = arith.constant -0.0 : f32
      %v = complex.create %z, %r : complex<f32>"""
    got = _run(_map(KINDS[0], KINDS[0], lines), RUNS[0], x, x)
    assert np.all(np.signbit(np.real(got)) & (np.real(got) == 0) & np.isposinf(np.imag(got)))


_OWN = """loom.monoid @own commutative zero [#complex.number<:{part} 1.0, 0.0> : {kind}]
    merge (%a: {kind}, %b: {kind}) {{ %m = complex.mul %a, %b : {kind} loom.yield %m : {kind} }}"""


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_folds_and_scans(kind: str, run: tuple[str, str]) -> None:
    x = _cells(kind, 4, 5)
    own = _OWN.format(kind=kind, part=kind.removeprefix("complex<").removesuffix(">"))
    for text, wanted in (
        (_fold(kind, "add"), x.sum(1)),
        (_fold(kind, "mul"), x.prod(1)),
        (_fold(kind, "own", extra=own), x.prod(1)),
        (_fold(kind, "add", "[map, scan]"), x.cumsum(1)),
    ):
        np.testing.assert_array_equal(_run(text, run, x), wanted, strict=True)


def _matmul(kind: str) -> str:
    a, b, c = (f"!loom.tensor<[0, 0] : {shape}, {kind}>" for shape in ([4, 7], [7, 5], [4, 5]))
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %c = loom.operation @matmul over <[0, 0, 0] : [4, 5, 7]> [map, map, fold] by @add
        ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d2, d1))
        outs((d0, d1) -> (d0, d1))
        wrap (%x: {kind}, %y: {kind}) {{
          %p = complex.mul %x, %y : {kind} loom.yield %p : {kind}
        }} : ({a}, {b}) -> {c}
      func.return %c : {c}
    }}"""


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_matrix_products(kind: str, run: tuple[str, str]) -> None:
    a, b = _cells(kind, 4, 7), _cells(kind, 7, 5)
    np.testing.assert_array_equal(_run(_matmul(kind), run, a, b), a @ b, strict=True)


@pytest.mark.parametrize("run", RUNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_domains_clips_and_reads(kind: str, run: tuple[str, str]) -> None:
    part = kind.removeprefix("complex<").removesuffix(">")
    a, b = _cells(kind, 4, 7), _cells(kind, 7, 5)
    below = _matmul(kind).replace("        wrap", "        domain(d0 - d2 >= 0)\n        wrap")
    np.testing.assert_array_equal(_run(below, run, a, b), np.tril(a) @ b, strict=True)
    x = f"!loom.tensor<[0] : [7], {kind}>"
    block = f"!loom.block<[7], {kind}>"
    text = f"""func.func @main(%x: {x}) -> {x} {{
      %y = loom.operation @next over <[0] : [7]> [map]
        ins(%x : (d0) -> (d0 + 1) clip #complex.number<:{part} 3.0, -4.0> : {kind},
            %x : (d0) -> (0) :> [7]) outs((d0) -> (d0))
        wrap (%a: {kind}, %b: {block}) {{
          %d = loom.index 0 : i64
          %two = arith.constant 2 : i64
          %at = arith.addi %d, %two : i64
          %fill = complex.constant [0.0 : {part}, 1.0 : {part}] : {kind}
          %v = loom.read %b[%at] else %fill : {kind}
          %s = complex.sub %a, %v : {kind}
          loom.yield %s : {kind}
        }} : ({x}, {x}) -> {x}
      func.return %y : {x}
    }}"""
    wanted = np.append(a[0, 1:], 3 - 4j) - np.append(a[0, 2:], [1j, 1j])
    np.testing.assert_array_equal(_run(text, run, a[0].copy()), wanted.astype(a.dtype), strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_complex_numbers_are_compared(kind: str) -> None:
    one, other = (tapestry.parse_module(_fold(kind, monoid)) for monoid in ("add", "mul"))
    assert compare_programs(one, other).answer == "differs"
    tapestry.run_pipeline(other, "loom-shard{shards=3},loom-expand-shards")
    whole = tapestry.parse_module(_fold(kind, "mul"))
    assert compare_programs(whole, other).answer == "certified"


def test_files_hold_complex_numbers(tmp_path: Path) -> None:
    program, inputs, output = (tmp_path / name for name in ("m.mlir", "x.npz", "y.npz"))
    program.write_text(_fold(KINDS[0], "add"))
    x = _cells(KINDS[0], 4, 5)
    np.savez(inputs, x=x)
    for on in ("numpy", "triton"):
        with pytest.raises(SystemExit) as ended:
            main(["run", *map(str, (program, "--on", on, "--inputs", inputs, "--output", output))])
        assert ended.value.code == 0
        with np.load(output) as archive:
            np.testing.assert_array_equal(archive["out0"], x.sum(1), strict=True)
