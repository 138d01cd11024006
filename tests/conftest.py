"""Options that the test suite adds to pytest."""

from __future__ import annotations

import argparse
import os
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tapestry.codegen import aot, aot_ahead, aot_processes
from tests import amounts, on_gpu

# Tests say nothing about time: a busy machine is no failure. They draw the same examples each run:
# what passed passes again. `--hypothesis-profile random` looks for more.
settings.register_profile("untimed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, derandomize=False)
settings.load_profile("untimed")

# Passes are tested as they are now: what they made before is not looked up.
os.environ["TAPESTRY_CACHE"] = "rules,aot,native"

_environment = aot_processes._environment


def _environment_of_any_test() -> dict[str, str]:
    """Without what names the test: processes that compile may serve the next one too."""
    return {k: v for k, v in _environment().items() if k != "PYTEST_CURRENT_TEST"}


aot_processes._environment = _environment_of_any_test

# Most tests lower for a GPU and compile nothing, or not for one: they need no processes ahead.
aot.prepare = lambda _: None
aot_ahead.find_store = lambda _: None


def _share(text: str) -> tuple[int, int]:
    """`20` or `3/20`: which of how many."""
    which, slash, of = text.rpartition("/")
    try:
        share = int(which if slash else 0), int(of)
    except ValueError:
        share = -1, -1
    if not 0 <= share[0] < share[1]:
        raise argparse.ArgumentTypeError(f"{text}: say N, or K/N with K of 0 to N - 1")
    return share


def _is_in(share: tuple[int, int], name: str) -> bool:
    """Whether a test belongs to a share of the tests; new tests change nothing about others."""
    which, of = share
    return zlib.crc32(name.encode()) % of == which


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases",
        metavar="DIR",
        default=None,
        help="run the conformance cases in DIR/*.json",
    )
    parser.addoption(
        "--slow",
        metavar="[K/]N",
        type=_share,
        default=None,
        help="run one of N of the tests marked slow too (1: all; K of 0 to N - 1: which ones, 0 "
        "without it), and draw all examples of laws; without this none, and a quarter of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    amounts.ALL = config.getoption("--slow") is not None


@pytest.fixture(autouse=on_gpu.ASKED)
def on_the_gpu_if_asked() -> Iterator[None]:
    """What runs as kernels is compiled and runs on the GPU."""
    with on_gpu.kernels_on_gpu():
        yield


def _mark_sweeps(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is a sweep, all but every so many are slow."""
    counts: dict[str, int] = {}
    for item in items:
        sweep = item.get_closest_marker("sweep")
        if sweep is not None and item.get_closest_marker("slow") is None:
            name = item.nodeid.partition("[")[0]
            counts[name] = counts.get(name, -1) + 1
            if counts[name] % sweep.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, but the share that `--slow` asks for; all without the GPU that is asked
    for.
    """
    _mark_sweeps(items)
    if on_gpu.ASKED and not on_gpu.there_is_one():
        reason = f"{on_gpu.SWITCH}=gpu asks for a GPU, and there is none"
        config.issue_config_time_warning(pytest.PytestWarning(reason), stacklevel=2)
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))
    share: tuple[int, int] | None = config.getoption("--slow")
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    left_out = [item for item in slow if share is None or not _is_in(share, item.nodeid)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
