"""Tile sizes: powers of two within bounds, all of a small problem in one program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tapestry.dialects.triton import MAX_CELLS
from tapestry.passes.triton.schedules.tiling import MIN_DOT, Tiling, power_of_two

extents = st.integers(0, 1 << 40)
tiles = st.integers(4, 20).map(lambda n: 1 << n)


@given(st.integers(1, 1 << 50))
def test_a_power_of_two_is_the_least_that_fits(n):
    power = power_of_two(n)
    assert power & (power - 1) == 0
    assert power // 2 < n <= power


@given(extents, extents, st.booleans(), tiles)
def test_fold_tiles_stay_within_the_bound(points, depth, across, tile):
    blocks = Tiling(tile).fold(points, depth, across=across).blocks
    assert 1 <= blocks["BLOCK_P"] * blocks["BLOCK_K"] <= tile


@given(extents, extents, extents, st.sampled_from((1, 2, 4, 8)), tiles)
def test_contraction_tiles_are_ones_that_triton_takes(m, n, k, cell, tile):
    blocks = Tiling(tile).contraction(m, n, k, cell=cell).blocks
    for size in blocks.values():
        assert size >= MIN_DOT
        assert size & (size - 1) == 0
    sizes = tuple(blocks.values())
    assert all(a * b <= MAX_CELLS for a in sizes for b in sizes)


def test_small_problems_take_one_program():
    assert Tiling().points(100).blocks == {"BLOCK_P": 128}
    assert Tiling().fold(64, 10).blocks == {"BLOCK_P": 64, "BLOCK_K": 16}
    assert Tiling().contraction(10, 3, 5, cell=4).blocks == {
        "BLOCK_M": 16,
        "BLOCK_N": 16,
        "BLOCK_K": 16,
    }


def test_hopper_sized_tiles_for_16_bit_factors():
    blocks = Tiling().contraction(4096, 4096, 4096, cell=2)
    assert blocks.blocks == {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    assert blocks.warps == 8


@given(extents, extents, st.integers(1, 3), st.booleans(), tiles)
def test_rows_are_held_whole_or_walked_in_tiles(rows, cells, walks, across, tile):
    blocks = Tiling(tile).rows(rows, cells, walks=walks, across=across)
    sizes = blocks.blocks
    held = sizes["BLOCK_K"] >= cells
    assert sizes["BLOCK_M"] * sizes["BLOCK_K"] <= tile * (8 if held else 1)
    assert 4 <= blocks.warps <= 16
    assert held or walks == 1 or cells > tile // 16


def test_what_is_walked_twice_is_held_while_it_fits():
    def sizes(cells, walks, *, across=False):
        blocks = Tiling().rows(4096, cells, walks=walks, across=across)
        return (*blocks.blocks.values(), blocks.warps)

    assert sizes(100, 2) == (16, 128, 4)
    assert sizes(5000, 2) == (1, 8192, 16)
    assert sizes(5000, 1) == (1, 2048, 4)
    assert sizes(16385, 2) == (1, 2048, 4)
    assert sizes(200, 2, across=True) == (64, 256, 16)
    assert sizes(4096, 2, across=True) == (64, 32, 4)
