"""docs/passes.md has every pass, with the options that it has and a test that runs it."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tapestry.pipelines import DEFAULT_PIPELINE
from tapestry.universe import TAPESTRY_UNIVERSE

ROOT = Path(__file__).parents[2]
_PAGE = (ROOT / "docs" / "passes.md").read_text()
_ROW = re.compile(r"^\| `([\w-]+)` \| ([^|]+) \|([^|]*)\| `([\w/.]+)` \|$", re.MULTILINE)
_ROWS = {name: (options, test) for name, _, options, test in _ROW.findall(_PAGE)}


def test_every_pass_has_a_row():
    assert set(_ROWS) == set(TAPESTRY_UNIVERSE.all_passes)


def test_the_pipeline_is_the_default():
    assert DEFAULT_PIPELINE in re.sub(r"\s", "", _PAGE)


@pytest.mark.parametrize("name", sorted(TAPESTRY_UNIVERSE.all_passes))
def test_a_row_says_what_is_so(name: str):
    options, test = _ROWS[name]
    pass_type = TAPESTRY_UNIVERSE.all_passes[name]()
    assert re.findall(r"`(\w+)`", options) == [one.name for one in fields(pass_type)]
    runs = re.findall(r"RUN:(.*)", (ROOT / "lit_tests" / test).read_text())
    assert any(re.search(rf"{name}(?![\w-])", run) for run in runs)
