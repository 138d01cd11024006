"""Steps that read lists, elements of lists and one of several outputs, and what is refused."""

from typing import Any

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.documents import read_yaml
from tapestry.runtime.executor import NoWatch, find_executor

LIBRARY = load_library()
GATED = """
params: {axis: {type: int, axis_of: x, default: -1}}
inputs: {x: {shape: "[$d...]", dtype: float}}
steps:
  halves: {op: chunk, x: x, chunks: 2, axis: $axis}
  gate: {op: sigmoid, x: "halves[1]"}
  result: {op: mul, a: "halves[0]", b: gate}
"""


def own(text: str) -> Any:
    return LIBRARY.extended({"t": read_yaml(text, "f.yaml")})


def apply(text: str, *given: Any, **parameters: Any) -> Any:
    library = own(text)
    return expand(library.get("t"), given, parameters, library)


def vector(size: int) -> TensorSpec:
    return TensorSpec((size,), "f32")


def test_elements_of_a_list() -> None:
    gated = apply(GATED, vector(6))
    assert gated.outputs[0].spec == vector(3)
    assert [call.operands for call in gated.body.calls] == [
        ("x",), ("halves.1",), ("halves.0", "gate"),
    ]  # fmt: skip


def test_lists_are_passed_on_and_put_together() -> None:
    text = """
inputs: {first: {shape: "[$n]"}, rest: {each: $i, shape: "[$m[$i]]"}}
steps:
  parts: {op: split, x: first, chunk: 2}
  result: {op: concat, tensors: ["parts[#i - 1]", first, rest..., "parts[0]"]}
"""
    joined = apply(text, vector(4), [vector(1), vector(5)])
    assert joined.outputs[0].spec == vector(14)
    assert joined.body.calls[-1].operands == ("parts.1", "first", "rest.0", "rest.1", "parts.0")
    whole = text.replace('["parts[#i - 1]", first, rest..., "parts[0]"]', "rest")
    assert apply(whole, vector(4), [vector(1), vector(5)]).outputs[0].spec == vector(6)


def test_a_composite_may_have_a_list_of_outputs() -> None:
    split = apply("""
inputs: {x: {shape: "[$n]", dtype: float}}
steps:
  wide: {op: exp, x: x}
  parts: {op: split, x: wide, chunk: 2}
outputs: {parts: {each: $i, shape: "[min(2, $n - 2 * $i)]"}}
""", vector(3))  # fmt: skip
    assert [str(tensor) for tensor in split.outputs] == ["parts[0]: [2] f32", "parts[1]: [1] f32"]
    assert split.body.results == ("parts.0", "parts.1")


def test_one_of_several_outputs() -> None:
    text = """
inputs: {x: {shape: "[$n]", dtype: float}}
steps:
  both: {op: pair, x: x}
  result: {op: sub, a: both.twice, b: "both.parts[1]"}
"""
    pair = """
inputs: {x: {shape: "[$n]", dtype: float}}
for: "$k in 2"
index: "[$n]"
wrap: {twice: "2 * x", parts: "x + $i"}
outputs: {twice: {when: "$k == 0"}, parts: {each: $i, count: 2, when: "$k == 1"}}
"""
    library = own(text).extended({"pair": read_yaml(pair, "p.yaml")})
    expand(library.get("t"), [vector(3)], {}, library)
    program = f"""
      weft.metakernel @pair {{
        inputs = [{{x = {{shape = "[$n]", dtype = "float"}}}}], for = "$k in 2", index = "[$n]",
        wrap = {{twice = "2 * x", parts = "x + $i"}},
        outputs = [{{twice = {{when = "$k == 0"}}}},
                   {{parts = {{each = "$i", count = 2, when = "$k == 1"}}}}]
      }}
      weft.metakernel @t {{
        inputs = [{{x = {{shape = "[$n]", dtype = "float"}}}}],
        steps = [{{both = {{op = "pair", x = "x"}}}},
                 {{result = {{op = "sub", a = "both.twice", b = "both.parts[1]"}}}}]
      }}
      func.func @main(%x: {V}) -> {V} {{
        %y = weft.apply @t(%x) : ({V}) -> {V}
        func.return %y : {V}
      }}"""
    module = parse_text(program)
    run_pipeline(module, "weft-apply")
    x = np.array([1, 2, 3], np.float32)
    (got,) = find_executor("numpy").run(module, {"x": x}, NoWatch()).outputs
    np.testing.assert_array_equal(got, x - 1)


V = "!loom.tensor<[0] : [3], f32>"


@pytest.mark.parametrize(
    ("old", "new", "kind", "says"),
    [
        ("halves[1]", "halves[2]", "index_out_of_range", "halves[2]: it has 2 tensors"),
        ("halves[1]", "halves", "operand", "halves is a list, and input x of sigmoid is one"),
        ("halves[1]", "x[0]", "operand", "x is one tensor and has no elements"),
        ("halves[1]", "half[1]", "unknown_name", "did you mean halves?"),
        ("halves[1]", "halves.1", "parse_error", "names no tensor"),
        ("halves[1]", "halves[$z]", "unknown_name", "$z is not bound"),
        ("halves[1]", "[gate", "parse_error", "is no list of tensors"),
        ("mul, a: \"halves[0]\", b: gate", "concat, tensors: gate", "operand", "[gate]"),
        ("mul, a: \"halves[0]\", b: gate", "concat, tensors: [halves]", "operand", "halves..."),
        ("mul, a: \"halves[0]\", b: gate", "concat, tensors: [gate...]", "operand", "one tensor"),
        ("  result: {op: mul, a: \"halves[0]\", b: gate}", "  result: {op: split, x: x, chunk: 1}",
         "operand", "output result is one tensor, and step result makes a list"),
    ],
)  # fmt: skip
def test_refusals(old: str, new: str, kind: str, says: str) -> None:
    assert old in GATED
    with pytest.raises(WeftError) as caught:
        apply(GATED.replace(old, new), vector(4))
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)
    assert "f.yaml:" in str(caught.value)
