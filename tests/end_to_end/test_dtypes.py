"""Every element type and empty tensors: sharded executors agree with the reference."""

from __future__ import annotations

import numpy as np
import pytest

import tapestry
from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.proving.equality import compare_programs
from tapestry.runtime.executor import Array

Shape = tuple[int, ...]

_TOLERANCE = {"f16": 1e-2, "bf16": 6e-2, "f32": 1e-5, "f64": 1e-12}
_NUMBERS = (*_TOLERANCE, "ui8", "i8", "i32", "i64")


def _type(shape: Shape, dtype: str) -> str:
    """A tensor that starts at 1 in every dimension."""
    return f"!loom.tensor<{[1] * len(shape)} : {[1 + n for n in shape]}, {dtype}>"


def _program(kernel: str, parameters: str, operands: list[str], result: str) -> str:
    arguments = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(operands))
    values = ", ".join(f"%a{n}" for n in range(len(operands)))
    return f"""func.func @main({arguments}) -> {result} {{
      %y = weft.apply @{kernel}({values}) {parameters} : ({", ".join(operands)}) -> {result}
      func.return %y : {result}
    }}"""


def _array(shape: Shape, dtype: str) -> Array:
    kind = type_named(dtype)
    assert kind is not None
    generator = np.random.default_rng(0)
    integers = dtype.lstrip("u").startswith("i")
    drawn = generator.integers(-3, 4, shape) if integers else generator.standard_normal(shape)
    return drawn.astype(numpy_dtype(kind))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("shape", [(2, 5), (1, 1), (3, 0), (0, 4)])
@pytest.mark.parametrize("dtype", _NUMBERS)
def test_types_and_sizes(dtype: str, shape: Shape, on: str) -> None:
    rows, columns = shape
    matrix, along = _type(shape, dtype), "{axis = 1 : i64}"
    cases = [
        _program("relu", "", [matrix], matrix),
        _program("add", "", [matrix, matrix], matrix),
        _program("sum", along, [matrix], _type((rows,), dtype)),
        _program("matmul", "", [matrix, _type((columns, 3), dtype)], _type((rows, 3), dtype)),
        _program("transpose", "{perm = [1, 0]}", [matrix], _type((columns, rows), dtype)),
        _program("reshape", "{shape = [-1]}", [matrix], _type((rows * columns,), dtype)),
    ]
    if columns:
        cases.append(_program("max", along, [matrix], _type((rows,), dtype)))
        cases.append(_program("argmax", along, [matrix], _type((rows,), "i64")))
        if dtype in _TOLERANCE:
            cases.append(_program("softmax", along, [matrix], matrix))
    for text in cases:
        module = tapestry.parse_module(text)
        tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse")
        inputs = {a.name: _array(a.type.box.shape, dtype) for a in tapestry.arguments(module)}
        (want,) = tapestry.run(module, inputs, on="reference").outputs
        tapestry.run_pipeline(module, "loom-shard{shards=3}")
        (got,) = tapestry.run(module, inputs, on=on).outputs
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        if dtype in _TOLERANCE and want.dtype != np.int64:
            wide = np.float64
            tolerance = _TOLERANCE[dtype]
            np.testing.assert_allclose(
                got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance
            )
        else:
            assert np.array_equal(got, want)


@pytest.mark.parametrize("on", ["reference", "numpy"])
def test_one_value_for_no_cells(on: str) -> None:
    module = tapestry.parse_module("""
        !x = !loom.tensor<[0] : [1], f32>
        !y = !loom.tensor<[0] : [0], f32>
        func.func @main(%x: !x) -> !y {
          %y = loom.operation @repeat over <[0] : [0]> [map]
                 ins(%x : (d0) -> (0)) outs((d0) -> (d0))
                 wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
          func.return %y : !y
        }""")
    (got,) = tapestry.run(module, {"x": np.ones(1, np.float32)}, on=on).outputs
    assert got.shape == (0,)


