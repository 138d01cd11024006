"""Templates applied to shapes, dtypes and parameters: the worked checks, and wrong applications."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import Library, TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.documents import read_yaml
from tapestry.metakernels.expansion import Composite, MapFold, Move, Opaque, Reshape
from tapestry.zspace import AffineMap, Range

LIBRARY = load_library()


def own(text: str) -> Any:
    """A library with the one template `t` that `text` describes."""
    return LIBRARY.extended({"t": read_yaml(text, "f.yaml")})


def apply(name: str, *specs: Any, library: Any = LIBRARY, **parameters: Any) -> Any:
    """The expansion of a template; a spec is (shape, dtype), or a shape of f32."""
    tensors = [
        TensorSpec(spec[0], spec[1]) if len(spec) == 2 and isinstance(spec[1], str)
        else TensorSpec(tuple(spec), "f32")
        for spec in specs
    ]  # fmt: skip
    return expand(library.get(name), tensors, parameters, library)


def rows(projections: Any) -> Any:
    return [str(projection) for projection in projections]


def test_matmul_with_broadcast_batches() -> None:
    matmul = apply("matmul", (2, 3, 4, 5), (3, 5, 6))
    assert matmul.space.extents == (2, 3, 4, 6, 5)
    assert matmul.space.labels == ("batch", "batch", "row", "col", "inner")
    assert matmul.outputs[0].spec.shape == (2, 3, 4, 6)
    assert rows(matmul.reads) == [
        "(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)",
        "(d0, d1, d2, d3, d4) -> (d1, d4, d3)",
    ]


def test_an_opaque_matmul_reads_boxes() -> None:
    matmul = apply(
        "t", (2, 3, 4, 5), (2, 3, 5, 6),
        library=own("""
inputs:
  X: {shape: "[$batch..., $row, $inner]", ipf: "[..., 1, 0] :> [..., 1, $inner]"}
  W: {shape: "[$batch..., $inner, $col]", ipf: "[..., 0, 1] :> [..., $inner, 1]"}
index: "[$batch..., $row, $col]"
"""),
    )  # fmt: skip
    assert matmul.body == Opaque("t")
    assert matmul.space.extents == (2, 3, 4, 6)
    assert rows(matmul.reads) == [
        "(d0, d1, d2, d3) -> (d0, d1, d2, 0) :> [1, 1, 1, 5]",
        "(d0, d1, d2, d3) -> (d0, d1, 0, d3) :> [1, 1, 5, 1]",
    ]


def test_sum_moves_its_axis() -> None:
    total = apply("sum", (2, 3, 4, 5), axis=2)
    assert total.space.extents == (2, 3, 5, 4)
    assert rows(total.reads) == ["(d0, d1, d2, d3) -> (d0, d1, d3, d2)"]
    kept = apply("sum", (2, 3, 4, 5), axis=-2, keepdim=True)
    assert kept.outputs[0].spec.shape == (2, 3, 1, 5)
    assert rows(kept.writes) == ["(d0, d1, d2) -> (d0, d1, 0, d2)"]


def test_the_library_templates_agree_with_the_printed_form_of_a_gather() -> None:
    embedding = apply(
        "t", ((4,), "i32"), (10, 8),
        library=own("""
inputs:
  ids: {shape: "[$batch...]", dtype: int, ipf: "[@batch...]"}
  table: {shape: "[$vocab, $dim]", ipf: "[@vocab, @dim]"}
index: "[$batch..., $dim]"
fold: {vocab: {extent: $vocab, monoid: add}}
wrap: "where(ids == @vocab, table, 0)"
"""),
    )  # fmt: skip
    assert rows(embedding.reads) == ["(d0, d1, d2) -> (d0)", "(d0, d1, d2) -> (d2, d1)"]
    assert embedding.outputs[0].spec == TensorSpec((4, 8), "f32")


def test_a_strided_window_reads_what_the_formula_says() -> None:
    conv = apply(
        "t", (9,), (3,), stride=2,
        library=own("""
