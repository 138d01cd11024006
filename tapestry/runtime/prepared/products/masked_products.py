"""Sums of products of which some points do not count, as products of factors with zeros.

    mm over [map, map, fold] domain(d0 - d2 >= 0, d2 - d1 >= 0)    # two lower triangles

Each row of the domain that moves along what is folded belongs to one factor, which is zero where
the row does not hold. Zero times infinity is no number: where a factor that meets such zeros is not
finite, each point is looked at for itself, by what is prepared then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.products.matrices import matrix_product
from tapestry.runtime.prepared.script import Run
from tapestry.zspace import Domain


@dataclass(frozen=True)
class Masked:
    """A contraction, and the points that count for each factor and for its result."""

    contraction: Contraction
    left: Domain | None
    right: Domain | None
    result: Domain | None


def find_masked(op: loom.OperationOp, monoid: Monoid | None) -> list[Masked] | None:
    """The contractions that an operation is, whose factors its domain masks; None otherwise."""
    inside = None if op.inside is None else op.inside.within(op.index)
    found = find_contractions(op, monoid)
    if inside is None or not found:
        return None
    masked = [_masked(one, inside, op.fold_dims) for one in found]
    kept = [one for one in masked if one is not None]
    return kept if len(kept) == len(found) else None


def _masked(one: Contraction, inside: Domain, folded: Sequence[int]) -> Masked | None:
    """A contraction whose left factor also has dimensions that only the domain moves along."""
    rows: dict[str, list[int]] = {"left": [], "right": [], "result": []}
    roles = {*one.batch, *one.rows, *one.columns, *one.inner}
    more = frozenset[int]().union(*inside.moving()) - roles
    left = {*one.batch, *one.rows, *one.inner, *more}
    right = {*one.batch, *one.columns, *one.inner}
    for number, dims in enumerate(inside.moving()):
        if dims.isdisjoint(folded):
            rows["result"].append(number)
        elif dims <= right:
            rows["right"].append(number)
        elif dims <= left:
            rows["left"].append(number)
        else:
            return None
    own = replace(one, rows=(*one.rows, *sorted(more)))
    return Masked(own, *(inside.only(rows[part]) for part in ("left", "right", "result")))


class NotFiniteError(Exception):
    """A factor is not finite where the other one was made zero."""


class WhereFinite:
    """What is `fast` while factors are finite; elsewhere what `slow` makes, once.

    run = WhereFinite(fast, lambda: prepared_otherwise)
    """

    def __init__(self, fast: Run, slow: Callable[[], Run]) -> None:
        self._fast, self._make = fast, slow
        self._slow: Run | None = None

    def __call__(self, ins: Sequence[Any]) -> Sequence[Any]:
        """What either gives."""
        try:
            return self._fast(ins)
        except NotFiniteError:
            if self._slow is None:
                self._slow = self._make()
            return self._slow(ins)


class MaskedProducts:
    """The state of an operation that is such contractions, from the arrays of its inputs.

    `factors` gives the left and the right factor of each, with an axis per dimension.
    """

    def __init__(
        self,
        op: loom.OperationOp,
        found: Sequence[Masked],
        factors: Run,
        multiply: Multiply,
    ) -> None:
        self._factors = factors
        self._masks = [
            [inside_mask(domain, op.index) for domain in (one.left, one.right)] for one in found
        ]
        results = [inside_mask(one.result, op.index) for one in found]
        self._counted = [None if one is None else one.squeeze(op.fold_dims) for one in results]
        self._products = [
            matrix_product(one.contraction, op.index, op.kept_dims, multiply) for one in found
        ]

    def __call__(self, ins: Sequence[Array]) -> list[Array]:
        """The state.

        Raises:
            NotFiniteError: if a factor that meets zeros of a mask is not finite.
        """
        sides = self._factors(ins)
        state: list[Array] = []
        pairs = zip(self._products, self._counted, strict=True)
        for number, (product, counted) in enumerate(pairs):
            masks = self._masks[number]
            own = sides[2 * number : 2 * number + 2]
            pair = [_zeroed(side, mask) for side, mask in zip(own, masks, strict=True)]
            if any(
                mask is not None and not _is_finite(other)
                for mask, other in zip(masks, pair[::-1], strict=True)
            ):
                raise NotFiniteError
            made = product(*pair)
            state.append(_zeroed(made, counted))
        return state


def _zeroed(values: Array, mask: Array | None) -> Array:
    """Values that are zero where a mask is not."""
    return values if mask is None else np.asarray(np.where(mask, values, values.dtype.type(0)))


def _is_finite(values: Array) -> bool:
    return values.dtype.kind in "biu" or bool(np.isfinite(values).all())