_BYTES = np.array([[0, 1, 127], [128, 200, 255]], np.uint8)
_OTHERS = np.array([[255, 3, 128], [127, 7, 2]], np.uint8)


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize(
    ("kernel", "function"),
    [("add", np.add), ("mul", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)],
)
def test_bytes_compute_without_a_sign(kernel: str, function: np.ufunc, on: str) -> None:
    kind = _type((2, 3), "ui8")
    module = tapestry.parse_module(_program(kernel, "", [kind, kind], kind))
    tapestry.run_pipeline(module, "weft-apply,loom-shard{shards=2}")
    (got,) = tapestry.run(module, {"a0": _BYTES, "a1": _OTHERS}, on=on).outputs
    np.testing.assert_array_equal(got, function(_BYTES, _OTHERS), strict=True)


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("max", _BYTES.max(1)),
        ("min", _BYTES.min(1)),
        ("sum", _BYTES.sum(1, np.uint8)),
        ("argmax", _BYTES.argmax(1)),
    ],
)
def test_bytes_fold_without_a_sign(kernel: str, wanted: Array, on: str) -> None:
    result = "i64" if kernel == "argmax" else "ui8"
    text = _program(kernel, "{axis = 1 : i64}", [_type((2, 3), "ui8")], _type((2,), result))
    for pipeline in ("weft-apply", "weft-apply,loom-shard{shards=3},loom-expand-shards"):
        module = tapestry.parse_module(text)
        tapestry.run_pipeline(module, pipeline)
        (got,) = tapestry.run(module, {"a0": _BYTES}, on=on).outputs
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("target", ["f32", "bf16", "i8", "i16", "i64", "i1"])
@pytest.mark.parametrize("on", ["reference", "triton"])
def test_bytes_are_cast_both_ways(target: str, on: str) -> None:
    there, back = _type((2, 3), target), _type((2, 3), "ui8")
    to, of = f'{{dtype = "{target}"}}', '{dtype = "ui8"}'
    text = f"""func.func @main(%a: {back}) -> ({there}, {back}) {{
      %b = weft.apply @cast(%a) {to} : ({back}) -> {there}
      %c = weft.apply @cast(%b) {of} : ({there}) -> {back}
      func.return %b, %c : {there}, {back}
    }}"""
    module = tapestry.parse_module(text)
    tapestry.run_pipeline(module, "weft-apply")
    there_array, back_array = tapestry.run(module, {"a": _BYTES}, on=on).outputs
    element = type_named(target)
    assert element is not None
    wanted = _BYTES.astype(numpy_dtype(element))
    np.testing.assert_array_equal(there_array, wanted, strict=True)
    np.testing.assert_array_equal(back_array, wanted.astype(np.uint8), strict=True)


_PLAIN = """
!x = !loom.tensor<[0] : [6], ui8>
!n = !loom.tensor<[0] : [6], index>
!b = !loom.block<[6], i8>
func.func @main(%x: !x, %n: !n) -> (!x, !n, !n) {
  %k = loom.constant [250, 1, 2, 3, 4, 5] : !x
  %s = loom.constant 7 : !n
  %r = loom.view %x : (d0) -> (-d0 + 5) : !x -> !x
  %y = loom.operation @y over <[0] : [6]> [map]
    ins(%x : (d0) -> (d0 + 1) clip -1 : i8, %r : (d0) -> (0) :> [6], %k : (d0) -> (d0),
        %n : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: i8, %b: !b, %c: i8, %i: index) {
      %at = arith.index_cast %i : index to i64
      %v = loom.read %b[%at] else %a : i8
      %h = arith.divui %a, %c : i8
      %m = arith.maxui %h, %v : i8
      loom.yield %m : i8
    } : (!x, !x, !x, !n) -> !x
  %z = loom.operation @sums over <[0] : [6]> [scan] by @add
    ins(%n : (d0) -> (d0), %s : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%i: index, %j: index) {
      %d = loom.index 0 : i64
      %e = arith.index_cast %d : i64 to index
      %p = arith.muli %i, %e : index
      %q = arith.addi %p, %j : index
      loom.yield %q : index
    } : (!n, !n) -> !n
  %w = loom.operation @wide over <[0] : [6]> [map] ins(%n : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%i: index) {
      %narrow = arith.index_cast %i : index to i8
      %h = arith.constant -100 : i8
      %t = arith.addi %narrow, %h : i8
      %v = arith.index_cast %t : i8 to index
      loom.yield %v : index
    } : (!n) -> !n
  func.return %y, %z, %w : !x, !n, !n
}"""


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_bytes_and_indices_in_bodies(on: str) -> None:
    x = np.array([0, 3, 200, 255, 128, 127], np.uint8)
    n = np.array([5, 4, 3, 2, 1, 0], np.int64)
    divided = np.append(x[1:], 255).astype(np.uint8) // np.array([250, 1, 2, 3, 4, 5], np.uint8)
    wanted = np.maximum(divided, x[::-1][n]), np.cumsum(n * np.arange(6) + 7), n - 100
    for pipeline in ("", "loom-simplify,loom-fuse", "loom-shard{shards=2},loom-expand-shards"):
        module = tapestry.parse_module(_PLAIN)
        tapestry.run_pipeline(module, pipeline)
        got = tapestry.run(module, {"x": x, "n": n}, on=on).outputs
        for have, want in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(have, want, strict=True)


def test_programs_of_bytes_and_indices_are_compared() -> None:
    plain, split = (tapestry.parse_module(_PLAIN) for _ in range(2))
    tapestry.run_pipeline(split, "loom-simplify,loom-shard{shards=2},loom-expand-shards")
    assert compare_programs(plain, split).answer == "numeric"
    wrong = tapestry.parse_module(_PLAIN.replace("arith.maxui", "arith.maxsi"))
    assert compare_programs(plain, wrong).answer == "differs"
