"""Every scalar operation of a body means on tiles what it means to the reference executor."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor

FLOATS = ["f32", "f64", "f16", "bf16"]
INTEGERS = ["i32", "i64", "i8", "i16"]

UNARY_FLOAT = [
    "arith.negf",
    "math.absf",
    "math.ceil",
    "math.cos",
    "math.erf",
    "math.exp",
    "math.exp2",
    "math.expm1",
    "math.floor",
    "math.log",
    "math.log10",
    "math.log1p",
    "math.log2",
    "math.round",
    "math.roundeven",
    "math.rsqrt",
    "math.sin",
    "math.sqrt",
    "math.tan",
    "math.tanh",
    "math.trunc",
]
BINARY_FLOAT = [
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.divf",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "math.copysign",
    "math.powf",
]
BINARY_INTEGER = [
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.maxsi",
    "arith.minsi",
    "arith.divsi",
    "arith.remsi",
    "arith.floordivsi",
    "arith.ceildivsi",
]
FLOAT_PREDICATES = [
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "false",
    "true",
]
INTEGER_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

SPECIAL = [0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-4, -3e-3, 7.25, 30.0, -30.0, 50.0, -50.0]
EXTREME = [np.inf, -np.inf, np.nan]


def run(body, kinds, result, arrays):
    """Both executors on a body over vectors; the arrays are the body's arguments %a, %b, ..."""
    names = "abcd"[: len(kinds)]
    size = len(arrays[0])

    def tensor(kind):
        return f"!loom.tensor<[0] : [{size}], {kind}>"

    arguments = ", ".join(f"%t{n}: {tensor(k)}" for n, k in zip(names, kinds, strict=True))
    cells = ", ".join(f"%{n}: {k}" for n, k in zip(names, kinds, strict=True))
    ins = ", ".join(f"%t{n} : (d0) -> (d0)" for n in names)
    types = ", ".join(tensor(k) for k in kinds)
    module = parse_text(f"""
func.func @main({arguments}) -> {tensor(result)} {{
  %r = loom.operation @body over <[0] : [{size}]> [map] ins({ins}) outs((d0) -> (d0))
    wrap ({cells}) {{ {body} loom.yield %v : {result} }}
    : ({types}) -> {tensor(result)}
  func.return %r : {tensor(result)}
}}
""")
    verify_module(module)
    inputs = {
        f"t{n}": a.astype(numpy_dtype_of(k)) for n, k, a in zip(names, kinds, arrays, strict=True)
    }
    got = TritonExecutor().run(module, inputs, NoWatch()).outputs[0]
    expected = ReferenceExecutor().run(module, inputs, NoWatch()).outputs[0]
    assert got.dtype == expected.dtype
    return got, expected


def numpy_dtype_of(kind):
    element = type_named(kind)
    assert element is not None
    return numpy_dtype(element)


def close(got, expected, ulps):
    """Within some units in the last place of the element type, and NaN and infinity alike."""
    eps = ml_dtypes.finfo(got.dtype).eps
    np.testing.assert_allclose(
        got.astype(np.float64),
        expected.astype(np.float64),
        rtol=float(ulps * eps),
        atol=float(ml_dtypes.finfo(got.dtype).smallest_normal),
    )


def floats():
    rng = np.random.default_rng(0)
    return np.concatenate([SPECIAL, EXTREME, rng.standard_normal(48) * 4])


def pairs(values):
    a, b = np.meshgrid(values[:24], values[:24])
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", UNARY_FLOAT)
def test_unary_floats(op, kind):
    got, expected = run(f"%v = {op} %a : {kind}", [kind], kind, [floats()])
    close(got, expected, ulps=8)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", BINARY_FLOAT)
def test_binary_floats(op, kind):
    a, b = pairs(floats())
    got, expected = run(f"%v = {op} %a, %b : {kind}", [kind, kind], kind, [a, b])
    # A power is computed in float64, where its error grows with the exponent.
    close(got, expected, ulps=1000 if (op, kind) == ("math.powf", "f64") else 8)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", BINARY_INTEGER)
