"""Locations of parsed operations, located errors, and pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError

import tapestry
from tapestry.diagnostics import InvalidProgramError, Location, TapestryError, UsageError
from tapestry.dialects import loom
from tapestry.frontend import (
    describe_error,
    issues_json_text,
    load_module,
    parse_passes,
    parse_text,
    run_pipeline,
    verify_module,
)
from tapestry.locations import fuse_locations, location_of, source_locations

_PROGRAM = """
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %a = loom.operation @a over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) {
           %e = math.exp %c : f32
           loom.yield %e : f32
         } : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
    %b = loom.operation @b over <[0] : [4]> [map] ins(%a : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%c: f32) { loom.yield %c : f32 }
         : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %b : !loom.tensor<[0] : [4], f32>
}
"""


def _operations(text: str) -> list[loom.OperationOp]:
    module = parse_text(text, "p.mlir")
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def test_operations_know_where_they_were_written() -> None:
    a, b = _operations(_PROGRAM)
    assert location_of(a) == Location("p.mlir", 3, 3)
    assert location_of(b) == Location("p.mlir", 8, 5)
    inner = next(iter(a.wrap_block.ops))
    assert location_of(inner) == Location("p.mlir", 5, 12)


def test_a_written_location_wins() -> None:
    text = 'func.func @main() { func.return loc("model.py":7:1) }'
    (function,) = parse_text(text, "p.mlir").body.block.ops
    (end,) = function.regions[0].block.ops
    assert location_of(end) == Location("model.py", 7, 1)


def test_fused_operations_name_all_places() -> None:
    module = parse_text(_PROGRAM, "p.mlir")
    run_pipeline(module, "loom-fuse")
    (joined,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert [place.line for place in source_locations(joined.location)] == [3, 8]
    same = fuse_locations(joined.location, joined.location)
    assert source_locations(same) == source_locations(joined.location)


def test_use_before_definition_is_found_wherever_it_comes_from() -> None:
    module = parse_text(_PROGRAM, "p.mlir")
    verify_module(module)
    a, b = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert a.parent is not None
    a.detach()
    assert b.parent is not None
    b.parent.insert_op_after(a, b)
    with pytest.raises(InvalidProgramError, match=r"p.mlir:8:5: .*\(%a\) is used before"):
        verify_module(module)
    a.detach()
    b.parent.insert_op_before(a, b)
    verify_module(module)


def test_parse_errors_are_one_message_with_a_caret() -> None:
    with pytest.raises(ParseError) as caught:
        parse_text("func.func @main(%x i32) { func.return }", "p.mlir")
    message = describe_error(caught.value)
    assert message.startswith("p.mlir:1:20: error: ")
    assert "^" in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (_PROGRAM.replace("ins(%a :", "ins(%gone :"), "p.mlir:8:55"),
        (_PROGRAM.replace("math.exp %c", "math.exp %x"), "p.mlir:5:26"),
        ("func.func @main() { func.return %gone : i32 }", "p.mlir:1:33"),
    ],
)
def test_undefined_values_are_found_where_they_are_used(text: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "p.mlir")
    assert describe_error(caught.value).startswith(f"{place}: error: %")


@pytest.mark.parametrize(
    "text",
    [
        "^0: func.return",
        "builtin.module {",
        "%x = ",
        '"',
        'func.func @main() attributes {doc = "' + "a" * 100,
        "\x00",
        "func.func @main() { ^bb0(%x: i32): func.return }",
        '"builtin.module"() ({' * 400,
        "!a = !a\nfunc.func @main(%x: !a) { func.return }",
        '"loom.operation"() : () -> ()',
        '"loom.view"() : () -> ()',
        '"loom.monoid"() <{sym_name = "m"}> ({}) : () -> ()',
    ],
)
def test_nonsense_is_an_error_of_ours(text: str) -> None:
    with pytest.raises((ParseError, TapestryError)) as caught:
        verify_module(parse_text(text))
    assert "Traceback" not in describe_error(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_module(tmp_path / "gone.mlir")
    (tmp_path / "bytes.mlir").write_bytes(b"\xff\xfe")
    with pytest.raises(TapestryError, match="is not text"):
        load_module(tmp_path / "bytes.mlir")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("loom-simplfy", "there is no pass 'loom-simplfy'"),
        ("loom-shard{", "not well formed"),
        ("loom-shard{shards=x}", "shards cannot be 'x'; it is a whole number"),
        ("loom-shard{grid=2,x}", "grid cannot be 2,'x'; it is whole numbers"),
        ("loom-shard{shrads=2}", "no option 'shrads'\n.*did you mean shards"),
        ("loom-derive{x=2}", "no option 'x'\n.*its options are separate"),
        ("loom-fuse{limit=0}", "limit must be at least 1"),
    ],
)
def test_wrong_pipelines(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_pipeline(parse_text(_PROGRAM), spec)


def test_an_empty_pipeline_is_no_pass() -> None:
    assert parse_passes("") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no program"),
        ("// all of it\n", "there is no program"),
        ('\n {"a": 1}', "an operation expected, such as func.func @main"),
        ("module {} }", "an operation expected"),
    ],
)
def test_text_that_is_no_program(text: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_text(text)
    assert message in raised.value.msg


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%y = weft.aply @relu", "p.mlir:1:6: error: Operation weft.aply is not registered"),
        ("%y = weft.aply @relu", "hint: did you mean weft.apply?"),
        ('%y = weft.aply "x"', "p.mlir:1:6: error: Operation weft.aply is not registered"),
        ('%y = "weft.aply"()', "p.mlir:1:7: error: Operation weft.aply is not registered"),
        ("  softmax @softmax", "p.mlir:1:3: error: Operation softmax is not registered"),
        ("loom.aply loom.aply.b", "p.mlir:1:1: error: Operation loom.aply is not registered"),
        ("%y = loon.operation @f", "hint: did you mean loom.operation or loom"),
        ("func.func @main() {\n  func.return\n", "p.mlir:3:1: error: the text ends here"),
        ("func.func @main() {\n  func.return\n", "hint: a `}` is missing"),
        (
            "func.func @f() { func.return }\nfunc.func @f() { func.return }",
            "p.mlir:2:1: error: @f is defined twice, at p.mlir:1:1 before",
        ),
    ],
)
def test_what_would_be_right_is_said(text: str, says: str) -> None:
    with pytest.raises((ParseError, TapestryError)) as caught:
        verify_module(parse_text(text, "p.mlir"))
    assert says in describe_error(caught.value)
    assert says.split(": ")[-1] in issues_json_text(caught.value)


def test_a_file_that_is_no_program_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text("%y = weft.aply @relu")
    with pytest.raises(TapestryError, match=r"p.mlir:1:6: error: .*\n.*did you mean weft.apply"):
        tapestry.load(path)
