"""Monoids that merge many states at once because sums say what all the others are.

    merge (%s, %n, %q, %s_1, %n_1, %q_1) {           # a sum, a count, squares about the mean
      ... %by   = (%s / %n - %s_1 / %n_1) * (%n_1 / (%n + %n_1))
      ... %by_1 = (%s_1 / %n_1 - %s / %n) * (%n / (%n + %n_1))
      loom.yield %s + %s_1, %n + %n_1, (%q + %n * %by^2) + (%q_1 + %n_1 * %by_1^2)
    }

`%q` is moved by a distance that depends on the *other* state. But `%s` and `%n` are sums: of many
states, what the others have together is what all have less one's own. So each state is moved as if
all others were one, and the results are added: two steps, as of `tapestry.algebra.moved_parts`.

That many states merge as two do is a law of what the merge adds, which its form does not say. It is
tried on samples, as the laws of a monoid are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.dtypes import is_float, numpy_dtype
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.moved_parts import (
    MovedParts,
    find_moved_parts,
    plain_parts,
    written,
    yielding,
)
from tapestry.algebra.scalars import Array, compute, has_meaning
from tapestry.dialects import loom

_STATES, _SAMPLES = 5, 16


def find_merged_at_once(monoid: Monoid) -> MovedParts | None:
    """`find_moved_parts`, also of parts that are moved by sums of the other state."""
    return find_moved_parts(monoid) or _find_complements(monoid)


def _find_complements(monoid: Monoid) -> MovedParts | None:
    count = len(monoid.state)
    first, second = monoid.merge.args[:count], monoid.merge.args[count:]
    plain = plain_parts(monoid)
    sums = [part for part, primitive in plain.items() if primitive is arith.AddfOp]
    merged: dict[SSAValue, Hashable] = {monoid.merged[p]: ("merged", p) for p in plain}
    moved: dict[int, Block] = {}
    for part, value in enumerate(monoid.merged):
        if part in plain:
            continue
        if not isinstance(value.owner, arith.AddfOp):
            return None
        keys: list[Hashable | None] = []
        sides = zip(value.owner.operands, ((first, second), (second, first)), strict=True)
        for side, (own, other) in sides:
            known = merged | {one: ("own", n) for n, one in enumerate(own)}
            keys.append(written(side, known | {other[n]: ("other", n) for n in sums}))
        if keys[0] is None or keys[0] != keys[1]:
            return None
        moved[part] = _block(monoid, value.owner.lhs, plain, sums)
    found = MovedParts(plain, moved)
    return found if _is_right(monoid, found) else None


def _block(
    monoid: Monoid, value: SSAValue, plain: dict[int, type[Operation]], sums: Sequence[int]
) -> Block:
    """The part of a merge that computes `value`, of one state and of the sums of all."""
    count = len(monoid.state)
    block = Block(arg_types=[*monoid.state, *monoid.state])
    own, merged = block.args[:count], block.args[count:]
    values: dict[SSAValue, SSAValue] = dict(zip(monoid.merge.args[:count], own, strict=True))
    values |= {monoid.merged[part]: merged[part] for part in plain}
    for part in sums:
        others = arith.SubfOp(merged[part], own[part])
        block.add_op(others)
        values[monoid.merge.args[count + part]] = others.result
    return yielding(block, value, values)


def _is_right(monoid: Monoid, found: MovedParts) -> bool:
    """Whether sample states merge at once as they do one after another."""
    bodies = [monoid.merge, *found.moved.values()]
    if not all(is_float(kind) for kind in monoid.state) or not all(
        has_meaning(op) for body in bodies for op in body.ops if op is not body.last_op
    ):
        return False
    random = np.random.default_rng(0)
    dtypes = [numpy_dtype(kind) for kind in monoid.state]
    states = [
        [random.uniform(0.5, 2.0, _SAMPLES).astype(dtype) for dtype in dtypes]
        for _ in range(_STATES)
    ]
    want = states[0]
    for state in states[1:]:
        want = _evaluated(monoid.merge, [*want, *state])
    total = [want[part] if part in found.plain else states[0][part] for part in range(len(dtypes))]
    for part, body in found.moved.items():
        added = sum(_evaluated(body, [*state, *total])[0].astype(np.float64) for state in states)
        near = 1e-2 if dtypes[part].itemsize < 4 else 1e-4
        if not np.allclose(added, want[part].astype(np.float64), rtol=near, atol=near):
            return False
    return True


def _evaluated(body: Block, given: Sequence[Array]) -> list[Array]:
    """What a body yields of arrays."""
    values: dict[SSAValue, Array] = dict(zip(body.args, given, strict=True))
    for op in body.ops:
        if op is not body.last_op:
            values[op.results[0]] = compute(op, [values[operand] for operand in op.operands])
    return [values[value] for value in loom.yielded(body)]
