"""Templates survive the way YAML -> IR -> YAML, whatever keys the language has."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.printer import Printer

from tapestry.diagnostics import Location
from tapestry.dialects import weft
from tapestry.dialects._weft_documents import attribute_of, document_of
from tapestry.frontend import parse_text, verify_module
from tapestry.metakernels.documents import Entries, read_yaml
from tapestry.metakernels.errors import TemplateError
from tapestry.metakernels.libraries import LIBRARY, read_folder
from tapestry.metakernels.reading import read_template
from tapestry.metakernels.templates import Source
from tapestry.metakernels.text import Text
from tapestry.metakernels.writing import yaml_of, yaml_text
from tapestry.tools.tapestry import main

DOCUMENTS = {name: node for name, node in read_folder(LIBRARY).items() if isinstance(node, Entries)}


def through_text(attribute: DictionaryAttr, name: str = "t") -> DictionaryAttr:
    """A template's attribute printed as IR and parsed again, its dictionaries in another order."""
    stream = StringIO()
    shuffled = cast(DictionaryAttr, reordered(attribute))
    Printer(stream).print_op(ModuleOp([weft.MetakernelOp(name, shuffled)]))
    module = parse_text(stream.getvalue())
    (op,) = module.body.block.ops
    assert isinstance(op, weft.MetakernelOp)
    return op.template


def reordered(attribute: Attribute) -> Attribute:
    """Dictionaries have no order: nothing may depend on the one that they happen to have."""
    match attribute:
        case DictionaryAttr():
            keys = sorted(attribute.data, reverse=True)
            return DictionaryAttr({key: reordered(attribute.data[key]) for key in keys})
        case ArrayAttr():
            items: tuple[Attribute, ...] = attribute.data
            return ArrayAttr([reordered(item) for item in items])
        case _:
            return attribute


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        left, right = cast("dict[str, Any]", a), cast("dict[str, Any]", b)
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and a == b  # pyright: ignore[reportUnknownArgumentType]


def essence(value: Any) -> Any:
    """A template without its places."""
    if isinstance(value, Location | Entries):
        return None
    if isinstance(value, Source):
        return essence(value.tree)  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, Text):
        return value.text
    if is_dataclass(value):
        parts = {one.name: essence(getattr(value, one.name)) for one in fields(value)}
        for key in ("wrap", "unwrap"):  # one per output, by name: their order says nothing
            if key in parts:
                parts[key] = sorted(parts[key], key=str)
        return {name: part for name, part in parts.items() if name != "document"}
    if isinstance(value, tuple | list):
        return [essence(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {key: essence(part) for key, part in cast("dict[str, Any]", value).items()}
    return value


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_library_templates_come_back(name: str):
    document = DOCUMENTS[name]
    back = document_of(through_text(attribute_of(document), name), None)
    assert same(back.plain(), document.plain())
    assert same(essence(read_template(name, back)), essence(read_template(name, document)))
    again = read_yaml(yaml_text({name: back}), "again.yaml").at(name)
    assert same(again.plain(), document.plain())
    assert same(essence(read_template(name, again)), essence(read_template(name, document)))


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(data=st.dictionaries(NAMES.filter(lambda name: name not in ("on", "no", "y", "n")), DATA))
def test_any_document_comes_back(data: dict[str, Any]):
    document = read_yaml(yaml_of(data), "t.yaml")
    assert same(document.plain(), data)
    for back in (attribute_of(document), through_text(attribute_of(document))):
        found = document_of(back, None).plain()
        assert same(found, data)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = LIBRARY / "reductions.yaml"
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", "to-ir", str(source)])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    verify_module(parse_text(text))
    (tmp_path / "all.mlir").write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", "to-yaml", str(tmp_path / "all.mlir")])
    assert caught.value.code == 0
    back = read_yaml(capsys.readouterr().out, "back.yaml").plain()
    assert same(back, read_yaml(source.read_text(), "f").plain())


@pytest.mark.parametrize(
    ("command", "name", "text", "says"),
    [
        ("to-yaml", "f.mlir", "func.func @main() { func.return }", "defines no weft.metakernel"),
        ("to-ir", "f.yaml", "t: {inputs: {}, index: 3, wrap: [}", "not YAML"),
        ("to-ir", "f.yaml", "t: 3", "must be a mapping"),
        ("to-ir", "f.yaml", "t: {inputs: {}, index: 3}", "template t"),
        ("to-ir", "f.yaml", "t: {default: 9223372036854775808}", "f.yaml:1:14: error: 92233720368"),
    ],
)
def test_what_cannot_be_converted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    text: str,
    says: str,
):
    (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", command, str(tmp_path / name)])
    assert caught.value.code == 1
    assert says in capsys.readouterr().err


def test_numbers_beyond_64_bits_are_refused():
    document = read_yaml("default: 9223372036854775808", "t.yaml")
    with pytest.raises(TemplateError, match="beyond 64 bits"):
        attribute_of(document)
