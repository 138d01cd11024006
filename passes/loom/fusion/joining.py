"""Two operations made one, where `conditions.py` allows it.

fold @s {unwrap f}, map @z {g}     ->   @s_z {unwrap g after f}       `follow`
map @e {f}, fold @s {wrap g}       ->   @e_s {wrap g after f}         `compute_in`
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Region
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.locations import fuse_locations
from tapestry.passes.loom.fusion.conditions import Following
from tapestry.passes.loom.fusion.indexing import Indexed, compute_at_reads, read_there
from tapestry.passes.loom.rebuilding.bodies import drop_unused, extend, graft, reindex
from tapestry.passes.loom.rebuilding.notes import joined_attributes
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.zspace import AffineMap

LABEL_LENGTH = 48
"""How long the label of joined operations may be."""


def follow(
    producer: loom.OperationOp,
    reader: loom.OperationOp,
    how: Following,
    rewriter: PatternRewriter,
    *,
    place: loom.OperationOp | None = None,
) -> loom.OperationOp:
    """Move a map into what it reads; outputs of the producer that others read are kept.

    The new operation stands where the reader does, or at `place`.
    """
    ins, extras = reads_of(producer)
    others = [read for at, read in enumerate(reads_of(reader)[0]) if at not in how.taken]
    joined = [read.compose(how.points) for read in others]
    kept = [
        number
        for number, out in enumerate(producer.outs)
        if any(use.operation is not reader for use in out.uses)
    ]
    own = writes_of(producer)
    outs = [own[number] for number in kept]
    outs += [(projection.compose(how.points), kind) for projection, kind in writes_of(reader)]
    folds = producer.monoid_name is not None
    if folds and producer.unwrap_block is None:
        producer.unwrap.add_block(identity_body(producer.state_types))
    body = producer.unwrap_block if folds else producer.wrap_block
    assert body is not None
    reindex(reader.wrap_block, how.points, producer.kept_dims, rewriter)
    extend(body, reader.wrap_block, how.taken, kept, rewriter)
    wrap, unwrap = [producer.detach_region(region) for region in producer.regions]
    new = loom.OperationOp(
        joined_label(producer, reader),
        producer.index,
        producer.kinds,
        producer.monoid_name,
        ins if folds else [*ins, *joined],
        outs,
        wrap,
        extras=[*extras, *joined] if folds else extras,
        unwrap=unwrap,
        partition=producer.partition,
        inside=producer.inside,
        attributes=joined_attributes(reader, producer),
    )
    new.location = fuse_locations(producer.location, reader.location)
    rewriter.insert(new, InsertPoint.before(place or reader))
    old = [*(producer.outs[out] for out in kept), *reader.outs]
    for out, result in zip(old, new.outs, strict=True):
        result.name_hint = out.name_hint
        rewriter.replace_all_uses_with(out, result)
    rewriter.erase(reader)
    rewriter.erase(producer)
    return new


def identity_body(types: Sequence[Attribute]) -> Block:
    """The body that yields what it takes."""
    block = Block(arg_types=types)
    block.add_op(loom.YieldOp(*block.args))
    return block


def compute_in(
    producer: loom.OperationOp,
    reader: loom.OperationOp,
    position: int,
    points: AffineMap | Indexed,
    label: str,
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """Compute a map where an operand of its reader is read; the map itself stays as it is."""
    ins, extras = reads_of(reader)
    outs = writes_of(reader)
    wanted = producer.outs.index(reader.operands[position])
    body, used = _only(producer, wanted, rewriter)
    reads = [reads_of(producer)[0][place] for place in used]
    own = [read_there(read, points) for read in reads]
    in_wrap = position < len(ins)
    if in_wrap:
        target, place, dims = reader.wrap_block, position, tuple(range(reader.index.rank))
        ins[position : position + 1] = own
    else:
        assert reader.unwrap_block is not None
        target, dims = reader.unwrap_block, reader.kept_dims
        at = position - len(ins)
        place = len(target.args) - len(extras) + at
        extras[at : at + 1] = own
    wrap, unwrap = [reader.detach_region(region) for region in reader.regions]
    if isinstance(points, Indexed):
        compute_at_reads(body, reads, target, place, points, dims, rewriter)
    else:
        reindex(body, points, dims, rewriter)
        graft(body, target, place, place, rewriter)
        wrap, unwrap = (Region(body), unwrap) if in_wrap else (wrap, Region(body))
    new = loom.OperationOp(
        label,
        reader.index,
        reader.kinds,
        reader.monoid_name,
        ins,
        outs,
        wrap,
        extras=extras,
        unwrap=unwrap,
        partition=reader.partition,
        inside=reader.inside,
        attributes=joined_attributes(producer, reader),
    )
    new.location = fuse_locations(producer.location, reader.location)
    for old, result in zip(reader.outs, new.outs, strict=True):
        result.name_hint = old.name_hint
    rewriter.replace(reader, new)
    return new


def _only(
    producer: loom.OperationOp, wanted: int, rewriter: PatternRewriter
) -> tuple[Block, list[int]]:
    """A copy of a map's body that yields one of its values, and which of its inputs that needs."""
    copied = producer.wrap.clone()
    block = copied.block
    copied.detach_block(block)
    end = block.last_op
    assert end is not None
    if len(end.operands) == 1:
        return block, list(range(len(block.args)))
    (value,) = end.operands[wanted : wanted + 1]
    rewriter.erase(end)
    block.add_op(loom.YieldOp(value))
    drop_unused(block, rewriter)
    used = [place for place, argument in enumerate(block.args) if argument.first_use]
    for argument in [a for a in block.args if not a.first_use]:
        block.erase_arg(argument)
    return block, used


def joined_label(first: loom.OperationOp, second: loom.OperationOp | loom.FusedOp) -> str:
    """Both labels, or the second's alone when that would be unwieldy."""
    joined = f"{first.label.data}_{second.label.data}"
    return joined if len(joined) <= LABEL_LENGTH else second.label.data
