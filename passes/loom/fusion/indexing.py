"""A map computed where a body reads one cell of what it writes, at an index that it has computed.

    %l = loom.operation @log_softmax ... [map, map] ins(%x : (i, c) -> (i, c), %m : (i, c) -> (i))
    %y = loom.operation @gather ... ins(%l : (i) -> (i, 0) :> [1, 50]) ... {loom.read %row[%0, %t]}

becomes

    %y = loom.operation @gather ... ins(%x : (i) -> (i, 0) :> [1, 50], %m : (i) -> (i))
           {%c = loom.read %row[%0, %t] ... subf %c, %m}

so that no `%l` is stored for the sake of a cell per row. Which point of the map writes a cell is an
affine function of the cell, which is the block's first one and the index away from it: so what the
map reads there are cells of blocks too, or, where it does not move along the block, one cell. A map
may read blocks itself: a tensor whose rows are taken at places, and then its columns, is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from tapestry.algebra.bodies import needed_operations
from tapestry.dialects import loom
from tapestry.dialects._loom_blocks import element_of
from tapestry.dialects.loom import BlockType, Read, argument_type, yielded
from tapestry.passes.loom.rebuilding.bodies import coordinate_ops, inlined
from tapestry.zspace import AffineMap, Projection


@dataclass(frozen=True)
class Indexed:
    """Which points of a map write the cells of a block that each point of a reader reads.

    `first` is the point of the block's first cell, `steps` how far it is to that of a cell, from
    the cell's index. `shape` is the block's.
    """

    first: AffineMap
    steps: AffineMap
    shape: tuple[int, ...]

    def read(self, read: Read) -> Read:
        """What the reader reads for the map to read `read`: one cell, or a block of them.

        It is larger than the map's own by as far as that moves along the reader's block.
        """
        start = read.projection.compose(self.first).map
        rows = [self._row(terms) for terms in read.projection.map.matrix]
        lows = [sum(min(0, self._reach(t, n)) for t, n in enumerate(row)) for row in rows]
        far = [sum(abs(self._reach(t, n)) for t, n in enumerate(row)) for row in rows]
        shape = [own + more for own, more in zip(read.projection.shape, far, strict=True)]
        return read._replace(projection=Projection(start.translate(lows), tuple(shape)))

    def index(self, read: Read, number: int) -> tuple[tuple[int, ...], int]:
        """Along a dimension of that block, what a cell's index is times, and what is added."""
        row = self._row(read.projection.map.matrix[number])
        return row, -sum(min(0, self._reach(t, n)) for t, n in enumerate(row))

    def moving(self, read: Read, number: int) -> list[int]:
        """Along which dimensions of the reader's block what is read moves along one of its own."""
        row, _ = self.index(read, number)
        return [dim for dim, factor in enumerate(row) if factor and self.shape[dim] > 1]

    def _row(self, terms: Sequence[int]) -> tuple[int, ...]:
        """The factors of an index in a row of a map from the map's points."""
        (row,) = AffineMap.of([terms], inputs=len(terms)).compose(self.steps).matrix
        return row

    def _reach(self, dim: int, factor: int) -> int:
        """How far a row moves from the first index along a dimension of the block to the last."""
        return factor * (self.shape[dim] - 1)


def indexed_at(
    producer: loom.OperationOp, reader: loom.OperationOp, position: int, read: Read
) -> Indexed | str:
    """Which points of a map each point of a reader may need, or why it cannot compute them.

    An index outside the block is an error in the reader, and must be one then too (`_fails_alike`).
    A cell that nobody reads is not computed: what would be an error there is none.
    """
    wanted = producer.outs.index(read.value)
    written = producer.out_maps[wanted]
    back = written.map.inverse_on(producer.index)
    if back is None or not written.is_unit or read.fill is not None:
        return f"{reader.subject} reads past the edges of what {producer.subject} writes"
    if any(own.fill is not None for own in producer.in_reads):
        return f"{reader.subject} reads a block, and {producer.subject} reads past edges"
    reads = reads_in(argument_at(reader, position))
    shape = read.projection.shape
    if not reads or 0 in shape or any(op.otherwise is not None for op in reads):
        return f"{reader.subject} may read outside the block that {producer.subject} writes"
    linear = AffineMap(back.matrix, (0,) * back.outputs, back.inputs)
    found = Indexed(back.compose(read.projection.map), linear, tuple(shape))
    if not _fails_alike(found, reads, producer, wanted):
        return f"an index outside the block of {reader.subject} may be inside what is read instead"
    return found