params: {stride: {type: int, default: 1}}
inputs:
  X: {shape: "[$h]", ipf: "[$stride * @y + @k]"}
  F: {shape: "[$k]", ipf: "[@k]"}
let: {out: "($h - $k) // $stride + 1"}
require: ["$out > 0"]
index: "[y = $out]"
fold: {k: {extent: $k, monoid: add}}
wrap: "X * F"
"""),
    )  # fmt: skip
    assert conv.space.extents == (4, 3)
    assert rows(conv.reads) == ["(d0, d1) -> (2 * d0 + d1)", "(d0, d1) -> (d1)"]


def test_a_scan_follows_the_maps_and_is_kept() -> None:
    text = """
inputs: {x: {shape: "[$m, $n]", ipf: "[@m, @n]"}}
index: "[$m]"
scan: {n: {extent: $n, monoid: add}}
wrap: "x"
unwrap: "fold / cast(@n + 1, f32)"
"""
    scan = apply("t", (2, 3), library=own(text))
    assert scan.space.kinds == ("map", "scan")
    assert scan.outputs[0].spec.shape == (2, 3)
    assert rows(scan.writes) == ["(d0, d1) -> (d0, d1)"]
    with pytest.raises(WeftError, match="the list"):
        apply("t", (2, 3), library=own(text.replace("extent: $n", 'extent: "[$n]"')))


def test_transpose_is_a_view() -> None:
    transpose = apply("transpose", (2, 3, 4), perm=[2, 0, 1])
    assert transpose.outputs[0].spec.shape == (4, 2, 3)
    assert isinstance(transpose.body, Move)
    assert transpose.body.source.apply((3, 1, 2)) == (1, 2, 3)


def test_reshape_resolves_the_rest() -> None:
    reshape = apply("reshape", (2, 3, 4), shape=[-1, 4])
    assert reshape.body == Reshape()
    assert reshape.outputs[0].spec.shape == (6, 4)


def test_a_cast_to_the_same_dtype_is_a_view() -> None:
    assert isinstance(apply("cast", (3,), dtype="f32").body, Move)
    assert isinstance(apply("cast", (3,), dtype="f16").body, MapFold)


def test_half_precision_sums_in_f32() -> None:
    body = apply("sum", ((8,), "bf16"), axis=0).body
    assert [part.dtype for part in body.wrap] == ["f32"]
    assert [part.dtype for part in body.unwrap] == ["bf16"]
    assert apply("sum", ((8,), "i32"), axis=0).body.unwrap is None
    assert apply("max", ((8,), "f16"), axis=0).body.unwrap is None


def test_linear_reads_its_bias_after_the_fold() -> None:
    body = apply("linear", (2, 3), (3, 4), (4,)).body
    assert (body.ins, body.extras) == ((0, 1), (2,))


def test_softmax_is_steps() -> None:
    softmax = apply("softmax", ((2, 3), "f16"))
    assert isinstance(softmax.body, Composite)
    assert [call.name for call in softmax.body.calls][-1] == "result"
    assert softmax.outputs[0].spec == TensorSpec((2, 3), "f16")


def test_a_fold_over_several_dimensions_and_over_none() -> None:
    library = own("""
inputs: {x: {shape: "[$keep, $rest...]", ipf: "[@keep, @rest...]"}}
index: "[$keep]"
fold: {rest: {extent: $rest, monoid: add}}
wrap: "x"
""")
    assert apply("t", (2, 3, 4), library=library).space.extents == (2, 3, 4)
    assert apply("t", (2,), library=library).body == Move(AffineMap.identity(1))


def test_a_generator_has_no_inputs() -> None:
    iota = apply(
        "t", n=5,
        library=own("""
params: {n: {type: int}}
inputs: {}
index: "[$n]"
wrap: "cast(@n, f32)"
outputs: {result: {dtype: f32}}
"""),
    )  # fmt: skip
    assert iota.outputs[0].spec == TensorSpec((5,), "f32")
    assert iota.body.ins == ()


def test_several_outputs() -> None:
    both = apply(
        "t", (4, 3),
        library=own("""
