"""An operation that writes only some of its outputs, and folds only what they need.

    %s, %m = loom.operation @s_m ... by @add_max ... wrap {yield %e, %x}

without its second output is

    %s = loom.operation @s_m ... by @add ... wrap {yield %e}

Maxima whose places nobody reads are folded by `@max`, though places are compared where two values
are equal (`tapestry.algebra.orders`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Region
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import BUILTIN_MONOIDS, Monoid, builtin_monoid, monoid_of
from tapestry.algebra.orders import chosen_by_order
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom.fusion.joining import identity_body
from tapestry.passes.loom.rebuilding.bodies import body_key, drop_unused, inlined
from tapestry.passes.loom.rebuilding.monoids import defined_once
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of


def parts_needed(op: loom.OperationOp, wanted: Sequence[int]) -> tuple[int, ...]:
    """The parts of the state that some outputs of a fold are made of, and those they merge by."""
    monoid = monoid_of(op)
    assert monoid is not None
    count = len(monoid.state)
    needed = set(wanted)
    if op.unwrap_block is not None:
        arguments = op.unwrap_block.args[:count]
        read = _read_by(op.unwrap_block, wanted)
        needed = {part for part, argument in enumerate(arguments) if argument in read}
    while True:
        merged = [part for part in sorted(needed) if chosen_by_order(monoid, part) is None]
        read = _read_by(monoid.merge, merged)
        grown = needed | {n % count for n, a in enumerate(monoid.merge.args) if a in read}
        if grown == needed:
            return tuple(sorted(needed)) or (0,)
        needed = grown


def with_outputs(
    op: loom.OperationOp, wanted: Sequence[int], label: str, rewriter: PatternRewriter
) -> loom.OperationOp:
    """A new operation that writes some outputs of `op` alone; `op` is left as it is."""
    ins, extras = reads_of(op)
    writes = writes_of(op)
    wrap = _copy(op.wrap_block)
    unwrap: list[Block] = []
    name = op.monoid_name
    if name is None:
        _yield_only(wrap, wanted, rewriter)
    else:
        parts = parts_needed(op, wanted)
        first = op.unwrap_block
        if first is None and list(parts) != list(wanted):
            first = identity_body(op.state_types)
        if first is not None:
            count = len(op.state_types)
            body = _copy(first)
            _yield_only(body, wanted, rewriter)
            extras = drop_unread(body, extras, count)
            for part in reversed([p for p in range(count) if p not in parts]):
                body.erase_arg(body.args[part])
            unwrap = [body]
        if len(parts) < len(op.state_types):
            name = _part_of_monoid(op, parts, rewriter)
            _yield_only(wrap, parts, rewriter)
    ins = drop_unread(wrap, ins, 0)
    new = loom.OperationOp(
        label,
        op.index,
        op.kinds,
        name,
        ins,
        [writes[out] for out in wanted],
        Region(wrap),
        extras=extras,
        unwrap=Region(unwrap),
        partition=op.partition,
        inside=op.inside,
        attributes=op.attributes,
    )
    new.location = op.location
    for out, result in zip(wanted, new.outs, strict=True):
        result.name_hint = op.outs[out].name_hint
    return new


def merges_alone(monoid: Monoid, parts: Sequence[int]) -> bool:
    """Whether merging some parts of a state reads no others."""
    read, count = _read_by(monoid.merge, parts), len(monoid.state)
    return all(n % count in parts for n, a in enumerate(monoid.merge.args) if a in read)


def wrapped_parts(
    op: loom.OperationOp, parts: Sequence[int], rewriter: PatternRewriter
) -> tuple[str, Block, list[Read]]:
    """The monoid of some parts of a state that merge alone; their wrap, and what that reads."""
    wrap = _copy(op.wrap_block)
    _yield_only(wrap, parts, rewriter)
    reads = drop_unread(wrap, reads_of(op)[0], 0)
    return _part_of_monoid(op, parts, rewriter), wrap, reads


def drop_unread(block: Block, reads: Sequence[Read], first: int) -> list[Read]:
    """Drop what a body does not use; its argument `first + i` belongs to read `i`."""
    kept: list[Read] = []
    for read in reads:
        argument = block.args[first + len(kept)]
        if argument.first_use is None:
            block.erase_arg(argument)
        else:
            kept.append(read)
    return kept


def _read_by(body: Block, wanted: Sequence[int]) -> set[object]:
    """The values that some of what a body yields is computed of, itself included."""
    values = [loom.yielded(body)[n] for n in wanted]
    needed = needed_operations(values)
    return {*values, *(operand for op in needed for operand in op.operands)}


def _copy(body: Block) -> Block:
    copied = Block(arg_types=[argument.type for argument in body.args])
    for old, new in zip(body.args, copied.args, strict=True):
        new.name_hint = old.name_hint
    copied.add_op(loom.YieldOp(*inlined(body, copied.args, copied)))
    return copied


def _yield_only(body: Block, wanted: Sequence[int], rewriter: PatternRewriter) -> None:
    end = body.last_op
    assert end is not None
    values = [end.operands[n] for n in wanted]
    rewriter.erase(end)
    body.add_op(loom.YieldOp(*values))
    drop_unused(body, rewriter)


def _part_of_monoid(op: loom.OperationOp, parts: Sequence[int], rewriter: PatternRewriter) -> str:
    """The name of the monoid that merges some parts of a state, which need no others."""
    monoid = monoid_of(op)
    assert monoid is not None
    count = len(monoid.state)
    merge = _copy(monoid.merge)
    _order_alone(monoid, parts, merge)
    _yield_only(merge, parts, rewriter)
    for number in reversed(range(2 * count)):
        if number % count not in parts:
            merge.erase_arg(merge.args[number])
    kinds = tuple(monoid.state[part] for part in parts)
    zero = tuple(monoid.zero[part] for part in parts)
    known = _builtin(kinds, zero, merge)
    if known is not None:
        return known.name
    zeros = [number_attr(number, kind) for number, kind in zip(zero, kinds, strict=True)]
    name = f"{monoid.name}_{'_'.join(map(str, parts))}"
    new = loom.MonoidOp(name, zeros, Region(merge), commutative=monoid.commutative)
    return defined_once(op, new, rewriter).sym_name.data


def _order_alone(monoid: Monoid, parts: Sequence[int], merge: Block) -> None:
    """Parts that need no others are the larger or the smaller of two in a copy of the merge."""
    end, count = merge.last_op, len(monoid.state)
    assert end is not None
    for part in parts:
        single = chosen_by_order(monoid, part)
        if single is not None and single.merge.first_op is not None:
            pair = (merge.args[part], merge.args[count + part])
            chosen = single.merge.first_op.clone(dict(zip(single.merge.args, pair, strict=True)))
            merge.insert_op_before(chosen, end)
            end.operands[part] = chosen.results[0]


def _builtin(kinds: tuple[Attribute, ...], zero: tuple[object, ...], merge: Block) -> Monoid | None:
    """The built-in monoid that a definition says again."""
    for name in BUILTIN_MONOIDS:
        found = builtin_monoid(name, kinds)
        if found is not None and found.zero == zero and body_key(found.merge) == body_key(merge):
            return found
    return None
