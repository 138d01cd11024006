"""Cells that could hide what others are: masks far larger than them, and what is no number."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text
from tapestry.proving.equality import Verdict, compare_programs
from tapestry.proving.pair import Options
from tests.proving.building import Program


def verdict(a: str, b: str) -> Verdict:
    return compare_programs(parse_text(a), parse_text(b), Options(seeds=1, shrinking=4))


def scores(body: str) -> str:
    p = Program(x=(40, 40))
    return p.returns(p.op((40, 40), "mm", ["x[d0, d1]"], body))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mask", ["-1e9", "-1e30", "-3.3e38"])
@pytest.mark.parametrize(
    "masked",
    [
        "where(i0 >= i1, {}, MASK)",
        "{} + where(i0 >= i1, 0, MASK)",
        "({} + where(i0 >= i1, 0, MASK)) * 0.3",
    ],
)
def test_masks_hide_no_mistake(mask: str, masked: str) -> None:
    right, same, wrong = (
        scores(masked.replace("MASK", mask).format(form))
        for form in ("a * 0.125", "(a * 0.25) / 2.0", "a * 0.126")
    )
    assert verdict(right, wrong).answer == "differs"
    assert verdict(right, same).answer in ("certified", "numeric")


def test_what_cancels_beside_a_mask_is_noise() -> None:
    masked = "where(i0 >= i1, {}, -1e30)"
    right, same = (scores(masked.format(x)) for x in ("a - a", "a / 3.0 * 3.0 - a"))
    assert verdict(right, same).answer in ("certified", "numeric")


@pytest.mark.parametrize(
    "body", ["a / (abs(a) + EPS)", "a * rsqrt(a * a + EPS)", "where(a > EPS, 1.0, a)"]
)
def test_what_matters_to_tiny_numbers_alone_is_seen(body: str) -> None:
    right, wrong = (body.replace("EPS", eps) for eps in ("1e-20", "1e-17"))
    assert verdict(scores(right), scores(wrong)).answer == "differs"
    same = scores(f"{right} * 3.0 / 3.0")
    assert verdict(scores(right), same).answer in ("certified", "numeric")


def test_what_is_added_to_a_sum_of_squares_is_seen() -> None:
    def normalized(eps: str) -> str:
        p = Program(x=(4, 16))
        total = p.op((4, 16), "mf", ["x[d0, d1]"], "a * a", by="add")
        root = f"a / max(sqrt(b), {eps})"
        return p.returns(p.op((4, 16), "mm", ["x[d0, d1]", f"{total}[d0]"], root))

    found = compare_programs(*(parse_text(normalized(eps)) for eps in ("1e-12", "1e-8")))
    assert found.answer == "differs"


@pytest.mark.parametrize(
    ("body", "one", "other"),
    [
        ("where(a < EDGE, a, 0.0)", "0.3", "0.3001"),
        ("where(a <= EDGE, a, 0.0)", "200.0", "200.01"),
        ("min(a, EDGE)", "3000.0", "2999.0"),
        ("where(a < EDGE, a * 2.0, a)", "0.3", "0.1 + 0.2001"),
    ],
)
def test_thresholds_that_are_near_each_other_part(body: str, one: str, other: str) -> None:
    right, wrong = (scores(body.replace("EDGE", edge)) for edge in (one, other))
    assert verdict(right, wrong).answer == "differs"
    same = scores(f"{body.replace('EDGE', one)} * 3.0 / 3.0")
    assert verdict(right, same).answer in ("certified", "numeric")


@pytest.mark.parametrize("kind", ["i8", "i32", "i64"])
def test_bounds_of_integers_are_seen(kind: str) -> None:
    text = f"""
    !x = !loom.tensor<[0] : [9], {kind}>
    func.func @main(%x: !x) -> !x {{
      %y = loom.operation @y over <[0] : [9]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
             wrap (%a: {kind}) {{
               %c = arith.constant BOUND : {kind}
               %zero = arith.constant 0 : {kind}
               %p = arith.cmpi slt, %a, %c : {kind}
               %r = arith.select %p, %a, %zero : {kind}
               loom.yield %r : {kind} }} : (!x) -> !x
      func.return %y : !x }}"""
    high = 100 if kind == "i8" else 50257
    right, wrong = (text.replace("BOUND", str(bound)) for bound in (high, high - 1))
    assert verdict(right, wrong).answer == "differs"


def test_logarithms_of_many_cells_are_of_positive_numbers() -> None:
    def program(unwrap: str, wrap: str = "log(a)") -> str:
        p = Program(x=(8, 30))
        return p.returns(p.op((8, 30), "mf", ["x[d0, d1]"], wrap, by="add", unwrap=unwrap))

    assert verdict(program("p"), program("p * 2.0")).answer == "differs"
    assert verdict(program("p * 3.0"), program("p", "log(a * a * a)")).answer in (
        "certified",
        "numeric",
    )


def test_what_is_never_a_number_is_undecided() -> None:
    found = verdict(scores("log(-1.0 - a * a)"), scores("log(-1.0 - a * a) * 2.0"))
    assert found.answer == "undecided"
    assert "output 0" in found.reason


def test_infinities_are_values() -> None:
    assert verdict(scores("inf + a * a"), scores("inf + a * a * 2.0")).answer == "certified"
    assert verdict(scores("inf + a * a"), scores("a * a - inf")).answer == "differs"


@pytest.mark.parametrize("by", ["max", "min"])
@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_an_extreme_of_many_is_left_out(by: str, seed: int) -> None:
    """One of 42 points is the extreme in few draws: peaks make each of them one."""

    def program(rows: int, first: int, body: str = "a * 2.0") -> ModuleOp:
        p = Program(x=(6, 7))
        read = f"x[d0 + {first}, d1]"
        return parse_text(p.returns(p.op((rows, 7), "ff", [read], body, by=by)))

    whole, options = program(6, 0), Options(seed=seed, seeds=1, shrinking=4)
    for rows, first in ((5, 0), (5, 1)):
        assert compare_programs(whole, program(rows, first), options).answer == "differs"
    assert compare_programs(whole, program(6, 0, "a + a"), options).answer == "certified"


def test_no_point_of_an_extreme_of_integers_is_left_out() -> None:
    def program(cells: int) -> str:
        p = Program(whole="x", x=(40,))
        return p.returns(p.op((cells,), "f", ["x[d0]"], "a + 0", by="max", kind="i64"))

    assert verdict(program(40), program(39)).answer == "differs"
