"""Computed lists: what they give, and what is refused."""

from typing import Any

import pytest

from tapestry.metakernels import TensorSpec, WeftError, evaluate_expression, expand, load_library
from tapestry.metakernels.documents import read_yaml
from tapestry.metakernels.parsing import parse_expression
from tapestry.metakernels.rendering import describe_expression
from tapestry.metakernels.syntax import variables

LIBRARY = load_library()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[$j * $j for $j in 4]", [0, 1, 4, 9]),
        ("[$n[$j] for $j in #n if $j != 1]", [7, 9]),
        ("[0, [$j for $j in 2]..., 5]", [0, 0, 1, 5]),
        ("sum([$n[$j] for $j in 2])", 15),
        ("[[$j + $m for $m in $j] for $j in 3]", [[], [1], [2, 3]]),
        ("[$n[$j] for $j in #n][1:]", [8, 9]),
        ("[1 for $j in 0]", []),
        ("where(#n == 3, 1, 1 / 0)", 1),
        ("[where($j == 0, 7, 6 / $j) for $j in 3]", [7, 6, 3]),
        ("contains($n, 8) + contains($n, 1)", 1),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate_expression(text, {"$n": [7, 8, 9]}) == value
    again = describe_expression(parse_expression(text))
    assert evaluate_expression(again, {"$n": [7, 8, 9]}) == value


def test_what_a_list_binds_is_not_free() -> None:
    tree = parse_expression("[$j + $m + #k for $j in $j + 1 if $j < $l]")
    assert variables(tree) == {"m", "k", "j", "l"}
    assert variables(parse_expression("[$j for $j in #n]")) == {"n"}


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("[$j for $j in 0 - 1]", "index_out_of_range", "-1: that is negative"),
        ("[$j for $j in 10 ^ 9]", "limit", "1000000000 elements"),
        ("[[[1 for $a in 99] for $b in 99] for $c in 99]", "limit", "970299 elements"),
        ("[$j for $j in [1]]", "kind_mismatch", "must be an integer"),
        ("[$i for $j in 2]", "unknown_name", "$i is not bound"),
        ("[$j for j in 2]", "parse_error", "unexpected `j`"),
        ("[1, $j for $j in 2]", "parse_error", "unexpected `for`"),
        ("[$j for $j in 2 if [1]]", "kind_mismatch", "the condition"),
        ("where(1, 2)", "kind_mismatch", "where takes 3 arguments, not 2"),
        ("where([1], 2, 3)", "kind_mismatch", "the condition of where"),
        ("contains(1, 2)", "kind_mismatch", "must be a list"),
    ],
)
def test_refusals(text: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        evaluate_expression(text, {})
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)


def own(text: str) -> Any:
    return LIBRARY.extended({"t": read_yaml(text, "f.yaml")}).get("t")


def test_rows_extents_shapes_and_offsets() -> None:
    template = own("""
params: {axes: {type: "int[]", axis_of: x}}
inputs:
  x: {shape: "[$d...]", ipf: "[@i[$j] for $j in #d] + [contains($axes, $j) for $j in #d]"}
index: "[i = [$d[$j] - contains($axes, $j) for $j in #d]...]"
""")
    moved = expand(template, [TensorSpec((3, 4), "f32")], {"axes": [-1]}, LIBRARY)
    assert [str(read) for read in moved.reads] == ["(d0, d1) -> (d0, d1 + 1)"]
    assert moved.outputs[0].spec.shape == (3, 3)


@pytest.mark.parametrize(
    ("text", "kind", "where", "says"),
    [
        ('{inputs: {x: {shape: "[$d...]"}}, index: "[$d for $d in 2]"}', "list", "1:43",
         "the list binds it again"),
        ('{params: {a: {type: int, inserted: true}}, inputs: {}, index: "[]"}', "invalid_template",
         "1:36", "axis_of says into which input"),
        ('{inputs: {x: {shape: "[$d...]"}, y: {shape: "[$d...]"}}, index: "[$d...]", wrap: x}',
         "invalid_template", "1:37", "when: 0"),
    ],
)  # fmt: skip
def test_wrong_templates(text: str, kind: str, where: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        own(text)
    place = caught.value.location
    assert place is not None
    assert (caught.value.kind, f"{place.line}:{place.column}") == (kind, where), caught.value
    assert says in str(caught.value)


def test_inserted_axes_count_in_the_result() -> None:
    for axis, shape in [(0, (1, 3)), (-1, (3, 1)), (1, (3, 1)), (-2, (1, 3))]:
        got = expand(LIBRARY.get("unsqueeze"), [TensorSpec((3,), "f32")], {"axes": axis}, LIBRARY)
        assert got.outputs[0].spec.shape == shape
    with pytest.raises(WeftError, match=r"is 2, and x then has rank 2"):
        expand(LIBRARY.get("unsqueeze"), [TensorSpec((3,), "f32")], {"axes": [2]}, LIBRARY)


def test_requirements_hold_before_lets_rely_on_them() -> None:
    template = own("""
params: {step: {type: int}}
inputs: {x: {shape: "[$n]", ipf: "[$step * @i]"}}
let: {count: "ceildiv($n, $step)"}
require: ["$step > 0"]
index: "[i = $count]"
""")
    with pytest.raises(WeftError) as caught:
        expand(template, [TensorSpec((3,), "f32")], {"step": 0}, LIBRARY)
    assert caught.value.kind == "requirement"
