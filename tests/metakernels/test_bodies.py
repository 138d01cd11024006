"""Types of scalar bodies: promotion, numbers, casts, choices at expansion, and refusals."""

from math import inf
from typing import Any

import pytest

from tapestry.metakernels import WeftError
from tapestry.metakernels.bodies import Body, parse_scalar, rounds
from tapestry.metakernels.dtypes import DTYPES, promote
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.scalars import Cast, Cell, Constant, Folded, Operation, Position
from tapestry.metakernels.values import Affine

CELLS = {"f": "f32", "d": "f64", "h": "f16", "g": "bf16", "i": "i32", "l": "i64", "t": "i1"}
NAMES = {"n": 4, "eps": 0.5, "mode": "tanh", "flag": True, "s": (2, 3), "u": "f64"}
COORDINATES = {"x": Affine((0, 1), 0), "xs": (Affine((1, 0), 0), Affine((0, 1), 0))}


def body(**options: Any) -> Any:
    return Body(Scope(NAMES, COORDINATES, (8, 8)), CELLS, **options)


def typed(text: str, dtype: str, **options: Any) -> Any:
    return body(**options).read(parse_scalar(text), dtype)


F, D, INT, L, T = (Cell(name, CELLS[name]) for name in "fdilt")


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("f", "f32", F),
        ("f + 1", "f32", Operation("add", (F, Constant(1.0, "f32")), "f32")),
        ("f + d", "f64", Operation("add", (Cast(F, "f64"), D), "f64")),
        ("i * f", "f32", Operation("mul", (Cast(INT, "f32"), F), "f32")),
        ("i + l", "i64", Operation("add", (Cast(INT, "i64"), L), "i64")),
        ("i + 1", "i64", Cast(Operation("add", (INT, Constant(1, "i32")), "i32"), "i64")),
        ("d", "f32", Cast(D, "f32")),
        ("f < 2", "i1", Operation("lt", (F, Constant(2.0, "f32")), "i1")),
        ("i == @x", "i1", Operation("eq", (Cast(INT, "i64"), Position(1)), "i1")),
        ("@xs[0]", "i64", Position(0)),
        ("f / $n", "f32", Operation("div", (F, Constant(4.0, "f32")), "f32")),
        ("f * $eps", "f32", Operation("mul", (F, Constant(0.5, "f32")), "f32")),
        ("f * $s[1]", "f32", Operation("mul", (F, Constant(3.0, "f32")), "f32")),
        ("f * #s", "f32", Operation("mul", (F, Constant(2.0, "f32")), "f32")),
        ("1 / 2 + 0.25 * 2", "f64", Constant(1.0, "f64")),
        ("7 // 2 - 7 % 4", "i8", Constant(0, "i8")),
        ("2 ^ 3", "i32", Constant(8, "i32")),
        ("2 ^ -1", "f32", Constant(0.5, "f32")),
        ("sqrt(4) + exp(0)", "f32", Constant(3.0, "f32")),
        ("sign(-3) + abs(-2) + max(1, 2) + min(1, 2)", "i32", Constant(4, "i32")),
        ("f ^ 2", "f32", Operation("mul", (F, F), "f32")),
        ("f ^ 1", "f32", F),
        ("i ^ 0", "i32", Constant(1, "i32")),
        ("pow(f, 0.5)", "f32", Operation("pow", (F, Constant(0.5, "f32")), "f32")),
        ("cast(f, i32)", "i32", Cast(F, "i32")),
        ("cast(f, $u)", "f64", Cast(F, "f64")),
        ("cast(1.75, i32)", "i32", Constant(1, "i32")),
        ("cast(2, i1)", "i1", Constant(1, "i1")),
        ("not t", "i1", Operation("not", (T,), "i1")),
        ("t and $n > 3", "i1", Operation("and", (T, Constant(1, "i1")), "i1")),
        ("where(t, f, 0)", "f32", Operation("select", (T, F, Constant(0.0, "f32")), "f32")),
        ("where($mode == 'tanh', f, nothing)", "f32", F),
        ("where($flag and not $n < 3, f, nothing)", "f32", F),
        ("where($mode != 'tanh' or 0.5 > 1, nothing, f)", "f32", F),
        ("-i", "i32", Operation("neg", (INT,), "i32")),
        ("isnan(f)", "i1", Operation("ne", (F, F), "i1")),
        ("isinf(f)", "i1",
         Operation("eq", (Operation("abs", (F,), "f32"), Constant(inf, "f32")), "i1")),
        ("isfinite(f)", "i1",
         Operation("lt", (Operation("abs", (F,), "f32"), Constant(inf, "f32")), "i1")),
        ("isnan(nan) or isinf(0) or not isfinite(1)", "i1", Constant(1, "i1")),
        ("atan2(f, d)", "f64", Operation("atan2", (Cast(F, "f64"), D), "f64")),
        ("atan2(1, 0) * 2 - pi", "f32", Constant(0.0, "f32")),
        ("copysign(f, -1)", "f32", Operation("copysign", (F, Constant(-1.0, "f32")), "f32")),
        ("exp2(f)", "f32", Operation("exp2", (F,), "f32")),
        ("bit_and(i, l)", "i64", Operation("and", (Cast(INT, "i64"), L), "i64")),
        ("bit_not(i)", "i32", Operation("xor", (INT, Constant(-1, "i32")), "i32")),
        ("shift_left(i, 3)", "i32", Operation("shift_left", (INT, Constant(3, "i32")), "i32")),
        ("shift_right(i, l)", "i64", Operation("shift_right", (Cast(INT, "i64"), L), "i64")),
        ("div_trunc(7, i)", "i32", Operation("div_trunc", (Constant(7, "i32"), INT), "i32")),
        ("max(f, i, 3)", "f32",
         Operation("max", (Operation("max", (F, Cast(INT, "f32")), "f32"), Constant(3.0, "f32")),
                   "f32")),
    ],
)  # fmt: skip
def test_types(text: str, dtype: str, value: Any) -> None:
    assert typed(text, dtype) == value


