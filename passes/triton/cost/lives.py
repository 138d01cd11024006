"""How many bytes of tiles a kernel holds at once: what its registers have to do.

    %acc = loop over k (%acc0):                     acc: from the loop's start to the store
      %s = triton.dot %q, %k, %zero                 s: until %e
      %e = math.exp %s                              e: until %acc0 is added to
      ...

A value is alive from where it is made to where it is last used, or to the end of a loop that uses
it from outside. Threads compute cell by cell, so what is made and used on the way is never there as
a whole: tiles are counted where all of their cells must be there, at products, reductions, loops
and loads. What costs nothing to make again (constants, positions, another shape of the same cells)
is not held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.passes.triton.cost.kinds import Kinds

_REGISTER = 4
"""Bytes of a register, in which a cell of less lies alone or with one more."""

_RESHAPED = Kinds(triton.BroadcastOp, triton.ExpandDimsOp, triton.TransposeOp)
_LOADS = Kinds(triton.LoadOp, triton.LoadBlockOp)
_KEPT = Kinds(triton.LoadOp, triton.LoadBlockOp, scf.ForOp)
_WHOLE = Kinds(triton.LoadOp, triton.LoadBlockOp, triton.DotOp, triton.CombineOp, scf.ForOp)
_POSITIONS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, triton.CompareOp)
_MADE = (triton.ArangeOp, triton.FullOp, triton.BlockSizeOp, arith.ConstantOp)
_CHEAP = Kinds(
    *(*_MADE, *_POSITIONS), *(triton.BroadcastOp, triton.ExpandDimsOp, triton.TransposeOp)
)


Tile: TypeAlias = "tuple[int, int]"
"""The bytes of the cells of a tile, and how many steps' tiles are there at once."""


Place: TypeAlias = "tuple[tuple[Tile, ...], tuple[Tile, ...]]"
"""The tiles that are all there at a place, and those of which one is at a time."""


@dataclass(frozen=True)
class Lives:
    """The tiles that are alive at places of a kernel: all of some, and one of others at a time."""

    places: tuple[Place, ...]
    loops: tuple[Place, ...]
    """Of these, the places in loops."""

    @staticmethod
    def of(kernel: triton.KernelOp, elsewhere: Collection[SSAValue]) -> Lives:
        """Those of a kernel, but for values that are held `elsewhere`."""
        order = _Order(kernel)
        tiles = {
            value: _tile(value)
            for value in order.first
            if shape_of(value) and value not in elsewhere and not _CHEAP[type(value.owner)]
        }
        spans = [(v, order.first[v], order.last.get(v, order.first[v])) for v in tiles]

        def alive(at: int) -> list[SSAValue]:
            return [value for value, first, last in spans if first <= at < last]

        def place(at: int) -> Place:
            return tuple(tiles[value] for value in alive(at)), ()

        places = [place(at) for at in order.whole]
        loops = [place(at) for at in order.whole if at in order.inside]
        for at in order.late:
            # What is computed on the way is one tile after another.
            there = alive(at)
            kept = tuple(tiles[value] for value in there if _KEPT[type(value.owner)])
            passing = tuple(tiles[value] for value in there if not _KEPT[type(value.owner)])
            places.append((kept, passing))
        return Lives(tuple(dict.fromkeys(places)), tuple(dict.fromkeys(loops)))

    def bytes(self, threads: int) -> int:
        """The most bytes of registers at once: each thread holds a cell of a tile at least."""
        return self._most(self.places, threads)

    def walking(self, threads: int) -> int:
        """The same while a loop runs, where there is one."""
        return self._most(self.loops or self.places, threads)

    def _most(self, places: Iterable[Place], threads: int) -> int:
        least = threads * _REGISTER

        def size(tile: Tile) -> int:
            return max(tile[0], least) * tile[1]

        return max(
            (sum(map(size, kept)) + max(map(size, one), default=0) for kept, one in places),
            default=0,
        )


def _tile(value: SSAValue) -> Tile:
    return prod(shape_of(value)) * max(byte_size(element_of(value)), 2), _copies(value)