def test_integers(op, kind):
    values = np.array([0, 1, -1, 2, -2, 3, 7, -7, 100, -100, 127, -128])
    a, b = pairs(values)
    if "div" in op or "rem" in op:
        # Division by zero, and of the least number by -1, has no result.
        keep = (b != 0) & (a != -128)
        a, b = a[keep], b[keep]
    got, expected = run(f"%v = {op} %a, %b : {kind}", [kind, kind], kind, [a, b])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("op", ["arith.andi", "arith.ori", "arith.xori"])
def test_truth_values(op):
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    got, expected = run(f"%v = {op} %a, %b : i1", ["i1", "i1"], "i1", [a, b])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_float_comparisons(predicate, kind):
    a, b = pairs(floats())
    got, expected = run(f"%v = arith.cmpf {predicate}, %a, %b : {kind}", [kind, kind], "i1", [a, b])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", [*INTEGERS, "i1"])
@pytest.mark.parametrize("predicate", INTEGER_PREDICATES)
def test_integer_comparisons(predicate, kind):
    values = np.array([0, 1]) if kind == "i1" else np.array([0, 1, -1, 5, -5, 127, -128])
    a, b = pairs(values)
    got, expected = run(f"%v = arith.cmpi {predicate}, %a, %b : {kind}", [kind, kind], "i1", [a, b])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        ("extf", "f16", "f32"),
        ("extf", "bf16", "f32"),
        ("extf", "bf16", "f64"),
        ("extf", "f32", "f64"),
        ("truncf", "f64", "f32"),
        ("truncf", "f32", "f16"),
        ("truncf", "f32", "bf16"),
        ("truncf", "f64", "bf16"),
        ("sitofp", "i32", "f32"),
        ("sitofp", "i64", "f64"),
        ("sitofp", "i8", "bf16"),
        ("sitofp", "i1", "f32"),
        ("uitofp", "i1", "f32"),
        ("uitofp", "i8", "f32"),
        ("fptosi", "f32", "i32"),
        ("fptosi", "f64", "i64"),
        ("fptosi", "bf16", "i32"),
        ("fptosi", "f16", "i8"),
        ("extsi", "i8", "i32"),
        ("extsi", "i1", "i32"),
        ("extui", "i8", "i32"),
        ("extui", "i1", "i64"),
        ("trunci", "i64", "i32"),
        ("trunci", "i32", "i8"),
        ("trunci", "i32", "i1"),
    ],
)
def test_conversions(op, source, target):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(64) * 30
    if source.startswith("i"):
        values = rng.integers(0, 2, 64) if source == "i1" else rng.integers(-128, 128, 64)
    elif target.startswith("f") or target == "bf16":
        values = np.concatenate([values, EXTREME])
    got, expected = run(f"%v = arith.{op} %a : {source} to {target}", [source], target, [values])
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_constants_and_choices(kind):
    """Bodies of nothing but constants have their types too."""
    one, two = ("1", "2") if kind.startswith("i") else ("0.1", "3.0e-3")
    body = f"""
      %zero = arith.constant 0 : i32
      %c = arith.cmpi slt, %a, %zero : i32
      %x = arith.constant {one} : {kind}
      %y = arith.constant {two} : {kind}
      %v = arith.select %c, %x, %y : {kind}
    """
    got, expected = run(body, ["i32"], kind, [np.arange(-3, 4)])
    np.testing.assert_array_equal(got, expected)


def test_squares_and_cubes_are_products():
    body = """
      %two = arith.constant 2.0 : f32
      %three = arith.constant 3.0 : f32
      %s = math.powf %a, %two : f32
      %c = math.powf %a, %three : f32
      %v = arith.addf %s, %c : f32
    """
    got, expected = run(body, ["f32"], "f32", [floats()])
    close(got, expected, ulps=8)
