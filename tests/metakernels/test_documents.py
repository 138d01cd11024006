"""YAML with places, and everything in YAML that is refused."""

import pytest

from tapestry.metakernels import WeftError
from tapestry.metakernels.documents import MAX_BYTES, read_file, read_yaml, text_of


def place(document, *path):
    location = document.at(*path).location
    return (location.line, location.column)


def test_every_value_has_its_place():
    document = read_yaml('a:\n  b: [x, "y, z", 3]\n  c: {d: true}\n', "f.yaml")
    assert document.plain() == {"a": {"b": ["x", "y, z", 3], "c": {"d": True}}}
    assert place(document, "a", "b", 0) == (2, 7)
    assert place(document, "a", "b", 1) == (2, 11)  # inside the quotes
    assert place(document, "a", "c", "d") == (3, 10)
    assert place(document, "a", "nothing") == (2, 3)  # the last node on the way


@pytest.mark.parametrize(
    ("text", "exact", "read"),
    [
        ("a: $x + 1", True, "$x + 1"),
        ("a: 1_000", True, "1_000"),
        ("a: yes", True, "yes"),
        ("a: 'it''s'", False, "it's"),
        ("a: >-\n  x +\n  y", False, "x + y"),
        ("a: [1, $k]", False, "[1, $k]"),
    ],
)
def test_text_is_what_is_written(text, exact, read):
    found = text_of(read_yaml(text, "f.yaml").at("a"))
    assert (found.text, found.exact) == (read, exact)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x 1\nb: *x", "f.yaml:1:4: error: YAML aliases are not allowed"),
        ("a: &x [1]\nb: *x", "aliases are not allowed"),
        ("a: !!python/object:os.system 1", "f.yaml:1:4: error: `1` is no string"),
        ("a: !mine {}", "tags (!mine) are not allowed"),
        ("a: 2020-01-01", "quote it"),
        ("a: 1\na: 2", "f.yaml:2:1: error: a is given twice (first at f.yaml:1:1)"),
        ("1: a", "a key must be a name"),
        ("[a]: 1", "a key must be a name"),
        ("yes: 1", "a key must be a name"),
        ("- a", "a mapping from names to templates"),
        ("a: [", "f.yaml:2:1: error: this is not YAML"),
        ("a: x\nb: \0", "f.yaml:2:4: error: this is not YAML: unacceptable character"),
        ("a: b: c", "f.yaml:1:5: error: this is not YAML"),
        ("a: \x00", "not YAML"),
        ("a: " + "[" * 40 + "]" * 40, "nests deeper than 32"),
        ("a: " + "[" * 5000, "nests deeper than 32"),
        ("a: 1\n---\nb: 2", "not YAML"),
    ],
)
def test_refusals(text, says):
    with pytest.raises(WeftError) as caught:
        read_yaml(text, "f.yaml")
    assert says in str(caught.value)


def test_an_empty_document_has_no_entries():
    assert read_yaml("# nothing\n", "f.yaml").entries == ()


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(WeftError, match="No such file"):
        read_file(tmp_path / "missing.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WeftError, match="not UTF-8"):
        read_file(binary)
    large = tmp_path / "large.yaml"
    large.write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(WeftError, match="more than 1048576"):
        read_file(large)
