"""`loom-stride-classes`: strided windows as dense ones, over the residue classes of their stride.

    out[i] = FOLD over k in [0, 5) of f(x[2 i + k], w[k])

reads every other window of `x`. With `k = 2 q + r` it reads `x[2 (i + q) + r]`: class `r` of `x`,
its cells `r, r + 2, ...` stored side by side, at `i + q`. So the fold is two dense folds, merged:

    x0[j] = x[2 j]        s0[i] = FOLD over q in [0, 3) of f(x0[i + q], w0[q])
    x1[j] = x[2 j + 1]    s1[i] = FOLD over q in [0, 2) of f(x1[i + q], w1[q])
    out[i] = merge(s0[i], s1[i])

The other way round, an operation that reads an interleaved tensor (a transposed convolution reads
its input with zeros between the cells) becomes operations that each read one part: map dimensions
are split into classes too, whose results are interleaved.

Input: any verified loom program, fused: fusing later would compute the copies where they are read,
strided again. Output: the same values up to the order of the fold, without strides on map
dimensions in rows that fold dimensions move. Each rewrite removes such a stride, so it terminates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.algebra.parts import Axes, varying_axes
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.materialize import copy_operation
from tapestry.passes.loom.rebuilding.bodies import inlined, reindex
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild, writes_of
from tapestry.passes.loom.rebuilding.residues import (
    MapByClasses,
    ResidueClass,
    interleaved_dims,
    may_change,
)
from tapestry.passes.loom.shards.merge_trees import state_tensors, storable_axes
from tapestry.passes.loom.simplification.assembly import ReadPartOfAssembly
from tapestry.zspace import AffineMap, Projection


class FoldByClasses(RewritePattern):
    """A fold over strided windows is folds over residue classes of the window, merged.

    Legal when the monoid commutes (the classes take the window's cells out of order) and nothing is
    scanned. An operation that has a partition is left alone: it would lose it.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        monoid = monoid_of(op)
        if monoid is None or not monoid.commutative or not may_change(op):
            return
        found = _strided_fold(op)
        if found is None:
            return
        dim, modulus = found
        classes = [ResidueClass(dim, modulus, r) for r in range(min(modulus, op.index.shape[dim]))]
        folds = [_fold_of(op, part, rewriter) for part in classes]
        whole = _merged(op, monoid, [list(fold.outs) for fold in folds], rewriter)
        for made in (*folds, whole):
            made.location = op.location
        for old, new in zip(op.outs, whole.outs, strict=True):
            new.name_hint = old.name_hint
        rewriter.replace(op, [*folds, whole])


class StoreReadClass(RewritePattern):
    """What a fold reads at multiples of a stride is copied, and read densely.

    Always legal: the copy holds the cells read, in order; where the read is clipped, the copy holds
    its fill.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not may_change(op) or not op.fold_dims or op.index.is_empty:
            return
        strided = any(
            _stride(row, op.kept_dims) > 1 and any(row[d] for d in op.fold_dims)
            for read in op.in_reads
            for row in read.projection.map.matrix
        )
        if not strided:
            return
        ins, _ = reads_of(op)
        stored = [_stored(op, read, rewriter) for read in ins]
        if stored != ins:
            rebuild(op, rewriter, ins=stored)


def _stride(row: Sequence[int], dims: Sequence[int]) -> int:
    """What divides all steps of a row along some dimensions; 0 where it does not move."""
    return gcd(*(row[d] for d in dims))


def _strided_fold(op: loom.OperationOp) -> tuple[int, int] | None:
    """A fold dimension that steps across a stride of the kept dimensions, and in how many steps."""
    for read in op.in_reads:
        for row in read.projection.map.matrix:
            stride = _stride(row, op.kept_dims)
            for dim in op.fold_dims if stride > 1 else ():
                modulus = stride // gcd(stride, row[dim])
                if row[dim] and modulus > 1 and op.index.shape[dim] > 0:
                    return dim, modulus
    return next(((dim, n) for dim, n in interleaved_dims(op) if dim in op.fold_dims), None)


def _fold_of(
    op: loom.OperationOp, part: ResidueClass, rewriter: PatternRewriter
) -> loom.OperationOp:
    """The folded state of one class: each part over the dimensions that it varies along."""
    coordinates = part.map(op.index)
    wrap = op.wrap.clone()
    reindex(wrap.block, coordinates, range(op.index.rank), rewriter)
    states = state_tensors(op, op.kept_range(op.index), _part_axes(op))
    return loom.OperationOp(
        f"{op.label.data}_{part.residue}",
        part.range(op.index),
        op.kinds,
        op.monoid_name,
        [read.compose(coordinates) for read in op.in_reads],
        list(zip(_part_projections(op), states, strict=True)),
        wrap,
        inside=None if op.inside is None else op.inside.compose(coordinates),
    )


def _part_axes(op: loom.OperationOp) -> tuple[Axes, ...]:
    """The kept dimensions that each part of a state is written over; all, where there are none."""
    return storable_axes(varying_axes(op), (), op.kept_range(op.index))


def _part_projections(op: loom.OperationOp) -> list[Projection]:
    """From the kept dimensions to the cell of each part of a state."""
    every = Projection.identity(len(op.kept_dims))
    return [every.select_outputs(axes) for axes in _part_axes(op)]


def _merged(
    op: loom.OperationOp,
    monoid: Monoid,
    states: Sequence[Sequence[SSAValue]],
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """The map over the kept dimensions that merges states and unwraps what they make."""
    kept = op.kept_range(op.index)
    stored = _part_projections(op)
    reads = [Read(*part) for state in states for part in zip(state, stored, strict=True)]
    body = Block(arg_types=[tensor_type(read.value).element_type for read in reads])
    parts = len(op.state_types)
    total: Sequence[SSAValue] = body.args[:parts]
    for first in range(parts, len(reads), parts):
        total = inlined(monoid.merge, [*total, *body.args[first : first + parts]], body)
    if op.unwrap_block is not None:
        unwrap = op.unwrap.clone()
        coordinates = AffineMap.identity(op.index.rank).select_inputs(op.kept_dims)
        reindex(unwrap.block, coordinates, range(kept.rank), rewriter)
        extras = [body.insert_arg(a.type, len(body.args)) for a in unwrap.block.args[parts:]]
        total = inlined(unwrap.block, [*total, *extras], body)
    body.add_op(loom.YieldOp(*total))
    return loom.OperationOp(
        op.label.data,
        kept,
        ("map",) * kept.rank,
        None,
        [*reads, *op.extra_reads],
        writes_of(op),
        Region(body),
        attributes=op.attributes,
    )


def _stored(op: loom.OperationOp, read: Read, rewriter: PatternRewriter) -> Read:
    """The same cells, copied densely where fold dimensions step over several at once."""
    projection = read.projection
    if not projection.is_unit:
        return read
    factors = [
        max(gcd(*row), 1) if any(row[d] for d in op.fold_dims) else 1
        for row in projection.map.matrix
    ]
    if all(factor == 1 for factor in factors):
        return read
    pairs = list(zip(projection.map.matrix, projection.map.offset, factors, strict=True))
    matrix = [[c // factor for c in row] for row, _, factor in pairs]
    offset = [0 if factor > 1 else at for _, at, factor in pairs]
    dense = Projection.of(matrix, offset, inputs=op.index.rank)
    cells = [at if factor > 1 else 0 for _, at, factor in pairs]
    kind = TensorType.of(dense.apply_range(op.index), tensor_type(read.value).element_type)
    spread = Projection.cells(AffineMap.diagonal(*factors).translate(cells))
    whole = Projection.identity(kind.box.rank)
    copy = copy_operation(Read(read.value, spread, read.fill), kind.box, whole, kind, op.location)
    rewriter.insert(copy)
    return Read(copy.outs[0], dense)


@dataclass(frozen=True)
class LoomStrideClasses(ModulePass):
    """Fold strided windows class by class of their stride, densely."""

    name = "loom-stride-classes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: list[RewritePattern] = [
            ReadPartOfAssembly(),
            FoldByClasses(),
            StoreReadClass(),
            MapByClasses(),
        ]
        with collection_paused():
            PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)
