"""Steps that hardly any input crosses are named, and no bound on chance is given for them."""

import numpy as np
import pytest

from tapestry.frontend import parse_text
from tapestry.proving.covering import uncovered
from tapestry.proving.equality import Verdict, compare_programs
from tapestry.proving.inputs import CLASSES, draw_inputs
from tapestry.proving.stepping import flat_steps


def program(body: str, taken: str = "f32", made: str = "f32") -> str:
    a, o = (f"!loom.tensor<[0] : [6], {kind}>" for kind in (taken, made))
    return (
        f"func.func @main(%a: {a}) -> {o} {{ %y = loom.operation @e over <[0] : [6]> [map] "
        f"ins(%a : (d0) -> (d0)) outs((d0) -> (d0)) wrap (%c: {taken}) {{ {body} "
        f"loom.yield %r : {made} }} : ({a}) -> {o} func.return %y : {o} }}"
    )


def rounding(name: str, scale: float) -> str:
    scaled = f"%k = arith.constant {scale} : f32 %m = arith.mulf %c, %k : f32"
    return program(f"{scaled} %r = math.{name} %m : f32")


def compared(first: str, second: str) -> Verdict:
    return compare_programs(parse_text(first), parse_text(second))


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "roundeven", "trunc"])
def test_steps_that_are_hardly_taken_are_named(name: str):
    verdict = compared(rounding(name, 0.001), rounding(name, 0.002))
    assert verdict.answer in ("certified", "numeric")
    for which in ("first", "second"):
        said = f"not sampled, in the {which}: math.{name} in @e taking more than 2 values"
        assert said in verdict.notes
    assert "probability" not in verdict.reason


def test_steps_that_are_taken_are_not():
    drawn = draw_inputs(CLASSES["wide"], [(np.dtype(np.float32), (6,))], 0)
    assert flat_steps(parse_text(rounding("floor", 1.0)), [drawn]) == []


def test_halves_are_drawn():
    assert compared(rounding("round", 1.0), rounding("roundeven", 1.0)).answer == "differs"


@pytest.mark.parametrize(
    ("op", "limit", "said"),
    [
        ("divsi", 1000, "arith.divsi in @e taking more than 2 values"),
        ("maxsi", -2147483000, "arith.maxsi in @e taking its second"),
        ("minsi", 2147483000, "arith.minsi in @e taking its second"),
    ],
)
def test_integers_step_and_branch_too(op: str, limit: int, said: str):
    body = f"%k = arith.constant {limit} : i32 %r = arith.{op} %c, %k : i32"
    drawn = draw_inputs(CLASSES["generic"], [(np.dtype(np.int32), (6,))], 0)
    module = parse_text(program(body, "i32", "i32"))
    assert [*uncovered(module, [drawn]), *flat_steps(module, [drawn])] == [said]


def test_conversions_to_integers_step_too():
    body = "%k = arith.constant 0.001 : f32 %m = arith.mulf %c, %k : f32"
    text = program(f"{body} %r = arith.fptosi %m : f32 to i32", "f32", "i32")
    verdict = compared(text, text.replace("0.001", "0.002"))
    assert (
        "not sampled, in the first: arith.fptosi in @e taking more than 2 values" in verdict.notes
    )


def test_conversions_that_never_saturate_are_named():
    narrow = program("%r = arith.fptosi %c : f32 to i32", "f32", "i32")
    wide = program(
        "%t = arith.fptosi %c : f32 to i64 %r = arith.trunci %t : i64 to i32", "f32", "i32"
    )
    verdict = compared(narrow, wide)
    assert (
        "not sampled, in the first: arith.fptosi in @e beyond the range of its result"
        in verdict.notes
    )
