"""Typed bodies as values."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32

from tapestry.metakernels import TensorSpec, expand, load_library
from tapestry.metakernels.expansion import MapFold
from tapestry.metakernels.scalars import Constant
from tapestry.passes.weft.recipes.bodies import build_region


def test_zeros_of_two_signs_are_two_constants():
    assert Constant(0.0, "f32") != Constant(-0.0, "f32")
    assert Constant(0.0, "f32") == Constant(0.0, "f32")
    assert hash(Constant(2, "i32")) == hash(Constant(2, "i32"))


def test_a_body_keeps_both_zeros():
    library = load_library().with_text(
        't: {inputs: {x: {shape: "[]"}}, index: "[]", wrap: "where(x < 0, -0.0, max(x, 0.0))"}'
    )
    body = expand(library.get("t"), [TensorSpec((), "f32")], {}, library).body
    assert isinstance(body, MapFold)
    region = build_region(body.wrap, (), [("x", f32)])
    assert sum(isinstance(op, arith.ConstantOp) for op in region.block.ops) == 2
