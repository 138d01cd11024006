"""`loom-split-scan`: parts of a scan side by side, each going on from what the ones before it are.

    %y = loom.operation @cumsum over <[0] : [4096]> [scan] by @add ins(%x : (i) -> (i)) ...

becomes, under `loom-split-scan{parts=8}`,

    %t = loom.operation @cumsum_totals over <[0, 0] : [7, 512]> [map, fold] by @add
           ins(%x : (s, i) -> (512 * s + i)) outs((s, i) -> (s)) ...
    %b = loom.operation @cumsum_before over <[0] : [7]> [scan] by @add ins(%t : (s) -> (s)) ...
    %y = loom.operation @cumsum over <[0, 0] : [8, 512]> [map, scan] by @add
           ins(%x : (s, i) -> (512 * s + i)) extra(%b : (s, i) -> (s - 1) clip 0.0 : f32) ...
           unwrap (%c: f32, %before: f32) { yield %before + %c }

Every part but the last reads its points twice, and nothing waits: programs scan all parts at once,
where one program would go along a row from its first point to its last. Before the first part is
the monoid's zero, which is what is clipped to. A part of a state that varies along fewer dimensions
is stored over those.

Options: `parts`, about how many (the greatest number up to it that divides the extent), `least`,
how many points each has at least, and `op` (a label; all operations without it).
Input: any verified loom program. Output: the same values; sums of floats are reassociated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import monoid_of
from tapestry.algebra.parts import Axes, varying_axes
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import in_group, inlined
from tapestry.passes.loom.rebuilding.digits import Split, over_points
from tapestry.passes.loom.rebuilding.operations import Write, reads_of, writes_of
from tapestry.passes.loom.split_fold import check_parts, count_parts, may_be_stored
from tapestry.zspace import AffineMap, Domain, Projection, Range


@dataclass(frozen=True)
class ScanChoice:
    """About how many parts of at least how many points, of which scan.

    Operations are chosen by label.
    """

    parts: int
    least: int
    op: str | None = None

    def split(self, op: loom.OperationOp) -> Split | None:
        """How an operation is split; None when it is not."""
        dim = op.scan_dim
        if dim is None or op.partition is not None or self.op not in (None, op.label.data):
            return None
        extent = op.index.shape[dim]
        count = count_parts(extent, min(self.parts, extent // self.least))
        return None if count == 1 else Split(dim, extent // count)


@dataclass(frozen=True)
class SplitScan(RewritePattern):
    """A scan becomes a fold of its parts, a scan of what these fold to, and scans of the parts.

    Legal because merges associate: the state at a point merges that of all parts before its own,
    in order, with that of its own part up to the point. Before the first part there is nothing,
    which is the monoid's zero. A state that executors keep in a wider type than it is written in is
    left alone: it would be rounded in between.
    """

    choice: ScanChoice

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        split = self.choice.split(op)
        if split is None or in_group(op) or not may_be_stored(op):
            return
        index, d = split.range(op.index), split.dim
        kinds: list[loom.Iterator] = [*op.kinds[:d], "map", "scan", *op.kinds[d + 1 :]]
        parts = over_points(op, split.map(op.index), index, kinds, None, rewriter)
        # What a part's state varies along: the part itself in any case, and no point of it.
        stored = [tuple(sorted({d, *axes} - {d + 1})) for axes in varying_axes(parts)]
        totals = _totals(parts, d, stored)
        before = _before(parts, d, stored, totals.outs)
        rewriter.insert([totals, before], InsertPoint.before(parts))
        _go_on(parts, d, stored, before.outs, rewriter)


def _totals(op: loom.OperationOp, d: int, stored: Sequence[Axes]) -> loom.OperationOp:
    """The folds of all parts but the last, states stored over some dimensions."""
    index = _but_the_last(op.index, d)
    kinds: list[loom.Iterator] = [*op.kinds]
    kinds[d + 1] = "fold"
    outs = [
        (projection, TensorType.of(index.select(dims), kind))
        for projection, dims, kind in zip(
            _across(op, d, stored), stored, op.state_types, strict=True
        )
    ]
    return _beside(op, "totals", index, kinds, op.in_reads, outs, op.wrap.clone(), op.inside)


def _before(
    op: loom.OperationOp, d: int, stored: Sequence[Axes], totals: Sequence[SSAValue]
) -> loom.OperationOp:
    """The scan of what parts fold to, over all dimensions but the one within parts."""
    kept = [dim for dim in range(op.index.rank) if dim != d + 1]
    kinds: list[loom.Iterator] = [op.kinds[dim] for dim in kept]
    kinds[d] = "scan"
    places = _across(op, d, stored)
    wrap = Block(arg_types=op.state_types)
    wrap.add_op(loom.YieldOp(*wrap.args))
    reads = [Read(value, place) for value, place in zip(totals, places, strict=True)]
    outs = [(place, tensor_type(value)) for place, value in zip(places, totals, strict=True)]
    index = _but_the_last(op.index, d).select(kept)
    return _beside(op, "before", index, kinds, reads, outs, Region(wrap))


def _go_on(
    op: loom.OperationOp,
    d: int,
    stored: Sequence[Axes],
    before: Sequence[SSAValue],
    rewriter: PatternRewriter,
) -> None:
    """Merge the state at each point after that of the parts before its own."""
    monoid = monoid_of(op)
    assert monoid is not None
    count, states, extras = len(stored), op.state_types, reads_of(op)[1]
    rank = op.index.rank
    last = AffineMap.identity(rank).translate([-int(dim == d) for dim in range(rank)])
    carried = [
        Read(value, Projection.cells(last.select_outputs(dims)), number_attr(zero, kind))
        for value, dims, zero, kind in zip(before, stored, monoid.zero, states, strict=True)
    ]
    unwrap = op.unwrap_block
    given = [] if unwrap is None else [argument.type for argument in unwrap.args[count:]]
    body = Block(arg_types=[*states, *given, *states])
    own, others, earlier = body.args[:count], body.args[count:-count], body.args[-count:]
    if unwrap is not None:
        for old, new in zip(unwrap.args, body.args, strict=False):
            new.name_hint = old.name_hint
    for new in earlier:
        new.name_hint = "before"
    merged = inlined(monoid.merge, [*earlier, *own], body)
    ends = merged if unwrap is None else inlined(unwrap, [*merged, *others], body)
    body.add_op(loom.YieldOp(*ends))
    extended = loom.OperationOp(
        op.label.data,
        op.index,
        op.kinds,
        op.monoid_name,
        op.in_reads,
        writes_of(op),
        op.detach_region(op.wrap),
        extras=[*extras, *carried],
        unwrap=Region(body),
        inside=op.inside,
        attributes=op.attributes,
    )
    extended.location = op.location
    for old, new in zip(op.outs, extended.outs, strict=True):
        new.name_hint = old.name_hint
    rewriter.replace(op, extended)


def _but_the_last(index: Range, d: int) -> Range:
    return index.with_sides({d: (0, index.shape[d] - 1)})


def _across(op: loom.OperationOp, d: int, stored: Sequence[Axes]) -> list[Projection]:
    """Where states are stored, from all dimensions but the one within parts."""
    every = Projection.identity(op.index.rank - 1)
    return [every.select_outputs([dim - (dim > d) for dim in dims]) for dims in stored]


def _beside(
    op: loom.OperationOp,
    suffix: str,
    index: Range,
    kinds: Sequence[loom.Iterator],
    ins: Sequence[Read],
    outs: Sequence[Write],
    wrap: Region,
    inside: Domain | None = None,
) -> loom.OperationOp:
    """An operation beside a scan, which folds or scans by the same monoid.

    What is noted of the scan, as a schedule, stays with it.
    """
    new = loom.OperationOp(
        f"{op.label.data}_{suffix}",
        index,
        kinds,
        op.monoid_name,
        ins,
        outs,
        wrap,
        inside=inside,
    )
    new.location = op.location
    for result in new.outs:
        result.name_hint = op.outs[0].name_hint
    return new


@dataclass(frozen=True)
class LoomSplitScan(ModulePass):
    """Scan parts side by side."""

    name = "loom-split-scan"

    parts: int
    least: int = 128
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the scans that are chosen."""
        check_parts(self.parts, self.least)
        pattern = SplitScan(ScanChoice(self.parts, self.least, self.op))
        with collection_paused():
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
