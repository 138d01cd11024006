"""Folds by any monoid: states merged with their neighbours until there is one.

fold = merged_halves(monoid, (1,))
maxima, places = fold(values, coordinates)       # (64, 10) and (1, 10) to (64, 1) and (64, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.named import Scalar
from tapestry.algebra.scalars import compute, scalar_of
from tapestry.codegen.loops import is_known, kind_of
from tapestry.codegen.loops.vectors import number_of
from tapestry.runtime.prepared.bodies import prepared_body
from tapestry.runtime.prepared.folds.halving import Halves, Merge
from tapestry.runtime.prepared.loops.merging import Merging
from tapestry.zspace import Range

_NOWHERE = Range((), ())


def merge_of(monoid: Monoid) -> Merge:
    """The merge of two states, the parts of the one and then those of the other."""
    body = prepared_body(monoid.merge, _NOWHERE, ())
    assert body is not None
    return Merge(body)


def merged_halves(monoid: Monoid, axes: Sequence[int]) -> Halves:
    """What folds the parts of a state along some axes, which keep an extent of 1.

    Along those axes all parts have the same extents. The order of what is merged is kept.
    """
    return Halves(merge_of(monoid), tuple(axes))


def merging_of(monoid: Monoid, *, in_order: bool = False) -> Merging | None:
    """What a monoid's merge does, where a loop may do it in any order, or does it `in_order`.

    None where states must be merged in order, and where there are operations that no loop has.
    """
    block = monoid.merge
    end = block.last_op
    dtypes = tuple(map(numpy_dtype, monoid.state))
    if not (monoid.commutative or in_order) or end is None or None in map(kind_of, dtypes):
        return None
    needed = needed_operations(end.operands)
    slots: dict[SSAValue, int] = {value: slot for slot, value in enumerate(block.args)}
    numbers: list[tuple[float, np.dtype[Any]]] = []
    for op in block.ops:
        if op in needed and isinstance(op, arith.ConstantOp):
            number = np.asarray(compute(op, ()))
            if kind_of(number.dtype) is None:
                return None
            slots[op.result] = len(slots)
            numbers.append((number_of(number), number.dtype))
    cells: list[tuple[Scalar, tuple[int, ...]]] = []
    for op in block.ops:
        if op not in needed or isinstance(op, arith.ConstantOp):
            continue
        scalar = scalar_of(op)
        if scalar is None or not is_known(scalar):
            return None
        cells.append((scalar, tuple(slots[operand] for operand in op.operands)))
        slots[op.results[0]] = len(slots)
    return Merging(dtypes, tuple(numbers), tuple(cells), tuple(slots[one] for one in end.operands))
