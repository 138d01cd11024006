"""Modules as plain data: what is read equals what was written, names and places too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

import tapestry
from tapestry.diagnostics import TapestryError
from tapestry.encoding import EncodingError, decode, encode, text_without_names
from tapestry.frontend import make_context, parse_text, verify_module
from tapestry.locations import location_of

LIT = Path(__file__).parents[1] / "lit_tests"


def _read_again(module: ModuleOp) -> ModuleOp:
    data, cells = encode(module)
    same = decode(json.loads(json.dumps(data)), cells, make_context())
    assert encode(same)[0] == data
    return same


def test_every_program_of_the_textual_tests():
    ctx, found = make_context(), 0
    for file in sorted(LIT.rglob("*.mlir")):
        for part in file.read_text().split("// -----"):
            try:
                module = parse_text(part, str(file), ctx=ctx)
                verify_module(module)
            except (ParseError, TapestryError):
                continue
            same = _read_again(module)
            assert same.is_structurally_equivalent(module), file
            assert str(same) == str(module), file
            found += 1
    assert found > 200


def test_names_and_places_are_kept():
    text = """
    func.func @main(%taken: !loom.tensor<[0] : [2], f32>) -> !loom.tensor<[0] : [2], f32> {
      %made = loom.view %taken : (d0) -> (1 - d0)
        : !loom.tensor<[0] : [2], f32> -> !loom.tensor<[0] : [2], f32>
      func.return %made : !loom.tensor<[0] : [2], f32>
    }"""
    module = parse_text(text, "a.mlir")
    same = _read_again(module)
    for one, other in zip(module.walk(), same.walk(), strict=True):
        assert location_of(one) == location_of(other)
        assert [v.name_hint for v in one.results] == [v.name_hint for v in other.results]
    assert [a.name for a in tapestry.arguments(same)] == ["taken"]


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, float("inf"), float("-inf"), 1 / 3])
def test_floats_are_kept_exactly(value):
    text = f"""
    %x = arith.constant {np.float32(value).view("u4"):#x} : f32
    %y = arith.constant {np.float64(value).view("u8"):#x} : f64
    """
    module = parse_text(text)
    assert _read_again(module).is_structurally_equivalent(module)


def test_large_constants_stay_outside():
    cells = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    x = tapestry.input("x", (64, 64))
    module = tapestry.compile(x @ cells + 1).module
    data, kept = encode(module)
    assert len(json.dumps(data)) < cells.nbytes
    assert [one.data for one in kept.values()] == [cells.tobytes()]
    with pytest.raises(EncodingError, match="not given"):
        decode(data, {}, make_context())


def test_names_and_places_can_be_left_out():
    text = """
    func.func @f(%x: f32, %y: f32) -> f32 {
      %zero = arith.constant 0.0 : f32
      %s = arith.addf %x, %zero : f32
      func.return %s : f32
    }"""
    renamed = "\n" + text.replace("%x", "%given").replace("%s", "%result")
    first, second, third = (
        text_without_names(parse_text(one))
        for one in (text, renamed, text.replace("addf %x", "addf %y"))
    )
    assert first == second != third
    (constant, add, _) = parse_text(text).body.block.first_op.body.block.ops
    assert text_without_names(constant)
    with pytest.raises(EncodingError, match="before it is defined"):
        text_without_names(add)


def test_branches_have_no_data():
    module = parse_text("func.func @f() { cf.br ^bb0 ^bb0: func.return }")
    with pytest.raises(EncodingError, match=r"cf\.br branches"):
        encode(module)


@pytest.mark.parametrize("damage", ["operand", "attribute", "name", "row", "root", "none"])
def test_other_data_is_refused(damage):
    made, cells = encode(tapestry.compile(tapestry.input("x", (4,)) + 1).lowered)
    data = json.loads(json.dumps(made))
    function = data["module"][6][0][0][3][0]
    match damage:
        case "operand":
            function[6][0][0][3][0][1] = [99]
        case "attribute":
            data["attributes"][0] = ["t", 10_000]
        case "name":
            data["names"][0] = "os.system"
        case "row":
            data["attributes"][1] = ["x", "zspace.range", "#zspace.range<"]
        case "root":
            data["module"] = function
        case _:
            data = {}
    with pytest.raises(EncodingError):
        decode(data, cells, make_context())
