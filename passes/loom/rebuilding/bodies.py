"""Bodies put together: one yields into another, coordinates are rewritten.

    producer (%a) { %y = f %a; yield %y }   consumer (%c, %p) { %z = g %c, %p; yield %z }

grafted at position 1 of the consumer gives `(%c, %a) { %y = f %a; %z = g %c, %y; yield %z }`.
Operations are moved, not copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.dialects import loom
from tapestry.zspace import AffineMap


def graft(
    producer: Block, consumer: Block, position: int, lead: int, rewriter: PatternRewriter
) -> None:
    """`producer` extended by `consumer`, whose argument `position` becomes what it yields.

    The block's arguments are the consumer's first `lead`, the producer's, then the consumer's
    others; `position` itself is gone. The producer must yield one value.
    """
    end = producer.last_op
    assert end is not None
    (value,) = end.operands
    rewriter.erase(end)
    replaced: list[SSAValue] = []
    for place, argument in enumerate(consumer.args):
        if place == position:
            replaced.append(value)
            continue
        at = place if place < lead else len(producer.args)
        fresh = producer.insert_arg(argument.type, at)
        fresh.name_hint = argument.name_hint
        replaced.append(fresh)
    for argument, new in zip(consumer.args, replaced, strict=True):
        argument.replace_all_uses_with(new)
    for op in list(consumer.ops):
        op.detach()
        producer.add_op(op)


def extend(
    producer: Block,
    consumer: Block,
    taken: Mapping[int, int],
    kept: Sequence[int],
    rewriter: PatternRewriter,
) -> None:
    """`producer` extended by `consumer`, whose argument `p` becomes what it yields at `taken[p]`.

    The block's arguments are the producer's, then the consumer's others; it yields the producer's
    values at `kept`, then what the consumer yields.
    """
    end, last = producer.last_op, consumer.last_op
    assert end is not None
    assert last is not None
    values = tuple(end.operands)
    rewriter.erase(end)
    for place, argument in enumerate(list(consumer.args)):
        if place in taken:
            argument.replace_all_uses_with(values[taken[place]])
        else:
            fresh = producer.insert_arg(argument.type, len(producer.args))
            fresh.name_hint = argument.name_hint
            argument.replace_all_uses_with(fresh)
    results = tuple(last.operands)
    rewriter.erase(last)
    for op in list(consumer.ops):
        op.detach()
        producer.add_op(op)
    producer.add_op(loom.YieldOp(*(values[place] for place in kept), *results))


def drop_unused(block: Block, rewriter: PatternRewriter) -> None:
    """Remove the operations of a body whose values nothing uses."""
    for op in reversed(list(block.ops)):
        if op is not block.last_op and not any(result.uses.get_length() for result in op.results):
            rewriter.erase(op)


def share_equal(block: Block, rewriter: PatternRewriter) -> bool:
    """Compute equal values of a body once; whether there were any. Scalar operations are pure."""
    seen: dict[Hashable, Operation] = {}
    found = False
    for op in list(block.ops):
        if op is block.last_op:
            break
        key = (
            op.name,
            tuple(op.operands),
            tuple(op.result_types),
            frozenset(op.properties.items()),
            frozenset(op.attributes.items()),
        )
        first = seen.setdefault(key, op)
        if first is not op:
            rewriter.replace(op, [], first.results)
            found = True
    return found


def inlined(block: Block, arguments: Sequence[SSAValue], into: Block) -> list[SSAValue]:
    """What `block` yields for some arguments, its operations copied to the end of `into`."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if op is block.last_op:
            break
        copy = op.clone(values)
        into.add_op(copy)
    return [values[value] for value in loom.yielded(block)]


def reindex(
    block: Block, coordinates: AffineMap, dims: Sequence[int], rewriter: PatternRewriter
) -> None:
    """Rewrite each `loom.index d` of a body in terms of another index space.

    Row `d` of `coordinates` is the old coordinate as an affine function of the new dimensions
    `dims`, in order.
    """
    for op in list(block.ops):
        if not isinstance(op, loom.IndexOp):
            continue
        new = coordinate_ops(coordinates, op.dimension, dims)
        rewriter.replace(op, new)


def coordinate_ops(coordinates: AffineMap, row: int, dims: Sequence[int]) -> list[Operation]:
    """Operations whose last computes one row of an affine map from `loom.index` values."""
    ops: list[Operation] = []
    total: SSAValue | None = None

    def constant(value: int) -> SSAValue:
        ops.append(arith.ConstantOp(IntegerAttr(value, i64)))
        return ops[-1].results[0]

    for dim, factor in zip(dims, coordinates.matrix[row], strict=True):
        if factor == 0:
            continue
        ops.append(loom.IndexOp(dim))
        term = ops[-1].results[0]
        if factor != 1:
            ops.append(arith.MuliOp(term, constant(factor)))
            term = ops[-1].results[0]
        if total is not None:
            ops.append(arith.AddiOp(total, term))
            term = ops[-1].results[0]
        total = term
    offset = coordinates.offset[row]
    if total is None:
        constant(offset)
    elif offset:
        ops.append(arith.AddiOp(total, constant(offset)))
    return ops


def in_group(op: Operation) -> bool:
    """Whether an operation is a member of a `loom.fused`, which says what its members are."""
    return isinstance(op.parent_op(), loom.FusedOp)


def body_size(op: loom.OperationOp) -> int:
    """How many operations the bodies of `op` hold."""
    return sum(1 for region in op.regions for block in region.blocks for _ in block.ops)


def identity(op: Operation) -> tuple[Hashable, ...]:
    """What makes two pure operations equal: everything but their labels."""
    return (tuple(op.operands), tuple(op.result_types), op.properties.get("index_range"), *kind(op))


def kind(op: Operation, *, without: tuple[str, ...] = ()) -> tuple[Hashable, ...]:
    """What an operation does, whatever it is applied to: its properties, attributes and bodies."""
    applied = ("label", "index_range", "operandSegmentSizes", *without)
    properties = frozenset((k, v) for k, v in op.properties.items() if k not in applied)
    bodies = tuple(body_key(block) for region in op.regions for block in region.blocks)
    return (op.name, properties, frozenset(op.attributes.items()), bodies)


def body_key(block: Block) -> tuple[Hashable, ...]:
    """What a body computes: equal for bodies that differ in the names of values alone."""
    number: dict[SSAValue, int] = {value: n for n, value in enumerate(block.args)}
    rows: list[tuple[Hashable, ...]] = [tuple(argument.type for argument in block.args)]
    for op in block.ops:
        for result in op.results:
            number[result] = len(number)
        operands = tuple(number[operand] for operand in op.operands)
        rows.append((op.name, operands, tuple(op.result_types), frozenset(op.properties.items())))
    return tuple(rows)
