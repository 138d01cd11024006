"""The examples in the docstrings of the template language hold."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import tapestry.metakernels

MODULES = ["tapestry.metakernels"] + [
    f"tapestry.metakernels.{module.name}"
    for module in pkgutil.iter_modules(tapestry.metakernels.__path__)
]
WITHOUT = {
    "application", "checking", "composition", "families", "kernels", "library", "list_checking",
    "operations", "parameters", "picking", "rules", "scalars", "spaces", "tables", "templates",
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.failed == 0
    assert (result.attempted > 0) == (name.rpartition(".")[2] not in WITHOUT)
