"""The attributes: text to value and back, and errors at their place in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, StringAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from tapestry.dialects.zspace import (
    DomainAttr,
    PartitionAttr,
    ProjectionAttr,
    RangeAttr,
    ZSpace,
    parse_projection,
)
from tapestry.zspace import AffineMap, Domain, Partition, Projection, Range


def parser(text: str) -> Parser:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(ZSpace)
    return Parser(context, text)


def parse(text: str) -> Attribute:
    return parser(text).parse_attribute()


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("#zspace.range<[0, -1] : [10, 12]>", RangeAttr(Range((0, -1), (10, 12)))),
        ("#zspace.range<[] : []>", RangeAttr(Range.of(()))),
        (
            f"#zspace.range<[{-(2**63)}] : [{2**63 - 1}]>",
            RangeAttr(Range((-(2**63),), (2**63 - 1,))),
        ),
        ("#zspace.projection<() -> ()>", ProjectionAttr(Projection.identity(0))),
        ("#zspace.projection<(d0) -> ()>", ProjectionAttr(Projection.of([], inputs=1))),
        ("#zspace.projection<() -> (3)>", ProjectionAttr(Projection.of([[]], [3]))),
        (
            "#zspace.projection<(d0, d1) -> (2 * d0 - d1 + 3, -d1, -2 * d0, 0) :> [1, 5, 0, 1]>",
            ProjectionAttr(
                Projection.of([[2, -1], [0, -1], [-2, 0], [0, 0]], [3, 0, 0, 0], [1, 5, 0, 1])
            ),
        ),
        (
            "#zspace.partition<grid [[0, 5, 10], [0, 12]]>",
            PartitionAttr(Partition.grid([(0, 5, 10), (0, 12)])),
        ),
        (
            "#zspace.domain<(d0, d1) : d0 - d1 >= 0, 2 * d1 - 3 >= 0>",
            DomainAttr(Domain.of([[1, -1], [0, 2]], [0, -3])),
        ),
        ("#zspace.domain<() : -1 >= 0>", DomainAttr(Domain.of([[]], [-1]))),
        ("#zspace.partition<grid []>", PartitionAttr(Partition.grid([]))),
        (
            "#zspace.partition<ranges [[0, 0] : [5, 12], [5, 0] : [10, 12]]>",
            PartitionAttr(Partition.explicit([Range.of((5, 12)), Range((5, 0), (10, 12))])),
        ),
        ("#zspace.partition<ranges [[] : []]>", PartitionAttr(Partition.explicit([Range.of(())]))),
    ],
)
def test_round_trip(text, attribute):
    parsed = parse(text)
    assert parsed == attribute
    assert hash(parsed) == hash(attribute)
    assert str(parsed) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("(i, j) -> (3 + i * 2 - j)", "(d0, d1) -> (2 * d0 - d1 + 3)"),
        ("(d0,d1)->(d0+d0,d1*-1,1-1)", "(d0, d1) -> (2 * d0, -d1, 0)"),
        ("(d0) -> (- 2 * d0 - -1)", None),
        ("(d0) -> (0 * d0 - 1 + 0x10)", "(d0) -> (15)"),
        ("(d0) -> (d0):>[1]", "(d0) -> (d0)"),
        ("(d0, // the row (of the image)\n d1) // and\n -> (d1) // what\n :> [3]",
         "(d0, d1) -> (d1) :> [3]"),
        ("(d0) -> (d0) // a note\n", "(d0) -> (d0)"),
    ],
)  # fmt: skip
def test_other_ways_to_write_a_projection(text, canonical):
    for _ in range(2):  # once through the tokens, once by the text seen before
        if canonical is None:
            with pytest.raises(ParseError):
                parse(f"#zspace.projection<{text}>")
        else:
            assert str(parse(f"#zspace.projection<{text}>")) == f"#zspace.projection<{canonical}>"


def test_other_ways_to_write_a_range():
    expected = RangeAttr(Range((0, -1), (16, 2)))
    assert parse("#zspace.range<[0,-1]:[16,2]>") == expected
    assert parse("#zspace.range<[0, - 1] : // ends\n [0x10, 2]>") == expected


def test_what_follows_a_projection_is_left_alone():
    for _ in range(2):
        p = parser('(d0) -> (d0) : "rest"')
        assert parse_projection(p) == Projection.identity(1)
        p.parse_punctuation(":")
        assert p.parse_attribute() == StringAttr("rest")


small = st.integers(-5, 5)


@given(
    st.integers(0, 3).flatmap(
        lambda n: st.lists(st.tuples(st.lists(small, min_size=n, max_size=n), small,
                                     st.integers(0, 3)), max_size=3).map(
            lambda rows: Projection(
                AffineMap.of([r for r, _, _ in rows], [b for _, b, _ in rows], n),
                tuple(s for _, _, s in rows),
            )
        )
    )
)  # fmt: skip
def test_any_projection_survives_its_text(projection):
    assert parse(str(ProjectionAttr(projection))) == ProjectionAttr(projection)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("#zspace.range<[0, 3] : [10]>", 15, "start [0, 3] has 2 dimensions, end [10] has 1"),
        ("#zspace.range<[4] : [3]>", 15, "start <= end must hold in every dimension"),
        ("#zspace.range<[4 : [3]>", 18, "']' expected to start a range, such as [0, 0]"),
        ("#zspace.range<[4,] : [3]>", 18, "Expected integer literal"),
        ("#zspace.range<[4] [3]>", 19, "between the start and the end of a range"),
        ("#zspace.range<[4] : [true]>", 22, "Expected integer literal"),
        ("#zspace.projection<(d0) -> (2 * d7)>", 33, "d7 is not an index dimension"),
        ("#zspace.projection<(d0, d0) -> ()>", 25, "index dimension d0 is named twice"),
        ("#zspace.projection<(d0) -> (d0 * d0)>", 34, "by an integer only"),
        ("#zspace.projection<(d0) -> (d0 2)>", 32, "')' expected"),
        ("#zspace.projection<(d0) -> (d0 +)>", 33, "or integer in a row, such as 2 * d0"),
        ("#zspace.projection<(d0) -> d0>", 28, "one row per tensor dimension"),
        ("#zspace.projection<(d0) (d0)>", 25, "after the index dimensions"),
        ("#zspace.projection<d0 -> (d0)>", 20, "to name the index dimensions"),
        ("#zspace.projection<(2) -> (d0)>", 21, "to name an index dimension"),
        ("#zspace.projection<(d0) -> (d0) :> [1, 2]>", 20, "has 2 dimensions where the map has 1"),
        ("#zspace.projection<(d0) -> (d0) :> [-1]>", 20, "negative size"),
        ("#zspace.projection<(d0) -> (d0) :> 1>", 36, "shape of the box, such as [1, 5]"),
        ("#zspace.partition<grid [[0, 5, 5]]>", 19, "increasing from the start to the end"),
        ("#zspace.partition<grid [0, 5]>", 25, "cuts of a dimension, such as [0, 5, 10]"),
        ("#zspace.partition<ranges []>", 19, "at least one range"),
        ("#zspace.partition<ranges [[0] : [1], [] : []]>", 19, "different ranks"),
        ("#zspace.partition<blocks []>", 19, "Expected one of 'grid', 'ranges'"),
    ],
)
def test_a_mistake_is_shown_at_its_place(text, column, message):
    with pytest.raises(ParseError) as error:
        parse(text)
    assert error.value.span.get_location().col == column
    assert message in str(error.value)
