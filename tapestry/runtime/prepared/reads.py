"""What a body takes of tensors over an index range, as slots of a script.

    slots = reads(script, op, op.index, arguments, library)

Cells are views of arrays, or of padded copies of them where some are outside; blocks are boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, tensor_type
from tapestry.runtime.arrays.access import moving_shape
from tapestry.runtime.arrays.blocks import BlockCells, boxes_of
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.arrays.gathering import clipped_cells
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import bits
from tapestry.runtime.prepared.fills import cell_outside
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.padding import Padding
from tapestry.runtime.prepared.script import Script
from tapestry.runtime.prepared.views import reader
from tapestry.zspace import Projection, Range

Slots: TypeAlias = list[int]


def reads(
    script: Script, op: loom.OperationOp, index: Range, slots: Sequence[int], library: Library
) -> Slots:
    blocks = any(not projection.is_unit for projection in op.in_maps)
    needed = inside_mask(op.inside, index) if blocks else None
    fours = zip(op.ins, op.in_maps, op.in_fills, slots, strict=True)
    return [
        read_cells(script, tensor_type(value).box, p, fill, index, slot, library, needed)
        for value, p, fill, slot in fours
    ]


def read_cells(
    script: Script,
    box: Range,
    projection: Projection,
    fill: Fill | None,
    index: Range,
    slot: int,
    library: Library,
    needed: Array | None = None,
) -> int:
    """What a body takes of a tensor over `box`; `needed` as of `BlockCells`."""
    outside = cell_outside(fill)
    cells = script.view(bits, slot)
    if not projection.is_unit:
        boxes = BlockCells(np.empty(0), box, projection, index, outside, needed)
        return script.call(partial(boxes_of, boxes), (cells,))
    if outside is None or box.contains_range(projection.apply_range(index)):
        return script.view(reader(projection, box, index), cells)
    over = projection.apply_range(index)
    if over.size <= prod(moving_shape(projection, index)):
        padded = script.call(Padding(box, over, outside, library.team), (cells,), new=True)
        return script.view(reader(projection, over, index), padded)
    clipped = partial(clipped_cells, box=box, projection=projection, index=index, fill=outside)
    return script.call(clipped, (cells,))