def unrolled(loop: scf.ForOp) -> int:
    """Of how many steps of a loop cells are loaded together.

    Loads of the next step pass no barriers, at which threads reduce a tile or scan it, and no
    stores, which may be to what they read for all that a compiler knows.
    """
    said = loop.attributes.get(triton.UNROLL)
    ends = triton.CombineOp | triton.StoreOp | triton.StoreBlockOp
    waits = any(isinstance(op, ends) for op in loop.body.block.ops)
    return said.value.data if isinstance(said, IntegerAttr) and not waits else 1


_MOST_COPIES = 16
"""Of more steps a compiler does not load all cells first: a window of 49, whose two cells per lane
would be in 98 registers, takes 32, as one of 9 does."""


def _copies(value: SSAValue) -> int:
    """How many steps' cells of a value are there at once: all that are loaded together."""
    owner = value.owner
    loop = owner.parent_op() if _LOADS[type(owner)] else None
    return min(unrolled(loop), _MOST_COPIES) if isinstance(loop, scf.ForOp) else 1


_ACROSS_WARPS, _FEW_WARPS = 16, 4
"""Registers that a thread takes to scan across more than a few warps."""


def scan_bytes(cells: int, warps: int) -> int:
    """What threads hold of a tile of so many cells while it is scanned, beside the tile itself.

    Each holds what is before its cells, and what other warps end with: measured for sm_90.
    """
    across = _ACROSS_WARPS * 32 * warps if cells and warps > _FEW_WARPS else 0
    return 4 * (cells // 2 + across)


class _Order:
    """Where each value of a kernel is made, and where it is last used, in the order of the text.

    `whole` are the places where whole tiles have to be there, those `inside` a loop among them;
    `late` are loads that come after loops.
    """

    def __init__(self, kernel: triton.KernelOp) -> None:
        self.first: dict[SSAValue, int] = {}
        self.last: dict[SSAValue, int] = {}
        self.whole: list[int] = []
        self.inside: set[int] = set()
        self.late: list[int] = []
        self._depth: dict[SSAValue, int] = {}
        self._loops: list[list[SSAValue]] = []
        self._at = 0
        self._walked = False
        self._block(kernel.body.block)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._at += 1
            for operand in op.operands:
                self._use(operand)
            kind = type(op)
            if kind is scf.ForOp:
                assert isinstance(op, scf.ForOp)
                self._loop(op)
            if kind is scf.IfOp:
                assert isinstance(op, scf.IfOp)
                self._branches(op)
            for result in op.results:
                self._make(result)
            if self._walked and not self._loops and _LOADS[kind]:
                self.late.append(self._at)
            elif _WHOLE[kind]:
                self.whole.append(self._at)
                if self._loops:
                    self.inside.add(self._at)
            self._walked |= kind is scf.ForOp

    def _loop(self, op: scf.ForOp) -> None:
        self._loops.append([])
        for argument in op.body.block.args:
            self._make(argument)
        self._block(op.body.block)
        self._at += 1
        for value in self._loops.pop():
            self.last[value] = self._at

    def _branches(self, op: scf.IfOp) -> None:
        walked = self._walked
        for region in op.regions:
            self._walked = walked
            self._block(region.block)

    def _make(self, value: SSAValue) -> None:
        self.first[value] = self._at
        self._depth[value] = len(self._loops)

    def _use(self, value: SSAValue) -> None:
        while _RESHAPED[type(owner := value.owner)]:
            assert isinstance(owner, Operation)
            value = owner.operands[0]
        if value not in self.first:
            return
        self.last[value] = self._at
        depth = self._depth[value]
        if depth < len(self._loops):
            self._loops[depth].append(value)


def defining(value: SSAValue) -> Operation | None:
    """The operation that makes the cells of a value, whatever their shape."""
    while _RESHAPED[type(owner := value.owner)]:
        assert isinstance(owner, Operation)
        value = owner.operands[0]
    return owner if isinstance(owner, Operation) else None
