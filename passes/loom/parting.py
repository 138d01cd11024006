"""A part of a fold's state that ends apart from the others: a fold of its own.

    %y = loom.operation @gated over <[0, 0, 0] : [8192, 5632, 2048]> [map, map, fold] by @add_add
           ins(%x : (i, j, k) -> (i, k), %g : (i, j, k) -> (k, j), %u : (i, j, k) -> (k, j))
           wrap {yield %x * %g, %x * %u} unwrap (%gate, %up) {yield silu(%gate) * %up}

becomes

    %s = loom.operation @gated_part ... by @add ins(%x, %g) wrap {yield %x * %g}
           unwrap (%gate) {yield silu(%gate)}
    %y = loom.operation @gated ... by @add ins(%x, %u) extra(%s : (i, j) -> (i, j))
           wrap {yield %x * %u} unwrap (%up, %silu) {yield %silu * %up}

which is what `loom-fuse` undoes where operations stand beside one another: one pass reads `%x`
once, but a program that sums two products has half the tile for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.algebra.monoids import monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.rebuilding.operations import Write, reads_of, writes_of
from tapestry.passes.loom.rebuilding.outputs import drop_unread, merges_alone, wrapped_parts
from tapestry.zspace import Projection


@dataclass(frozen=True, eq=False)
class Parting:
    """How a part of a state ends apart from the others.

    `outputs` are those that it alone is unwrapped to; `through` is the value of unwrap by which the
    other ones depend on it, None where they do not.
    """

    part: int
    through: SSAValue | None
    outputs: tuple[int, ...]


def find_parting(op: loom.OperationOp, among: Sequence[int]) -> Parting | None:
    """The first of some parts of a fold's state that may be a fold of its own; None without one.

    It merges apart from the others, and what else depends on it does so by one value of unwrap at
    most, which is of this part alone: of it, of extra inputs and of numbers. What has shards or a
    domain stays as it is.
    """
    monoid = None if op.monoid_name is None else monoid_of(op)
    if monoid is None or op.unwrap_block is None or in_group(op) or "scan" in op.kinds:
        return None
    if op.partition is not None or op.inside is not None or len(monoid.state) < 2:
        return None
    every = range(len(monoid.state))
    for part in among:
        rest = [other for other in every if other != part]
        if merges_alone(monoid, (part,)) and merges_alone(monoid, rest):
            found = _ending(op.unwrap_block, part, len(monoid.state))
            if found is not None:
                return found
    return None


def part_off(
    op: loom.OperationOp, parting: Parting, rewriter: PatternRewriter
) -> tuple[loom.OperationOp, loom.OperationOp]:
    """Make a fold of a part, and one of the others behind it."""
    unwrap, part = op.unwrap_block, parting.part
    assert unwrap is not None
    rest = [other for other in range(len(op.state_types)) if other != part]
    writes, yielded = writes_of(op), loom.yielded(unwrap)
    every = range(len(writes))
    later = [out for out in every if out not in parting.outputs]
    stored = [(yielded[out], writes[out]) for out in parting.outputs]
    box = op.kept_range(op.index)
    places = Projection.identity(box.rank)
    passed = parting.through
    held = None if passed is None else (passed, (places, TensorType.of(box, passed.type)))
    if held is not None and held not in stored:
        stored.append(held)
    own, outs = [value for value, _ in stored], [write for _, write in stored]
    before = _fold(op, f"{op.label.data}_part", (part,), own, outs, (), rewriter)
    through: list[tuple[SSAValue, Read]] = []
    if held is not None:
        through.append((held[0], Read(before.outs[stored.index(held)], places)))
    values, kept = [yielded[out] for out in later], [writes[out] for out in later]
    after = _fold(op, op.label.data, rest, values, kept, through, rewriter)
    results = dict(zip(parting.outputs, before.outs, strict=False))
    results |= dict(zip(later, after.outs, strict=True))
    for out, old in enumerate(op.outs):
        results[out].name_hint = old.name_hint
    rewriter.replace(op, [before, after], [results[out] for out in every])
    return before, after


def _ending(unwrap: Block, part: int, count: int) -> Parting | None:
    """How a part of so many ends in an unwrap."""
    mine: set[SSAValue] = {unwrap.args[part]}
    shared: set[SSAValue] = {arg for arg in unwrap.args[:count] if arg not in mine}
    through: dict[SSAValue, None] = {}
    for inner in unwrap.ops:
        if inner is unwrap.last_op:
            break
        if not shared.isdisjoint(inner.operands):
            through.update(dict.fromkeys(v for v in inner.operands if v in mine))
            shared.update(inner.results)
        elif not mine.isdisjoint(inner.operands):
            mine.update(inner.results)
    outputs = tuple(n for n, value in enumerate(loom.yielded(unwrap)) if value in mine)
    if len(through) > 1 or not (through or outputs):
        return None
    value = next(iter(through), None)
    # What was rounded and widened again is stored as it was rounded.
    if (
        value is not None
        and isinstance(value.owner, arith.ExtFOp)
        and value.owner.operands[0] in mine
    ):
        value = value.owner.operands[0]
    return Parting(part, value, outputs)


def _fold(
    op: loom.OperationOp,
    label: str,
    parts: Sequence[int],
    values: Sequence[SSAValue],
    writes: Sequence[Write],
    given: Sequence[tuple[SSAValue, Read]],
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """A fold of some parts that is unwrapped to some values; some are given, and read."""
    unwrap = op.unwrap_block
    assert unwrap is not None
    name, wrap, reads = wrapped_parts(op, parts, rewriter)
    count = len(op.state_types)
    arguments = [*(unwrap.args[part] for part in parts), *unwrap.args[count:]]
    taken = [*arguments, *(value for value, _ in given)]
    body = Block(arg_types=[value.type for value in taken])
    known: dict[SSAValue, SSAValue] = dict(zip(taken, body.args, strict=True))
    for old, new in known.items():
        new.name_hint = old.name_hint
    needed = _needed(values, known)
    for inner in unwrap.ops:
        if inner in needed:
            body.add_op(inner.clone(known))
    body.add_op(loom.YieldOp(*(known[value] for value in values)))
    extras = [*reads_of(op)[1], *(read for _, read in given)]
    extras = drop_unread(body, extras, len(parts))
    fold = loom.OperationOp(
        label,
        op.index,
        op.kinds,
        name,
        reads,
        writes,
        Region(wrap),
        extras=extras,
        unwrap=Region(body),
        attributes=op.attributes,
    )
    fold.location = op.location
    return fold


def _needed(values: Sequence[SSAValue], known: dict[SSAValue, SSAValue]) -> set[object]:
    """The operations that values are computed by, as far as those are not known."""
    found: set[object] = set()
    stack = [value for value in values if value not in known]
    while stack:
        owner = stack.pop().owner
        if owner not in found and not isinstance(owner, Block):
            found.add(owner)
            stack += [operand for operand in owner.operands if operand not in known]
    return found
