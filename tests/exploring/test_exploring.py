"""A few seeds of each search for programs that break the law; many with `--slow N`.

`python -m tests.exploring KIND` goes on from there, see `__main__`.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

from tests.exploring.__main__ import KINDS

NEEDED = {"torch_functions": "torch", "jax_functions": "jax"}

EACH = 25


def search(kind: str, first: int, count: int) -> None:
    """Check some seeds."""
    if kind in NEEDED and find_spec(NEEDED[kind]) is None:
        pytest.skip(f"{NEEDED[kind]} is not installed")
    check = importlib.import_module(f"tests.exploring.{kind}").check
    for seed in range(first, first + count):
        try:
            assert isinstance(check(seed), str)
        except Exception as error:
            error.add_note(f"python -m tests.exploring {kind} --first {seed} --count 1")
            raise


@pytest.mark.parametrize("kind", KINDS)
def test_some(kind: str) -> None:
    search(kind, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_many(kind: str, part: int) -> None:
    search(kind, 100 + part * EACH, EACH)
