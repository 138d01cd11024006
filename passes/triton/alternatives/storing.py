"""Factors of products that are computed again for each block: stored, where that is faster.

    %y = loom.operation @product over <[0, 0, 0] : [8192, 2304, 768]> [map, map, fold] by @add
           ins(%x : (i, j, k) -> (i, k), %s : (i, j, k) -> (i), %w : (i, j, k) -> (j, k))
           wrap {(bf16(x * s)) * w} ...

`bf16(x * s)` lacks `j`: a kernel computes it again for each block of columns, and takes it through
registers, where a stored factor is copied ahead of time from memory to where matrix units read it.
A map of its own over `i` and `k` computes it once, in the type that it is multiplied in; what it
takes to write it and to read it, the cost model says, which counts both kernels.

Where the product folds a statistic of the rows besides (a root mean square, as `loom-derive` makes
one pass of both), it would read cells that it does not multiply any more: then that is a fold of
its own (`separate.py`).

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.bodies import Dims, dependences, moving_dims, needed_operations
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.separate import separable_parts, separate
from tapestry.passes.loom.simplify import MergeEqualOperations
from tapestry.passes.loom.unfuse import store_values
from tapestry.passes.triton.alternatives.alone import alone, canonical
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.kernels.contraction import find_contractions
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.kernels.products import unwidened
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.05
"""How many times as fast a product has to be predicted to be, what stores its factors counted: by
little, since predictions say too little of factors that are computed (82 us of 124 on an H100)."""

Places = tuple[int, ...]
"""Which of the computed factors of a product are stored: places in `computed_factors`."""

Factor = tuple[SSAValue, tuple[int, ...]]
"""A value of a wrap, with the dimensions that it varies along."""


@dataclass(frozen=True)
class StoreFactors(RewritePattern):
    """A computed factor of a product becomes a map over the dimensions that it varies along.

    Legal for what `computed_factors` finds: the factor is a function of cells that it reads through
    these dimensions, at every point, and is stored in the type that it is multiplied in.
    """

    chosen: Mapping[loom.OperationOp, Places]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op not in self.chosen:
            return
        places = self.chosen[op]
        if separable_parts(op):
            op = separate(op, rewriter)
            rewriter.insertion_point = InsertPoint.before(op)
        factors = computed_factors(op) if places else []
        if factors:
            store_values(op, [factors[place] for place in places], rewriter)


@dataclass
class FactorChooser:
    """Chooses which factors of products are stored; equal products are looked at once."""

    predict: Predict
    _known: dict[str, Places | None] = field(default_factory=dict[str, "Places | None"])

    def chosen(self, module: ModuleOp) -> dict[loom.OperationOp, Places]:
        """The products of which something is to be stored, with the places of their factors."""
        found: dict[loom.OperationOp, Places] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and (choices := _choices(op)):
                program = alone(op)
                text = canonical(program)
                if text not in self._known:
                    self._known[text] = self._best(program, choices)
                best = self._known[text]
                if best is not None:
                    found[op] = best
        return found

    def _best(self, program: ModuleOp, choices: Sequence[Places]) -> Places | None:
        """What makes a product clearly faster if it is stored; None if nothing does."""
        try:
            tried = {places: self._seconds(program, places) for places in choices}
            best = min(tried, key=lambda places: tried[places])
            return best if tried[best] * GAIN <= seconds(self.predict(program, True)) else None
        except TapestryError:
            return None  # What it has no kernel for is said where it is lowered.

    def _seconds(self, program: ModuleOp, places: Places) -> float:
        own = program.clone()
        (op,) = (op for op in own.walk() if isinstance(op, loom.OperationOp))
        apply_stores(own, {op: places})
        return seconds(self.predict(own, True))


def _choices(op: loom.OperationOp) -> list[Places]:
    """Which factors of a product may be stored: some, or none where parts of it are alone."""
    if not _may_store(op) or not any(find_contractions(map_fold_of(op))):
        return []
    count, least = len(computed_factors(op)), 0 if separable_parts(op) else 1
    return [c for n in range(least, count + 1) for c in combinations(range(count), n)]


def apply_stores(module: ModuleOp, chosen: Mapping[loom.OperationOp, Places]) -> None:
    """Store the factors that are chosen; those that several products read, once."""
    patterns: list[RewritePattern] = [StoreFactors(chosen), MergeEqualOperations()]
    for pattern in patterns if chosen else []:
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


def computed_factors(op: loom.OperationOp) -> list[Factor]:
    """The factors of a product that a map of their own may compute, left before right.

    They need no more cells than something that they read, and read cells alone: one at each point,
    none outside of a tensor. Both factors have one type already: what is rounded only because it is
    computed stays as it is. Of several products that are summed at once, one factor is one.
    """
    if not _may_store(op):
        return []
    factors: list[SSAValue] = []
    for product in filter(None, find_contractions(map_fold_of(op))):
        sides = [unwidened(side) for side in (product.a, product.b)]
        factors += sides if sides[0].type == sides[1].type else []
    varies = dependences(op.wrap_block, [moving_dims(read.projection) for read in op.in_reads])
    return [
        (factor, tuple(sorted(varies[factor])))
        for factor in dict.fromkeys(factors)
        if _may_be_stored(op, factor, varies[factor])
    ]


def _may_store(op: loom.OperationOp) -> bool:
    """Whether values of a fold may be stored: of no member, nor with shards, or a domain."""
    if op.monoid_name is None or in_group(op) or SCHEDULE in op.attributes or op.index.is_empty:
        return False
    return op.partition is None and op.inside is None


def _may_be_stored(op: loom.OperationOp, factor: SSAValue, dims: Dims) -> bool:
    """Whether a factor is computed of plain cells, of which some tensor has as many as it has."""
    used = {operand for inner in needed_operations([factor]) for operand in inner.operands}
    pairs = zip(op.wrap_block.args, op.in_reads, strict=True)
    reads = [read for argument, read in pairs if argument in used]
    cells = [tensor_type(read.value).box.size for read in reads]
    fits = bool(cells) and prod(op.index.shape[dim] for dim in dims) <= max(cells)
    return fits and all(map(_is_plain, reads))


def _is_plain(read: Read) -> bool:
    """Whether each point reads a cell inside of a tensor, at some of its coordinates."""
    rows = read.projection.map.matrix
    selects = all(sorted(row)[:-1] == [0] * (len(row) - 1) and max(row) <= 1 for row in rows)
    return selects and read.projection.is_unit and read.fill is None
