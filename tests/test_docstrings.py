"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import tapestry


def _source(name: str) -> str:
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_text()


_MODULES = [m.name for m in pkgutil.walk_packages(tapestry.__path__, "tapestry.")]
_NAMES = [name for name in _MODULES if ">>> " in _source(name)]


def test_there_are_examples() -> None:
    assert "tapestry.zspace.affine" in _NAMES


@pytest.mark.parametrize("name", _NAMES)
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.failed == 0
    assert result.attempted > 0
