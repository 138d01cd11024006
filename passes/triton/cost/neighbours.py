"""Which cells a load or a store touches together: how many bytes a lane moves at once.

    %p = pid * 1024 + lanes
    load %x_ptr[%p]                       neighbouring lanes, from multiples of 16 bytes: 16 at once
    load %x_ptr[%p] mask %p < 1000003     the mask may end at any cell: one by one
    load %x_ptr[%p] mask %p < 1000000     it ends at a multiple of 4 of them: 16 bytes of float32

A lane moves neighbours together only where they start at a multiple of their size, and are masked
alike; Triton proves both from the arithmetic of offsets and masks, and so does this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.passes.triton.cost.programs import Indices, Known
from tapestry.passes.triton.cost.work import SECTOR

VECTOR = 16
"""The most bytes that a lane moves at once."""

_SOME = 16
"""How many programs are looked at."""

_LAST = {"<": 0, ">=": 0, "<=": 1, ">": 1}
"""By how many lanes a comparison changes after both sides are equal."""


@dataclass(frozen=True)
class Neighbours:
    """Finds neighbours in a kernel with blocks of some sizes."""

    indices: Indices
    sizes: Mapping[str, int]

    def of(self, op: triton.LoadOp | triton.StoreOp, known: Known) -> tuple[str | None, int, int]:
        """The block of neighbouring cells, their bytes, and those that are moved at once."""
        assert isinstance(op.pointer.type, triton.PointerType)
        cell = byte_size(op.pointer.type.element_type)
        columns = self.indices.columns
        strides = {block: abs(columns.stride(known, block)) for block in known.blocks}
        if not any(strides.values()):
            return None, SECTOR, cell
        side = [block for block, stride in strides.items() if stride == 1]
        along = max(side, key=self.sizes.__getitem__, default=None)
        if along is None:
            return None, cell, cell
        others = [stride for block, stride in strides.items() if block != along]
        numbers = known.numbers[columns.spread]
        common = reduce(gcd, (*others, *map(int, numbers[:_SOME])), self.sizes[along])
        if op.mask is not None:
            common = gcd(common, self._alike(op.mask, along))
        return along, self.sizes[along] * cell, min(common * cell, VECTOR)

    def _alike(self, mask: SSAValue, block: str) -> int:
        """How many neighbours along a block are masked alike, surely; a power of two."""
        size, op = self.sizes[block], mask.owner
        match op:
            case triton.CompareOp():
                return self._compared(op, block)
            case triton.BroadcastOp() | triton.ExpandDimsOp():
                return self._alike(op.source, block)
            case arith.AndIOp() | arith.OrIOp() | arith.XOrIOp():
                return gcd(self._alike(op.lhs, block), self._alike(op.rhs, block))
            case _:
                known = self.indices.of(mask)
                return 1 if known.loaded or block in known.blocks else size

    def _compared(self, op: triton.CompareOp, block: str) -> int:
        size, columns = self.sizes[block], self.indices.columns
        lhs, rhs = self.indices.of(op.lhs), self.indices.of(op.rhs)
        if block not in lhs.blocks | rhs.blocks:
            return size
        stride = columns.stride(lhs, block) - columns.stride(rhs, block)
        last = _LAST.get(op.predicate.data)
        if stride != 1 or last is None or lhs.loaded or rhs.loaded:
            return gcd(self._same(op.lhs, block), self._same(op.rhs, block))
        equal = (rhs.numbers - lhs.numbers + last)[columns.spread]
        return reduce(gcd, map(int, equal[:_SOME]), size)

    def _same(self, value: SSAValue, block: str) -> int:
        """How many neighbours along a block have one value, surely: as where it is loaded from."""
        size, known, op = self.sizes[block], self.indices.of(value), value.owner
        if block not in known.blocks:
            return size
        match op:
            case triton.LoadOp():
                alike = size if op.mask is None else self._alike(op.mask, block)
                return gcd(self._same(op.offsets, block), alike)
            case arith.DivSIOp():
                by = self.indices.of(op.rhs)
                starts = self.indices.of(op.lhs).numbers[self.indices.columns.spread]
                if block in by.blocks or by.loaded:
                    return 1
                # Either runs of the divisor's length have one quotient, or equal numbers have.
                runs = reduce(gcd, (int(by.numbers[0]), *map(int, starts[:_SOME])), size)
                return max(runs, self._same(op.lhs, block))
            case _ if isinstance(op, Operation) and op.operands:
                return reduce(gcd, (self._same(operand, block) for operand in op.operands))
            case _:
                return 1