inputs: {x: {shape: "[$m, $n]", ipf: "[@m, @n]"}}
index: "[$m]"
fold: {n: {extent: $n, monoid: argmax}}
wrap: ["x", "@n"]
unwrap: {where: "fold[1]", value: "fold[0]"}
outputs: {value: {}, where: {dtype: i64}}
"""),
    )  # fmt: skip
    assert [output.spec.dtype for output in both.outputs] == ["f32", "i64"]
    assert [part.part for part in both.body.unwrap] == [0, 1]


@pytest.mark.parametrize(
    ("template", "specs", "parameters", "kind", "says"),
    [
        ("linear", [(2, 3), (4, 5), (5,)], {}, "size_mismatch", "$in is 4 in W but 3 in x"),
        ("linear", [(2, 3), (3, 5), (4,)], {}, "size_mismatch", "$out is 4 in b but 5 in W"),
        ("linear", [(2, 3), (3,), (5,)], {}, "rank_mismatch", "[3, $out] has rank 2"),
        ("linear", [(2, 3)], {}, "operand", "takes 3 operands (x, W, b?), and 1 are given"),
        ("matmul", [(), (3, 5)], {}, "rank_mismatch", "has rank at least 1"),
        ("matmul", [(2, 3), (4, 5)], {}, "requirement", "$inner = 3, $w = [4, 5]"),
        ("matmul", [(2, 4, 3), (3, 3, 5)], {}, "broadcast_mismatch", "let batch"),
        ("add", [(2, 3), (4,)], {}, "broadcast_mismatch", "do not broadcast"),
        ("add", [((3,), "i1"), ((3,), "i1")], {}, "dtype_mismatch", "`+` of a truth value"),
        ("gelu", [((3,), "i32")], {}, "dtype_mismatch", "dtypes that fit: f16, bf16, f32, f64"),
        ("where", [(3,), (3,), (3,)], {}, "dtype_mismatch", "dtypes that fit: i1"),
        ("argmax", [(3, 4)], {}, "parameter", "parameter axis (int) is missing"),
        ("sum", [(3, 4)], {"axis": 2}, "parameter", "axes that fit: from -2 to 1"),
        ("sum", [()], {"axis": 0}, "parameter", "a scalar has no axes"),
        ("sum", [(3, 4)], {"axis": 0.5}, "parameter", "parameter axis is 0.5; it must be int"),
        ("sum", [(3, 4)], {"axis": True}, "parameter", "parameter axis is true"),
        ("sum", [(3, 4)], {"axis": 0, "keepdims": True}, "parameter", "did you mean keepdim?"),
        ("sum", [(3, 4)], {"axis": 0, "keepdim": 1}, "parameter", "it must be bool"),
        ("max", [(3, 0)], {"axis": 1}, "requirement", "does not hold for $d = [3, 0]"),
        ("gelu", [(3,)], {"approximate": "sigmoid"}, "parameter", "must be one of none, tanh"),
        ("transpose", [(2, 3)], {"perm": [0, 0]}, "requirement", "$perm = [0, 0]"),
        ("transpose", [(2, 3)], {"perm": [0]}, "requirement", "len($perm) == len($d)"),
        ("transpose", [(2, 3)], {"perm": 1}, "parameter", "it must be int[]"),
        ("transpose", [(2, 3)], {"perm": [0, "1"]}, "parameter", "it must be int[]"),
        ("reshape", [(2, 3)], {"shape": [4, -1]}, "size_mismatch", "cannot fill"),
        ("reshape", [(2, 3)], {"shape": [-2, 3]}, "parameter", "sizes >= 0"),
        ("cast", [(3,)], {"dtype": "f31"}, "parameter", "it must be dtype"),
        ("softmax", [((3,), "i32")], {}, "dtype_mismatch", "x has dtype i32"),
        ("softmax", [(3, 4)], {"axis": 7}, "parameter", "axes that fit"),
    ],
)
def test_wrong_applications(
    template: str, specs: Any, parameters: Any, kind: str, says: str
) -> None:
    with pytest.raises(WeftError) as caught:
        apply(template, *specs, **parameters)
    assert caught.value.kind == kind
    assert says in str(caught.value)


def written(**keys: Any) -> Any:
    """A template over `x: [$n]`, copied cell by cell, with `keys` changed or added."""
    sections = {"inputs": {"x": {"shape": "[$n]"}}, "index": "[$n]", "wrap": "x", **keys}
    return json.dumps({key: value for key, value in sections.items() if value is not None})


def x(**keys: Any) -> Any:
    return {"x": {"shape": "[$n]", **keys}}


RELU = {"r": {"op": "relu", "x": "x"}}
FLAT = {"r": {"shape": "[$n]", "dtype": "f16"}}


def folding(monoid: str, extent: Any = "$n") -> Any:
    return {"k": {"extent": extent, "monoid": monoid}}


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (
            written(inputs=x(ipf="[@n + 1]")),
            "index_out_of_range",
            "x is read at [1] : [5], and it has only [0] : [4]",
        ),
        (written(inputs=x(ipf="[1, 1]")), "rank_mismatch", "more than the 1 index dimensions"),
        (
            written(inputs=x(ipf="[+] :> [$n]"), index="[]"),
            "box",
            "x is a block",
        ),
        (written(outputs={"r": {"shape": "[2 * $n]"}}), "not_tiled", "exactly once"),
        (written(outputs={"r": {"shape": "[1]", "ipf": "[0]"}}), "not_tiled", "exactly once"),
        (
            written(outputs={"r": {"shape": "[2 * $n]", "ipf": "[2]"}}),
            "not_tiled",
            "exactly once",
        ),
        (written(outputs={"r": {"shape": "[0 - $n]"}}), "kind_mismatch", "negative size"),
        (written(outputs={"r": {"dtype": "i32"}}), "dtype_mismatch", "i32 is required"),
        (
            written(wrap=None, outputs={"r": {"dtype": "f16"}}),
            "dtype_mismatch",
            "the cells that are moved are f32",
        ),
        (
            written(wrap=None, index=None, view="reshape", outputs=FLAT),
            "dtype_mismatch",
            "the cells that are moved are f32",
        ),
        (
            written(wrap=None, index=None, view="reshape", outputs={"r": {"shape": "[3]"}}),
            "size_mismatch",
            "[3] does not hold the cells of [4]",
        ),
        (
            written(wrap=None, index=None, steps=RELU, outputs={"r": {"dtype": "f16"}}),
            "dtype_mismatch",
            "the steps give f32",
        ),
        (written(index="[$n - 5]"), "kind_mismatch", "an extent is negative: -1"),
        (written(inputs={"x": {"shape": "[$n...]"}}), "kind_mismatch", "splice it"),
        (written(inputs=x(ipf="[-...]"), index="[1...{40}]"), "limit", "more than 32"),
        (
            written(inputs={"x": {"shape": "[$n..., $m...]"}}),
            "underdetermined_pattern",
            "several ways",
        ),
        (written(fold=folding("add", 2)), "rank_mismatch", "write `-` for an index dimension"),
        (
            written(inputs=x(ipf="[@k]"), index="[]", fold=folding("add"), wrap="x > 0"),
            "dtype_mismatch",
            "count them as numbers",
        ),
        (
            written(inputs=x(ipf="[@k]"), index="[]", fold=folding("and")),
            "dtype_mismatch",
            "folds truth values",
        ),
        (
            written(inputs=x(ipf="[@k]"), index="[]", fold=folding("add"), unwrap="fold + x"),
            "unsupported",
            "moves with a folded dimension",
        ),
        (
            written(inputs=x(ipf="[@k]"), index="[]", fold=folding("argmin"), wrap=["x", "@k"]),
            "rank_mismatch",
            "2 parts for 1 outputs",
        ),
        (
            written(
                inputs=x(ipf="[@k]"),
                index="[]",
                fold=folding("argmin"),
                wrap=["@k", "x"],
                unwrap="fold[1]",
            ),
            "dtype_mismatch",
            "is a position (i64)",
        ),
        (
            written(steps={"a": {"op": "reluu", "x": "x"}}, index=None, wrap=None),
            "unknown_name",
            "did you mean relu",
        ),
        (
            written(steps={"a": {"op": "relu", "y": "x"}}, index=None, wrap=None),
            "unknown_name",
            "relu has no input or parameter y",
        ),
        (
            written(steps={"a": {"op": "relu"}}, index=None, wrap=None),
            "operand",
            "input x of relu",
        ),
        (
            written(steps={"a": {"op": "relu", "x": "b"}}, index=None, wrap=None),
            "unknown_name",
            "b is no input and no earlier step",
        ),
        (
            written(steps={"a": {"op": "sum", "x": "x", "axis": "$n"}}, index=None, wrap=None),
            "parameter",
            "parameter axis is 4",
        ),
        (
            written(steps={"a": {"op": "cast", "x": "x", "dtype": "f8"}}, index=None, wrap=None),
            "unknown_name",
            "unknown dtype f8",
        ),
        (
            written(steps={"a": {"op": "t", "x": "x"}}, index=None, wrap=None),
            "limit",
            "nest deeper than 16: t -> t",
        ),
        (
            written(
                steps={"a": {"op": "relu", "x": "x"}},
                index=None,
                wrap=None,
                outputs={"r": {"shape": "[3]"}},
            ),
            "size_mismatch",
            "it is [3], and the steps give [4]",
        ),
    ],
)
def test_templates_that_are_wrong_only_when_applied(text: str, kind: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        apply("t", (4,), library=own(text))
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)
    assert caught.value.location is not None


def test_an_output_without_inputs_needs_a_dtype() -> None:
    with pytest.raises(WeftError, match="the dtype of result is not given"):
        apply("t", library=own('{"inputs": {}, "index": "[2]", "wrap": "1"}'))


def test_an_error_stands_where_the_template_says_so() -> None:
    library = own('inputs: {x: {shape: "[$n]", ipf: "[@n + 1]"}}\nindex: "[$n]"\nwrap: x')
    with pytest.raises(WeftError, match=r"f\.yaml:1:35: error: inputs\.x\.ipf `\[@n \+ 1\]`"):
        apply("t", (4,), library=library)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(sizes, st.data())
def test_reads_and_writes_are_inside_and_complete(shape: Any, data: Any) -> None:
    name = data.draw(st.sampled_from(["sum", "mean", "max", "argmax", "argmin"]))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    keepdim = data.draw(st.booleans())
    expansion = apply(name, tuple(shape), axis=axis, keepdim=keepdim)
    space = expansion.space
    (read,), (write,) = expansion.reads, expansion.writes
    assert read.apply_range(Range.of(space.extents)) == Range.of(tuple(shape))
    assert write.tiles(space.kept_range, Range.of(expansion.outputs[0].spec.shape))


@given(sizes, st.data())
def test_broadcasting_is_numpys(shape: Any, data: Any) -> None:
    import numpy as np

    other = [data.draw(st.sampled_from([1, size])) for size in shape]
    other = other[data.draw(st.integers(0, len(shape))) :]
    expansion = apply("add", (tuple(other), "f32"), (tuple(shape), "f32"))
    assert expansion.outputs[0].spec.shape == np.broadcast_shapes(other, shape)


def test_a_library_can_stand_alone() -> None:
    library = Library({"t": read_yaml('inputs: {x: {shape: "[$n]"}}\nindex: "[$n]"\nwrap: x', "f")})
    assert library.names == ("t",)
    assert isinstance(apply("t", (4,), library=library).body, Move)
