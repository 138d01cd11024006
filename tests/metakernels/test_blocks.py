"""Blocks that bodies read: which dimensions take an index, boxes of one cell, and wrong reads."""

from typing import Any

import pytest

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.expansion import MapFold
from tapestry.metakernels.scalars import Cast, Cell, Constant, Operation, Read

GATHER = """\
t:
  params: {axis: {type: int, axis_of: x}}
  inputs:
    x:
      shape: "[$pre...{$axis}, $n, $post...]"
      dtype: $t
      ipf: "[@pre..., 0, @post...] :> [1...{$axis}, $n, 1...]"
    ids: {shape: "[$m]", dtype: int, ipf: "[@m]"}
  index: "[$pre..., $m, $post...]"
  wrap: "read(x, ids)"
  outputs: {result: {dtype: $t}}
"""


def apply(text: str, *specs: Any, **parameters: Any) -> Any:
    library = load_library().with_text(text, "f.yaml")
    return expand(library.get("t"), [TensorSpec(*spec) for spec in specs], parameters, library)


def test_dimensions_that_the_box_writes_as_1_take_no_index():
    gather = apply(GATHER, ((2, 9, 3), "f32"), ((5,), "i64"), axis=1)
    assert str(gather.reads[0]) == "(d0, d1, d2) -> (d0, 0, d2) :> [1, 9, 1]"
    (value,) = gather.body.wrap
    first = Constant(0, "i64")
    assert value == Read("x", (first, Cell("ids", "i64"), first), None, "f32")


def test_indices_become_i64():
    (value,) = apply(GATHER, ((9,), "f32"), ((5,), "i8"), axis=0).body.wrap
    assert value.indices == (Cast(Cell("ids", "i8"), "i64"),)


def test_a_block_of_halves_is_computed_wide():
    text = GATHER.replace('"read(x, ids)"', '"2 * read(x, ids, else=0.5)"')
    (value,) = apply(text, ((9,), "f16"), ((5,), "i64"), axis=0).body.wrap
    read = Read("x", (Cell("ids", "i64"),), Constant(0.5, "f16"), "f16")
    two = Constant(2.0, "f32")
    assert value == Cast(Operation("mul", (two, Cast(read, "f32")), "f32"), "f16")


def test_a_box_of_one_cell_is_that_cell():
    text = GATHER.replace("ids)", "ids, else=7)")
    (value,) = apply(text, ((2, 1), "f32"), ((5,), "i64"), axis=1).body.wrap
    here = Operation("eq", (Cell("ids", "i64"), Constant(0, "i64")), "i1")
    assert value == Operation("select", (here, Cell("x", "f32"), Constant(7.0, "f32")), "f32")


def test_an_index_into_a_box_of_one_cell_is_not_ignored():
    gather = apply(GATHER, ((2, 1), "f32"), ((5,), "i64"), axis=1)
    assert str(gather.reads[0]) == "(d0, d1) -> (d0, 0) :> [1, 2]"
    assert gather.fills[0] == Constant(0, "f32")
    (value,) = gather.body.wrap
    twice = Operation("mul", (Cell("ids", "i64"), Constant(2, "i64")), "i64")
    assert value == Read("x", (Constant(0, "i64"), twice), None, "f32")


def test_an_empty_box_is_still_a_block():
    (value,) = apply(GATHER, ((0,), "f32"), ((5,), "i64"), axis=0).body.wrap
    assert isinstance(value, Read)


def test_unwrap_reads_blocks_too():
    body = apply(
        """
t:
  inputs:
    x: {shape: "[$m, $n]", ipf: "[@m, @n]"}
    scale: {shape: "[$n]", ipf: "[-..., +] :> [$n]"}
  index: "[$m]"
  fold: {n: {extent: $n, monoid: argmax}}
  wrap: ["x", "@n"]
  unwrap: "fold[0] * read(scale, fold[1])"
""",
        ((2, 3), "f32"),
        ((3,), "f32"),
    ).body
    assert isinstance(body, MapFold)
    assert (body.ins, body.extras) == ((0,), (1,))


@pytest.mark.parametrize(
    ("old", "new", "kind", "says"),
    [
        ("read(x, ids)", "x * ids", "box", "x is a block"),
        ("read(x, ids)", "read(x, ids) + x", "box", "x is a block"),
        ("read(x, ids)", "read(x, x)", "box", "x is a block"),
        ("read(x, ids)", "read(ids, 0)", "box", "ids has no box"),
        ("read(x, ids)", "read(y, 0)", "box", "y is no input"),
        ("read(x, ids)", "read(1, 0)", "box", "takes an input with a box first"),
        ("read(x, ids)", "read()", "box", "takes an input with a box first"),
        ("read(x, ids)", "max(read(x, ids), 0, else=1)", "box", "belongs to read"),
        ("read(x, ids)", "read(x, ids, 0)", "box", "has 2 indices, and the box of x has 1"),
        ("read(x, ids)", "read(x) + ids", "box", "has 0 indices"),
        ("read(x, ids)", "read(x, 0.5 * ids)", "dtype_mismatch", "0.5 is no i64"),
        ("read(x, ids)", "read(x, read(x, ids))", "dtype_mismatch", "an index is an integer"),
        ("read(x, ids)", "read(x, 0.5) + ids", "dtype_mismatch", "0.5 is no i64"),
        ("read(x, ids)", "read(x, ids, else=)", "parse_error", "unexpected `)`"),
        ("read(x, ids)", "read(x, else=1, ids)", "parse_error", "unexpected `,`"),
        (", $n, 1...]", ", $n + 1, 1...]", "index_out_of_range", "it has only"),
        (", $n, 1...]", ", $n]", "rank_mismatch", "the shape of the box"),
        (", $n, 1...]", ", -$n, 1...]", "kind_mismatch", "negative size"),
    ],
)
def test_wrong_reads(old: str, new: str, kind: str, says: str):
    assert old in GATHER
    with pytest.raises(WeftError) as caught:
        apply(GATHER.replace(old, new), ((2, 9, 3), "f32"), ((5,), "i64"), axis=1)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)
    assert str(caught.value).startswith("f.yaml:")


def test_what_is_outside_has_the_dtype_of_the_block():
    text = GATHER.replace("ids)", "ids, else=0.5)")
    with pytest.raises(WeftError, match=r"0\.5 is no i32"):
        apply(text, ((9,), "i32"), ((5,), "i64"), axis=0)
