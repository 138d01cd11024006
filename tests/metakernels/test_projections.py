"""Cursor and affine projections: the worked checks, and every way to be wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.projections import build_projection, parse_projection
from tapestry.metakernels.values import Affine


def coordinates(*labels):
    """The coordinates of an index whose dimensions have these labels; equal ones form a list."""
    units = [Affine(tuple(int(i == d) for i in range(len(labels))), 0) for d in range(len(labels))]
    found = {}
    for label, unit in zip(labels, units, strict=True):
        found[label] = (*found.get(label, ()), unit)
    return {label: us if len(us) > 1 else us[0] for label, us in found.items()}


def build(text, scope, inputs, rank):
    return str(build_projection(parse_projection(text), scope, inputs=inputs, rank=rank))


@pytest.mark.parametrize(
    ("text", "inputs", "rank", "projection"),
    [
        ("[1...{$axis}, +, 1...]", 3, 4, "(d0, d1, d2) -> (d0, d1, 0, d2)"),
        ("[1...[:$axis]..., +, 1...[$axis+1:]...]", 3, 4, "(d0, d1, d2) -> (d0, d1, 0, d2)"),
        ("[..., 1, 0] :> [..., 1, 5]", 4, 4, "(d0, d1, d2, d3) -> (d0, d1, d2, 0) :> [1, 1, 1, 5]"),
        ("[..., 0, 1] :> [..., 5, 1]", 4, 4, "(d0, d1, d2, d3) -> (d0, d1, 0, d3) :> [1, 1, 5, 1]"),
        ("[...]", 0, 0, "() -> ()"),
        ("[-..., 1]", 3, 1, "(d0, d1, d2) -> (d2)"),
        ("[-, 2, -]", 3, 1, "(d0, d1, d2) -> (2 * d1)"),
        ("[+...]", 0, 2, "() -> (0, 0)"),
        ("[...] + [0...{$axis}, sum($n[:$axis])]", 3, 3, "(d0, d1, d2) -> (d0, d1, d2 + 4)"),
        ("[-1] + [$axis]", 1, 1, "(d0) -> (-d0 + 2)"),
        ("[$n...]", 3, 3, "(d0, d1, d2) -> (3 * d0, d1, 5 * d2)"),
    ],
)
def test_cursor_form(text, inputs, rank, projection):
    assert build(text, Scope({"axis": 2, "n": (3, 1, 5)}), inputs, rank) == projection


@pytest.mark.parametrize(
    ("text", "projection"),
    [
        ("[@pre..., @n, @post]", "(d0, d1, d2, d3) -> (d0, d1, d3, d2)"),
        ("[@pre[[1, 0]]..., 0, 7]", "(d0, d1, d2, d3) -> (d1, d0, 0, 7)"),
        ("[$s * @n + 2 * @post - 1]", "(d0, d1, d2, d3) -> (2 * d2 + 3 * d3 - 1)"),
        ("[@n - @n]", "(d0, d1, d2, d3) -> (0)"),
        ("[align(@pre, [4])...]", "(d0, d1, d2, d3) -> (d1)"),
        ("[align(@pre, [2, 1])...]", "(d0, d1, d2, d3) -> (d0, 0)"),
        ("[@pre[0]] :> [$s]", "(d0, d1, d2, d3) -> (d0) :> [3]"),
        ("[@n, 0...{1}] + [1, 2]", "(d0, d1, d2, d3) -> (d3 + 1, 2)"),
    ],
)
def test_affine_form(text, projection):
    names = coordinates("pre", "pre", "post", "n")
    scope = Scope({"s": 3}, names, (2, 4, 6, 8))
    rank = projection.partition("-> ")[2].partition(" :>")[0].count(",") + 1
    assert build(text, scope, 4, rank) == projection


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("[1, 1]", "rank_mismatch", "has 2 rows, and the tensor has rank 3"),
        ("[1, 1, 1, 1]", "rank_mismatch", "more than the 3 index dimensions"),
        ("[1, +, +]", "rank_mismatch", "uses 1 of the 3 index dimensions"),
        ("[1, 1, 1, +]", "rank_mismatch", "has 4 rows"),
        ("[..., ...]", "rank_mismatch", "at most one `...`"),
        ("[-..., 1, 1, 1, 1]", "rank_mismatch", "more than fit"),
        ("[1..., +, +, +, +]", "rank_mismatch", "more than fit"),
        ("[...] + [0, 0]", "rank_mismatch", "the offset [0, 0] has 2 elements"),
        ("[...] :> [1]", "rank_mismatch", "the shape of the box [1] has 1 element"),
        ("[...] :> [1, 1, -1]", "kind_mismatch", "negative size"),
        ("[@x, +, @x]", "kind_mismatch", "belongs to the cursor form"),
        ("[@xs, @x, 0]", "kind_mismatch", "splice it"),
        ("[$l, 1, 1]", "kind_mismatch", "splice it"),
        ("[@x * @x, 0, 0]", "not_affine", "product of two coordinates"),
        ("[@x // 2, 0, 0]", "not_affine", "`//` of a coordinate"),
        ("[@x ^ 2, 0, 0]", "not_affine", "`^` of a coordinate"),
        ("[@x < 2, 0, 0]", "not_affine", "`<` of a coordinate"),
        ("[@x, 0...{@x}]", "not_affine", "no fixed value"),
        ("[...] + [@x, 0, 0]", "not_affine", "no fixed value"),
        ("[@y, 0, 0]", "unknown_name", "@y is not bound"),
        ("[align(@xs, [1, 2, 3])..., 0]", "rank_mismatch", "align of 2 coordinates"),
        ("[align(@xs, [3])..., 0, @x]", "broadcast_mismatch", "does not stretch"),
        ("[align([@x + 1], [3])..., 0, 0]", "kind_mismatch", "must be coordinates"),
    ],
)
def test_refusals(text, kind, says):
    scope = Scope({"l": (1, 2)}, coordinates("xs", "xs", "x"), (2, 4, 6))
    with pytest.raises(WeftError) as caught:
        build(text, scope, 3, 3)
    assert caught.value.kind == kind
    assert says in str(caught.value)


@given(st.permutations(range(4)), st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_a_permuted_affine_form_permutes_coordinates(perm, offset):
    scope = Scope({"perm": tuple(perm), "o": tuple(offset)}, coordinates("d", "d", "d", "d"))
    expr = parse_projection("[@d[$perm]...] + [$o...]")
    projection = build_projection(expr, scope, inputs=4, rank=4)
    point = (5, 7, 11, 13)
    wanted = tuple(point[p] + o for p, o in zip(perm, offset, strict=True))
    assert projection.apply_point(point).start == wanted
