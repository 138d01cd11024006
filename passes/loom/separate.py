"""Parts of a state that vary along fewer dimensions than others: a fold of their own.

    %y = loom.operation @norm_product over <[0, 0, 0] : [2048, 14336, 4096]> [map, map, fold]
           by @add_add ins(%x : (i, j, k) -> (i, k), %w : (i, j, k) -> (k, j))
           wrap {yield %x * %x, %x * %w} unwrap (%square, %sum) ...

sums squares for each row and column, though they are the same for all columns. `separate` makes

    %s = loom.operation @norm_product_parts over <[0, 0] : [2048, 4096]> [map, fold] by @add
           ins(%x : (i, k) -> (i, k)) wrap {yield %x * %x}
    %y = loom.operation @norm_product over <[0, 0, 0] : [2048, 14336, 4096]> [map, map, fold]
           by @add ins(...) extra(%s : (i, j) -> (i)) wrap {yield %x * %w}
           unwrap (%sum, %square) ...

which is what `loom-derive` undoes: one pass over the cells is less to read, but where a product is
cut into blocks of columns, each of them folds the squares again.
"""

from __future__ import annotations

from xdsl.ir import Region
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.algebra.monoids import monoid_of
from tapestry.algebra.parts import varying_axes
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.passes.loom.rebuilding.outputs import merges_alone, wrapped_parts
from tapestry.passes.loom.unfuse import renumber
from tapestry.zspace import Projection, Range


def separable_parts(op: loom.OperationOp) -> tuple[int, ...]:
    """The parts of a fold's state that may be a fold of their own, over fewer dimensions.

    They vary alike, along fewer of the dimensions that have more points than one than the others,
    and are merged apart from these. What has shards, a domain or no unwrap stays as it is.
    """
    monoid = None if op.monoid_name is None else monoid_of(op)
    if monoid is None or op.unwrap_block is None or in_group(op) or "scan" in op.kinds:
        return ()
    if op.partition is not None or op.inside is not None or len(monoid.state) < 2:
        return ()
    axes = varying_axes(op)
    fewest = min(axes, key=lambda own: _extent(op, own))
    parts = tuple(part for part, own in enumerate(axes) if own == fewest)
    rest = tuple(part for part in range(len(axes)) if part not in parts)
    fewer = bool(rest) and all(_extent(op, axes[part]) > _extent(op, fewest) for part in rest)
    return parts if fewer and merges_alone(monoid, parts) and merges_alone(monoid, rest) else ()


def separate(op: loom.OperationOp, rewriter: PatternRewriter) -> loom.OperationOp:
    """Take `separable_parts` of a fold out; what is left, which reads the finished ones."""
    parts, kept = separable_parts(op), op.kept_dims
    rest = [part for part in range(len(op.state_types)) if part not in parts]
    axes = varying_axes(op)[parts[0]]
    own = [dim for dim in range(op.index.rank) if dim not in kept or kept.index(dim) in axes]
    name, wrap, reads = wrapped_parts(op, parts, rewriter)
    renumber(wrap, own, rewriter)
    places = Projection.identity(len(axes))
    box = op.kept_range(op.index).select(axes)
    before = loom.OperationOp(
        f"{op.label.data}_parts",
        Range(tuple(op.index.start[d] for d in own), tuple(op.index.end[d] for d in own)),
        [op.kinds[dim] for dim in own],
        name,
        [read._replace(projection=read.projection.select_inputs(own)) for read in reads],
        [(places, TensorType.of(box, op.state_types[part])) for part in parts],
        Region(wrap),
    )
    name, wrap, reads = wrapped_parts(op, rest, rewriter)
    _, extras = reads_of(op)
    chosen = Projection.identity(len(kept)).select_outputs(axes)
    writes, (_, last) = writes_of(op), [op.detach_region(region) for region in op.regions]
    for part, result in zip(parts, before.outs, strict=True):
        argument = last.block.insert_arg(result.type.element_type, len(last.block.args))
        argument.name_hint = last.block.args[part].name_hint
        last.block.args[part].replace_all_uses_with(argument)
    for part in reversed(parts):
        last.block.erase_arg(last.block.args[part])
    after = loom.OperationOp(
        op.label.data,
        op.index,
        op.kinds,
        name,
        reads,
        writes,
        Region(wrap),
        extras=[*extras, *(Read(result, chosen) for result in before.outs)],
        unwrap=last,
        attributes=op.attributes,
    )
    before.location = after.location = op.location
    for old, result in zip(op.outs, after.outs, strict=True):
        result.name_hint = old.name_hint
    rewriter.replace(op, [before, after], after.outs)
    return after


def _extent(op: loom.OperationOp, axes: tuple[int, ...]) -> int:
    """How many points some of the kept dimensions have together."""
    return op.kept_range(op.index).select(axes).size
