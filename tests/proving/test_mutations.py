"""A few of the mutations of `benchmarks/mutations.py`: the verifier or the comparison sees each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def _scripts() -> None:
    sys.path.insert(0, str(_BENCHMARKS))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", range(24))
def test_mistakes_are_seen(number: int) -> None:
    from mutations import judge

    outcome = judge(number)
    assert outcome.seen_by in ("verify", "equal", "no mistake"), outcome


def test_some_are_seen_by_each() -> None:
    from mutations import judge

    assert {judge(number).seen_by for number in (0, 11)} == {"equal", "verify"}
