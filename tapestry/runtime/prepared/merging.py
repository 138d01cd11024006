"""The merge of two states as scalar operations by name, for loops that fold by any monoid.

    merging = merging_of(argmax)        # its numbers, its cells, what it yields
    emit = emitted(merging)             # the same as instructions

None for a monoid whose states must be merged in order, or that has operations that no loop has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from tapestry.codegen.loops.cells import written
from tapestry.codegen.loops.graphs import Merge
from tapestry.codegen.loops.vectors import Value, Writer


@dataclass(frozen=True)
class Merging:
    """Slots are the parts of the one state, those of the other, numbers, and what cells make."""

    dtypes: tuple[np.dtype[Any], ...]
    numbers: tuple[tuple[float, np.dtype[Any]], ...]
    cells: tuple[tuple[Scalar, tuple[int, ...]], ...]
    ends: tuple[int, ...]


def merging_of(monoid: Monoid) -> Merging | None:
    """What a monoid's merge does, where a loop may do it in any order."""
    block = monoid.merge
    end = block.last_op
    dtypes = tuple(map(numpy_dtype, monoid.state))
    if not monoid.commutative or end is None or None in map(kind_of, dtypes):
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
            numbers.append((number.item(), number.dtype))
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


def emitted(merging: Merging) -> Merge:
    """What writes a merge."""

    def merge(write: Writer, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        values = [*left, *right]
        for number, dtype in merging.numbers:
            kind = kind_of(dtype)
            assert kind is not None
            values.append(write.number(number, kind))
        for scalar, ins in merging.cells:
            values.append(written(scalar, write, [values[slot] for slot in ins]))
        return [write.widened(values[slot]) for slot in merging.ends]

    return merge
