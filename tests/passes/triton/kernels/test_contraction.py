"""Contractions are recognized from bodies and projections, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text, verify_module
from tapestry.passes.triton.kernels.contraction import find_contraction
from tapestry.passes.triton.kernels.mapfold import map_fold_of


def find(
    wrap="%p = arith.mulf %a, %b : f32 loom.yield %p : f32",
    a="(d0, d2)",
    b="(d2, d1)",
    monoid="add",
    element="f32",
    result=None,
    sizes=(4, 5, 6),
    a_dims=(0, 2),
    b_dims=(2, 1),
):
    def tensor(dims, kind=element):
        return f"!loom.tensor<{[0] * len(dims)} : {[sizes[d] for d in dims]}, {kind}>"

    x, w, y = tensor(a_dims), tensor(b_dims), tensor((0, 1), result or element)
    module = parse_text(f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = loom.operation @op over <[0, 0, 0] : {list(sizes)}> [map, map, fold] by @{monoid}
    ins(%x : (d0, d1, d2) -> {a}, %w : (d0, d1, d2) -> {b}) outs((d0, d1) -> (d0, d1))
    wrap (%a: {element}, %b: {element}) {{ {wrap} }}
    : ({x}, {w}) -> {y}
  func.return %y : {y}
}}
""")
    verify_module(module)
    (op,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    return find_contraction(map_fold_of(op))


def test_a_matrix_product():
    found = find()
    assert found is not None
    assert found.axes == ("M", "N", "K")


def test_a_product_of_float64():
    found = find("%p = arith.mulf %a, %b : f64 loom.yield %p : f64", element="f64")
    assert found is not None
    assert found.axes == ("M", "N", "K")


WIDENED = """
    %aw = arith.extsi %a : i8 to i32
    %bw = arith.extsi %b : i8 to i32
    %p = arith.muli %aw, %bw : i32
    loom.yield %p : i32
"""


@pytest.mark.parametrize(("points", "is_found"), [(6, True), (131071, True), (131072, False)])
def test_a_product_of_8_bits_whose_sums_have_32(points, is_found):
    """Sums wrap: a matrix unit may give the nearest number of 32 bits instead."""
    found = find(WIDENED, element="i8", result="i32", sizes=(4, 5, points))
    assert (found is not None) == is_found
    if found is not None:
        assert [str(factor.type) for factor in found.factors()] == ["i8", "i8"]


def test_factors_the_other_way_round():
    found = find("%p = arith.mulf %b, %a : f32 loom.yield %p : f32")
    assert found is not None
    assert found.axes == ("N", "M", "K")


def test_factors_may_be_expressions():
    found = find("%e = math.exp %a : f32 %p = arith.mulf %e, %b : f32 loom.yield %p : f32")
    assert found is not None
    assert found.a.name_hint == "e"


def test_16_bit_factors_stay_as_they_are():
    module_body = """
      %aw = arith.extf %a : bf16 to f32 %bw = arith.extf %b : bf16 to f32
      %p = arith.mulf %aw, %bw : f32 %h = arith.truncf %p : f32 to bf16 loom.yield %h : bf16"""
    # Rounding each product is not what a matrix unit does.
    assert find(module_body, element="bf16") is None
    found = find("%p = arith.mulf %a, %b : bf16 loom.yield %p : bf16", element="bf16")
    assert found is not None
    assert [str(factor.type) for factor in found.factors()] == ["bf16", "bf16"]


@pytest.mark.parametrize(
    "change",
    [
        {"monoid": "max"},
        {"wrap": "%p = arith.addf %a, %b : f32 loom.yield %p : f32"},
        {"wrap": "%p = arith.mulf %a, %a : f32 loom.yield %p : f32"},
        {
            "wrap": "%p = arith.mulf %a, %b : f32 %n = arith.negf %p : f32 loom.yield %n : f32",
        },
        # A vector on one side.
        {"sizes": (1, 5, 6)},
        {"sizes": (4, 1, 6)},
        # Matrix units take no integers here.
        {"wrap": "%p = arith.muli %a, %b : i32 loom.yield %p : i32", "element": "i32"},
        # Both factors move along everything.
        {"a": "(d0, d1, d2)", "b": "(d0, d1, d2)", "a_dims": (0, 1, 2), "b_dims": (0, 1, 2)},
    ],
)
def test_what_is_none(change):
    assert find(**change) is None


def test_a_product_with_a_coordinate_moves_along_it():
    """`index 1` in a's factor makes it move along the dimension that was b's own."""
    wrap = """
      %i = loom.index 1 : i64 %f = arith.sitofp %i : i64 to f32
      %s = arith.mulf %a, %f : f32 %p = arith.mulf %s, %b : f32 loom.yield %p : f32"""
    assert find(wrap) is None
