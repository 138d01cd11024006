"""What the grammar accepts, the trees it makes, and how it refuses."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.diagnostics import Location
from tapestry.metakernels.errors import LimitError, ParseError, WeftError
from tapestry.metakernels.parsing import (
    parse_dtype,
    parse_expression,
    parse_list,
    parse_pattern,
    parse_projection,
    parse_scalar,
)
from tapestry.metakernels.rendering import describe_expression
from tapestry.metakernels.syntax import (
    Binary,
    Call,
    Compare,
    Dimension,
    DtypeBinding,
    Element,
    Group,
    Item,
    ListExpr,
    Name,
    Negate,
    Not,
    Number,
    Sequence,
    Slice,
    String,
    Variable,
)
from tapestry.metakernels.text import Text


def test_a_pattern_nests_groups():
    pattern = parse_pattern("[$batch..., $hwc[$i]=($shape=($h, $w), $c[$i]), _, 3]")
    batch, group, *rest = pattern.items
    assert batch == Sequence("batch")
    assert group == Group(
        "hwc",
        (Group("shape", (Dimension("h"), Dimension("w"))), Dimension("c", "i")),
        "i",
    )
    assert len(rest) == 2


def test_the_dot_is_short_for_each():
    assert parse_pattern("[$.x]") == parse_pattern("[$x[$i]]")
    assert parse_expression("$.x") == parse_expression("$x[$i]")


def test_precedence():
    two, three = Number(2), Number(3)
    assert parse_expression("-2 ^ 3") == Negate(Binary("^", two, three))
    assert parse_expression("2 ^ -3") == Binary("^", two, Negate(three))
    assert parse_expression("2 - 3 - 2") == Binary("-", Binary("-", two, three), two)
    assert parse_expression("2 ^ 3 ^ 2") == Binary("^", two, Binary("^", three, two))
    assert parse_expression("2 < 3 + 2") == Compare("<", two, Binary("+", three, two))
    assert parse_expression("$x[2:][3]") == Item(Slice(Variable("x"), two, None), three)


def test_lists_and_their_sugar():
    axis = Variable("axis")
    assert parse_list("[1...{$axis}, +, -, ...]") == ListExpr(
        (
            Element(Number(1), spread=True, count=axis),
            Element("+"),
            Element("-"),
            Element(Number(1), spread=True),
        )
    )
    assert parse_list("[1...[:$axis]...]") == parse_list("[1...{$axis}]")
    assert parse_list("[1...[$axis + 1:]...]") == parse_list("[1...]")
    assert parse_list("[y = -$axis, x... = $d...]").elements == (
        Element(Negate(axis), label="y"),
        Element(Variable("d"), spread=True, label="x"),
    )


def test_a_projection_has_rows_offset_and_box():
    projection = parse_projection("[..., 1] + [0..., $k] :> [1, $n]")
    assert [
        len(part.elements) for part in (projection.rows, projection.offset, projection.box)
    ] == [
        2,
        2,
        2,
    ]


def test_dtypes():
    assert parse_dtype("$t: float") == DtypeBinding("t", "float")
    assert parse_dtype("$t") == DtypeBinding("t", "any")
    assert parse_dtype("i32") == DtypeBinding(None, "i32")


def test_bodies():
    assert parse_scalar("not x and y > 0.5 or z") == Binary(
        "or",
        Binary("and", Not(Name("x")), Compare(">", Name("y"), Number(0.5))),
        Name("z"),
    )
    assert parse_scalar("where($p == 'tanh', fold[1], 1e-3)") == Call(
        "where",
        (
            Compare("==", Variable("p"), String("tanh")),
            Item(Name("fold"), Number(1)),
            Number(0.001),
        ),
    )


@pytest.mark.parametrize("word", ["order", "nothing", "android", "fold2"])
def test_words_that_begin_like_operators_are_names(word):
    assert parse_scalar(word) == Name(word)


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (parse_pattern, "[$a, ]", "unexpected `]` at column 6"),
        (parse_pattern, "[$a", "unexpected end"),
        (parse_pattern, "$a", "brackets"),
        (parse_pattern, "[$a $b]", "expected `,`"),
        (parse_pattern, "[@a]", "expected a size"),
        (parse_pattern, "[$g=()]", "expected a size"),
        (parse_pattern, "[2 + 3]", "unexpected `+` at column 4"),
        (parse_expression, "", "unexpected end"),
        (parse_expression, "2 +", "unexpected end"),
        (parse_expression, "2 $a", "unexpected `$a` at column 3"),
        (parse_expression, "-+2", "no unary `+`"),
        (parse_expression, "1 < 2 < 3", "unexpected `<` at column 7"),
        (parse_expression, "$a = 3", "equality is written `==`"),
        (parse_expression, "1.5", "unexpected `.`"),
        (parse_expression, "9999999999999999999", "at most 18 digits"),
        (parse_list, "[1...[2:3]...]", "`[:count]` or `[start:]`"),
        (parse_list, "[1... 2]", "unexpected `2`"),
        (parse_projection, "[1] >: [2]", "written after `:>`"),
        (parse_projection, "[1] - [2]", "added to the rows with `+`"),
        (parse_dtype, "float32 or so", "unexpected `or`"),
        (parse_scalar, "x ** 2", "a power is written `^`"),
        (parse_scalar, "x ! y", "unexpected `!`"),
        (parse_scalar, "x if y", "unexpected `if`"),
        (parse_scalar, "__import__('os')", "unexpected `_`"),
    ],
)
def test_refusals(parse, text, says):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert says in str(caught.value)


def test_an_error_stands_at_its_column():
    place = Location("ops.yaml", 7, 20)
    with pytest.raises(ParseError) as caught:
        parse_pattern(Text("[$a, ]", place))
    assert caught.value.location == Location("ops.yaml", 7, 25)
    with pytest.raises(ParseError) as caught:
        parse_pattern(Text("[$a, ]", place, exact=False))
    assert caught.value.location == place


@pytest.mark.parametrize("text", ["-" * 500 + "1", "[" * 500 + "]" * 500])
def test_deep_nesting_is_bounded(text):
    with pytest.raises(LimitError, match="nests deeper"):
        parse_expression(text)


def test_parentheses_leave_no_trace():
    assert parse_expression("(" * 300 + "1" + ")" * 300) == Number(1)


def test_length_is_bounded():
    with pytest.raises(LimitError, match="2007 characters"):
        parse_expression("1" + "+1" * 1003)


leaves = st.one_of(st.integers(0, 99).map(Number), st.sampled_from("abc").map(Variable))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("+-*/%^"), inner, inner),
        st.builds(Negate, inner),
        st.builds(Compare, st.sampled_from(["<", "==", ">="]), inner, inner),
        st.builds(Item, inner, inner),
        st.builds(Slice, inner, st.none() | inner, st.none() | inner),
        st.builds(lambda x, y: Call("max", (x, y)), inner, inner),
        st.lists(st.builds(Element, inner, st.booleans()), max_size=3).map(
            lambda elements: ListExpr(tuple(elements))
        ),
    ),
    max_leaves=12,
)


@given(trees)
def test_what_is_written_is_read_back(tree):
    assert parse_expression(describe_expression(tree)) == tree


@given(st.text(alphabet="$@#[](){}.,:=+-*/%^<>' abi01_", max_size=30))
def test_any_text_is_read_or_refused_with_a_weft_error(text):
    for parse in (parse_pattern, parse_expression, parse_projection, parse_scalar):
        with suppress(WeftError):
            parse(text)
