"""How factors are copied in blocks: what a panel has along its coordinates, and which vectors."""

from __future__ import annotations

import pytest

from tapestry.codegen.loops.tiles import SCATTERED, Guard, Panel
from tapestry.runtime.prepared.products.blocking import block_tiling
from tapestry.runtime.prepared.products.tiling import Operand, Problem, Tiling, tiling


def _convolution(
    columns: int, channels: int, size: int, window: int, stride: int = 1, reach: int = 1
) -> Problem:
    """(columns, h, w, channels, kh, kw) of images (h, w), padded, with a window.

    The window is turned around where `reach` is -1.
    """
    pad = window // 2 if reach > 0 else reach * -(window - 1 - window // 2)
    cells = size // stride
    extents = (columns, cells, cells, channels, window, window)
    windows = (((3, 1),), ((1, stride), (4, reach)), ((2, stride), (5, reach)))
    offset = -pad if reach > 0 else pad
    guards = tuple(Guard(window, offset) for window in windows[1:])
    steps = (0, size * stride, stride, size * size, size * reach, reach)
    images = Operand(4, tuple(4 * n for n in steps), guards, (size, size), windows)
    taps = window * window
    weights = Operand(4, tuple(4 * n for n in (channels * taps, 0, 0, taps, window, 1)))
    sums = Operand(4, tuple(4 * n for n in (cells * cells, cells, 1, 0, 0, 0)))
    return Problem(extents, frozenset((3, 4, 5)), (images, weights, sums), (0,), (1,), 1)


def _panel(found: Tiling | None) -> tuple[Tiling, Panel]:
    assert found is not None
    assert found.tiles.panel is not None
    return found, found.tiles.panel


def _names(found: Tiling, panel: Panel) -> list[dict[int, int]]:
    """The coordinates by the dimensions of the problem."""
    return [{found.dims[d]: f for d, f in terms} for terms in panel.coordinates]


@pytest.mark.parametrize("reach", [1, -1])
def test_windows_share_the_cells_of_a_panel(reach: int) -> None:
    found, panel = _panel(block_tiling(_convolution(64, 64, 28, 3, reach=reach), 8, 16))
    coordinates = _names(found, panel)
    assert coordinates[-1] == {2: 1, 5: reach}
    assert {1: 1, 4: reach} in coordinates
    assert all(one.step == 1 for one in panel.arrays)
    assert [len(one.guards) for one in panel.arrays] == [2]


def test_every_second_cell_is_copied_for_each_place_of_a_window() -> None:
    """So vectors are neighbours in the panel."""
    found, panel = _panel(block_tiling(_convolution(64, 64, 56, 3, stride=2), 8, 16))
    coordinates = _names(found, panel)
    assert coordinates[-1] == {2: 1}
    assert {5: 1} in coordinates
    assert {1: 2, 4: 1} in coordinates
    assert [one.step for one in panel.arrays] == [2]


@pytest.mark.parametrize("channels", [3, 64, 512])
def test_a_panel_fits_a_cache(channels: int) -> None:
    found, _ = _panel(block_tiling(_convolution(96, channels, 40, 5), 16, 32))
    assert found.room - found.panel <= max(100 << 10, 2 * 4 * channels * 5 * 48)


def test_a_gradient_to_a_kernel_has_vectors_along_channels() -> None:
    """(out, in, kh, kw) of sums over (h, w): windows are kept, and what slides is folded."""
    size, window, channels = 28, 3, 64
    extents = (channels, channels, window, window, size, size)
    windows = (((1, 1),), ((2, 1), (4, 1)), ((3, 1), (5, 1)))
    guards = tuple(Guard(window, -1) for window in windows[1:])
    area = size * size
    images = Operand(
        4, tuple(4 * n for n in (0, area, size, 1, size, 1)), guards, (size, size), windows
    )
    gradient = Operand(4, tuple(4 * n for n in (area, 0, 0, 0, size, 1)))
    taps = window * window
    sums = Operand(4, tuple(4 * n for n in (channels * taps, taps, window, 1, 0, 0)))
    problem = Problem(extents, frozenset((4, 5)), (images, gradient, sums), (0,), (1,), 1)
    found, panel = _panel(block_tiling(problem, 8, 16))
    assert _names(found, panel)[-1] == {1: 1}
    assert [one.step for one in panel.arrays] == [SCATTERED]
    other = tiling(problem, 8, 16)
    assert other is None or found.time < other.time


def test_what_one_column_meets_is_not_copied() -> None:
    """There is no dimension that only the second factor moves along: cells are met once."""
    assert block_tiling(_convolution(1, 64, 28, 3), 8, 16) is None
