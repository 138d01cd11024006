"""Cells that a program touches, counted once each: windows overlap, and steps do.

    for k in static_range(9):
      load %x_ptr[%p * 2 + k // 3 * 112 + k % 3]    9 x 512 lanes, of 2.3 thousand cells

What a program asks for again comes from the cache of its multiprocessor, in whole sectors. How much
that is, no stride says: so the kernel's own arithmetic is run for all lanes of one program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.passes.triton.cost.programs import Columns, Indices, Numbers
from tapestry.passes.triton.cost.work import SECTOR

_MOST = 1 << 15
"""Lanes that are looked at: of more, little is read again."""

_SPARSE = 16
"""How much longer than it has numbers a list may be of what there is, which is faster to count."""


@dataclass(frozen=True)
class Footprint:
    """How many different cells a load reads, and the bytes of the sectors that they lie in."""

    cells: int
    bytes: int


class Lanes(Columns):
    """Columns of which each is a lane of some blocks, at a step of a loop, of one program."""

    def __init__(self, program: int, sizes: Mapping[str, int], steps: int) -> None:
        self._count = steps * prod(sizes.values())
        step, *places = np.unravel_index(np.arange(self._count), (steps, *sizes.values()))
        self.step: Numbers = np.asarray(step, np.int64)
        self._places = dict(zip(sizes, places, strict=True))
        self.pids: Numbers = self.everywhere(program)
        self.zeros: Numbers = self.everywhere(0)

    def everywhere(self, number: int) -> Numbers:
        """The same number in every column."""
        return np.full(self._count, number, np.int64)

    def lanes(self, block: str) -> Numbers:
        """The lane along a block, 0 along one that nothing depends on."""
        return np.asarray(self._places.get(block, 0) + self.zeros, np.int64)

    @staticmethod
    def are_few(sizes: Mapping[str, int], steps: int) -> bool:
        """Whether so many lanes can be looked at."""
        return steps * prod(sizes.values()) <= _MOST


def written_out(op: Operation) -> scf.ForOp | None:
    """The loop of which each step's load is code of its own, where an operation is in one."""
    loop = op.parent_op()
    return loop if isinstance(loop, scf.ForOp) and triton.WRITTEN_OUT in loop.attributes else None


def overlaps(strides: Iterable[tuple[int, int]], cell: int) -> bool:
    """Whether lanes may read cells, or parts of sectors, that others read.

    `strides` has the stride and the lanes of each block, `cell` the bytes of a cell.
    """
    moving = sorted((stride, size) for stride, size in strides if stride and size > 1)
    if not moving:
        return False
    reached = 1
    for stride, size in moving:
        if stride < reached:
            return True
        reached += (size - 1) * stride
    return 1 < moving[0][0] < SECTOR // cell


def footprint(
    op: triton.LoadOp, lanes: Lanes, arguments: Mapping[SSAValue, int], sizes: Mapping[str, int]
) -> Footprint | None:
    """What a load touches, seen by the lanes of one program.

    `arguments` are the numbers that a kernel is given, `sizes` the cells of its blocks. None where
    what is read decides, or nothing is read.
    """
    indices, loop = Indices(lanes, sizes), written_out(op)
    for argument, number in arguments.items():
        indices.place(argument, number)
    for value in _needed([op.offsets] if op.mask is None else [op.offsets, op.mask]):
        owner = value.owner
        if isinstance(owner, Operation):
            indices.visit(owner)
        elif (around := _counted(value)) is not None:
            size = indices.of(around.step).numbers if around is loop else 0
            indices.place(value, indices.of(around.lb).numbers + lanes.step * size)
    offsets = indices.of(op.offsets)
    numbers = offsets.numbers
    if op.mask is not None and not (mask := indices.of(op.mask)).loaded:
        numbers = numbers[mask.numbers != 0]
    if offsets.loaded or not len(numbers):
        return None
    assert isinstance(op.pointer.type, triton.PointerType)
    cell = byte_size(op.pointer.type.element_type)
    return Footprint(_different(numbers), _different(numbers * cell // SECTOR) * SECTOR)


def _needed(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    """What values are computed of, and they themselves, what comes first first."""
    seen: set[SSAValue] = set()

    def visit(value: SSAValue) -> Iterator[SSAValue]:
        if value in seen:
            return
        seen.add(value)
        owner, loop = value.owner, _counted(value)
        before = owner.operands if isinstance(owner, Operation) else ()
        for operand in before if loop is None else (loop.lb, loop.step):
            yield from visit(operand)
        yield value

    for value in values:
        yield from visit(value)


def _counted(value: SSAValue) -> scf.ForOp | None:
    """The loop that counts its steps by a value."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return loop if isinstance(loop, scf.ForOp) and value is loop.body.block.args[0] else None


def _different(numbers: Numbers) -> int:
    """How many different numbers there are."""
    from_first = numbers - numbers.min()
    span = int(from_first.max()) + 1
    if span > _SPARSE * len(numbers):
        return len(np.unique(numbers))
    seen = np.zeros(span, np.bool_)
    seen[from_first] = True
    return int(np.count_nonzero(seen))
