"""The examples in the docstrings of the geometry hold."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import tapestry.zspace

MODULES = ["tapestry.zspace"] + [
    f"tapestry.zspace.{module.name}" for module in pkgutil.iter_modules(tapestry.zspace.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(import_module(name))
    assert result.failed == 0
    assert result.attempted > 0 or name == "tapestry.zspace.tiling"
