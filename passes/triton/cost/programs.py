"""Which cells programs touch: the index arithmetic of a kernel, run for many programs at once.

    %m = pid * BLOCK_M + lanes          programs 0, 1, 2: [0, 64, 128], and 1 where M's lane is 1
    %offset = %m * 4096                 [0, 262144, 524288], 4096
    load %x_ptr[%offset]                three programs read different tiles; rows lie 4096 apart

A value is a number per *column*. A column is a program, taken at the first lane of every block and
the first step of every loop, or a *probe*: the first program, one lane on along one block. What is
read from memory is not known, and counts as 0. So nothing has to know how programs are laid out on
a grid, or in which order: the kernel's own arithmetic says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import triton
from tapestry.passes.triton.cost.kinds import Kinds

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

SIDE_BY_SIDE = 132 * 16
"""How many programs are looked at in a row, first ones and last ones: about as many as run at
once."""

SPREAD = 128
"""How many programs are looked at all over the grid."""


@dataclass(frozen=True, eq=False)
class Known:
    """A number per column; the blocks that it varies along, and whether memory decides it."""

    numbers: Numbers
    blocks: frozenset[str] = frozenset()
    loaded: bool = False


class Columns:
    """The programs of a grid that are looked at, and a probe per block."""

    def __init__(self, programs: int, blocks: Sequence[str]) -> None:
        first = np.arange(min(programs, SIDE_BY_SIDE))
        spread = np.linspace(0, max(0, programs - 1), min(programs, SPREAD)).astype(np.int64)
        more = np.arange(max(len(first), programs - SIDE_BY_SIDE), programs)
        at = len(first) + len(more)
        self.side_by_side = slice(0, len(first))
        self.last = slice(at - len(first), at)
        self.spread = slice(at, at + len(spread))
        self._probes = {block: at + len(spread) + n for n, block in enumerate(blocks)}
        self.pids: Numbers = np.concatenate([first, more, spread, np.zeros(len(blocks), np.int64)])
        self.zeros: Numbers = self.everywhere(0)
        """0 in every column, which nobody may change."""
        self.zeros.flags.writeable = False

    def everywhere(self, number: int) -> Numbers:
        """The same number in every column."""
        return np.full(len(self.pids), number, np.int64)

    def lanes(self, block: str) -> Numbers:
        """The lane along a block: the first, but in its own probe."""
        found = self.everywhere(0)
        found[self._probes[block]] = 1
        return found

    def stride(self, known: Known, block: str) -> int:
        """By how much a number grows from one lane of a block to the next."""
        return int(known.numbers[self._probes[block]] - known.numbers[0])


_BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
}
_READ = Kinds(
    arith.ConstantOp,
    triton.ArangeOp,
    triton.BlockSizeOp,
    triton.CdivOp,
    triton.LoadOp,
    triton.ProgramIdOp,
)
_SAME = Kinds(
    arith.ExtSIOp,
    arith.IndexCastOp,
    arith.TruncIOp,
    triton.BroadcastOp,
    triton.CastOp,
    triton.ExpandDimsOp,
)
_COMPUTED = Kinds(arith.DivSIOp, arith.RemSIOp, arith.SelectOp, triton.CompareOp, triton.WhereOp)
_ALONG_NONE = frozenset[str]()
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


class Indices:
    """The numbers of a kernel's integers, found operation by operation."""

    def __init__(self, columns: Columns, sizes: Mapping[str, int]) -> None:
        self.columns = columns
        self._sizes = sizes
        self._known: dict[SSAValue, Known] = {}
        self._unknown = Known(columns.zeros, loaded=True)

    def place(self, value: SSAValue, number: int | Numbers) -> None:
        """Say what an argument of the kernel is, or the counter of a loop."""
        known = number if isinstance(number, np.ndarray) else self.columns.everywhere(number)
        self._known[value] = Known(known)

    def follow(self, value: SSAValue, start: SSAValue) -> None:
        """Say that a value starts as another one."""
        self._known[value] = self.of(start)

    def of(self, value: SSAValue) -> Known:
        """What is known of a value; 0 where nothing is."""
        found = self._known.get(value)
        return self._unknown if found is None else found

    def visit(self, op: Operation) -> None:
        """Find the numbers of an operation's results."""
        kind = type(op)
        if kind is triton.SwizzleOp:
            assert isinstance(op, triton.SwizzleOp)
            self._swizzle(op)
        if len(op.results) != 1:
            return
        if _READ[kind]:
            self._read(op)
        else:
            self._derive(op, op.results[0])

    def _read(self, op: Operation) -> None:
        """Find the number of a result that is known by itself, or by what a block is."""
        result, columns = op.results[0], self.columns
        match op:
            case arith.ConstantOp():
                if isinstance(op.value, IntegerAttr):
                    self._known[result] = Known(columns.everywhere(op.value.value.data))
            case triton.ProgramIdOp():
                self._known[result] = Known(columns.pids)
            case triton.BlockSizeOp():
                self._known[result] = Known(columns.everywhere(self._sizes[op.block.data]))
            case triton.ArangeOp():
                block = op.block.data
                self._known[result] = Known(columns.lanes(block), frozenset({block}))
            case triton.CdivOp():
                length, size = self.of(op.length), self._sizes[op.block.data]
                self._known[result] = Known(-(-length.numbers // size), length.blocks)
            case triton.LoadOp():
                self._known[result] = Known(columns.zeros, self.of(op.offsets).blocks, loaded=True)
            case _:
                raise AssertionError(op.name)

    def _swizzle(self, op: triton.SwizzleOp) -> None:
        """Blocks of a group of rows are taken column by column."""
        i, j, rows, columns = (self.of(operand).numbers for operand in op.operands)
        group = self._sizes[op.group.data]
        place = i * columns + j
        first = place // (group * columns) * group
        height = np.maximum(np.minimum(rows - first, group), 1)
        place %= np.maximum(group * columns, 1)
        self._known[op.new_row] = Known(first + place % height)
        self._known[op.new_column] = Known(place // height)

    def _derive(self, op: Operation, result: SSAValue) -> None:
        """The number of a result that is computed from other numbers; 0 where that is unknown."""
        sides = [self.of(operand) for operand in op.operands]
        blocks = _ALONG_NONE
        for side in sides:
            if side.blocks and side.blocks is not blocks:
                blocks |= side.blocks
        loaded = any(side.loaded for side in sides)
        kind = type(op)
        if (function := _BINARY.get(kind)) is not None:
            computed = function(sides[0].numbers, sides[1].numbers)
        elif _SAME[kind]:
            computed = sides[0].numbers
        elif _COMPUTED[kind]:
            computed = _computed(op, [side.numbers for side in sides])
        else:
            computed, loaded = self.columns.zeros, True
        self._known[result] = Known(np.asarray(computed, np.int64), blocks, loaded)


def _computed(op: Operation, numbers: Sequence[Numbers]) -> Numbers:
    """What a comparison, a choice or a division makes of numbers."""
    match op:
        case triton.CompareOp():
            return _COMPARED[op.predicate.data](*numbers)
        case triton.WhereOp() | arith.SelectOp():
            return np.where(numbers[0], numbers[1], numbers[2])
        case arith.DivSIOp():
            return numbers[0] // np.where(numbers[1] == 0, 1, numbers[1])
        case arith.RemSIOp():
            return numbers[0] % np.where(numbers[1] == 0, 1, numbers[1])
        case _:
            raise AssertionError(op.name)
