"""How sums of products are gone along in tiles."""

from __future__ import annotations

from math import prod

import pytest

from tapestry.codegen.loops.tiles import Guard
from tapestry.runtime.prepared.products.dotting import dot_tiling
from tapestry.runtime.prepared.products.tiling import Operand, Problem, tiling


def _convolution(
    columns: int, channels: int, size: int, window: int, groups: int = 1, pad: int = 1
) -> Problem:
    """(groups, columns, h, w, channels, kh, kw) of images (h, w) with a window."""
    reach = size + 2 * pad - window + 1
    extents = (groups, columns, reach, reach, channels, window, window)
    image, taps = size * size, window * window
    guards = (Guard(((2, 1), (5, 1)), -pad), Guard(((3, 1), (6, 1)), -pad)) if pad else ()
    windows = (((2, 1), (5, 1)), ((3, 1), (6, 1)))
    windows = (((0, channels), (4, 1)), *windows) if groups > 1 else windows
    steps = (channels * image, 0, size, 1, image, size, 1)
    first = Operand(4, tuple(4 * n for n in steps), guards, (size, size) if pad else (), windows)
    steps = (columns * channels * taps, channels * taps, 0, 0, taps, window, 1)
    second = Operand(4, tuple(4 * n for n in steps))
    steps = (columns * reach * reach, reach * reach, reach, 1, 0, 0, 0)
    out = Operand(4, tuple(4 * n for n in steps))
    ones = tuple(n > 1 for n in extents)
    operands = (
        Operand(
            one.size,
            tuple(s if moves else 0 for s, moves in zip(one.steps, ones, strict=True)),
            one.guards,
            one.limits,
            one.windows,
        )
        for one in (first, second, out)
    )
    return Problem(extents, frozenset((4, 5, 6)), tuple(operands), (0,), (1,), 1)


def test_images_of_windows_of_one_cell_are_rows() -> None:
    found = tiling(_convolution(24, 32, 14, 1, pad=0), 16, 32)
    assert found is not None
    assert [found.problem.extents[dim] for dim in found.dims] == [24, 14 * 14, 32]


@pytest.mark.parametrize("groups", [1, 4])
def test_windows_are_gone_along_outside_of_channels(groups: int) -> None:
    """So masks are the same for all channels, also where groups move along those, too."""
    found = tiling(_convolution(24, 40, 28, 3, groups), 16, 32)
    assert found is not None
    assert found.dims[-3:] == (5, 6, 4)
    assert found.tiles.packed


def test_windows_of_one_channel_are_unrolled() -> None:
    found = tiling(_convolution(1, 1, 28, 3, 64), 16, 32)
    assert found is not None
    assert found.tiles.folded == (3, 3)


@pytest.mark.parametrize(("lanes", "registers"), [(4, 32), (8, 16), (16, 32)])
def test_a_tile_fits_the_registers(lanes: int, registers: int) -> None:
    found = tiling(_convolution(64, 64, 56, 3), lanes, registers)
    assert found is not None
    sums = len(list(found.tiles.every(range(len(found.tiles.kept)))))
    assert registers // 2 <= sums <= registers - len(found.tiles.places([0])) - 2


def test_long_sums_are_in_blocks() -> None:
    found = tiling(_convolution(16, 512, 20, 3), 16, 32)
    assert found is not None
    outer = found.dims[: len(found.tiles.kept) + found.tiles.apart]
    inner = [found.problem.extents[dim] for dim in found.dims if dim not in outer]
    assert inner == [128]


def test_few_lanes_are_left_to_others() -> None:
    """The gradient to a kernel is as narrow as that: matrices are larger."""
    assert tiling(_convolution(64, 64, 5, 3, pad=0), 16, 32) is None
    assert tiling(_convolution(64, 64, 8, 3, pad=0), 16, 32) is not None


@pytest.mark.parametrize(("width", "taken"), [(28, True), (6, True), (5, False)])
def test_both_factors_of_a_gradient_are_vectors(width: int, taken: bool) -> None:
    """(columns, channels, kw, images, w): vectors are along w, and a row is never a whole one."""
    extents, reach = (8, 4, 3, 2, width), width + 2
    first = Operand(4, (4 * 2 * width, 0, 0, 4 * width, 4))
    window = ((2, 1), (4, 1))
    steps = (0, 4 * reach, 4, 4 * 4 * reach, 4)
    second = Operand(4, steps, (Guard(window, -1),), (width,), (window,))
    out = Operand(4, (4 * 12, 4 * 3, 4, 0, 0))
    problem = Problem(extents, frozenset((3, 4)), (first, second, out), (0,), (1,), 1)
    assert tiling(problem, 16, 32) is None
    found = dot_tiling(problem, 16, 32)
    assert (found is not None) == taken
    if found is not None:
        assert found.dims == (0, 1, 2, 3, 4)
        assert found.tiles.summed
        assert found.tiles.short
        assert 16 <= prod(found.tiles.kept) <= 24
