"""Reads outside tensors: the worked convolution, fills of every sort, and wrong ones."""

from math import inf
from typing import Any

import pytest

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.expansion import MapFold
from tapestry.metakernels.scalars import Constant
from tapestry.zspace import Range

CONV2D = """
t:
  params:
    stride: {type: "int[2]", default: [1, 1]}
    pad: {type: "int[2]", default: [0, 0]}
    dil: {type: "int[2]", default: [1, 1]}
  inputs:
    X:
      shape: "[$b, $cin, $h, $w]"
      bounds: {clip: 0}
      ipf: "[@b, @cin, $stride[0]*@y + $dil[0]*@kh - $pad[0],
             $stride[1]*@x + $dil[1]*@kw - $pad[1]]"
    F: {shape: "[$cout, $cin, $kh, $kw]", ipf: "[@cout, @cin, @kh, @kw]"}
  let:
    oh: "($h + 2*$pad[0] - $dil[0]*($kh - 1) - 1) // $stride[0] + 1"
    ow: "($w + 2*$pad[1] - $dil[1]*($kw - 1) - 1) // $stride[1] + 1"
  require: ["$oh > 0", "$ow > 0"]
  index: "[$b, $cout, y = $oh, x = $ow]"
  fold:
    cin: {extent: $cin, monoid: add}
    kh: {extent: $kh, monoid: add}
    kw: {extent: $kw, monoid: add}
  wrap: "X * F"
"""


def apply(text: str, *specs: Any, **parameters: Any) -> Any:
    library = load_library().with_text(text, "f.yaml")
    return expand(library.get("t"), [TensorSpec(*spec) for spec in specs], parameters, library)


def test_the_worked_convolution() -> None:
    conv = apply(
        CONV2D, ((2, 3, 9, 8), "f32"), ((4, 3, 3, 3), "f32"), stride=[2, 1], pad=[1, 1], dil=[1, 2]
    )
    assert conv.outputs[0].spec == TensorSpec((2, 4, 5, 6), "f32")
    assert conv.space.extents == (2, 4, 5, 6, 3, 3, 3)
    assert conv.fills == (Constant(0.0, "f32"), None)
    read = conv.reads[0].apply_range(Range.of(conv.space.extents))
    assert str(read) == "[0, 0, -1, -1] : [2, 3, 10, 9]"
    assert str(read.clip(Range.of((2, 3, 9, 8)))) == "[0, 0, 0, 0] : [2, 3, 9, 8]"


def shifted(clip: str, dtype: str = "f32", **parameters: Any) -> Any:
    return apply(
        f"""
t:
  params: {{p: {{type: float, default: 0.5}}, mode: {{type: enum, values: [a, b], default: a}}}}
  inputs: {{x: {{shape: "[$n]", dtype: $t, ipf: "[@n - 1]", bounds: {{clip: "{clip}"}}}}}}
  index: "[$n]"
""",
        ((4,), dtype),
        **parameters,
    )


@pytest.mark.parametrize(
    ("clip", "dtype", "value"),
    [
        ("0", "i32", 0),
        ("0.5", "f16", 0.5),
        ("-inf", "f32", -inf),
        ("-.inf", "f32", -inf),
        ("$p", "f32", 0.5),
        ("2 * $n - 1", "i8", 7),
        ("lowest($t)", "f32", -inf),
        ("lowest($t)", "i8", -128),
        ("highest($t)", "i64", 2**63 - 1),
        ("highest($t)", "i1", 1),
        ("where($mode == 'a', 1, lowest($t))", "f32", 1.0),
        ("where($mode == 'b', 1, lowest($t))", "f32", -inf),
    ],
)
def test_fills(clip: str, dtype: str, value: Any) -> None:
    moved = shifted(clip, dtype)
    assert isinstance(moved.body, MapFold)
    assert moved.fills == (Constant(value, dtype),)


@pytest.mark.parametrize(
    ("clip", "dtype", "kind", "says"),
    [
        ("0.5", "i32", "dtype_mismatch", "0.5 is no i32"),
        ("-inf", "i32", "dtype_mismatch", "-inf is no i32"),
        ("1000", "i8", "dtype_mismatch", "1000 is no i8"),
        ("cast(1, f32)", "i8", "dtype_mismatch", "it is a f32, and i8 is required"),
        ("exp(cast(1, f32))", "f32", "kind_mismatch", "known before the operation runs"),
        ("$mode", "f32", "kind_mismatch", "choices only compare"),
    ],
)
def test_wrong_fills(clip: str, dtype: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError, match=says) as caught:
        shifted(clip, dtype)
    assert caught.value.kind == kind
    assert str(caught.value).startswith("f.yaml:4:")


def test_reading_outside_needs_bounds() -> None:
    text = 't: {inputs: {x: {shape: "[$n]", ipf: "[@n - 1]"}}, index: "[$n]"}'
    with pytest.raises(WeftError, match="x is read at") as caught:
        apply(text, ((4,), "f32"))
    assert caught.value.kind == "index_out_of_range"
    assert caught.value.hint == "bounds: {clip: 0} reads 0 outside"
