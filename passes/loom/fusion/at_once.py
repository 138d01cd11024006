"""A fold of what a fold writes, made one fold: sums of sums, maxima of maxima.

    %g = loom.operation @g over <[0, 0, 0] : [4, 8, 6]> [map, map, fold] by @add
           ins(%x : (d0, d1, d2) -> (d0, d1, d2)) outs((d0, d1) -> (d0, d1)) wrap {x}
    %s = loom.operation @s over <[0, 0] : [8, 4]> [map, fold] by @add
           ins(%g : (d0, d1) -> (d1, d0)) outs((d0) -> (d0)) wrap {x}

become one, and `%g` is never stored:

    %s = loom.operation @g_s over <[0, 0, 0] : [8, 4, 6]> [map, fold, fold] by @add
           ins(%x : (d0, d1, d2) -> (d1, d0, d2)) outs((d0) -> (d0)) wrap {x}

So the gradients of keys that several heads of queries share are folded along rows and heads at
once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.algebra.contraction import find_contractions
from tapestry.algebra.monoids import accumulating, monoid_of
from tapestry.dialects import loom
from tapestry.locations import fuse_locations
from tapestry.passes.loom.fusion.joining import identity_body, joined_label
from tapestry.passes.loom.rebuilding.bodies import graft, in_group, reindex
from tapestry.passes.loom.rebuilding.notes import joined_attributes
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.zspace import AffineMap, Domain
from tapestry.zspace.origins import origin


@dataclass
class FoldAtOnce(RewritePattern):
    """A fold moves into the fold of what it writes.

    Legal when the outer one folds cells as they are, by the same monoid, which commutes, and visits
    each cell that the inner one writes once; nothing else reads these; and what the inner one's
    unwrap does commutes with the fold: nothing, or to a sum, times a constant. No cell is rounded
    to 16 bits in between. Sums of floats are added in another order.

    Done where at least `cells` cells are left, which share the work: fewer are better folded in two
    steps. A matrix product stays one: what is folded besides, both its factors move along.
    """

    cells: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is None or len(op.ins) != 1:
            return
        inner = op.ins[0].owner
        if isinstance(inner, loom.OperationOp):
            points = folded_at_once(inner, op, self.cells)
            if isinstance(points, AffineMap):
                _join(inner, op, points, rewriter)


def folded_at_once(inner: loom.OperationOp, outer: loom.OperationOp, cells: int) -> AffineMap | str:
    """The kept point of the inner fold for each point of the outer one; or why both stay."""
    problem = _fold_problem(inner, outer)
    if problem is not None:
        return problem
    (read,) = outer.in_reads
    (written,) = inner.out_maps
    kept = inner.kept_range(inner.index)
    points = origin(written.map, kept, read.projection.map, outer.index)
    once = kept.size == outer.index.size and read.projection.map.is_injective_on(outer.index)
    if points is None or not once:
        return (
            f"{outer.subject} reads {read.projection} over <{outer.index}>, which does not visit "
            f"each cell of what {inner.subject} writes once"
        )
    left = outer.kept_range(outer.index).size
    if left < cells:
        return f"{outer.subject} leaves {left} cells, fewer than {cells}: two steps share the work"
    products = find_contractions(inner, monoid_of(inner))
    if products is not None:
        folded = {
            inner.kept_dims[row]
            for row, terms in enumerate(points.terms)
            if any(dim in outer.fold_dims for _, dim in terms)
        }
        if not all(folded <= {*product.batch} for product in products):
            return (
                f"{inner.subject} multiplies matrices, and would not if {outer.subject} was in it"
            )
    return points


def _fold_problem(inner: loom.OperationOp, outer: loom.OperationOp) -> str | None:
    """Why two operations could not be one fold, wherever the outer one reads."""
    if in_group(inner) or in_group(outer) or inner.parent is not outer.parent:
        return "members of a group stay as they are"
    monoid, other = monoid_of(inner), monoid_of(outer)
    if monoid is None or other is None or inner.monoid_name != outer.monoid_name:
        return f"{inner.subject} and {outer.subject} fold by different monoids"
    if inner.scan_dim is not None or outer.scan_dim is not None or not monoid.commutative:
        return f"{outer.subject} folds what {inner.subject} writes in its order"
    if inner.partition is not None or outer.partition is not None:
        return f"{inner.subject} or {outer.subject} is split"
    if len(outer.ins) != 1 or len(inner.outs) != 1 or len(monoid.state) != 1:
        return f"{outer.subject} folds more than what {inner.subject} writes"
    (out,) = inner.outs
    if out.uses.get_length() != 1 or not outer.in_reads[0].is_plain:
        return f"what {inner.subject} writes is read elsewhere too, or past its edges"
    (argument,) = outer.wrap_block.args
    if loom.yielded(outer.wrap_block)[0] is not argument:
        return f"{outer.subject} folds something else of what {inner.subject} writes"
    same = monoid.state == other.state == (argument.type,)
    if not same or (accumulating(monoid) is not monoid and not _chooses(monoid.primitive)):
        return f"what {inner.subject} writes is rounded"
    if inner.unwrap_block is not None and not _commutes(inner.unwrap_block, monoid.primitive):
        return f"what {inner.subject} does after it folds cannot be done after {outer.subject}"
    return None


def _chooses(primitive: type[object] | None) -> bool:
    """Whether folding rounds nothing, in whatever type of floats it is done."""
    return primitive in (arith.MaximumfOp, arith.MinimumfOp)


def _commutes(unwrap: Block, primitive: type[object] | None) -> bool:
    """Whether an unwrap does nothing, or multiplies a float sum by constants."""
    value = loom.yielded(unwrap)[0]
    if len(unwrap.args) != 1:
        return False
    while value is not unwrap.args[0]:
        product = value.owner
        if primitive is not arith.AddfOp or not isinstance(product, arith.MulfOp):
            return False
        left, right = product.operands
        if isinstance(left.owner, arith.ConstantOp):
            left, right = right, left
        if not isinstance(right.owner, arith.ConstantOp):
            return False
        value = left
    return True


def _join(
    inner: loom.OperationOp,
    outer: loom.OperationOp,
    points: AffineMap,
    rewriter: PatternRewriter,
) -> None:
    """One fold over the outer one's points and, at each, what the inner one folds."""
    folded, rank = inner.fold_dims, outer.index.rank
    total = rank + len(folded)
    every = points.insert_inputs(range(rank, total))
    rows: list[tuple[tuple[int, ...], int]] = [((), 0)] * inner.index.rank
    for dim, row, shift in zip(inner.kept_dims, every.matrix, every.offset, strict=True):
        rows[dim] = row, shift
    for place, dim in enumerate(folded, rank):
        rows[dim] = tuple(int(d == place) for d in range(total)), 0
    place = AffineMap(tuple(row for row, _ in rows), tuple(b for _, b in rows), total)
    index = outer.index.product(inner.fold_range(inner.index))
    if outer.unwrap_block is None:
        outer.unwrap.add_block(identity_body(outer.state_types))
    if inner.unwrap_block is None:
        inner.unwrap.add_block(identity_body(inner.state_types))
    wrap, first, then = inner.wrap_block, inner.unwrap_block, outer.unwrap_block
    assert first is not None
    assert then is not None
    reindex(wrap, place, tuple(range(total)), rewriter)
    ins, (_, extras) = reads_of(inner)[0], reads_of(outer)
    inner.wrap.detach_block(wrap)
    inner.unwrap.detach_block(first)
    graft(first, then, 0, 0, rewriter)
    fresh: list[loom.Iterator] = ["fold"] * len(folded)
    new = loom.OperationOp(
        joined_label(inner, outer),
        index,
        [*outer.kinds, *fresh],
        outer.monoid_name,
        [read.compose(place) for read in ins],
        writes_of(outer),
        Region(wrap),
        extras=extras,
        unwrap=Region(first),
        inside=_both_inside(inner, outer, place),
        attributes=joined_attributes(inner, outer),
    )
    new.location = fuse_locations(inner.location, outer.location)
    for old, result in zip(outer.outs, new.outs, strict=True):
        result.name_hint = old.name_hint
    rewriter.replace(outer, new)
    rewriter.erase(inner)


def _both_inside(
    inner: loom.OperationOp, outer: loom.OperationOp, place: AffineMap
) -> Domain | None:
    """The points that the outer fold folds, and the inner one at each."""
    parts: list[AffineMap] = []
    if inner.inside is not None:
        parts.append(inner.inside.compose(place).rows)
    if outer.inside is not None:
        more = range(outer.index.rank, place.inputs)
        parts.append(outer.inside.rows.insert_inputs(more))
    rows = [row for part in parts for row in zip(part.matrix, part.offset, strict=True)]
    return Domain.of([row for row, _ in rows], [b for _, b in rows]) if rows else None
