"""What a kernel is launched with: grid, buffers and bounds, from a launch or before there is one.

A `Call` is one launch. Shards of one size do the same work, so `calls_of` gives each size once,
with how many shards have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.dialects.triton import GridAxis
from tapestry.passes.triton.kernels.writer import Kernel
from tapestry.zspace import Range


@dataclass(frozen=True)
class Call:
    """A launch: `buffers` numbers the buffer that each pointer is, `sizes` has the bytes of each.

    `bounds` are where the shard starts and ends along each dimension that is cut, by its name.
    """

    grid: tuple[GridAxis, ...]
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]
    bounds: Mapping[str, tuple[int, int]]

    def lengths(self) -> tuple[int, ...]:
        """The points along each axis of the grid."""
        spans = {name: end - start for name, (start, end) in self.bounds.items()}
        return tuple(
            prod(spans[one] if isinstance(one, str) else one for one in axis.extents)
            for axis in self.grid
        )


def calls_of(launch: triton.LaunchOp) -> list[tuple[Call, int]]:
    """The launches of a launch operation that differ in size, and how many there are of each."""
    # Buffers that are given twice are one.
    places: dict[SSAValue, int] = {}
    for buffer in launch.buffers:
        places.setdefault(buffer, len(places))
    found = [
        Call(
            launch.grid.data,
            tuple(places[buffer] for buffer in launch.buffers),
            tuple(_bytes_of(buffer.type) for buffer in places),
            dict(zip(launch.bound_names, zip(row[::2], row[1::2], strict=True), strict=True)),
        )
        for row in launch.rows
    ]
    return _counted(found)


def calls_before(kernel: Kernel, shards: Sequence[Range]) -> list[tuple[Call, int]]:
    """The same for a kernel that no operation launches yet, once per shard."""
    sizes = tuple(tensor.box.size * byte_size(tensor.element) for tensor in kernel.tensors)
    found = [
        Call(
            kernel.grid,
            tuple(range(len(sizes))),
            sizes,
            {dim.name: dim.bounds(shard) for dim in kernel.cut},
        )
        for shard in shards
    ]
    return _counted(found)


def _counted(calls: Sequence[Call]) -> list[tuple[Call, int]]:
    counts: dict[tuple[int, ...], tuple[Call, int]] = {}
    for call in calls:
        first, count = counts.get(call.lengths(), (call, 0))
        counts[call.lengths()] = (first, count + 1)
    return list(counts.values())


def _bytes_of(kind: Attribute) -> int:
    assert isinstance(kind, MemRefType)
    whole = cast("MemRefType[Attribute]", kind)
    return prod(whole.get_shape()) * byte_size(whole.element_type)
