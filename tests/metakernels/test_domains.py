"""Domains of templates: rows as affine forms, what always holds, and wrong rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library

BAND = """\
t:
  params: {w: {type: int, default: 2}}
  inputs: {x: {shape: "[$m, $n]", ipf: "[@i, @j]"}}
  index: "[i = $m]"
  fold: {j: {extent: $n, monoid: add}}
  domain: ["ROW"]
  wrap: "x"
"""


def apply(row: str, shape: tuple[int, ...] = (4, 6), **parameters: Any) -> Any:
    library = load_library().with_text(BAND.replace("ROW", row), "f.yaml")
    return expand(library.get("t"), [TensorSpec(shape, "f32")], parameters, library)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("@i >= @j", "d0 - d1 >= 0"),
        ("@i > @j", "d0 - d1 - 1 >= 0"),
        ("@i <= @j", "-d0 + d1 >= 0"),
        ("@i < @j", "-d0 + d1 - 1 >= 0"),
        ("@i == @j", "d0 - d1 >= 0, -d0 + d1 >= 0"),
        ("@j - 2 * @i + $w >= 0", "-2 * d0 + d1 + 2 >= 0"),
        ("$n - @j > $w", "-d1 + 3 >= 0"),
        ("@j >= 0", "None"),
        ("$w > 0", "None"),
        ("$w > 2", "-1 >= 0"),
    ],
)
def test_rows(row: str, text: str):
    assert str(apply(row).inside) == text


def test_an_empty_index_has_no_domain():
    assert apply("@i >= @j", (0, 6)).inside is None


@given(st.integers(-4, 4), st.integers(-4, 4), st.integers(-6, 6), st.sampled_from("<>≤≥="))
def test_rows_hold_where_the_comparison_does(a: int, b: int, c: int, operator: str):
    compare, sign = {"<": (np.less, "<"), ">": (np.greater, ">"), "≤": (np.less_equal, "<="),
                     "≥": (np.greater_equal, ">="), "=": (np.equal, "==")}[operator]  # fmt: skip
    inside = apply(f"{a} * @i {sign} {b} * @j + {c}".replace("+ -", "- ")).inside
    i, j = np.mgrid[:4, :6]
    wanted = compare(a * i, b * j + c)
    have = [[inside is None or inside.contains((x, y)) for y in range(6)] for x in range(4)]
    np.testing.assert_array_equal(have, wanted)


@pytest.mark.parametrize(
    ("row", "kind", "says"),
    [
        ("@i - @j", "domain", "a row of a domain is a comparison"),
        ("@i != @j", "domain", "leaves two pieces"),
        ("@i * @j >= 0", "not_affine", "product of two coordinates"),
        ("@i // 2 >= @j", "not_affine", "is not affine"),
        ("@k >= 0", "unknown_name", "@k is no index dimension"),
        ("$k >= 0", "unknown_name", "$k is not bound"),
        ("@i >= [1]", "kind_mismatch", "must be an integer"),
        ("@i >= @j >= 0", "parse_error", "unexpected `>=`"),
    ],
)
def test_wrong_rows(row: str, kind: str, says: str):
    with pytest.raises(WeftError) as caught:
        apply(row)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)
    assert str(caught.value).startswith("f.yaml:6:"), caught.value


def test_a_domain_needs_a_fold():
    text = 't: {inputs: {x: {shape: "[$n]"}}, index: "[$n]", domain: ["@n > ROW"], wrap: x}'
    for row, refused in (("0", True), ("-1", False)):
        library = load_library().with_text(text.replace("ROW", row), "f.yaml")
        if not refused:
            assert expand(library.get("t"), [TensorSpec((4,), "f32")], {}, library).inside is None
            continue
        with pytest.raises(WeftError, match="every point must be inside") as caught:
            expand(library.get("t"), [TensorSpec((4,), "f32")], {}, library)
        assert caught.value.kind == "domain"
        assert caught.value.hint == "choose a value in wrap: where(condition, value, other)"
