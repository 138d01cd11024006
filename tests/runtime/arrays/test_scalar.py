"""Every scalar operation on arrays against Python's own arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array


def _run(operation: str, arguments: str, *arrays: Array, result: str | None = None) -> Array:
    """What one operation computes; its result has the type of its operands unless given."""
    kind = result or operation.rsplit(" : ", 1)[1]
    module = parse_text(
        f"loom.monoid @m zero [] merge ({arguments}) {{ {operation} loom.yield %r : {kind} }}"
    )
    (definition,) = module.body.block.ops
    assert isinstance(definition, loom.MonoidOp)
    return evaluate(definition.merge.block, arrays, lambda _: np.arange(3))[0]


_F = np.array([-2.5, -0.5, 0.0, 0.5, 1.5, 2.5], np.float64)
_POSITIVE = np.array([0.25, 1.0, 7.0], np.float64)


@pytest.mark.parametrize(
    ("name", "function", "values"),
    [
        ("math.exp", math.exp, _F),
        ("math.exp2", lambda x: 2.0**x, _F),
        ("math.expm1", math.expm1, _F),
        ("math.log", math.log, _POSITIVE),
        ("math.log2", math.log2, _POSITIVE),
        ("math.log10", math.log10, _POSITIVE),
        ("math.log1p", math.log1p, _POSITIVE),
        ("math.sqrt", math.sqrt, _POSITIVE),
        ("math.rsqrt", lambda x: 1 / math.sqrt(x), _POSITIVE),
        ("math.sin", math.sin, _F),
        ("math.cos", math.cos, _F),
        ("math.tan", math.tan, _F),
        ("math.tanh", math.tanh, _F),
        ("math.erf", math.erf, _F),
        ("math.absf", abs, _F),
        ("math.floor", math.floor, _F),
        ("math.ceil", math.ceil, _F),
        ("math.roundeven", round, _F),
        ("math.round", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), _F),
        ("math.trunc", math.trunc, _F),
        ("arith.negf", lambda x: -x, _F),
    ],
)
def test_unary(name: str, function: object, values: Array) -> None:
    assert callable(function)
    got = _run(f"%r = {name} %a : f64", "%a: f64", values)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, [function(float(v)) for v in values], rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("divsi", lambda a, b: int(a / b)),
        ("floordivsi", lambda a, b: a // b),
        ("ceildivsi", lambda a, b: -(-a // b)),
        ("remsi", math.fmod),
        ("maxsi", max),
        ("minsi", min),
        ("andi", lambda a, b: a & b),
        ("ori", lambda a, b: a | b),
        ("xori", lambda a, b: a ^ b),
        ("subi", lambda a, b: a - b),
        ("muli", lambda a, b: a * b),
    ],
)
def test_integer_binary(name: str, function: object) -> None:
    assert callable(function)
    a, b = np.meshgrid(np.array([-7, -1, 0, 6], np.int32), np.array([-3, -1, 2, 7], np.int32))
    got = _run(f"%r = arith.{name} %a, %b : i32", "%a: i32, %b: i32", a, b)
    want = np.vectorize(lambda x, y: int(function(int(x), int(y))))(a, b)
    assert got.dtype == np.int32
    assert np.array_equal(got, want)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("addi", lambda a, b: a != b),
        ("subi", lambda a, b: a != b),
        ("muli", lambda a, b: a and b),
        ("maxsi", lambda a, b: a and b),
        ("minsi", lambda a, b: a or b),
    ],
)
def test_truth_values_are_one_bit_integers(name: str, function: object) -> None:
    assert callable(function)
    a, b = np.meshgrid([False, True], [False, True])
    got = _run(f"%r = arith.{name} %a, %b : i1", "%a: i1, %b: i1", a, b)
    assert np.array_equal(got, np.vectorize(lambda x, y: bool(function(x, y)))(a, b))


def test_division_does_not_wrap_on_the_way() -> None:
    a, b = np.array([-128], np.int8), np.array([3], np.int8)
    assert _run("%r = arith.ceildivsi %a, %b : i8", "%a: i8, %b: i8", a, b).tolist() == [-42]


def test_integers_wrap() -> None:
    a = np.array([127], np.int8)
    assert _run("%r = arith.addi %a, %a : i8", "%a: i8", a).tolist() == [-2]


_ORDERS = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: a != b,
}


@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("nan_is", [False, True])
def test_float_comparisons(order: str, nan_is: bool) -> None:
    values = np.array([-1.0, 0.0, 2.0, math.nan])
    a, b = np.meshgrid(values, values)
    name = ("u" if nan_is else "o") + order
    got = _run(f"%r = arith.cmpf {name}, %a, %b : f64", "%a: f64, %b: f64", a, b, result="i1")
    unordered = np.isnan(a) | np.isnan(b)
    assert np.array_equal(got, np.where(unordered, nan_is, _ORDERS[order](a, b)))


@pytest.mark.parametrize("order", _ORDERS)
def test_integer_comparisons(order: str) -> None:
    values = np.array([-128, -1, 0, 5], np.int8)
    a, b = np.meshgrid(values, values)
    for sign, view in (("s", np.int8), ("u", np.uint8)):
        name = order if order in ("eq", "ne") else sign + order
        got = _run(f"%r = arith.cmpi {name}, %a, %b : i8", "%a: i8, %b: i8", a, b, result="i1")
        assert np.array_equal(got, _ORDERS[order](a.view(view), b.view(view)))


@pytest.mark.parametrize(
    ("cast", "values", "want"),
    [
        ("extsi %a : i1 to i32", np.array([True, False]), np.array([-1, 0], np.int32)),
        ("extui %a : i1 to i32", np.array([True, False]), np.array([1, 0], np.int32)),
        ("extui %a : i8 to i32", np.array([-1], np.int8), np.array([255], np.int32)),
        ("trunci %a : i32 to i8", np.array([257], np.int32), np.array([1], np.int8)),
        ("trunci %a : i32 to i1", np.array([2, 3], np.int32), np.array([False, True])),
        ("sitofp %a : i1 to f32", np.array([True]), np.array([-1], np.float32)),
        ("uitofp %a : i1 to f32", np.array([True]), np.array([1], np.float32)),
        ("uitofp %a : i8 to f32", np.array([-1], np.int8), np.array([255], np.float32)),
        ("fptosi %a : f32 to i32", np.array([-1.9], np.float32), np.array([-1], np.int32)),
        ("truncf %a : f64 to f32", np.array([0.1]), np.array([0.1], np.float32)),
    ],
)
def test_casts(cast: str, values: Array, want: Array) -> None:
    argument, result = cast.split(" : ")[1].split(" to ")
    got = _run(f"%r = arith.{cast}", f"%a: {argument}", values, result=result)
    assert got.dtype == want.dtype
    assert got.tolist() == want.tolist()


def test_only_what_is_wanted_is_computed() -> None:
    module = parse_text(
        "loom.monoid @m zero [] merge (%a: f32, %b: f32) {"
        " %p = arith.addf %a, %a : f32 %q = arith.mulf %b, %b : f32 loom.yield %p, %q : f32, f32 }"
    )
    (definition,) = module.body.block.ops
    assert isinstance(definition, loom.MonoidOp)
    block = definition.merge.block
    first = next(iter(block.ops)).results[0]
    two = np.float32(2)
    (got,) = evaluate(block, [two, two], lambda _: two, [first])
    assert got == 4