def test_half_precision_is_computed_wide_and_rounded_once() -> None:
    wide = typed("h * h + 1", "f16", widen=True)
    h = Cast(Cell("h", "f16"), "f32")
    product = Operation("mul", (h, h), "f32")
    assert wide == Cast(Operation("add", (product, Constant(1.0, "f32")), "f32"), "f16")
    assert typed("max(h, 0)", "f16").dtype == "f16"


def test_two_half_types_meet_in_f32() -> None:
    assert typed("max(h, g)", "f32").operands == (
        Cast(Cell("h", "f16"), "f32"),
        Cast(Cell("g", "bf16"), "f32"),
    )


def test_the_folded_state() -> None:
    assert typed("fold", "f32", folded=("f32",)) == Folded(0, "f32")
    assert typed("fold[1]", "i64", folded=("f32", "i64")) == Folded(1, "i64")


@pytest.mark.parametrize(("text", "is_rounding"), [
    ("max(x, 0)", False), ("where(x > 0, x, -x)", False), ("x + 1", True), ("exp(x)", True),
    ("cast(x, f32)", False), ("floor(abs(x))", False), ("x > 0 and y > 0", False),
])  # fmt: skip
def test_what_rounds(text: str, is_rounding: Any) -> None:
    assert rounds(parse_scalar(text)) is is_rounding


