"""When two operations may be one: points of the one as an affine function of the other's.

    fold  @s writes (d0) -> (d0)         map @z reads it (d0) -> (3 - d0)

Every cell that `@s` writes is read once, by the point `3 - d0`: `@z` may move into its unwrap.
Each condition that fails is a sentence, for `tapestry explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.fusion.indexing import Indexed, indexed_at
from tapestry.passes.loom.rebuilding.bodies import body_size, in_group
from tapestry.passes.loom.rebuilding.operations import reads_of
from tapestry.zspace import AffineMap, Partition, Projection, Range
from tapestry.zspace.origins import origin


@dataclass(frozen=True)
class Following:
    """How a map moves into what it reads.

    `points` are its points for each point that the producer keeps; `taken` says which output of the
    producer its inputs are, by position.
    """

    points: AffineMap
    taken: Mapping[int, int]


def following(producer: loom.OperationOp, reader: loom.OperationOp, limit: int) -> Following | str:
    """How a map may be computed where what it reads is, or why it may not.

    It must visit each cell of what it reads once: its read, after the inverse of the projection
    that writes, is a bijection from the points that the producer keeps to the reader's.
    """
    if reader.monoid_name is not None:
        value = next(value for value in reader.operands if value in producer.outs)
        read = read_at(reader, list(reader.operands).index(value)).projection
        return (
            f"{reader.subject} folds too, over what it reads by {read}: "
            "a fold of a fold is two operations"
        )
    problem = _pair_problem(producer, reader, limit)
    if problem is not None:
        return problem
    taken = {
        position: producer.outs.index(value)
        for position, value in enumerate(reader.ins)
        if value in producer.outs
    }
    found: AffineMap | None = None
    for position, out in taken.items():
        read = reader.in_reads[position]
        if not read.is_plain:
            return _reads_other_cells(producer, reader)
        points = _bijection(producer, out, reader, read.projection)
        if points is None or points != (found or points):
            return (
                f"{reader.subject} reads {read.projection} over <{reader.index}>, which does not "
                f"visit each cell of what {producer.subject} writes once"
            )
        found = points
        if not splits_alike(reader, read.projection, producer, producer.out_maps[out]):
            return _split_apart(producer, reader)
    assert found is not None
    outs = [projection.compose(found) for projection in reader.out_maps]
    if producer.partition is not None and producer.sharding_problems(producer.partition, outs):
        return (
            f"the shards of {producer.subject} would not write boxes of what "
            f"{reader.subject} writes"
        )
    return Following(found, taken)


def computed_at(
    producer: loom.OperationOp, reader: loom.OperationOp, position: int, limit: int
) -> AffineMap | Indexed | str:
    """The point of a map that each point of a reader needs, or why it cannot be computed there.

    Where the reader reads a block, it is the point for each of its cells.
    """
    if producer.monoid_name is not None:
        return f"{producer.subject} folds: where it is read, it would be folded again"
    problem = _pair_problem(producer, reader, limit)
    if problem is not None:
        return problem
    read = read_at(reader, position)
    if not read.is_plain:
        found = indexed_at(producer, reader, position, read)
        written = producer.out_maps[producer.outs.index(read.value)]
        if isinstance(found, str) or splits_alike(producer, written, reader, read.projection):
            return found
        return _split_apart(producer, reader)
    in_wrap = position < len(reader.ins)
    over = reader.index if in_wrap else reader.kept_range(reader.index)
    written = producer.out_maps[producer.outs.index(read.value)]
    points = origin(written.map, producer.index, read.projection.map, over)
    if points is None:
        return (
            f"{producer.subject} writes {written} and {reader.subject} reads {read.projection}: "
            "which point computes a cell is no affine function of who reads it"
        )
    if not splits_alike(producer, written, reader, read.projection):
        return _split_apart(producer, reader)
    return points


def read_at(op: loom.OperationOp, position: int) -> Read:
    """What an operation reads of one of its operands."""
    ins, extras = reads_of(op)
    return ins[position] if position < len(ins) else extras[position - len(ins)]


def _pair_problem(producer: loom.OperationOp, reader: loom.OperationOp, limit: int) -> str | None:
    """Why two operations could not be one, whichever way they were joined."""
    if in_group(reader) or in_group(producer):
        return "members of a group stay as they are"
    if producer.parent is not reader.parent:
        return "they do not stand in one block"
    size = body_size(producer) + body_size(reader)
    if size > limit:
        return f"the joined body would have {size} scalar operations, more than {limit}"
    return None


def read_elsewhere(value: SSAValue, producer: loom.OperationOp) -> str:
    """What to say of a tensor that is read more often than it can be computed."""
    readers = sum(1 for _ in value.uses)
    return f"what {producer.subject} writes is read {readers} times, so it is stored anyway"


def _reads_other_cells(producer: loom.OperationOp, reader: loom.OperationOp) -> str:
    return f"{reader.subject} reads past the edges of what {producer.subject} writes, or blocks"


def _split_apart(producer: loom.OperationOp, reader: loom.OperationOp) -> str:
    return f"{producer.subject} and {reader.subject} are split into different boxes of the tensor"


def _bijection(
    producer: loom.OperationOp, out: int, reader: loom.OperationOp, read: Projection
) -> AffineMap | None:
    """The reader's index point that needs each point that the producer keeps; None without."""
    kept_range = producer.kept_range(producer.index)
    cells = tensor_type(producer.outs[out]).box.size
    if kept_range.size != reader.index.size or kept_range.size != cells:
        return None
    # Writing is injective, so no two kept points have one point of the reader's: of as many points,
    # all are had, and the reader visits each cell once.
    return origin(read.map, reader.index, producer.out_maps[out].map, kept_range)


def splits_alike(
    gone: loom.OperationOp, its: Projection, kept: loom.OperationOp, other: Projection
) -> bool:
    """Whether the operation that goes loses no partition that was asked for.

    It must be whole, or both must be split into the same boxes of the tensor between them; `its`
    and `other` project the two onto that tensor.
    """
    if gone.partition is None:
        return True
    if kept.partition is None:
        return False
    return _boxes(gone, gone.partition, its) == _boxes(kept, kept.partition, other)


def _boxes(op: loom.OperationOp, partition: Partition, projection: Projection) -> set[Range]:
    """The boxes of a tensor that the shards of `op` touch, from all or from its kept dimensions."""
    of_maps = projection.inputs == len(op.kept_dims)
    return {
        projection.apply_range(op.kept_range(box) if of_maps else box) for box in partition.ranges()
    }