def _fails_alike(
    at: Indexed, reads: Sequence[loom.ReadOp], producer: loom.OperationOp, wanted: int
) -> bool:
    """Whether an index outside the block is one outside of something that is read instead.

    Along each dimension of the block then moves something that the wanted value is computed of, and
    along no other with it; a dimension of one cell is asked for that one alone. Where the map reads
    a block itself and moves, it has one cell, which is asked for: its place is the index.
    """
    value = yielded(producer.wrap_block)[wanted]
    needed = needed_operations([value])
    known: set[int] = set()
    for read, argument in zip(producer.in_reads, producer.wrap_block.args, strict=True):
        is_block = not read.projection.is_unit
        own = [op for op in reads_in(argument) if op in needed] if is_block else []
        is_needed = argument is value or any(use.operation in needed for use in argument.uses)
        always = is_needed and all(op.otherwise is None for op in own)
        for number, extent in enumerate(read.projection.shape):
            dims = at.moving(read, number)
            if len(dims) > 1:
                return False
            if dims and (extent != 1 or not all(_is_zero(op.indices[number]) for op in own)):
                return False
            if always:
                known.update(dims)
    return all(
        dim in known if extent > 1 else all(_is_zero(op.indices[dim]) for op in reads)
        for dim, extent in enumerate(at.shape)
    )


def read_there(read: Read, points: AffineMap | Indexed) -> Read:
    """What a reader reads for a map to read `read` at the points that the reader needs."""
    return read.compose(points) if isinstance(points, AffineMap) else points.read(read)


def argument_at(op: loom.OperationOp, position: int) -> SSAValue:
    """The argument of wrap or unwrap that takes what an operation reads of an operand."""
    if position < len(op.ins):
        return op.wrap_block.args[position]
    assert op.unwrap_block is not None
    return op.unwrap_block.args[len(op.unwrap_block.args) - len(op.operands) + position]


def reads_in(block: SSAValue) -> list[loom.ReadOp]:
    """The reads of a block."""
    return [use.operation for use in block.uses if isinstance(use.operation, loom.ReadOp)]


def compute_at_reads(
    body: Block,
    reads: Sequence[Read],
    target: Block,
    place: int,
    at: Indexed,
    dims: Sequence[int],
    rewriter: PatternRewriter,
) -> None:
    """Compute a map's body, which takes what it `reads`, where `target` reads a block.

    That is argument `place`, which becomes what the map reads at its points `at`; coordinates there
    are of the dimensions `dims`. Blocks that the body reads grow by as far as it moves along them,
    and are read where they were from there on.
    """
    block = target.args[place]
    taken: list[SSAValue] = []
    for number, (read, argument) in enumerate(zip(reads, body.args, strict=True), place + 1):
        kind = argument_type(at.read(read).projection, element_of(argument.type))
        taken.append(target.insert_arg(kind, number))
        taken[-1].name_hint = argument.name_hint
    blocks = {
        argument: read
        for read, argument in zip(reads, taken, strict=True)
        if not read.projection.is_unit
    }
    for op in reads_in(block):
        emit = partial(_emit, rewriter, InsertPoint.before(op))
        arguments: list[SSAValue] = []
        for read, argument in zip(reads, taken, strict=True):
            if isinstance(argument.type, BlockType) and argument not in blocks:
                rows = [at.index(read, n) for n in range(read.projection.outputs)]
                indices = [_affine(op.indices, *row, emit) for row in rows]
                argument = emit(loom.ReadOp(argument, indices))
            arguments.append(argument)
        copy = Block()
        (value,) = inlined(body, arguments, copy)
        for inner in list(copy.ops):
            inner.detach()
            if isinstance(inner, loom.IndexOp):
                *first, last = coordinate_ops(at.first, inner.dimension, dims)
                for step in first:
                    emit(step)
                moved = _affine(op.indices, at.steps.matrix[inner.dimension], 0, emit)
                made = emit(arith.AddiOp(emit(last), moved))
            elif isinstance(inner, loom.ReadOp) and (own := blocks.get(inner.block)) is not None:
                indices = [
                    # It is 0 where the body moves: `_fails_alike`.
                    _affine(op.indices, *at.index(own, n), emit) if at.moving(own, n) else index
                    for n, index in enumerate(inner.indices)
                ]
                made = emit(loom.ReadOp(inner.block, indices, inner.otherwise))
            else:
                emit(inner)
                continue
            value = made if value is inner.result else value
            inner.result.replace_all_uses_with(made)
            inner.erase()
        rewriter.replace(op, [], [value])
    target.erase_arg(block)


def _is_zero(index: SSAValue) -> bool:
    """Whether an index is the constant 0."""
    op = index.owner
    return isinstance(op, arith.ConstantOp) and op.value == IntegerAttr(0, i64)


def _emit(rewriter: PatternRewriter, place: InsertPoint, op: Operation) -> SSAValue:
    rewriter.insert(op, place)
    return op.results[0]


def _affine(
    values: Sequence[SSAValue],
    factors: Sequence[int],
    shift: int,
    emit: Callable[[Operation], SSAValue],
) -> SSAValue:
    """A sum of multiples of integers, and a number."""

    def constant(number: int) -> SSAValue:
        return emit(arith.ConstantOp(IntegerAttr(number, i64)))

    total: SSAValue | None = constant(shift) if shift else None
    for value, factor in zip(values, factors, strict=True):
        if factor:
            term = value if factor == 1 else emit(arith.MuliOp(value, constant(factor)))
            total = term if total is None else emit(arith.AddiOp(total, term))
    return constant(0) if total is None else total
