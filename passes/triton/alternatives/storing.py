"""Factors of products that are computed again for each block: stored, where that is faster.

    %y = loom.operation @product over <[0, 0, 0] : [8192, 2304, 768]> [map, map, fold] by @add
           ins(%x : (i, j, k) -> (i, k), %s : (i, j, k) -> (i), %w : (i, j, k) -> (j, k))
           wrap {(bf16(x * s)) * w} ...

`bf16(x * s)` lacks `j`: a kernel computes it again for each block of columns, and takes it through
registers, where a stored factor is copied ahead of time from memory to where matrix units read it.
A map of its own over `i` and `k` computes it once, in the type that it is multiplied in; what it
takes to write it and to read it, the cost model says, which counts both kernels. So are keys turned
by their places that each block of queries would turn again: the product is a member of a group.

Where the product folds a statistic of the rows besides (a root mean square, as `loom-derive` makes
one pass of both), it would read cells that it does not multiply any more: then that is a fold of
its own (`separate.py`).

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from xdsl.dialects import arith, func
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
from tapestry.algebra.dtypes import is_half
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.grouping.plan import Plan, put_group, read_outside
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.separate import separable_parts, separate
from tapestry.passes.loom.simplify import MergeEqualOperations
from tapestry.passes.loom.unfuse import store_values
from tapestry.passes.loom.ungroup import name_inside, names_inside, take_apart
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.kernels.contraction import find_contractions
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.kernels.products import unwidened
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.05
"""How many times as fast a product has to be predicted to be without a statistic of its rows."""

COMPUTED = 1.1
"""How many times as long as predicted a product with computed factors is taken to need: predictions
say too little of what goes through registers (82 us of 124 on an H100)."""

MOVING = ("memory", "waiting")
"""What bounds a kernel that multiplies while it waits for cells."""

_FEW = 2
"""Of so many factors any are tried together."""

FACTOR = "factor"
"""What the label of a map that stores a factor ends with."""

Places = tuple[int, ...]
"""Which of the computed factors of a product are stored: places in `computed_factors`."""

Map = tuple[str, tuple[int, ...]]
"""A map that stores a factor: its text without names, and the operands that it reads, by number."""

Stored = tuple[str, tuple[SSAValue, ...]]
"""The same with what it reads in a program."""

Factor = tuple[SSAValue, tuple[int, ...]]
"""A value of a wrap, with the dimensions that it varies along."""


@dataclass(frozen=True)
class StoreFactors(RewritePattern):
    """A computed factor of a product becomes a map over the dimensions that it varies along.

    Legal for what `computed_factors` finds: the factor is a function of cells that it reads through
    these dimensions, at every point, and is stored in the type that it is multiplied in. A group
    reads what a map before it stores: none of its members writes what that reads.
    """

    chosen: Mapping[Scheduled, Places]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Scheduled, rewriter: PatternRewriter) -> None:
        if op not in self.chosen:
            return
        places = self.chosen[op]
        if isinstance(op, loom.FusedOp):
            _store_of_group(op, places, rewriter)
            return
        if separable_parts(op):
            op = separate(op, rewriter)
            rewriter.insertion_point = InsertPoint.before(op)
        factors = _own_factors(op) if places else []
        if factors:
            store_values(op, [factors[place] for place in places], rewriter, FACTOR)


def _store_of_group(op: loom.FusedOp, places: Places, rewriter: PatternRewriter) -> None:
    """Store factors of members in front of their group."""
    alignments, names = [place for _, place in op.aligned], names_inside(op)
    wanted: list[list[Factor]] = []
    passed = 0
    members = take_apart(op, rewriter)
    for member in members:
        own = _own_factors(member, members)
        wanted.append([f for n, f in enumerate(own, passed) if n in places])
        passed += len(own)
    for number, factors in enumerate(wanted):
        if factors:
            rewriter.insertion_point = InsertPoint.before(members[0])
            members[number] = store_values(members[number], factors, rewriter, FACTOR)
    aligned = tuple(zip(members, alignments, strict=True))
    plan = Plan(tuple(members), op.index, aligned, read_outside(members))
    name_inside(put_group(plan, op.label.data, rewriter), names)


@dataclass
class FactorChooser:
    """Chooses which factors of products are stored; equal products are looked at once."""

    predict: Predict
    _known: dict[str, Places | None] = field(default_factory=dict[str, "Places | None"])
    _maps: dict[tuple[str, Places], list[Map]] = field(
        default_factory=dict["tuple[str, Places]", "list[Map]"]
    )

    def chosen(self, module: ModuleOp) -> dict[Scheduled, Places]:
        """The products of which something is to be stored, with the places of their factors."""
        found: dict[Scheduled, Places] = {}
        asked: dict[Scheduled, tuple[str, ModuleOp]] = {}
        for op in scheduled(module):
            if choices := choices_of(op):
                program = alone(op)
                text = canonical(program)
                if text not in self._known:
                    self._known[text] = self._best(program, choices)
                best = self._known[text]
                asked[op] = text, program
                if best is not None:
                    found[op] = best
        return found | self._shared(asked, found)

    def _shared(
        self,
        asked: Mapping[Scheduled, tuple[str, ModuleOp]],
        found: Mapping[Scheduled, Places],
    ) -> dict[Scheduled, Places]:
        """The products that gain by factors which others store anyway, with their places.

        Queries, keys and values are products of one norm: what is stored for the first of these
        costs the others nothing. `asked` are all products, with their texts and programs.
        """

        def stored(op: Scheduled, places: Places) -> set[Stored]:
            text, program = asked[op]
            if (text, places) not in self._maps:
                self._maps[text, places] = _maps(program, places)
            taken = list(dict.fromkeys(op.operands))
            maps = self._maps[text, places]
            return {(one, tuple(taken[n] for n in read)) for one, read in maps}

        there = {one for op, places in found.items() for one in stored(op, places)}
        shared: dict[Scheduled, Places] = {}
        for op in asked if there else ():
            for places in choices_of(op) if op not in found else ():
                own = stored(op, places)
                if own and there.issuperset(own):
                    text, program = asked[op]
                    key = f"{text} reads {places}"
                    if key not in self._known:
                        maps = {one for one, _ in own}
                        self._known[key] = self._best(program, [places], maps)
                    if self._known[key] is not None:
                        shared[op] = places
                        break
        return shared

    def _best(
        self, program: ModuleOp, choices: Sequence[Places], stored: Collection[str] = ()
    ) -> Places | None:
        """What makes a product clearly faster if it is stored; None if nothing does.

        Maps that are `stored` anyway take no time.
        """
        try:
            tried = {places: self._seconds(program, places, stored) for places in choices}
            best = min(tried, key=lambda places: tried[places])
            whole = self.predict(program, True, tried[best] * GAIN)
            waits = bool(best) and any(one.estimate.bound not in MOVING for one in whole)
            longest = seconds(whole) * (COMPUTED if waits else 1 / GAIN)
            return best if tried[best] <= longest else None
        except TapestryError:
            return None  # What it has no kernel for is said where it is lowered.

    def _seconds(self, program: ModuleOp, places: Places, stored: Collection[str]) -> float:
        own, maps = _storing(program, places)
        free = [one for one in map(alone, maps) if stored and canonical(one) in stored]
        return seconds(self.predict(own, True)) - sum(seconds(self.predict(f, True)) for f in free)


def _storing(program: ModuleOp, places: Places) -> tuple[ModuleOp, list[loom.OperationOp]]:
    """A program of one operation which stores some factors, and the maps that do."""
    own = program.clone()
    (op,) = scheduled(own)
    apply_stores(own, {op: places})
    found = [one for one in scheduled(own) if isinstance(one, loom.OperationOp)]
    return own, [one for one in found if not one.fold_dims and one.monoid_name is None]


def _maps(program: ModuleOp, places: Places) -> list[Map]:
    """The maps that store factors of one operation and read nothing that it makes besides."""
    own, maps = _storing(program, places)
    (main,) = (one for one in own.body.block.ops if isinstance(one, func.FuncOp))
    numbers: dict[SSAValue, int] = {value: n for n, value in enumerate(main.body.block.args)}
    return [
        (canonical(alone(one)), tuple(numbers[value] for value in one.operands))
        for one in maps
        if all(value in numbers for value in one.operands)
    ]


def scheduled(module: ModuleOp) -> list[Scheduled]:
    """The operations and groups of a program."""
    return [
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp | loom.FusedOp) and not in_group(op)
    ]


def choices_of(op: Scheduled) -> list[Places]:
    """Which factors of products may be stored: some, or none where parts of one are alone."""
    least = 1
    if isinstance(op, loom.OperationOp):
        if not _may_store(op) or not any(find_contractions(map_fold_of(op))):
            return []
        least = 0 if separable_parts(op) else 1
    count = len(computed_factors(op))
    # Of many, each alone and all of them: what one gains, it mostly gains beside others too.
    numbers = [n for n in range(least, count + 1) if n <= 1 or n == count or count <= _FEW]
    return [c for n in numbers for c in combinations(range(count), n)]


def apply_stores(module: ModuleOp, chosen: Mapping[Scheduled, Places]) -> None:
    """Store the factors that are chosen; those that several products read, once."""
    patterns: list[RewritePattern] = [StoreFactors(chosen), MergeEqualOperations()]
    for pattern in patterns if chosen else []:
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


def computed_factors(op: Scheduled) -> list[Factor]:
    """The factors of products that a map of their own may compute; a group's by members.

    They need no more cells than something that they read, and read single cells, which no member of
    the same group writes. Both factors have one type already, or this one has 16 bits: what is
    rounded only because it is computed stays as it is. Of several products that are summed at once,
    one factor is one.
    """
    if isinstance(op, loom.OperationOp):
        return _own_factors(op)
    if op.partition is not None or SCHEDULE in op.attributes:
        return []
    return [factor for member in op.members for factor in _own_factors(member, op.members)]


def _own_factors(op: loom.OperationOp, group: Sequence[loom.OperationOp] = ()) -> list[Factor]:
    """The factors of one operation, left before right, that read nothing of others in its group."""
    if not _may_store(op):
        return []
    factors: list[SSAValue] = []
    # A group knows what of its factors is finite, and so which products masks leave products.
    products = find_contractions(map_fold_of(op), exact=not group)
    for product in filter(None, products):
        sides = [unwidened(_unscaled(side)) for side in (product.a, product.b)]
        alike = sides[0].type == sides[1].type
        factors += [side for side in sides if alike or is_half(side.type)]
    varies = dependences(op.wrap_block, [moving_dims(read.projection) for read in op.in_reads])
    written: set[SSAValue] = {out for member in group for out in member.outs}
    return [
        (factor, _as_read(_reads(op, factor), varies[factor]))
        for factor in dict.fromkeys(factors)
        if _may_be_stored(op, factor, varies[factor], written)
    ]


def _reads(op: loom.OperationOp, factor: SSAValue) -> list[Read]:
    """What a factor is computed of."""
    used = {operand for inner in needed_operations([factor]) for operand in inner.operands}
    pairs = zip(op.wrap_block.args, op.in_reads, strict=True)
    return [read for argument, read in pairs if argument in used]


def _as_read(reads: Sequence[Read], dims: Dims) -> tuple[int, ...]:
    """Dimensions in the order in which they lie in the largest of some tensors, the rest in front.

    What is stored lies as what it is computed of, then, and is the same for all that read it,
    however these order their dimensions.
    """
    largest = max(reads, key=lambda read: tensor_type(read.value).box.size)
    order: list[int] = []
    for row in largest.projection.map.matrix:
        moving = [d for d, step in enumerate(row) if step and d in dims and d not in order]
        order += sorted(moving, key=lambda d: -abs(row[d]))
    return (*(d for d in sorted(dims) if d not in order), *order)


def _unscaled(factor: SSAValue) -> SSAValue:
    """A factor without what it is multiplied by at every point: a product is scaled as a whole."""
    owner = factor.owner
    if isinstance(owner, arith.MulfOp):
        for known, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            if isinstance(known.owner, arith.ConstantOp):
                return _unscaled(other)
    return factor


def _may_store(op: loom.OperationOp) -> bool:
    """Whether values of a fold may be stored: not with shards, nor where a schedule is given."""
    if op.monoid_name is None or SCHEDULE in op.attributes or op.index.is_empty:
        return False
    return op.partition is None


def _may_be_stored(
    op: loom.OperationOp, factor: SSAValue, dims: Dims, written: set[SSAValue]
) -> bool:
    """Whether a factor is computed of single cells, of which some tensor has as many as it has."""
    reads = _reads(op, factor)
    cells = [tensor_type(read.value).box.size for read in reads]
    fits = bool(cells) and prod(op.index.shape[dim] for dim in dims) <= max(cells)
    return fits and all(r.projection.is_unit and r.value not in written for r in reads)
