"""Folds beside a chain: those that read the same results along the same dimensions.

    %mx = mean of %x    %vx = sum of (%x - %mx)^2    %my ...    %c = sum of (%x - %mx) (%y - %my)

`@c` has the chain `@mx, @my, @c`. `@vx` is none of it, but it too reads `%mx`, and `%x` at the same
points: it can be folded in the same pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom.derivation.chain import Chain, Placed, is_plain_fold
from tapestry.zspace import AffineMap


def siblings(chain: Chain) -> Iterator[Placed]:
    """Folds between the first and the last of a chain that read a result of it, later ones first.

    With each, its points as a function of those of the chain's last fold.
    """
    ops = {member.op for member in chain.members}
    missing = set[Operation](ops)
    op: Operation | None = chain.last
    while op is not None and missing:
        missing.discard(op)
        if isinstance(op, loom.OperationOp) and op not in ops and is_plain_fold(op):
            own = Chain(op)
            if any(other in ops for other, _ in own.others):
                points = _points(chain, own)
                if points is not None:
                    yield op, points
        op = op.prev_op


def _points(chain: Chain, own: Chain) -> AffineMap | None:
    """The points of another chain's last fold, where both read the same cells; None where not all
    of its dimensions are among those of the chain.
    """
    places: dict[int, tuple[int, int]] = {}
    for ours in _leaves(chain):
        for theirs in _leaves(own):
            if ours.value is not theirs.value:
                continue
            mapping, other = ours.projection.map, theirs.projection.map
            for row in range(mapping.outputs):
                dim, from_dim = other.unit_row(row), mapping.unit_row(row)
                if dim is None or from_dim is None:
                    continue
                place = (from_dim, mapping.offset[row] - other.offset[row])
                if places.setdefault(dim, place) != place:
                    return None
    index, rank = own.last.index, chain.last.index.rank
    if len(places) != index.rank or len({dim for dim, _ in places.values()}) != index.rank:
        return None
    for dim, (from_dim, shift) in places.items():
        start, end = chain.last.index.start[from_dim], chain.last.index.end[from_dim]
        if (index.start[dim], index.end[dim]) != (start + shift, end + shift):
            return None
    if frozenset(places[dim][0] for dim in own.folded) != chain.folded:
        return None
    return AffineMap.of(
        [[int(d == places[dim][0]) for d in range(rank)] for dim in range(index.rank)],
        [places[dim][1] for dim in range(index.rank)],
        inputs=rank,
    )


def _leaves(chain: Chain) -> Iterable[Read]:
    return set[Read]().union(*(member.body.leaves() for member in chain.members))
