"""Arrays of parts, some of which are made in their places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.assembling import Assembled, Filled
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.products.sliding import slid
from tapestry.runtime.prepared.stored import restored, stored

HEAD, TAIL = itemgetter(slice(0, 2)), itemgetter(slice(2, 6, 2))


class _Sum:
    def fill(self, place: Array, given: Sequence[Any]) -> None:
        np.add(*given, out=place)


def test_what_fills_is_not_copied() -> None:
    whole = Assembled((6,), np.dtype("f4"), (HEAD, TAIL, itemgetter(slice(3, 6, 2)), None))
    made = Filled(whole, ((_Sum(), 2), (None, 1), (_Sum(), 2), (None, 1)))
    x, y = np.array([1, 2], "f4"), np.array([10, 20], "f4")
    (array,) = made([x, y, x, y, y, np.zeros(0, "f4")])
    assert array.tolist() == [11, 22, 1, 20, 2, 40]


def _transposed(kernel: int, shape: tuple[int, ...], **more: Any) -> tuple[Any, list[Array]]:
    source = np.random.default_rng(0)
    arrays = [
        source.integers(-4, 5, one).astype("f4") for one in (shape, (shape[1], 6, kernel, kernel))
    ]
    x, w = (
        tapestry.input(name, one.shape, "float32") for name, one in zip("xw", arrays, strict=True)
    )
    made = tapestry.conv_transpose2d(x, w, stride=(2, 2), **more)
    return made, arrays


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
@pytest.mark.parametrize(("kernel", "padding"), [(2, 0), (3, 1), (4, 1)])
@pytest.mark.parametrize("width", [3, 16])
def test_every_second_cell_is_written_where_it_belongs(
    kernel: int, padding: int, width: int
) -> None:
    """A transposed convolution is a sum for each place of a cell among the cells that it makes."""
    made, arrays = _transposed(kernel, (2, 5, 9, width), padding=(padding, padding))
    module = tapestry.compile(made).lowered
    prepared = PreparedProgram(module, Library(slide=slid, loops=Loops(1)))
    kinds = [type(line.function) for line in prepared.run.script.lines]
    assert Filled in kinds
    assert Assembled not in kinds
    want = tapestry.compile(made, on="reference")(*arrays)
    for _ in range(3):
        np.testing.assert_array_equal(prepared(arrays)[0], want)


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
def test_a_part_that_is_read_elsewhere_is_copied() -> None:
    source = np.random.default_rng(0)
    arrays = [source.integers(-4, 5, one).astype("f4") for one in ((2, 3, 12, 12), (4, 3, 3, 3))]
    x, w = (
        tapestry.input(name, one.shape, "float32") for name, one in zip("xw", arrays, strict=True)
    )
    part = tapestry.conv2d(x, w, padding=(1, 1))
    joined = tapestry.concat([x, part], axis=1)
    want = tapestry.compile(joined, on="reference")(*arrays)
    for results, function in (((joined, part), Assembled), ((joined,), Filled)):
        module = tapestry.compile(results).lowered
        prepared = PreparedProgram(module, Library(slide=slid, loops=Loops(1)))
        kinds = [type(line.function) for line in prepared.run.script.lines]
        assert [one for one in kinds if one in (Assembled, Filled)] == [function]
        for _ in range(2):
            whole, *rest = prepared(arrays)
            np.testing.assert_array_equal(whole, want)
            assert len(rest) == len(results) - 1
            for one in rest:
                np.testing.assert_array_equal(one, want[:, 3:])


@pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")
def test_what_is_made_in_its_place_is_kept_as_it_was_prepared() -> None:
    made, arrays = _transposed(4, (1, 3, 5, 16), padding=(1, 1))
    library = Library(slide=slid, loops=Loops(1))
    prepared = PreparedProgram(tapestry.compile(made).lowered, library)
    again = restored(json.loads(json.dumps(stored(prepared.run, library))), library)
    np.testing.assert_array_equal(again(arrays)[0], prepared(arrays)[0])
