"""Wrong templates: each has its own error, at its own place."""

from pathlib import Path
from typing import Any

import pytest

from tapestry.metakernels import Library, WeftError, load_library
from tapestry.metakernels.documents import read_yaml

RIGHT = """\
t:
  params: {axis: {type: int, axis_of: x}}
  inputs: {x: {shape: "[$pre...{$axis}, $n, $post...]", ipf: "[@pre..., @n, @post...]"}}
  let: {twice: "2 * $n"}
  require: ["$twice > 0"]
  index: "[$pre..., $post...]"
  fold: {n: {extent: $n, monoid: add}}
  wrap: "x"
  unwrap: "fold + 1"
"""


def read(text: str) -> Any:
    return Library({str(key.value): node for key, node in read_yaml(text, "f.yaml").entries}).get(
        "t"
    )


def test_the_right_one_is_read() -> None:
    template = read(RIGHT)
    assert template.monoid == "add"
    assert [entry.name for entry in template.inputs] == ["x"]


def changed(old: str, new: str) -> Any:
    assert old in RIGHT
    return RIGHT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "kind", "where", "says"),
    [
        ("t: 3", "invalid_template", "1:4", "must be a mapping"),
        (changed("  wrap:", "  warp:"), "unknown_name", "8:3", "did you mean wrap"),
        (changed("shape:", "sahpe:"), "unknown_name", "3:16", "did you mean shape?"),
        (changed("extent: $n", "extnt: $n"), "unknown_name", "7:14", "did you mean extent?"),
        (changed("  require:", "  for: $k\n  require:"), "parse_error", "5:10", "family `$k`"),
        (changed("{shape:", "{bounds: {clp: 0}, shape:"), "unknown_name", "3:25",
         "did you mean clip?"),
        (changed("{shape:", "{bounds: 0, shape:"), "invalid_template", "3:24", "inputs.x.bounds"),
        (changed("{shape:", "{bounds: {clip: x}, shape:"), "unknown_name", "3:31",
         "a number is needed here"),
        (changed("{shape:", "{bounds: {clip: '@n'}, shape:"), "unknown_name", "3:32",
         "@n is no index dimension here"),
        (changed("$n, $post", "$n[$i], $post"), "list", "3:24", "each: $i"),
        (changed("  inputs:", "  inptus:"), "unknown_name", "3:3", "did you mean inputs?"),
        (changed('["$twice > 0"]', '"$twice > 0"'), "invalid_template", "5:13", "list"),
        (changed('"[$pre..., $post...]"', "[$pre..., $post...]"), "invalid_template", "6:10",
         "quote the list"),
        (changed("$n, monoid", "[$n], monoid"), "invalid_template", "7:22", "quote the list"),
        (changed(', monoid: add', ""), "invalid_template", "7:13", "monoid is missing"),
        (changed("monoid: add", "monoid: 3"), "invalid_template", "7:34", "string"),
        (changed('  wrap: "x"', "  wrap: 3\n  view: flip"), "invalid_template", "9:9", "reshape"),
        (changed('  wrap: "x"', "  wrap: null"), "invalid_template", "8:9", "no value"),
        (changed("type: int,", "type: integer,"), "invalid_template", "2:25", "did you mean int"),
        (changed("type: int,", "type: int, default: x,"), "parameter", "2:39", "must be int"),
        (changed("type: int,", "type: enum, default: a,"), "invalid_template", "2:18",
         "enum without values"),
        (changed("type: int,", "type: float,"), "invalid_template", "2:18", "is an axis"),
        (changed("axis_of: x", "axis_of: y"), "invalid_template", "2:39", "is no input"),
        (changed("$post...]\", ipf", "$post...\", ipf"), "parse_error", "3:53", "unexpected end"),
        (changed("2 * $n", "2 * * $n"), "parse_error", "4:21", "unexpected `*` at column 5"),
        (changed("2 * $n", "2 * $m"), "unknown_name", "4:17", "$m is not bound"),
        (changed("2 * $n", "2 * $twice"), "unknown_name", "4:17", "$twice is not bound"),
        (changed("{twice:", "{n:"), "invalid_template", "4:13", "already bound"),
        (changed("2 * $n", "summ($n)"), "unknown_name", "4:17", "did you mean sum?"),
        (changed("2 * $n", "len($pre, 1)"), "kind_mismatch", "4:17", "takes 1 argument, not 2"),
        (changed("$twice > 0", "$twic > 0"), "unknown_name", "5:14", "did you mean $twice?"),
        (changed("...{$axis}", "...{$axes}"), "unknown_name", "3:24", "did you mean $axis"),
        (changed("extent: $n", "extent: $k"), "unknown_name", "7:22", "$k is not bound"),
        (changed("monoid: add", "monoid: plus"), "invalid_template", "7:34", "unknown monoid plus"),
        (changed("monoid: add", "monoid: argmax"), "invalid_template", "8:10", "has 2 parts"),
        (changed("monoid: add}", "monoid: add}, m: {extent: 2, monoid: max}"),
         "invalid_template", "7:63", "share one monoid"),
        (changed("@n, @post", "@m, @post"), "unknown_name", "3:63", "@m is no index dimension"),
        (changed('[$pre..., $post...]"\n  fold', '[n = 1, $post...]"\n  fold'), "invalid_template",
         "6:11", "two index dimensions are called @n"),
        (changed('"x"', '"X"'), "unknown_name", "8:10", "did you mean x?"),
        (changed('"x"', '"fold"'), "unknown_name", "8:10", "read in unwrap"),
        (changed('"x"', '"tanhh(x)"'), "unknown_name", "8:10", "did you mean tanh"),
        (changed('"x"', '"read(x, 0)"'), "box", "8:10", "x has no box"),
        (changed('"x"', '"3"'), "invalid_template", "3:15", "input x is read by no body"),
        (changed('"x"', '["x", "x"]'), "invalid_template", "8:9", "has 1 parts, and wrap gives 2"),
        (changed('"x"', '{result: "x"}'), "invalid_template", "8:9", "a list of parts"),
        (changed('"fold + 1"', '{other: "fold"}'), "invalid_template", "9:11", "the outputs are"),
        (changed('"fold + 1"', '["fold", "fold"]'), "invalid_template", "9:11", "2 expressions"),
        (changed('"fold + 1"', '"fold + @n"'), "unknown_name", "9:12", "@n is no index dimension"),
        (changed("  fold: {n: {extent: $n, monoid: add}}\n", "").replace("@n, ", "0, "),
         "invalid_template", "8:12", "unwrap follows a fold or scan"),
        (changed('  wrap: "x"\n', ""), "invalid_template", "7:9", "a fold needs wrap"),
        (changed('  index: "[$pre..., $post...]"\n', ""), "invalid_template", "2:3",
         "index is missing"),
        (RIGHT + "  scan: {k: {extent: 3, monoid: add}}\n", "scan", "10:9", "as a step of its own"),
        (changed("  fold: {n", "  scan: {k: {extent: 3, monoid: add}, n"), "scan", "7:9",
         "scans along one dimension"),
        (changed("  fold: {n", "  scan: {n").replace("add", "plus"), "invalid_template", "7:34",
         "unknown monoid plus"),
        (changed("  fold: {n", "  scan: {n").replace('  wrap: "x"\n', ""), "invalid_template",
         "7:9", "a scan needs wrap"),
        (RIGHT + "  outputs: {}\n", "invalid_template", "10:12", "outputs is empty"),
        (RIGHT + "  outputs: {r: {dtype: $u}}\n", "unknown_name", "10:24", "$u is not bound"),
        (RIGHT + "  outputs: {r: {dtype: promote(}}\n", "parse_error", "10:32", "unexpected end"),
        (RIGHT + "  outputs: {1r: {}}\n", "invalid_template", "10:17", "cannot be a name"),
        (RIGHT + "  view: reshape\n", "invalid_template", "6:11", "exclude each other"),
        (RIGHT + "  steps: {s: {op: add}}\n", "invalid_template", "6:11", "exclude each other"),
        (RIGHT + "  steps: {s: {a: x}}\n", "invalid_template", "10:14", "op is missing"),
        (RIGHT + "  match: {y: {op: linear}}\n", "unknown_name", "10:3", "unknown key `match`"),
        ('t: {inputs: {x: {shape: "[$d...]", dtype: floaty}}, index: "[$d...]", wrap: x}',
         "unknown_name", "1:43", "unknown dtype floaty"),
        ('t: {inputs: {x: {shape: "[$d...]"}}, view: reshape}', "invalid_template", "1:44",
         "one output with its shape"),
        ('t: {inputs: {fold: {shape: "[$d...]"}}, index: "[$d...]"}', "invalid_template", "1:20",
         "cannot be a name"),
        ('t: {inputs: {x: {shape: "[$d...]"}}, steps: {x: {op: add}}}', "invalid_template", "1:49",
         "the name of an input"),
        ("t: {inputs: {x: {shape: 3}}, index: 3, wrap: x}", "parse_error", "1:25", "brackets"),
        ("t: {inputs: {x: {}}, index: 3}", "invalid_template", "1:17", "inputs.x.shape is missing"),
        ("t: {index: 3}", "invalid_template", "1:4", "inputs is missing"),
        ('t: {inputs: {x: {shape: "[$d...]"}}, params: {p: {type: enum}}, index: "[$d...]"}',
         "invalid_template", "1:50", "without values"),
    ],
)  # fmt: skip
def test_wrong_templates(text: str, kind: str, where: str, says: str) -> None:
    with pytest.raises(WeftError) as caught:
        read(text)
    error = caught.value
    assert error.kind == kind, error
    assert says in str(error)
    assert str(error.location) == f"f.yaml:{where}", error


def test_a_user_folder_comes_before_the_library(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        't: {inputs: {x: {shape: "[$d...]"}}, index: "[$d...]", wrap: "x + 1"}\n'
        'relu: {doc: mine, inputs: {x: {shape: "[$d...]"}}, index: "[$d...]", wrap: "max(x, 1)"}\n'
    )
    library = load_library([tmp_path])
    assert library.get("relu").doc == "mine"
    assert library.get("t").name == "t"
    assert load_library().get("relu").doc != "mine"


def test_an_unknown_metakernel_lists_the_nearest() -> None:
    with pytest.raises(WeftError, match="no metakernel @lnear") as caught:
        load_library().get("lnear")
    assert str(caught.value.hint).startswith("did you mean linear or ")


def test_a_wrong_template_in_a_folder_is_seen_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("t: {index: 3}\n")
    with pytest.raises(WeftError, match="inputs is missing"):
        load_library([tmp_path])


def test_folders_and_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="is no folder"):
        load_library([tmp_path / "missing"])
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text('t: {inputs: {}, index: "[3]", wrap: "cast(1, f32)"}\n')
    with pytest.raises(WeftError, match=r"t is defined twice \(first at .*a\.yaml:1:4\)"):
        load_library([tmp_path])
