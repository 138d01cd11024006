"""Operations beside one another made one: they share what they read.

    %s = loom.operation @s over <[0, 0] : [4, 6]> [map, fold] by @add ins(%x : (d0, d1) -> (d0, d1))
    %m = loom.operation @m over <[0, 0] : [4, 6]> [map, fold] by @max ins(%x : (d0, d1) -> (d0, d1))

become one operation by `@add_max`, which writes both and reads `%x` once. Maps of one cell from
inputs to results are one whatever they read, as counters are that each layer of a model has: each
of them takes as long as it takes to start.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.algebra.monoids import Monoid, accumulating, monoid_of
from tapestry.dialects import loom
from tapestry.locations import fuse_locations
from tapestry.passes.loom.fusion.joining import identity_body, joined_label
from tapestry.passes.loom.fusion.order import Order
from tapestry.passes.loom.rebuilding.bodies import body_size, in_group, inlined
from tapestry.passes.loom.rebuilding.monoids import defined_once, product_monoid
from tapestry.passes.loom.rebuilding.notes import joined_attributes
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of

_SINGLE_OUTPUTS = 64
"""Values that maps of one point write together at most."""


@dataclass
class JoinBeside(RewritePattern):
    """An operation and an earlier one over the same points that reads the same cells become one.

    Legal when neither needs the other, and where one of them stands both can (`Order`); both are
    over one index space, of the same iterators, domain and partition, and read some tensor through
    one projection, or are maps of one point between inputs and results. Maps yield both values;
    folds and scans run by the product of their monoids, so each state is what it was. Outputs are
    written as before, so they tile as before.

    Done up to `parts` values that a kernel holds at once (of one point more), and `limit` scalar
    operations.
    """

    order: Order
    limit: int
    parts: int
    seen: dict[Hashable, loom.OperationOp] = field(default_factory=dict[Hashable, loom.OperationOp])

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op):
            return
        keys: list[tuple[Hashable, ...]] = [
            (op.parent, *points_of(op), read) for part in reads_of(op) for read in part
        ]
        if ends := is_between_ends(op):
            keys.append((op.parent, *points_of(op)))
        for key in keys:
            other = self.seen.get(key)
            if other is None or other is op or other.parent is None:
                continue
            first = self.order.first(op, other)
            second = other if first is op else op
            parts = (
                max(self.parts, _SINGLE_OUTPUTS) if ends and is_between_ends(other) else self.parts
            )
            if why_not_beside(first, second, self.limit, parts) is None:
                place = self.order.joined(first, second)
                if place is not None:
                    new = join_beside(first, second, place, rewriter)
                    self.order.put(new, place)
                    self.seen.update(dict.fromkeys(keys, new))
                    return
        self.seen.update(dict.fromkeys(keys, op))


def is_between_ends(op: loom.OperationOp) -> bool:
    """Whether a map of one point reads inputs alone, and what it writes is only returned.

    So nothing that it could be joined with otherwise is on either side of it.
    """
    if op.monoid_name is not None or op.index.size != 1:
        return False
    ends = all(isinstance(value, BlockArgument) for value in op.operands)
    return ends and all(isinstance(use.operation, ReturnOp) for out in op.outs for use in out.uses)


def points_of(op: loom.OperationOp) -> tuple[Hashable, ...]:
    """The points that an operation is over, and in what way."""
    return (op.index, op.kinds, op.properties.get("domain"), op.properties.get("shards"))


def why_not_beside(
    first: loom.OperationOp, second: loom.OperationOp, limit: int, parts: int
) -> str | None:
    """Why two operations are not made one side by side, None where they may be."""
    if first.parent is not second.parent:
        return "they do not stand in one block"
    if points_of(first) != points_of(second):
        return f"{first.subject} and {second.subject} are over different points"
    if any(value.owner is first for value in second.operands):
        return f"{second.subject} reads what {first.subject} writes"
    held = len(first.state_types) + len(second.state_types)
    if held > parts:
        return f"the joined operation would hold {held} values, more than {parts}"
    for op in (first, second):
        monoid = monoid_of(op)
        if monoid is not None and accumulating(monoid) is not monoid and not _is_exact(monoid):
            return f"beside another fold {op.subject} would not accumulate in f32"
    size = body_size(first) + body_size(second)
    if size > limit:
        return f"the joined body would have {size} scalar operations, more than {limit}"
    return None


def _is_exact(monoid: Monoid) -> bool:
    """Whether folding rounds nothing, in whatever type of floats it is done."""
    return monoid.primitive in (arith.MaximumfOp, arith.MinimumfOp)


def join_beside(
    first: loom.OperationOp,
    second: loom.OperationOp,
    place: loom.OperationOp,
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """Make two operations one, which stands where `place`, one of them, does."""
    monoid: str | None = None
    monoids = [found for op in (first, second) if (found := monoid_of(op)) is not None]
    if monoids:
        name = joined_name([found.name for found in monoids])
        monoid = defined_once(place, product_monoid(name, monoids), rewriter).sym_name.data
    (ins, extras), (more_ins, more_extras) = reads_of(first), reads_of(second)
    unwrap: list[Block] = []
    if first.unwrap_block is not None or second.unwrap_block is not None:
        both = [op.unwrap_block or identity_body(op.state_types) for op in (first, second)]
        states = [len(op.state_types) for op in (first, second)]
        unwrap = [_both(both[0], both[1], states[0], states[1])]
    wraps = first.wrap_block, second.wrap_block
    new = loom.OperationOp(
        joined_label(first, second),
        first.index,
        first.kinds,
        monoid,
        [*ins, *more_ins],
        [*writes_of(first), *writes_of(second)],
        Region(_both(*wraps, len(ins), len(more_ins))),
        extras=[*extras, *more_extras],
        unwrap=Region(unwrap),
        partition=first.partition,
        inside=first.inside,
        attributes=joined_attributes(second, first),
    )
    new.location = fuse_locations(first.location, second.location)
    rewriter.insert(new, InsertPoint.before(place))
    old = [*first.outs, *second.outs]
    for out, result in zip(old, new.outs, strict=True):
        result.name_hint = out.name_hint
        rewriter.replace_all_uses_with(out, result)
    rewriter.erase(second)
    rewriter.erase(first)
    return new


def joined_name(names: list[str]) -> str:
    """Names of monoids put together, each once with how often."""
    counts: dict[str, int] = {}
    for name in names:
        base, _, times = name.rpartition("_x")
        known, count = (base, int(times)) if base and times.isdecimal() else (name, 1)
        counts[known] = counts.get(known, 0) + count
    return "_".join(name if count == 1 else f"{name}_x{count}" for name, count in counts.items())


def _both(one: Block, other: Block, first: int, second: int) -> Block:
    """A body that yields what two yield; the `first` and `second` leading arguments lead in it."""
    kinds: list[Attribute] = [a.type for a in (*one.args[:first], *other.args[:second])]
    kinds += [a.type for a in (*one.args[first:], *other.args[second:])]
    block = Block(arg_types=kinds)
    lead, rest = first + second, len(one.args) - first
    values: list[SSAValue] = []
    for body, low, high, start in (
        (one, 0, first, lead),
        (other, first, lead, lead + rest),
    ):
        count = len(body.args) - (high - low)
        given = [*block.args[low:high], *block.args[start : start + count]]
        for old, argument in zip(body.args, given, strict=True):
            argument.name_hint = old.name_hint
        values += inlined(body, given, block)
    block.add_op(loom.YieldOp(*values))
    return block
