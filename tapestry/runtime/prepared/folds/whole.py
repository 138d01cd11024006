"""Folds of whole arrays, whatever the monoid.

    state = fold(values)        # what wrap yields over the index space; the folded state

Parts of a state that merge by an operation of NumPy's are reduced by it. Parts that are moved by
others and added (`tapestry.algebra.complements`) are moved at once and summed; where what is summed
is a product of factors that vary apart, as in attention, the sum is a matrix product. Other monoids
merge halves with halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.ir import Block

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.complements import find_merged_at_once
from tapestry.algebra.contraction import contraction_of
from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.reductions import find_reduction
from tapestry.dialects import loom
from tapestry.runtime.arrays.arithmetic import cell_constant
from tapestry.runtime.arrays.domains import inside_mask
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.bodies import prepared_body
from tapestry.runtime.prepared.folds.folding import (
    AtOnce,
    ByHalves,
    Combine,
    Counting,
    Multiplied,
    Plain,
    Summed,
)
from tapestry.runtime.prepared.folds.halves import merged_halves
from tapestry.runtime.prepared.library import Multiply
from tapestry.runtime.prepared.products.matrices import matrix_product
from tapestry.zspace import Range

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
        dtypes = tuple(numpy_dtype(kind) for kind in self.monoid.state)
        return Combine(dtypes, self.index.rank, self._at_once() or self._by_halves())

    @cached_property
    def _counting(self) -> Counting:
        extents = tuple((dim, self.index.shape[dim]) for dim in self.op.fold_dims)
        return Counting(extents, inside_mask(self.op.inside, self.index))

    def _zero(self, part: int) -> Array:
        return cell_constant(self.monoid.zero[part], self.monoid.state[part])

    def _at_once(self) -> AtOnce | None:
        found = find_merged_at_once(self.monoid)
        if found is None:
            return None
        plain: list[Plain] = []
        for part, primitive in found.plain.items():
            reduction = find_reduction(primitive, self.monoid.state[part])
            if reduction is None:
                return None
            plain.append(Plain(part, reduction, self._zero(part)))
        moved: list[tuple[int, Summed | Multiplied]] = []
        for part, block in found.moved.items():
            one = self._moved(part, block, [own.part for own in plain])
            if one is None:
                return None
            moved.append((part, one))
        return AtOnce(self._counting, tuple(plain), tuple(moved), self.multiply)

    def _moved(self, part: int, block: Block, plain: Sequence[int]) -> Summed | Multiplied | None:
        """The sum of a moved part: a matrix product where it is one of factors that vary apart."""
        addition = find_reduction(arith.AddfOp, self.monoid.state[part])
        body = prepared_body(block, _NOWHERE, ())
        if addition is None or body is None:
            return None
        summed = Summed(self._counting, body, addition, self._zero(part))
        return self._product(block, plain, summed) or summed

    def _product(self, block: Block, plain: Sequence[int], summed: Summed) -> Multiplied | None:
        own = self._parts()
        dims = [d | self._masked if p in plain else d for p, d in enumerate(own)]
        merged = [d - frozenset(self.op.fold_dims) for d in dims]
        varies = dependences(block, [*dims, *merged])
        found = contraction_of(loom.yielded(block)[0], varies, self.op.kept_dims, self.op.fold_dims)
        if found is None:
            return None
        covers = [self._masked <= varies[side] for side in (found.left, found.right)]
        factors = prepared_body(block, _NOWHERE, (), (found.left, found.right))
        if not any(covers) or factors is None:
            return None
        multiply = matrix_product(found, self.index, self.op.kept_dims, self.multiply)
        return Multiplied(summed, factors, multiply, covers.index(True))

    @property
    def _masked(self) -> Dims:
        """The dimensions along which it varies which points count."""
        mask = self._counting.mask
        shape = () if mask is None else mask.shape
        return frozenset(dim for dim, extent in enumerate(shape) if extent > 1)

    def _parts(self) -> list[Dims]:
        """Per part, the dimensions along which wrapped values vary."""
        block = self.op.wrap_block
        varies = dependences(block, [moving_dims(p) for p in self.op.in_maps])
        return [varies[value] for value in loom.yielded(block)]

    def _by_halves(self) -> ByHalves:
        """States merged with their neighbours until there is one."""
        zeros = tuple(map(self._zero, range(len(self.monoid.state))))
        return ByHalves(self._counting, zeros, merged_halves(self.monoid, self.op.fold_dims))
