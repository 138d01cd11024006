"""The JSON schema accepts what the models accept, and marks what they do not."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

import pytest

from tapestry.metakernels import WeftError
from tapestry.metakernels.documents import Entries, read_file, read_yaml
from tapestry.metakernels.libraries import LIBRARY
from tapestry.metakernels.models import check_template
from tapestry.metakernels.schema import file_schema
from tapestry.tools.tapestry import main

SCHEMA = file_schema()
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int,), "number": (int, float), "null": (type(None),),
}  # fmt: skip
KNOWN: Final = {
    "$ref", "$schema", "$defs", "additionalProperties", "anyOf", "const", "default", "description",
    "items", "pattern", "properties", "propertyNames", "required", "title", "type", "enum",
}  # fmt: skip


def fits(value: Any, schema: Any) -> bool:
    """Whether a JSON schema accepts a value; only what our schema uses is known."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema and not any(fits(value, one) for one in schema["anyOf"]):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    if names and not any(is_a(value, name) for name in names):
        return False
    if isinstance(value, str) and "pattern" in schema:
        return re.search(schema["pattern"], value) is not None
    if isinstance(value, list) and "items" in schema:
        return all(fits(item, schema["items"]) for item in cast("list[Any]", value))
    return not isinstance(value, dict) or fits_object(cast("dict[str, Any]", value), schema)


def is_a(value: Any, name: str) -> bool:
    truth = isinstance(value, bool) and name != "boolean"
    return isinstance(value, TYPES[name]) and not truth


def fits_object(value: dict[str, Any], schema: Any) -> bool:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    names = schema.get("propertyNames", {})
    return (
        all(key in value for key in schema.get("required", ()))
        and all(fits(key, names) for key in value)
        and all(
            fits(part, properties[key])
            if key in properties
            else others is True or (others is not False and fits(part, others))
            for key, part in value.items()
        )
    )


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("*.yaml")), ids=lambda path: path.stem)
def test_library_files_are_valid(path: Any):
    assert fits(read_file(path).plain(), SCHEMA)


RIGHT = """
t:
  doc: a text
  params: {axis: {type: int, axis_of: x, default: 0}}
  inputs: {x: {shape: "[$n]", ipf: "[@n]", dtype: float}}
  index: 3
  fold: {n: {extent: 3, monoid: add}}
  wrap: ["x", 1]
  unwrap: {result: true}
  outputs: {result: {}}
  examples: [{inputs: {x: [1, 2]}, outputs: {result: 3}}]
"""


def changed(old: str, new: str) -> str:
    assert old in RIGHT
    return RIGHT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (RIGHT, True),
        (changed("wrap: [", "warp: ["), False),
        (changed("shape:", "sahpe:"), False),
        (changed("monoid: add", "monoid: 3"), False),
        (changed("monoid: add", "monoid: add, more: 1"), False),
        (changed(", monoid: add", ""), False),
        (changed("doc: a text", "doc: [a]"), False),
        (changed('"[$n]"', "[$n]"), False),
        (changed("wrap: [", "require: [1, $n > 0]\n  wrap: ["), True),
        (changed("index: 3", "index: {}"), False),
        (changed("index: 3", "view: reshape"), True),
        (changed("index: 3", "view: flip"), False),
        (changed("index: 3", "steps: {a: {op: add, x: 1}}"), True),
        (changed("index: 3", "steps: {a: {x: 1}}"), False),
        (changed("inputs: {x: {shape", "input: {x: {shape"), False),
        ("t: 3", False),
        ("1t: {inputs: {}, index: 3}", False),
    ],
)  # fmt: skip
def test_it_says_what_the_models_say(text: str, right: bool):
    document = read_yaml(text, "t.yaml")
    assert fits(document.plain(), SCHEMA) == right
    (node,) = (node for _, node in document.entries)
    if isinstance(node, Entries) and "1t" not in text:
        try:
            check_template(node, "t")
            assert right
        except WeftError:
            assert not right


def test_keys_are_explained():
    template = SCHEMA["$defs"]["TemplateModel"]
    assert template["properties"]["index"]["description"].startswith("The mapped dimensions")
    assert template["additionalProperties"] is False


def test_the_command(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["metakernel", "schema"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
