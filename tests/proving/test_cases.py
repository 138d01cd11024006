"""Programs that are equal are found equal; programs with a mistake are found to differ."""

from functools import cache
from importlib import import_module

import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.frontend import parse_text, verify_module
from tapestry.proving.equality import Verdict, compare_programs
from tapestry.proving.pair import Options
from tests.proving.cases import Family

MODULES = ("softmax", "attention", "statistics", "contractions", "elementwise", "views", "reading")
FAMILIES: list[Family] = [
    family for name in MODULES for family in import_module(f"tests.proving.cases.{name}").FAMILIES
]
EQUAL = [(f, text) for f in FAMILIES for text in f.equal.values()]
DIFFER = [(f, text) for f in FAMILIES for text in f.differ.values()]
OPTIONS = Options(seeds=2, shrinking=4)


@cache
def program(text: str) -> ModuleOp:
    # Not verified: the verifier finds some of the mistakes (merges that are not associative) first.
    return parse_text(text)


def names(which: str) -> list[str]:
    return [f"{f.name}: {name}" for f in FAMILIES for name in getattr(f, which)]


def verdict(family: Family, text: str) -> Verdict:
    return compare_programs(program(family.reference), program(text), OPTIONS)


def test_there_are_enough():
    assert len(EQUAL) + len(DIFFER) >= 100


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("family", "text"), EQUAL, ids=names("equal"))
def test_equal(family: Family, text: str):
    verify_module(program(text))
    found = verdict(family, text)
    assert found.answer in ("certified", "numeric"), found


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("family", "text"), DIFFER, ids=names("differ"))
def test_differ(family: Family, text: str):
    found = verdict(family, text)
    assert found.answer == "differs", found
    assert found.counterexample is not None
    assert found.counterexample.exact
