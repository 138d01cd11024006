"""The tables of the parser: those of the grammar, and made anew where they are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tapestry.metakernels import parsing, tables
from tapestry.metakernels.parsing import parse_pattern

PATTERN = "[$batch..., _, =(3 + 2 * $m)]"


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    """Parsers and trees that are kept are those of a test alone."""
    for kept in (parsing._grammar, parsing._parse):
        kept.cache_clear()
    yield
    for kept in (parsing._grammar, parsing._parse):
        kept.cache_clear()


def test_tables_are_those_of_the_grammar() -> None:
    """By whatever version of lark they were made: with another one they are not read."""
    _, grammar = json.loads(tables.TABLES.read_text())["made_by"]
    assert grammar == tables.made_by(tables.GRAMMAR.read_text())[1], "tables.write() makes them"


DAMAGED = {"missing": None, "empty": "", "cut": '{"made_by": [', "no table": "{}", "a list": "[]"}


@pytest.mark.parametrize("what", [*DAMAGED, "of another lark"])
def test_where_there_are_none_they_are_made(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parse_pattern(PATTERN)
    other = tmp_path / "grammar_tables.json"
    damaged = DAMAGED.get(what)
    if damaged is not None:
        other.write_text(damaged)
    elif what not in DAMAGED:
        made = json.loads(tables.TABLES.read_text()) | {"made_by": ["0.1", ""]}
        other.write_text(json.dumps(made))
    monkeypatch.setattr(tables, "TABLES", other)
    parsing._grammar.cache_clear()
    parsing._parse.cache_clear()
    assert parse_pattern(PATTERN) == found


def test_tables_that_are_written_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parse_pattern(PATTERN)
    monkeypatch.setattr(tables, "TABLES", tmp_path / "grammar_tables.json")
    tables.write()
    parsing._grammar.cache_clear()
    parsing._parse.cache_clear()
    with monkeypatch.context() as kept:
        kept.setattr(tables.lark, "Lark", _OnlyLoads)
        assert parse_pattern(PATTERN) == found


class _OnlyLoads(tables.lark.Lark):
    """A parser that is not made of a grammar."""

    def __init__(self, grammar: str, **_: object) -> None:
        raise AssertionError(grammar)
