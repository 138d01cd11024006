"""`loom-mask-to-domain`: masks in bodies become domains, so that what is masked is not computed.

    %o = loom.operation @attention over <[0, 0, 0] : [8, 4, 8]> [map, map, fold] by @attend
           ins(%s : (i, d, j) -> (i, j), %v : (i, d, j) -> (j, d)) ...
           wrap (%x: f32, %v: f32) {
             %i = loom.index 0 : i64   %j = loom.index 2 : i64
             %seen = arith.cmpi sge, %i, %j : i64
             %y = arith.select %seen, %x, %lowest : f32
             loom.yield %y, %one, %v : f32, f32, f32 }

becomes

    %o = loom.operation @attention over <[0, 0, 0] : [8, 4, 8]> [map, map, fold] by @attend
           ins(...) ... domain(d0 - d2 >= 0)
           wrap (%x: f32, %v: f32) { loom.yield %x, %one, %v : f32, f32, f32 }
           {assumes = ["finite(v)"]}

and what computes `%s` folds nothing either where no `%o` reads it. Blocks of the index space that
are masked as a whole are then skipped by range arithmetic, in every executor. The mask need not
stand in the body: maps, and what earlier folds do with their result, are looked through.

Some programs mask with a large negative number, as JAX does with -2.38e38. Such a number is none of
a fold's zero: of a row that is masked everywhere, the softmax is the same for all. Where every row
sees something, and that is a score, a sum of products, numbers below -1e38 count as -inf. Under
`lowest=-1000000000.0` numbers not above that do, whatever is seen.

Input: any verified loom program, best after `loom-derive`: folds of one pass have one domain.
Output: the same values, if what `assumes` says is so. Each rewrite adds a row to a domain or
removes a condition from a body, so it terminates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.derivation.planning import always_folds
from tapestry.passes.loom.masks.conditions import Fact, Row, domain_of, rows_of
from tapestry.passes.loom.masks.heights import LEAST
from tapestry.passes.loom.masks.names import Names
from tapestry.passes.loom.masks.outside import masked, rows_read, sees_scores
from tapestry.passes.loom.masks.settling import settle
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.notes import ASSUMES
from tapestry.passes.loom.rebuilding.operations import rebuild


@dataclass(frozen=True)
class FoldWhereSeen(RewritePattern):
    """A fold's domain gets the rows outside of which wrap yields what folding leaves no trace of.

    Legal because, where such a row fails, merging what wrap yields with any state simplifies to the
    same expression as merging the zero with it, in either order. For that, cells may have to be
    finite (zero times infinity is NaN) and divisors not zero: that is recorded on the operation. An
    extremum is taken to be finite only where there is always something that it is of. Groups say
    what their members are, and a scan goes on from what is outside: both are left alone.

    Numbers not above the `lowest` are taken for -inf, which is legal where every point that is kept
    folds something inside that is far above them. Without a `lowest` that is proved of what is
    computed of products (`masks/heights.py`), for numbers near the least of float32; with one it
    is taken on trust. That products stay above it is recorded.
    """

    lowest: float | None = None
    names: dict[Block, Names] = field(default_factory=dict[Block, Names])
    """The names of the values of each function."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op):
            return
        seen = self._seen(op)
        if seen is not None and self._names(op).tell_apart(read.value for read in op.in_reads):
            seen = self._seen(op)  # by their new names
        if seen is None:
            return
        rows, assumes = seen
        new = rebuild(op, rewriter, inside=domain_of(rows, op.index))
        _record(new, assumes)

    def _names(self, op: loom.OperationOp) -> Names:
        """The names of the values that the function of an operation has."""
        block = op.parent_block()
        assert block is not None
        if block not in self.names:
            self.names[block] = Names.of(block)
        return self.names[block]

    def _seen(self, op: loom.OperationOp) -> tuple[list[Row], set[str]] | None:
        """The rows of a fold's new domain and what it takes for granted; None without a mask."""
        found = list(masked(op))
        assumes = {assumed for mask in found for assumed in mask.assumes}
        rows = [*rows_of(op.inside), *(mask.row for mask in found)]
        lowest = LEAST if self.lowest is None else self.lowest
        low = [] if found else list(masked(op, lowest))
        if low:
            masks = [mask.row for mask in low]
            rows += masks
            if not always_folds(op, domain_of(rows, op.index)):
                return None
            if self.lowest is None and not sees_scores(op, masks, lowest):
                return None
            assumes = {f"above({lowest:g})"}.union(*(mask.assumes for mask in low))
        return (rows, assumes) if found or low else None


class FoldWhereRead(RewritePattern):
    """A fold's domain gets the rows that hold wherever what it writes is read.

    Legal because a cell that nobody reads may be anything: every reader is a fold whose own domain
    implies the row at each point where it reads the cell.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or op.monoid_name is None or op.scan_dim is not None or op.index.is_empty:
            return
        have = rows_of(op.inside)
        new = [
            row
            for row in rows_read(op)
            if row.bounds(op.index)[0] < 0 and not any(Fact(h, True).decides(row) for h in have)
        ]
        if new:
            rebuild(op, rewriter, inside=domain_of([*have, *new], op.index))


class SettleConditions(RewritePattern):
    """Comparisons of coordinates that come out the same wherever a body counts are constants.

    Legal in wrap where the operation's domain implies it, and in both bodies where it holds at
    every point whose cells are read.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or op.index.is_empty:
            return
        read = [] if op.scan_dim is not None else [Fact(row, True) for row in rows_read(op)]
        inside = [Fact(row, True) for row in rows_of(op.inside)]
        changed = settle(op.wrap_block, op.index, [*inside, *read], rewriter)
        if op.unwrap_block is not None:
            changed |= settle(op.unwrap_block, op.index, read, rewriter)
        if changed:
            rewriter.notify_op_modified(op)


def _record(op: loom.OperationOp, assumes: Iterable[str]) -> None:
    """Note on an operation what its domain takes for granted."""
    held = op.attributes.get(ASSUMES)
    known = cast("ArrayAttr[Attribute]", held).data if isinstance(held, ArrayAttr) else ()
    new = map(StringAttr, sorted(assumes))
    assumed = dict.fromkeys([*known, *new])
    if assumed:
        op.attributes[ASSUMES] = ArrayAttr(assumed)


@dataclass(frozen=True)
class LoomMaskToDomain(ModulePass):
    """Make masks in bodies domains of what they mask."""

    name = "loom-mask-to-domain"

    lowest: float | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # From the end on: what a fold reads is known when its readers' domains are.
        patterns: list[RewritePattern] = [
            FoldWhereSeen(self.lowest),
            FoldWhereRead(),
            SettleConditions(),
        ]
        with collection_paused():
            PatternRewriteWalker(
                GreedyRewritePatternApplier(patterns), walk_reverse=True
            ).rewrite_module(op)
