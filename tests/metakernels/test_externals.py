"""Templates without a body: which kernel they are, what it is called with, and wrong ones."""

from typing import Any

import pytest

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.expansion import Opaque

ROWS = """\
t:
  params: {down: {type: bool, default: false}, p: {type: float, default: 0.5}}
  inputs: {x: {shape: "[$rows, $n]", ipf: "[@rows, 0] :> [1, $n]"}}
  index: "[$rows]"
  external: {kernel: sort, parameters: {descending: $down, half: "$n // 2"}}
  outputs: {result: {shape: "[$rows, $n]", ipf: "[@rows, 0] :> [1, $n]"}}
"""


def apply(text: str, *specs: Any, **parameters: Any) -> Any:
    library = load_library().with_text(text, "f.yaml")
    return expand(
        library.get("t"), [TensorSpec(spec, "f32") for spec in specs], parameters, library
    )


def test_a_kernel_gets_what_expressions_compute():
    rows = apply(ROWS, (4, 9), down=True)
    assert rows.body == Opaque("sort", (("descending", True), ("half", 4)))
    assert [str(p) for p in (*rows.reads, *rows.writes)] == ["(d0) -> (d0, 0) :> [1, 9]"] * 2
    assert rows.outputs[0].spec.shape == (4, 9)


def test_without_a_name_it_is_the_templates_own():
    text = ROWS.replace("  external: {kernel: sort", "  doc: {kernel: sort")
    text = "\n".join(line for line in text.splitlines() if "doc:" not in line)
    assert apply(text, (4, 9)).body == Opaque("t", (("down", False), ("p", 0.5)))


def test_the_worked_matrix_product():
    product = apply(
        """
t:
  inputs:
    X: {shape: "[$batch..., $row, $inner]", ipf: "[..., 1, 0] :> [..., 1, $inner]"}
    W: {shape: "[$batch..., $inner, $col]", ipf: "[..., 0, 1] :> [..., $inner, 1]"}
  index: "[$batch..., $row, $col]"
""",
        (2, 3, 4, 5),
        (2, 3, 5, 6),
    )
    assert product.body == Opaque("t")
    assert product.space.extents == (2, 3, 4, 6)
    assert [str(read) for read in product.reads] == [
        "(d0, d1, d2, d3) -> (d0, d1, d2, 0) :> [1, 1, 1, 5]",
        "(d0, d1, d2, d3) -> (d0, d1, 0, d3) :> [1, 1, 5, 1]",
    ]


@pytest.mark.parametrize(
    ("old", "new", "kind", "where", "says"),
    [
        ("kernel: sort", "kernl: sort", "unknown_name", "5:14", "did you mean kernel?"),
        ("{kernel: sort, parameters", "{parameters", "invalid_template", "5:13", "is missing"),
        ("$down", "$up", "unknown_name", "5:53", "$up is not bound"),
        ("$n // 2", "$n / 2", "inexact_division", "5:67", "9 / 2 leaves a remainder"),
        ('"[$rows]"', '"[$rows]"\n  wrap: x', "invalid_template", "6:13", "excludes wrap"),
        (
            "0] :> [1, $n]\"}}\n  index", "1] :> [1, $n]\", bounds: {clip: 0}}}\n  index",
            "box", "2:3", "inside",
        ),
        ("[@rows, 0] :> [1, $n]\"}}\n", "[@rows, 0] :> [1, 3]\"}}\n", "not_tiled", None, "once"),
    ],
)  # fmt: skip
def test_wrong_kernels(old: str, new: str, kind: str, where: str | None, says: str):
    assert old in ROWS
    text = ROWS.replace(old, new) if where else ROWS[::-1].replace(old[::-1], new[::-1], 1)[::-1]
    with pytest.raises(WeftError) as caught:
        apply(text, (4, 9))
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value), caught.value
    assert where is None or str(caught.value.location) == f"f.yaml:{where}", caught.value


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (
            't: {inputs: {a: {shape: "[$n]"}, b: {shape: "[$n]"}}, index: "[$n]"}',
            "invalid_template",
            "says in no wrap what a point computes",
        ),
        (
            """
t:
  inputs: {a: {shape: "[$n]"}, b: {shape: "[$n]"}}
  index: "[$n]"
  wrap: "a + b"
  outputs: {r: {shape: "[2 * $n]", ipf: "[2] :> [2]"}}
""",
            "box",
            "a point computes one cell of an output",
        ),
    ],
)
def test_without_a_body_there_is_a_box(text: str, kind: str, says: str):
    with pytest.raises(WeftError, match=says) as caught:
        apply(text, (4,), (4,))
    assert caught.value.kind == kind
