"""Whether earlier folds of a chain are worth folding again for each cell that the last one makes.

    %r = 1 / sqrt(sum over k of %x[i, k] ^ 2)      %y = sum over k of (%x[i, k] * %r[i]) * %w[k, j]

`%r` lacks `j`. Derived into one pass, its sum would be folded again along `j`; but `%r` is a factor
of the whole sum, `%y` is a matrix product, and `%x` is read for that anyway. A program that makes a
block of `%y` adds up the squares of the tiles it multiplies: few operations beside a product's, and
`%x` is not read for them once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from xdsl.dialects import arith

from tapestry.algebra.bodies import Dims, moving_dims
from tapestry.algebra.derivation.model import Derivation
from tapestry.passes.loom.derivation.algebra import Algebra, uncast
from tapestry.passes.loom.derivation.chain import Chain, Member
from tapestry.zspace import Projection

CHEAP = 16
"""Scalar operations at a point that are few beside those of a block's columns in a product."""


def why_not_repeated(chain: Chain, algebra: Algebra, derivation: Derivation) -> str | None:
    """Why earlier folds are not folded again along dimensions that they lack.

    None where there are no such dimensions; and where all of these hold:

    * the last fold is a sum of products of cells, to which earlier results are factors: one part of
      the state, that no centre moves, times what is the same for all points;
    * two of its cells each move along a dimension that the other does not: a matrix product;
    * no rounding was left out for it: a factor that is larger without the earlier results, or in a
      longer type, would cost more to multiply;
    * the folds that are repeated are sums of products as well, of what it reads, and compute little
      at a point: what has no tiles sums each over its own dimensions, by matrix products.
    """
    *earlier, last = chain.members
    shape = chain.last.index.shape
    kept = frozenset(dim for dim in chain.last.kept_dims if shape[dim] > 1)
    repeated = [m for m in earlier if not kept <= moving_dims(Projection.cells(m.points))]
    if not repeated:
        return None
    lacks = "has dimensions that earlier folds lack, which would be folded again along them"
    if not _is_scaled(derivation, last.name):
        return f"is relative to no extremum, and no sum times earlier results; it {lacks}"
    sides = list(_sides(algebra, derivation, last.name, kept))
    if not any(a - b and b - a for a, b in combinations(sides, 2)):
        return f"is relative to no extremum, and no matrix product; it {lacks}"
    if algebra.unrounded:
        return f"would multiply in a longer type what earlier results scale; it {lacks}"
    for member in repeated:
        if member.op.monoid_name != "add" or not isinstance(uncast(member.body).op, arith.MulfOp):
            return f"{lacks}; {member.name} is no sum of products"
        if not member.body.leaves() <= last.body.leaves():
            return f"does not read all that {member.name} reads; it {lacks}"
        if _operations(member, last) > CHEAP:
            return f"{lacks}; {member.name} computes more than {CHEAP} operations at a point"
    return None


def _is_scaled(derivation: Derivation, name: str) -> bool:
    """Whether a fold's result is one part as it was summed, times what all points share."""
    terms = list(derivation.results[name].value.terms)
    if len(terms) != 1:
        return False
    ((monomial, _),) = terms
    parts = {part.symbol: part for part in derivation.parts}
    held = [parts[symbol] for symbol in monomial.symbols if symbol in parts]
    return len(held) == 1 and held[0].moved is None and monomial.power(held[0].symbol) == 1


def _sides(algebra: Algebra, derivation: Derivation, name: str, kept: Dims) -> Iterator[Dims]:
    """The kept dimensions along which each cell moves that a sum multiplies."""
    value = derivation.results[name].value
    for part in derivation.parts:
        if part.symbol in value.symbols:
            for symbol in part.point.symbols & algebra.cells.keys():
                yield algebra.cells[symbol].moving & kept


def _operations(member: Member, last: Member) -> int:
    """How many operations a fold's body has that the last one's has not."""
    own = member.body.below() - last.body.below()
    return sum(term.op is not None for term in own)
