"""What reads give outside of a tensor, as a cell."""

from __future__ import annotations

from tapestry.algebra.literals import number_in
from tapestry.dialects.loom import Fill
from tapestry.runtime.arrays.arithmetic import cell_constant
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.cells import bits


def cell_outside(fill: Fill | None) -> Array | None:
    """The cell, as bodies hold it; None where nothing is read outside."""
    if fill is None:
        return None
    number = number_in(fill)
    assert number is not None
    return bits(cell_constant(number, fill.type))
