"""Patterns against shapes: what names bind, positions, and every way not to fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError, match_pattern
from tapestry.metakernels.matching import Bindings, Matcher
from tapestry.metakernels.parsing import parse_pattern


@pytest.mark.parametrize(
    ("pattern", "shape", "dims", "groups"),
    [
        ("[]", [], {}, {}),
        ("[$a, $b]", [3, 4], {"$a": (0, 3), "$b": (1, 4)}, {}),
        ("[$x..., $b]", [4], {"$b": (0, 4)}, {"$x": (0, 0, [])}),
        ("[$a, $m..., $z]", [2, 3, 4, 5], {"$a": (0, 2), "$z": (3, 5)}, {"$m": (1, 3, [3, 4])}),
        ("[$a...{2}, $b...]", [2, 3, 4], {}, {"$a": (0, 2, [2, 3]), "$b": (2, 3, [4])}),
        ("[$n, $n]", [3, 3], {"$n": (0, 3)}, {}),
        ("[_, ..., 5]", [1, 2, 5], {}, {}),
        ("[=(2 * $n), $n]", [6, 3], {"$n": (1, 3)}, {}),
        ("[$g=($a, $r...), $z]", [7, 8], {"$a": (0, 7), "$z": (1, 8)},
         {"$r": (1, 1, []), "$g": (0, 1, [7])}),
    ],
)  # fmt: skip
def test_matches(pattern, shape, dims, groups):
    assert match_pattern(pattern, shape) == (dims, groups)


@pytest.mark.parametrize(
    ("pattern", "shape", "kind", "says"),
    [
        ("[$a, $b]", [1], "rank_mismatch", "has rank 1 (shape [1]), but [$a, $b] has rank 2"),
        ("[$a, $b...]", [], "rank_mismatch", "rank at least 1"),
        ("[$a...{3}, $b]", [1, 2], "rank_mismatch", "has rank 4"),
        ("[$n, $n]", [3, 4], "size_mismatch", "rule 1"),
        ("[5]", [4], "size_mismatch", "5 is required"),
        ("[=($n + 1), $n]", [4, 4], "size_mismatch", "5 is required"),
        ("[$a..., $b...]", [1, 2], "underdetermined_pattern", "several ways"),
        ("[$x, $x...]", [1, 2], "kind_mismatch", "a size in one and a list in the other"),
        ("[=($m)]", [1], "unknown_name", "$m is not bound"),
        ("[$a", [1], "parse_error", "unexpected end"),
    ],
)
def test_refusals(pattern, shape, kind, says):
    with pytest.raises(WeftError) as caught:
        match_pattern(pattern, shape)
    assert caught.value.kind == kind
    assert says in str(caught.value)


def test_a_pattern_waits_for_another():
    bindings = Bindings()
    both = Matcher(parse_pattern("[$a..., $b...]"), (2, 3, 4), "x", bindings)
    assert not both.advance()
    assert Matcher(parse_pattern("[$b...]"), (4,), "y", bindings).advance()
    assert both.advance()
    assert bindings.values == {"a": (2, 3), "b": (4,)}


def test_a_message_says_what_would_fit():
    bindings = Bindings()
    Matcher(parse_pattern("[$batch..., $k]"), (2, 3, 4), "X", bindings).advance()
    with pytest.raises(WeftError, match=r"\[2, 3, 4, \$col\] has rank 4"):
        Matcher(parse_pattern("[$batch..., $k, $col]"), (4, 5), "W", bindings).advance()


shapes = st.lists(st.integers(0, 9), max_size=6)


@given(shapes, shapes, shapes)
def test_a_sequence_takes_what_the_others_leave(before, inside, after):
    names = [[f"${part}{i}" for i in range(len(sizes))] for part, sizes in
             (("a", before), ("b", after))]  # fmt: skip
    pattern = f"[{', '.join([*names[0], '$m...', *names[1]])}]"
    dims, groups = match_pattern(pattern, [*before, *inside, *after])
    assert groups["$m"] == (len(before), len(before) + len(inside), inside)
    assert [dims[name][1] for name in (*names[0], *names[1])] == [*before, *after]
