"""Folds of whole arrays, whatever the monoid.

    state = fold(values)        # what wrap yields over the index space; the folded state

Parts of a state that merge by an operation of NumPy's are reduced by it. Parts that are moved by
others and added (`tapestry.algebra.complements`) are moved at once and summed; where what is summed
is a product of factors that vary apart, as in attention, the sum is a matrix product. Other monoids
merge halves with halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.complements import find_merged_at_once
from tapestry.algebra.contraction import contraction_of
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.reductions import Reduction, find_reduction
from tapestry.dialects import loom
from tapestry.runtime.arithmetic import cell_constant
from tapestry.runtime.domains import inside_mask
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import prepared_body
from tapestry.runtime.prepared.halves import merged_halves
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.products import column_sums, matrix_product
from tapestry.zspace import Range

Combine: TypeAlias = Callable[[Sequence[Array]], list[Array]]
"""From what wrap yields, an axis per dimension, to the state over the kept dimensions."""

_Moved: TypeAlias = Callable[[Sequence[Array]], Array]
"""A moved part, from all parts of the states that are folded and the plain parts of the result."""

_NOWHERE = Range((), ())


@dataclass(frozen=True)
class Folding:
    """An operation's fold over a range of its index space."""

    op: loom.BlockSignature
    monoid: Monoid
    index: Range
    multiply: Multiply

    def combine(self) -> Combine:
        """How values over the range fold."""
        dtypes = [numpy_dtype(kind) for kind in self.monoid.state]
        fold, rank = self._at_once() or self._by_halves(), self.index.rank

        def combine(values: Sequence[Array]) -> list[Array]:
            pairs = zip(values, dtypes, strict=True)
            typed = [v if v.dtype == dtype else v.astype(dtype) for v, dtype in pairs]
            return fold([v if v.ndim == rank else v.reshape((1,) * rank) for v in typed])

        return combine

    @cached_property
    def mask(self) -> Array | None:
        """Which points of the range count; None when all do."""
        return inside_mask(self.op.inside, self.index)

    def _counted(self, value: Array, part: int) -> Array:
        """A part's values, the monoid's zero where points do not count."""
        if self.mask is None:
            return value
        zero = cell_constant(self.monoid.zero[part], self.monoid.state[part])
        return np.where(self.mask, value, zero)

    def _along(self, value: Array) -> Array:
        """A value all along the folded dimensions."""
        have, extents = value.shape, self._extents
        if all(have[dim] == extent for dim, extent in extents):
            return value
        shape = list(have)
        for dim, extent in extents:
            shape[dim] = extent
        return np.broadcast_to(value, shape)

    @cached_property
    def _extents(self) -> list[tuple[int, int]]:
        """The folded dimensions and their extents."""
        return [(dim, self.index.shape[dim]) for dim in self.op.fold_dims]

    def _at_once(self) -> Combine | None:
        found = find_merged_at_once(self.monoid)
        if found is None:
            return None
        state, folded = self.monoid.state, self.op.fold_dims
        plain: dict[int, Reduction] = {}
        for part, primitive in found.plain.items():
            reduction = find_reduction(primitive, state[part])
            if reduction is None:
                return None
            plain[part] = reduction
        moved: dict[int, _Moved] = {}
        for part, block in found.moved.items():
            one = self._moved(part, block, list(plain))
            if one is None:
                return None
            moved[part] = one
        kept = tuple(None if d in folded else slice(None) for d in range(self.index.rank))

        def fold(values: Sequence[Array]) -> list[Array]:
            own = [self._counted(v, p) if p in plain else v for p, v in enumerate(values)]
            result = list(own)
            merged = list(own)
            for part, reduction in plain.items():
                along = self._along(own[part])
                summed = column_sums(reduction, along, folded, self.multiply)
                result[part] = np.asarray(
                    reduction.fold(along, folded) if summed is None else summed
                )
                merged[part] = result[part][kept]
            for part, move in moved.items():
                result[part] = move([*own, *merged])
            return result

        return fold

    def _moved(self, part: int, block: Block, plain: Sequence[int]) -> _Moved | None:
        """The sum of a moved part: a matrix product where it is one of factors that vary apart."""
        addition = find_reduction(arith.AddfOp, self.monoid.state[part])
        body = prepared_body(block, _NOWHERE, ())
        if addition is None or body is None:
            return None
        folded = self.op.fold_dims

        def summed(given: Sequence[Array]) -> Array:
            (value,) = body(given)
            return addition.fold(self._along(self._counted(value, part)), folded)

        return self._product(block, plain, summed) or summed

    def _product(self, block: Block, plain: Sequence[int], summed: _Moved) -> _Moved | None:
        own = self._parts()
        dims = [d | self._masked if p in plain else d for p, d in enumerate(own)]
        merged = [d - frozenset(self.op.fold_dims) for d in dims]
        end = block.last_op
        assert end is not None
        varies = dependences(block, [*dims, *merged])
        found = contraction_of(end.operands[0], varies, self.op.kept_dims, self.op.fold_dims)
        if found is None:
            return None
        covers = [self._masked <= varies[side] for side in (found.left, found.right)]
        factors = prepared_body(block, _NOWHERE, (), (found.left, found.right))
        if not any(covers) or factors is None:
            return None
        multiply = matrix_product(found, self.index, self.op.kept_dims, self.multiply)
        on = covers.index(True)

        def product(given: Sequence[Array]) -> Array:
            sides = factors(given)
            if self.mask is not None:
                # What does not count must be zero, whatever the other factor is there.
                if not np.isfinite(sides[1 - on]).all():
                    return summed(given)
                sides[on] = np.where(self.mask, sides[on], sides[on].dtype.type(0))
            return multiply(*sides)

        return product

    @property
    def _masked(self) -> Dims:
        """The dimensions along which it varies which points count."""
        mask = self.mask
        shape = () if mask is None else mask.shape
        return frozenset(dim for dim, extent in enumerate(shape) if extent > 1)

    def _parts(self) -> list[Dims]:
        """Per part, the dimensions along which wrapped values vary."""
        block = self.op.wrap_block
        end = block.last_op
        assert end is not None
        varies = dependences(block, [moving_dims(p) for p in self.op.in_maps])
        return [varies[value] for value in end.operands]

    def _by_halves(self) -> Combine:
        """States merged with their neighbours until there is one."""
        merge, folded = merged_halves(self.monoid, self.op.fold_dims), self.op.fold_dims

        def fold(values: Sequence[Array]) -> list[Array]:
            whole = [self._along(self._counted(value, part)) for part, value in enumerate(values)]
            return [part.squeeze(folded) for part in merge(*whole)]

        return fold