@pytest.mark.parametrize(
    ("text", "dtype", "kind", "says"),
    [
        ("y", "f32", "unknown_name", "y is no input"),
        ("fold", "f32", "unknown_name", "fold is no input"),
        ("$m", "f32", "unknown_name", "$m is not bound"),
        ("@y", "i64", "unknown_name", "@y is not bound"),
        ("@xs", "i64", "kind_mismatch", "a list of 2 values"),
        ("$s", "i64", "kind_mismatch", "a list of 2 values"),
        ("f[0]", "f32", "kind_mismatch", "cell has no elements"),
        ("f", "i32", "dtype_mismatch", "computed in f32, and i32 is required"),
        ("l", "i32", "dtype_mismatch", "cast(..., i32)"),
        ("i / i", "i32", "dtype_mismatch", "no true quotient"),
        ("bit_and(f, 1)", "f32", "dtype_mismatch", "it takes integers"),
        ("shift_left(1, 2)", "i32", "dtype_mismatch", "give it a type"),
        ("atan2(i, i)", "i32", "dtype_mismatch", "it takes floats"),
        ("isnan(i)", "i1", "dtype_mismatch", "it takes floats"),
        ("t + t", "i32", "dtype_mismatch", "`+` of a truth value"),
        ("fmax(1, 2)", "f32", "dtype_mismatch", "fmax of numbers"),
        ("i + inf", "i32", "dtype_mismatch", "inf is no i32"),
        ("i + 0.5", "i32", "dtype_mismatch", "0.5 is no i32"),
        ("t + 1", "i32", "dtype_mismatch", "truth value"),
        ("-t", "i1", "dtype_mismatch", "`not` inverts it"),
        ("t ^ 2", "i1", "dtype_mismatch", "truth value"),
        ("max(t, t)", "i1", "dtype_mismatch", "truth value"),
        ("not f", "i1", "dtype_mismatch", "compare it"),
        ("f and t", "i1", "dtype_mismatch", "truth values"),
        ("where(f, f, f)", "f32", "dtype_mismatch", "truth values"),
        ("where(t, 0, 1)", "f32", "dtype_mismatch", "has no dtype"),
        ("where($n, f, f)", "f32", "kind_mismatch", "4 is no condition"),
        ("exp(i)", "f32", "dtype_mismatch", "takes floats"),
        ("sigmoid(1)", "f32", "dtype_mismatch", "of a number"),
        ("i ^ i", "i32", "dtype_mismatch", "known at expansion"),
        ("i ^ 100", "i32", "dtype_mismatch", "from 0 to 64"),
        ("300", "i8", "dtype_mismatch", "300 is no i8"),
        ("2", "i1", "dtype_mismatch", "2 is no i1"),
        ("'tanh'", "f32", "kind_mismatch", "choices only compare"),
        ("1 / 0", "f32", "division_by_zero", "1 / 0"),
        ("sqrt(0 - 1)", "f32", "weft", "no finite real value"),
        ("0 ^ -1", "f32", "weft", "no finite real value"),
        ("9 ^ 99", "i64", "limit", "beyond 2^62"),
        ("foo(f)", "f32", "unknown_name", "unknown function foo"),
        ("tanhh(f)", "f32", "unknown_name", "did you mean tanh"),
        ("exp(f, f)", "f32", "kind_mismatch", "takes 1 argument, not 2"),
        ("where(t, f)", "f32", "kind_mismatch", "takes 3 arguments, not 2"),
        ("max(f)", "f32", "kind_mismatch", "two or more"),
        ("cast(f, f33)", "f32", "unknown_name", "unknown dtype f33"),
        ("cast(f, $n)", "f32", "dtype_mismatch", "$n is 4, which is no dtype"),
        ("cast(f, 3)", "f32", "dtype_mismatch", "a dtype is needed"),
        ("read(f, 0)", "f32", "box", "an input with a box"),
        ("random(0)", "f32", "kind_mismatch", "takes 2 arguments, not 1"),
        ("random(0, 0)", "f32", "dtype_mismatch", "the seed of random is a number"),
        ("random(f, 0)", "f32", "dtype_mismatch", "the seed of random is a number or a float"),
        ("random(i, 4)", "f32", "kind_mismatch", "one of 0 to 3"),
    ],
)
def test_refusals(text: str, dtype: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        typed(text, dtype)
    assert caught.value.kind == kind
    assert says in str(caught.value)


@pytest.mark.parametrize(("text", "kind", "says"), [
    ("fold", "kind_mismatch", "2 parts"), ("fold[2]", "index_out_of_range", "fold[2]"),
])  # fmt: skip
def test_refusals_of_the_folded_state(text: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        typed(text, "f32", folded=("f32", "i64"))
    assert caught.value.kind == kind
    assert says in str(caught.value)


def test_a_folded_constant_needs_a_dtype() -> None:
    with pytest.raises(WeftError, match=r"the constant 1"):
        body().state(parse_scalar("1"))


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_promotion_is_a_join(left: Any, right: Any) -> None:
    joined = promote(left, right)
    assert joined == promote(right, left)
    assert promote(left, joined) == promote(right, joined) == joined
    assert promote(left, left) == left


@pytest.mark.parametrize("first", DTYPES)
def test_promotion_does_not_depend_on_order(first: Any) -> None:
    for second in DTYPES:
        for third in DTYPES:
            assert promote(promote(first, second), third) == promote(first, promote(second, third))
