"""What a verdict says about programs that need care: casts, externals, constants, overflow."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tapestry.diagnostics import UsageError
from tapestry.frontend import parse_text
from tapestry.proving.equality import Verdict, compare_programs
from tapestry.proving.pair import Options
from tapestry.runtime import externals
from tapestry.runtime.executor import Array
from tests.proving.building import Program

QUICK = Options(seeds=1, shrinking=4)

HEAD = """
!x = !loom.tensor<[0] : [4], f32>
func.func @main(%x: !x) -> !x {
"""


def cells(body: str, read: str = "%x") -> str:
    return (
        f"%y = loom.operation @y over <[0] : [4]> [map] ins({read} : (d0) -> (d0)) "
        f"outs((d0) -> (d0)) wrap (%a: f32) {{ {body} }} : (!x) -> !x"
    )


def program(*lines: str, result: str = "%y") -> str:
    return f"{HEAD}{' '.join(lines)} func.return {result} : !x }}"


def verdict(a: str, b: str, options: Options = QUICK) -> Verdict:
    return compare_programs(parse_text(a), parse_text(b), options)


def function(body: str) -> str:
    p = Program(x=(8,))
    return p.returns(p.op((8,), "m", ["x[d0]"], body))


CAST = program(
    cells("%h = arith.truncf %a : f32 to bf16 %w = arith.extf %h : bf16 to f32 loom.yield %w : f32")
)
PLAIN = program(cells("loom.yield %a : f32"))


def test_casts_keep_the_number_or_round():
    assert verdict(CAST, PLAIN).answer == "certified"
    rounding = Options(seeds=1, round_casts=True)
    assert verdict(CAST, PLAIN, rounding).answer == "differs"
    assert verdict(CAST, CAST.replace("@y", "@z"), rounding).answer == "certified"


@pytest.fixture
def sort() -> Iterator[None]:
    @externals.register_external("sort_for_equality")
    def run(arrays: Sequence[Array], parameters: object) -> Sequence[Array]:  # noqa: ARG001
        assert arrays[0].dtype == np.float32
        return (np.sort(arrays[0]),)

    yield
    externals._registered.pop(("sort_for_equality", "numpy"))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("sort")
def test_externals_run_on_numbers_of_their_types():
    call = (
        "%s = loom.external @sort_for_equality over <[0] : [1]> "
        "ins(%x : (d0) -> (d0) :> [4]) outs((d0) -> (d0) :> [4]) : (!x) -> !x"
    )
    twice = "%r = arith.addf %a, %a : f32 loom.yield %r : f32"
    one = program(call, cells(twice, "%s"))
    other = one.replace("%r = arith.addf %a,", "%t = arith.constant 2.0 : f32 %r = arith.mulf %t,")
    # What follows the kernel is compared on its own, on any numbers that the kernel might make.
    assert verdict(one, other).answer == "certified"
    # Nothing exact is known of the kernel's own numbers.
    before = program(cells(twice), call.replace("%x :", "%y :", 1), result="%s")
    assert verdict(one, before).answer == "numeric"
    assert verdict(one, program(call, result="%s")).answer == "differs"


def test_cells_of_constants_are_chosen_like_others():
    stored = program(
        "%c = loom.constant 3.5 : !x",
        "%y = loom.operation @y over <[0] : [4]> [map] "
        "ins(%x : (d0) -> (d0), %c : (d0) -> (d0)) outs((d0) -> (d0)) wrap (%a: f32, %b: f32) "
        "{ %z = arith.constant 0.0 : f32 %g = arith.cmpf ogt, %a, %z : f32 "
        "%r = arith.select %g, %a, %b : f32 loom.yield %r : f32 } : (!x, !x) -> !x",
    )
    written = program(
        cells(
            "%b = arith.constant 3.5 : f32 %z = arith.constant 0.0 : f32 "
            "%g = arith.cmpf ogt, %a, %z : f32 "
            "%r = arith.select %g, %a, %b : f32 loom.yield %r : f32"
        )
    )
    assert verdict(stored, written).answer == "certified"


def test_constants_mean_what_was_meant():
    table = "%c = loom.constant [0.1, 0.2, 0.3, 0.4] : !x"
    add = (
        "%y = loom.operation @y over <[0] : [4]> [map] "
        "ins(%x : (d0) -> (d0), %c : (d0) -> (d0)) outs((d0) -> (d0)) wrap (%a: f32, %b: f32) "
        "{ %r = arith.addf %a, %b : f32 loom.yield %r : f32 } : (!x, !x) -> !x"
    )
    one = program(table, add)
    tenths = program(
        cells(
            "%i = loom.index 0 : i64 %f = arith.sitofp %i : i64 to f32 "
            "%one = arith.constant 1.0 : f32 %n = arith.addf %f, %one : f32 "
            "%ten = arith.constant 10.0 : f32 %t = arith.divf %n, %ten : f32 "
            "%r = arith.addf %a, %t : f32 loom.yield %r : f32"
        )
    )
    assert verdict(one, tenths).answer == "certified"
    assert verdict(one.replace("0.4]", "0.5]"), tenths).answer == "differs"


def test_what_overflows_is_skipped_and_said():
    found = verdict(function("exp(exp(a))"), function("exp(exp(a / 2.0) * exp(a / 2.0))"))
    assert found.answer == "certified"
    assert "wide" in found.skipped
    assert "overflow" in found.skipped["wide"] or "ill-conditioned" in found.skipped["wide"]


def test_nothing_comparable_is_undecided():
    one, other = (function(f"exp(exp(exp(exp({x} + 9.0))))") for x in ("a * a", "a * a * 1.0"))
    found = verdict(one, other)
    assert found.answer == "undecided"
    assert set(found.skipped) >= {"generic", "wide", "huge"}


def test_signatures():
    found = verdict(PLAIN, PLAIN.replace("f32", "f64"))
    assert found.answer == "differs"
    assert "argument 0 is !loom.tensor<[0] : [4], f32> (%x) in the first" in found.reason
    two = PLAIN.replace("return %y : !x", "return %y, %x : !x, !x").replace(
        "-> !x {\n", "-> (!x, !x) {\n"
    )
    assert "returns 1 tensor, the second 2" in verdict(PLAIN, two).reason


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(UsageError, match="compared as modules, not as int"):
        compare_programs(parse_text(program(cells("loom.yield %a : f32"))), 2)  # pyright: ignore[reportArgumentType]
