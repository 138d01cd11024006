"""Delinearized positions of blocks are those of each lane, and as few lanes as they can be."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Operation, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import shape_of
from tapestry.passes.triton.indexing.linear import Linear
from tapestry.passes.triton.tiles.builder import TileBuilder

KINDS = {arith.AddiOp: np.add, arith.DivSIOp: np.floor_divide, arith.RemSIOp: np.remainder}


def coordinates(
    lengths: list[int], first: SSAValue, size: int, body: Block, *, repeats: bool = True
) -> list[SSAValue]:
    """The coordinates of a block's positions, of dimensions of some lengths, outermost first."""
    tiles = TileBuilder(body, {"BLOCK_K": size}, i32)
    lanes = tiles.arange("BLOCK_K")
    linear = Linear.of_block(tiles, first, lanes, "BLOCK_K", repeats=repeats)
    found: list[SSAValue] = []
    for length in reversed(lengths[1:]):
        found.append(linear.remainder(length))
        linear = linear.quotient(length)
    return [linear.value, *reversed(found)]


def run(value: SSAValue, start: int, size: int) -> np.ndarray:
    """What a value is where the block starts somewhere."""
    op = value.owner
    match op:
        case Block():
            return np.asarray(start)
        case triton.ArangeOp():
            return np.arange(size)
        case arith.ConstantOp():
            assert isinstance(op.value, IntegerAttr)
            return np.asarray(op.value.value.data)
        case triton.BroadcastOp():
            return run(op.operands[0], start, size)
        case _:
            assert isinstance(op, Operation)
            return KINDS[type(op)](*(run(operand, start, size) for operand in op.operands))


@given(
    st.lists(st.sampled_from((1, 2, 3, 4, 6, 7, 8, 16, 32, 96)), min_size=1, max_size=4),
    st.sampled_from((1, 2, 4, 8, 16, 32, 64)),
    st.booleans(),
    st.data(),
)
def test_coordinates_are_those_of_each_position(
    lengths: list[int], size: int, repeats: bool, data: st.DataObject
) -> None:
    body = Block(arg_types=[i32])
    found = coordinates(lengths, body.args[0], size, body, repeats=repeats)
    start = size * data.draw(st.integers(0, prod(lengths) // size))
    places = np.arange(start, start + size)
    places = places[places < prod(lengths)]
    wanted = np.unravel_index(places, lengths)
    for value, one in zip(found, wanted, strict=True):
        cells = np.broadcast_to(run(value, start, size), (size,))
        np.testing.assert_array_equal(cells[: len(places)], one)


@pytest.mark.parametrize(
    ("lengths", "size", "tiles"),
    [
        ((3, 3, 128), 64, (False, False, True)),  # a block is in one run of the last dimension
        ((7, 7, 4), 32, (True, True, True)),
        ((5, 16), 16, (False, True)),
        ((5, 8), 16, (True, True)),
    ],
)
def test_what_all_lanes_share_is_a_number(
    lengths: tuple[int, ...], size: int, tiles: tuple[bool, ...]
) -> None:
    body = Block(arg_types=[i32])
    found = coordinates(list(lengths), body.args[0], size, body)
    assert tuple(bool(shape_of(value)) for value in found) == tiles


def test_what_repeats_in_a_block_does_not_need_its_start() -> None:
    body = Block(arg_types=[i32])
    last = coordinates([7, 7, 4], body.args[0], 32, body)[-1]
    assert isinstance(last.owner, arith.RemSIOp)
    assert isinstance(last.owner.lhs.owner, triton.ArangeOp)
