"""What computing a tensor where it is read costs, and what it saves.

    %d = loom.operation @shifted over <[0, 0] : [4, 6]> [map, map] ins(%x, %mean) ... {subf}

read by two operations over <[0, 0] : [4, 6]>: computed in both it is 48 subtractions instead of 24,
but %d is not written once and read twice, and %x is not read a first time: 24 scalar operations
for 4 * 24 * 4 bytes less. Everything follows from projections and bodies.

How often a reader computes it follows from the dimensions that its read moves along: a kernel
works on tiles, so along the others it computes once per tile, of `TILE` points. What is computed
again may also be little beside what its readers compute anyway, as before a matrix product. What is
read at computed places is no run of memory: to read it again is to move it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.dialects import arith, math
from xdsl.ir import Block, Operation

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.fusion.indexing import Indexed, argument_at, read_there, reads_in
from tapestry.passes.loom.rebuilding.operations import reads_of
from tapestry.zspace import AffineMap, Partition, Projection, Range
from tapestry.zspace.counting import selected_cells

TILE: Final = 128
"""For how many points a kernel has a value at hand that does not vary along them."""

SHARE: Final = 32
"""What is computed again is little where its readers compute this many times as much anyway."""

_FUNCTION: Final = 8
"""As how many additions a division or a function of `math` counts."""

_FREE: Final = (loom.YieldOp, loom.IndexOp, arith.ConstantOp)
_DIVISIONS: Final = (arith.DivfOp, arith.DivSIOp, arith.RemSIOp)
_CHEAP: Final = (math.AbsFOp, math.AbsIOp, math.CopySignOp, math.FmaOp, math.FloorOp, math.CeilOp)


@dataclass(frozen=True)
class Site:
    """A read that may compute what it reads: `points` are the producer's, of the reader's."""

    reader: loom.OperationOp
    position: int
    points: AffineMap | Indexed

    @property
    def over(self) -> Range:
        """The points that read: all, or those that are kept."""
        index = self.reader.index
        in_wrap = self.position < len(self.reader.ins)
        return index if in_wrap else self.reader.kept_range(index)

    def read(self, read: Read) -> Read:
        """What is read instead, for the producer to read `read`."""
        return read_there(read, self.points)


@dataclass(frozen=True)
class Price:
    """Scalar operations that are computed again, and bytes that are no longer read or written.

    `beside` is what the readers compute themselves.
    """

    work: int
    saved: int
    beside: int

    def is_within(self, per_byte: int) -> bool:
        """Whether at most `per_byte` operations are computed again for each byte, or few at all."""
        if self.work <= per_byte * self.saved:
            return True
        return per_byte > 0 and self.saved > 0 and self.work * SHARE <= self.beside

    def __str__(self) -> str:
        what = f"{self.work:,} scalar operations computed again"
        return f"{what} to save {self.saved:,} bytes" if self.saved > 0 else f"{what} save no bytes"


def price_of(producer: loom.OperationOp, sites: Sequence[Site]) -> Price:
    """The price of computing what an operation writes at each of the sites that read it."""
    operations = _work(producer.wrap_block)
    times = sum(_evaluations(site) for site in sites)
    repeated = max(0, times - producer.index.size)
    ins, _ = reads_of(producer)
    before = sum(tensor_type(out).byte_size for out in producer.outs)
    before += _bytes(ins, producer.index)
    after = beside = 0
    for reader in dict.fromkeys(site.reader for site in sites):
        own = [site for site in sites if site.reader is reader]
        taken = {site.position for site in own}
        reads = [read for part in reads_of(reader) for read in part]
        merges = 0 if reader.monoid_name is None else 1
        beside += (_work(reader.wrap_block) + merges) * reader.index.size
        before += sum(_bytes([reads[site.position]], site.over) for site in own)
        new = {(site.read(read), site.over) for site in own for read in ins}
        there = {read for place, read in enumerate(reads) if place not in taken}
        after += sum(_bytes([read], over) for read, over in new if read not in there)
    placed = [site.points for site in sites if isinstance(site.points, Indexed)]
    # What is read at computed places is moved again for each point that is computed again.
    cells = repeated * max((_cell_bytes(producer, points) for points in placed), default=0)
    return Price(operations * repeated, before - after - cells, beside)


def _cell_bytes(producer: loom.OperationOp, points: Indexed) -> int:
    """What a map reads at computed places for one cell that it computes at an index."""
    total = 0
    for read, argument in zip(producer.in_reads, producer.wrap_block.args, strict=True):
        if not read.projection.is_unit:
            times = len(reads_in(argument))
        else:
            times = int(not points.read(read).projection.is_unit)
        total += times * byte_size(tensor_type(read.value).element_type)
    return total


def _evaluations(site: Site) -> int:
    """How many points a reader computes the producer's body at."""
    if isinstance(site.points, Indexed):
        return site.over.size * len(reads_in(argument_at(site.reader, site.position)))
    moving = moving_dims(Projection.cells(site.points))
    others = prod(extent for dim, extent in enumerate(site.over.shape) if dim not in moving)
    return prod(site.over.shape[dim] for dim in moving) * -(-others // TILE)


def _work(body: Block) -> int:
    """What a body computes at a point, in additions."""
    return sum(_cost(op) for op in body.ops if not isinstance(op, _FREE))


def _cost(op: Operation) -> int:
    costly = isinstance(op, _DIVISIONS) or (
        op.name.startswith("math.") and not isinstance(op, _CHEAP)
    )
    return _FUNCTION if costly else 1


def _bytes(reads: Iterable[Read], over: Range) -> int:
    """What some reads select over a range."""
    whole = Partition.explicit([over])
    total = 0
    for value, projection, fill in reads:
        tensor = tensor_type(value)
        within = None if fill is None else tensor.box
        total += selected_cells(projection, whole, within) * byte_size(tensor.element_type)
    return total
