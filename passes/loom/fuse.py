"""`loom-fuse`: map operations joined with the operations they feed or that feed them.

    %h = loom.operation @linear over ... [map, map, fold] by @add ... wrap {mul}
    %y = loom.operation @relu over ... [map, map] ins(%h : (d0, d1) -> (d0, d1)) ... wrap {max 0}

becomes one operation that folds with `mul` and unwraps with `max 0`: `%h` is never stored.

Input: any verified loom program, best simplified. Output: the same values (each cell is computed by
the same scalar operations in the same order, so bit for bit; but sums of float sums, which `fold`
makes one), with fewer operations. Each rewrite removes one operation, so it terminates. Members of
a group stay as they are. Options:

    kinds=epilogue,prologue,fold
                              what is joined: maps with the fold that they read, and with all that
                              reads them; `keep`, a map with what it reads and others read too;
                              `beside`, operations over the same points that read the same cells
    recompute=16              how many scalar operations may be computed again for each byte that
                              is not moved: a GPU computes about as many while it moves a byte.
                              With 0 nothing is computed again; see `fusion/pricing.py`
    limit=256                 how many scalar operations a joined body may have, which keeps
                              kernels compilable and the pass linear
    parts=4                   how many values operations beside one another may hold
    cells=65536               how many cells a fold of a fold must leave to be one: with fewer, two
                              steps have more to share between the processors of a device
    ops=linear,relu           two operations by label, joined in whichever way is legal, alone and
                              whatever it costs; an error says why they cannot be
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.fusion.assembling import ComputeAssembly
from tapestry.passes.loom.fusion.at_once import FoldAtOnce, folded_at_once
from tapestry.passes.loom.fusion.beside import JoinBeside
from tapestry.passes.loom.fusion.conditions import (
    Following,
    computed_at,
    following,
    read_elsewhere,
)
from tapestry.passes.loom.fusion.digits import SplitLikeProducer
from tapestry.passes.loom.fusion.joining import compute_in, follow, joined_label
from tapestry.passes.loom.fusion.named import named_pair
from tapestry.passes.loom.fusion.order import Order
from tapestry.passes.loom.fusion.pricing import Site, price_of
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import reads_of
from tapestry.passes.loom.rebuilding.tidying import ShareScalars
from tapestry.passes.loom.simplify import MergeEqualReads

KINDS: Final = ("epilogue", "prologue", "fold", "keep", "beside")
"""What can be joined, in the order in which it is tried."""


@dataclass(frozen=True)
class Bounds:
    """How far joining goes: see the options of the pass."""

    limit: int = 256
    recompute: int = 16
    parts: int = 4
    cells: int = 65536


@dataclass
class FuseEpilogue(RewritePattern):
    """A map operation that reads a fold's result moves into the fold's unwrap.

    Legal when the result has no other reader and the reader visits each of its cells exactly once
    (`following`). Then the two compute the same cells, and the reader's other inputs become extra
    inputs, re-projected by that bijection. The fold's shards must also write the reader's outputs
    apart. A clipped read and a block are left alone: some points read no cell, or others. What only
    makes cells wider is left to be done where they are read.
    """

    bounds: Bounds

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is not None or in_group(op):
            return
        for value in op.ins:
            fold = value.owner
            if isinstance(fold, loom.OperationOp) and fold.monoid_name is not None:
                how = epilogue(fold, op, self.bounds)
                if isinstance(how, Following):
                    follow(fold, op, how, rewriter)
                    return


@dataclass
class FusePrologue(RewritePattern):
    """A map operation is computed where its result is read, for each reader again.

    Legal when every reader is an operation of the same block, and which point of the map computes a
    cell is an affine function of the point that reads it (`computed_at`): the map's own inputs are
    read through it. It holds for reads of wrap and of unwrap alike. A clipped read is left alone,
    because outside the tensor it is the fill. Of a block, the cells that are read at an index are
    computed there (`fusion/indexing.py`). What computes an index is an input like any other. A
    domain of the reader stays as it is; one of the map holds all over its index space.

    Done where it is within its price: what is computed again is worth the memory traffic saved. It
    is not done in a map that only makes cells wider, if that is computed where it is read itself:
    then the narrow ones are what may be stored.
    """

    bounds: Bounds

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is not None or in_group(op):
            return
        sites = prologue(op, self.bounds)
        if isinstance(sites, str):
            return
        readers = {site.reader: site.reader for site in sites}
        if all(widens(op, reader, self.bounds) for reader in readers):
            return
        # What is computed in several places is named in none.
        alone = len(readers) == 1
        # From the last position on: those before keep their places while inputs are put in.
        for site in sorted(sites, key=lambda site: -site.position):
            reader = readers[site.reader]
            label = joined_label(op, site.reader) if alone else reader.label.data
            new = compute_in(op, reader, site.position, site.points, label, rewriter)
            readers[site.reader] = new
        rewriter.erase(op)


@dataclass
class FuseKeeping(RewritePattern):
    """A map moves into what it reads, which goes on writing what others read too.

    Legal where the reader visits each cell that it reads once (`following`), and the joined
    operation can stand where one of the two does (`Order`): its outputs are those of both.
    """

    order: Order
    limit: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is not None or in_group(op):
            return
        for producer in dict.fromkeys(value.owner for value in op.ins):
            if not isinstance(producer, loom.OperationOp):
                continue
            how = following(producer, op, self.limit)
            if isinstance(how, str):
                continue
            place = self.order.joined(producer, op, feeds=True)
            if place is not None:
                self.order.put(follow(producer, op, how, rewriter, place=place), place)
                return


def epilogue(fold: loom.OperationOp, reader: loom.OperationOp, bounds: Bounds) -> Following | str:
    """How a map moves into the fold that it reads, or why it does not."""
    if reader.monoid_name is not None and reader.monoid_name == fold.monoid_name:
        why = folded_at_once(fold, reader, bounds.cells)
        if isinstance(why, str):
            return why
    how = following(fold, reader, bounds.limit)
    if isinstance(how, Following):
        for out in fold.outs:
            if any(use.operation is not reader for use in out.uses):
                return read_elsewhere(out, fold)
        if widens(fold, reader, bounds):
            return f"{reader.subject} widens it, so that is better done where it is read"
    return how


def widens(producer: loom.OperationOp, reader: loom.OperationOp, bounds: Bounds) -> bool:
    """Whether a map only makes cells wider, or more, which is better done where they are read."""
    if reader.monoid_name is not None or _bytes_of(reader) <= _bytes_of(producer):
        return False
    reads = [read for part in reads_of(reader) for read in part]
    if producer.monoid_name is None and len(reads) != 1:
        return False  # It makes new ones.
    return isinstance(prologue(reader, bounds), list)


def _bytes_of(op: loom.OperationOp) -> int:
    """What an operation stores."""
    return sum(tensor_type(out).byte_size for out in op.outs)


def prologue(producer: loom.OperationOp, bounds: Bounds) -> list[Site] | str:
    """Where a map is computed instead of where it stands, or why it is stored."""
    sites: list[Site] = []
    uses = [use for out in producer.outs for use in out.uses]
    for use in uses:
        if not isinstance(use.operation, loom.OperationOp):
            other = use.operation.name
            return f"{other} reads what {producer.subject} writes too, so it is stored anyway"
    for use in uses:
        assert isinstance(use.operation, loom.OperationOp)
        points = computed_at(producer, use.operation, use.index, bounds.limit)
        if isinstance(points, str):
            return points
        sites.append(Site(use.operation, use.index, points))
    if not sites:
        return f"nothing reads what {producer.subject} writes"
    price = price_of(producer, sites)
    if not price.is_within(bounds.recompute):
        return f"storing what {producer.subject} writes is cheaper: {price}"
    return sites


@dataclass(frozen=True)
class LoomFuse(ModulePass):
    """Join map operations with what they feed and what feeds them."""

    name = "loom-fuse"

    kinds: tuple[str, ...] = KINDS[:3]
    recompute: int = Bounds.recompute
    limit: int = Bounds.limit
    parts: int = Bounds.parts
    cells: int = Bounds.cells
    ops: tuple[str, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for option, least in (("limit", 1), ("recompute", 0), ("parts", 1), ("cells", 1)):
            value = getattr(self, option)
            if value < least:
                raise UsageError(f"loom-fuse: {option} must be at least {least}, not {value}")
        for kind in self.kinds:
            if kind not in KINDS:
                known = ", ".join(KINDS)
                raise UsageError(f"loom-fuse: there is no kind {kind!r}; there are {known}")
        if self.ops is not None:
            pattern = named_pair(op, self.ops, self.limit)
            PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
            return
        with collection_paused():
            for sweep in self._sweeps(op):
                PatternRewriteWalker(GreedyRewritePatternApplier(sweep)).rewrite_module(op)

    def _sweeps(self, module: ModuleOp) -> Iterator[list[RewritePattern]]:
        bounds = Bounds(self.limit, self.recompute, self.parts, self.cells)
        tidy: list[RewritePattern] = [MergeEqualReads()]
        # Epilogues first: a map between two folds is then computed once per cell, not per read.
        after: list[RewritePattern] = [FuseEpilogue(bounds)] if "epilogue" in self.kinds else []
        if "fold" in self.kinds:
            after.append(FoldAtOnce(self.cells))
        if after:
            yield [*after, *tidy]
        if "prologue" in self.kinds:
            after = [ComputeAssembly(self.limit), FusePrologue(bounds), *after]
        if after:
            yield [*after, SplitLikeProducer(), *tidy]
        if "keep" in self.kinds:
            yield [FuseKeeping(Order(module), self.limit)]
        if "beside" in self.kinds:
            yield [JoinBeside(Order(module), self.limit, self.parts)]
            yield [*tidy, ShareScalars()]
