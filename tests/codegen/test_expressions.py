"""Printed expressions mean what the IR says: precedence, literals, types."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, bf16, f16, f32, f64, i1, i8, i32, i64

from tapestry.codegen.expressions import (
    ATOM,
    Shown,
    binary,
    call,
    literal,
    method,
    negation,
    number,
    tensor,
    typed,
)
from tapestry.codegen.vocabulary import fresh, python_name, wrapped


def leaf(value):
    return Shown(str(value), ATOM, ())


trees = st.recursive(
    st.integers(1, 9),
    lambda inner: st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<", "=="]), inner, inner
    ),
    max_leaves=12,
)


def shown(tree):
    match tree:
        case int():
            return leaf(tree)
        case (sign, a, b):
            return binary(sign, shown(a), shown(b))


def fully(tree):
    """The same with every parenthesis."""
    match tree:
        case int():
            return str(tree)
        case (sign, a, b):
            return f"({fully(a)} {sign} {fully(b)})"


def value(text):
    try:
        return eval(text, {"__builtins__": {}})  # noqa: S307 - arithmetic that this test wrote
    except ZeroDivisionError:
        return None


@given(trees)
def test_parentheses_are_left_out_only_where_they_do_not_matter(tree):
    assert value(shown(tree).text) == value(fully(tree))


def test_a_comparison_is_never_chained():
    once = binary("<", leaf(1), leaf(2))
    assert binary("==", once, leaf(1)).text == "(1 < 2) == 1"


def test_the_least_integer_is_never_negated():
    assert binary("+", Shown("p", ATOM, (8,)), literal(IntegerAttr(-128, i8))).text == "p + -128"


def test_zeros_keep_their_sign():
    product = "tl.full([], 0.0, tl.float32) * -1.0"
    assert literal(FloatAttr(-0.0, f32)).text == product
    assert literal(FloatAttr(-0.0, f16)).text == f"({product}).to(tl.float16)"
    assert negation(Shown("a + b", 7, ())).text == "(a + b) * -1.0"


def test_bare_numbers_alone_become_tensors():
    assert tensor(literal(IntegerAttr(-7, i32)), i32).text == "tl.full([], -7, tl.int32)"
    assert tensor(Shown("x", ATOM, ()), f32).text == "x"


def test_shapes_broadcast():
    rows, columns = Shown("a", ATOM, (64, 1)), Shown("b", ATOM, (1, 32))
    assert binary("+", rows, columns).shape == (64, 32)
    assert call("tl.where", rows, columns, leaf(0)).shape == (64, 32)
    assert method(binary("+", rows, rows), "to", "tl.float16").text == "(a + a).to(tl.float16)"


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (FloatAttr(0.1, f32), "0.1"),
        (FloatAttr(0.1, f64), "0.1"),
        (FloatAttr(1 / 3, f32), "0.33333334"),
        (FloatAttr(1 / 3, f64), "0.3333333333333333"),
        (FloatAttr(1e30, f32), "1e+30"),
        (FloatAttr(0.1, f16), "0.1"),
        (FloatAttr(1.5, bf16), "1.5"),
        (FloatAttr(math.inf, f32), 'float("inf")'),
        (FloatAttr(-math.inf, f32), 'float("-inf")'),
        (FloatAttr(math.nan, f32), 'float("nan")'),
        (IntegerAttr(1, i1), "True"),
        (IntegerAttr(-1, i1), "True"),
        (IntegerAttr(0, i1), "False"),
        (IntegerAttr(-128, i8), "-128"),
    ],
)
def test_constants(constant, text):
    assert number(constant) == text


def test_numbers_whose_type_triton_would_guess_wrong_say_it():
    assert typed(literal(FloatAttr(0.1, f32)), f32).text == "0.1"
    assert typed(literal(FloatAttr(0.1, f64)), f64).text == "tl.full([], 0.1, tl.float64)"
    assert typed(literal(IntegerAttr(3, i64)), i64).text == "tl.full([], 3, tl.int64)"


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("x", "x"), ("class", "class_"), ("2x", "v_2x"), ("", "v_"), ("é.b", "__b")],
)
def test_python_names(wanted, name):
    assert python_name(wanted) == name
    assert name.isidentifier()


def test_names_are_taken_once():
    taken = {"x"}
    assert [fresh("x", taken), fresh("x", taken), fresh("y", taken)] == ["x_2", "x_3", "y"]


def test_long_calls_take_a_line_per_argument():
    assert wrapped("f(", ["a", "b"], ")", 1) == ["    f(a, b)"]
    items = ["a" * 60, "b" * 60]
    assert wrapped("f(", items, ")") == ["f(", f"    {items[0]},", f"    {items[1]},", ")"]


def test_what_is_added_and_negative_is_taken_off():
    x = leaf("x")
    assert binary("+", x, literal(IntegerAttr(-32, i32))).text == "x - 32"
    assert binary("+", x, literal(FloatAttr(-0.5, f32))).text == "x - 0.5"
    # 2147483648 is no int32, and -0.0 is no number of Triton's.
    assert binary("+", x, literal(IntegerAttr(-(2**31), i32))).text == "x + -2147483648"
    assert binary("+", x, literal(FloatAttr(-0.0, f32))).text.startswith("x + tl.full")
