"""Laws of monoids tried on samples: all built-in ones keep them, their neighbours do not."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import ELEMENT_TYPES
from tapestry.algebra.laws import broken_laws
from tapestry.algebra.monoids import BUILTIN_MONOIDS, builtin_monoid
from tapestry.dialects import loom
from tapestry.frontend import parse_text

_STATES = [
    (name, state)
    for name in BUILTIN_MONOIDS
    for element in ELEMENT_TYPES
    for state in ((element,), (element,) * 2, (element,) * 3, (element, i64))
    if builtin_monoid(name, state) is not None
]


@pytest.mark.parametrize(("name", "state"), _STATES, ids=str)
def test_built_in_monoids_keep_the_laws(name: str, state: tuple[Attribute, ...]) -> None:
    monoid = builtin_monoid(name, state)
    assert monoid is not None
    merge = monoid.merge.parent
    assert merge is not None
    definition = merge.parent
    assert isinstance(definition, loom.MonoidOp)
    assert broken_laws(definition) == ()


def _kinds(element: str, zero: str, operation: str) -> list[str]:
    typed = "" if zero.startswith("#") else f" : {element}"
    module = parse_text(
        f"loom.monoid @m commutative zero [{zero}{typed}]"
        f" merge (%a: {element}, %b: {element}) {{"
        f" %r = {operation} %a, %b : {element} loom.yield %r : {element} }}"
    )
    (definition,) = module.body.block.ops
    assert isinstance(definition, loom.MonoidOp)
    return [problem.kind for problem in broken_laws(definition)]


@pytest.mark.parametrize(
    ("element", "zero", "operation"),
    [
        ("f32", "-0.0", "arith.addf"),
        ("bf16", "1.0", "arith.mulf"),
        ("f64", "0xFFF0000000000000", "arith.maximumf"),
        ("f32", "0x7FC00000", "arith.maxnumf"),
        ("i8", "-128", "arith.maxsi"),
        ("i64", "-1", "arith.andi"),
        ("i16", "0", "arith.xori"),
        ("complex<f64>", "#complex.number<:f64 1.0, 0.0> : complex<f64>", "complex.mul"),
    ],
)
def test_other_ways_to_write_one_are_right(element: str, zero: str, operation: str) -> None:
    assert _kinds(element, zero, operation) == []


@pytest.mark.parametrize(
    ("element", "zero", "operation"),
    [
        ("f32", "1.0", "arith.addf"),
        ("f32", "0.0", "arith.mulf"),
        ("f64", "-1.0e300", "arith.maximumf"),
        ("i8", "-127", "arith.maxsi"),
        ("i32", "1", "arith.andi"),
        ("i32", "0", "arith.subi"),
        ("f16", "1.0", "arith.divf"),
        ("complex<f32>", "#complex.number<:f32 0.0, 1.0> : complex<f32>", "complex.add"),
        ("complex<f32>", "#complex.number<:f32 0.0, 0.0> : complex<f32>", "complex.mul"),
    ],
)
def test_a_wrong_zero_is_found(element: str, zero: str, operation: str) -> None:
    assert _kinds(element, zero, operation) == ["monoid-identity"]


def test_what_cannot_be_evaluated_is_taken_as_written() -> None:
    assert _kinds("i32", "5", "math.ipowi") == []
