"""Parts of a state that are the larger or the smaller of two, seen in merges and never in names.

    merge (%a: f32, %i: i64, %b: f32, %j: i64) {
      ... %take = %a is larger, or the two are equal and %i comes first
      %value = arith.select %take, %a, %b : f32 ...

What `%value` is does not depend on `%i` and `%j`, though what computes it reads them: where those
decide, `%a` and `%b` are equal. So where positions are not used, it is folded by a maximum alone.

    >>> from xdsl.dialects.builtin import f32, i64
    >>> from tapestry.algebra.monoids import builtin_monoid
    >>> chosen_by_order(builtin_monoid("argmin", (f32, i64)), 0).name
    'min'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Attribute, Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid, builtin_monoid
from tapestry.algebra.scalars import compute

_LOGIC = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_UNSIGNED = frozenset({6, 7, 8, 9})
"""Predicates of `arith.cmpi` by which -1 is larger than 1."""
_MOST = 6
"""Truth values that depend on other parts, all of which are tried."""


@lru_cache(maxsize=256)
def chosen_by_order(monoid: Monoid, part: int) -> Monoid | None:
    """The built-in maximum or minimum that a part is folded by, whatever the other parts are.

    None where it is neither, and where the part merges by itself already.

    The part has to be one of its two values, chosen by how they compare and by truth values that
    may be anything. So it is decided by whether one is smaller, larger, equal or a NaN: all of that
    is tried. Of equal values either may be taken: of two zeros, the one of the other sign.
    """
    kind, count = monoid.state[part], len(monoid.state)
    value, pair = monoid.merged[part], (monoid.merge.args[part], monoid.merge.args[count + part])
    unknown: dict[SSAValue, None] = {}
    if value in pair or not _is_chosen(value, pair, kind, unknown) or len(unknown) > _MOST:
        return None
    for name in ("max", "min"):
        single = builtin_monoid(name, (kind,))
        if single is None or single.zero[0] != monoid.zero[part]:
            continue
        if _agree(value, pair, tuple(unknown), single):
            return single
    return None


def _is_chosen(
    value: SSAValue,
    pair: tuple[SSAValue, SSAValue],
    kind: Attribute,
    unknown: dict[SSAValue, None],
) -> bool:
    """Whether a value is one of a pair, or a truth value of how the two compare, and of others.

    Those others are put into `unknown`.
    """
    if value in pair or value in unknown:
        return True
    match value.owner:
        case arith.SelectOp() as op:
            return all(_is_chosen(one, pair, kind, unknown) for one in op.operands)
        case arith.CmpfOp() | arith.CmpiOp() as op if set(op.operands) <= set(pair):
            signed = op.predicate.value.data not in _UNSIGNED
            return isinstance(op, arith.CmpfOp) or kind == i1 or signed
        case Operation() as op if isinstance(op, _LOGIC) and value.type == i1:
            return all(_is_chosen(one, pair, kind, unknown) for one in op.operands)
        case _ if value.type == i1:
            unknown[value] = None
            return True
        case _:
            return False


def _agree(
    value: SSAValue,
    pair: tuple[SSAValue, SSAValue],
    unknown: tuple[SSAValue, ...],
    single: Monoid,
) -> bool:
    """Whether a value is what a monoid of one part makes of the pair, in every order of the two."""
    kind = single.state[0]
    cells = [False, True] if kind == i1 else [-1, 1]
    cells = [*cells, float("nan")] if isinstance(kind, AnyFloat) else cells
    numbers = [np.asarray(cell, numpy_dtype(kind)) for cell in cells]
    for first, second in product(numbers, repeat=2):
        wanted = _evaluate(
            single.merged[0], dict(zip(single.merge.args, (first, second), strict=True))
        )
        for truths in product((False, True), repeat=len(unknown)):
            known = dict(zip(unknown, map(np.asarray, truths), strict=True))
            found = _evaluate(value, known | dict(zip(pair, (first, second), strict=True)))
            if not np.array_equal(found, wanted, equal_nan=isinstance(kind, AnyFloat)):
                return False
    return True


def _evaluate(value: SSAValue, known: Mapping[SSAValue, Any]) -> Any:
    """A value of known ones."""
    if value in known:
        return known[value]
    owner = value.owner
    assert isinstance(owner, Operation)
    return compute(owner, [_evaluate(operand, known) for operand in owner.operands])
