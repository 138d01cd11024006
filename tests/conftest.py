"""Options that the test suite adds to pytest."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases",
        metavar="DIR",
        default=None,
        help="run the conformance cases in DIR/*.json",
    )
