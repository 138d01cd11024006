"""What the values of a body depend on: index dimensions, and other operations of the body.

    wrap (%x: f32, %w: f32) { %e = math.exp %x : f32   %p = arith.mulf %e, %w : f32 ... }

With `%x` read along dimensions 0 and 2 and `%w` along 2 and 1, `%e` varies along {0, 2} and `%p`
along {0, 1, 2}; `%e` needs only `math.exp`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tapestry.dialects import loom
from tapestry.zspace import Projection

Dims = frozenset[int]
"""Some dimensions of an index space."""


def moving_dims(projection: Projection) -> Dims:
    """The index dimensions along which what a projection selects moves."""
    return frozenset(dim for terms in projection.map.terms for _, dim in terms)


def dependences(
    block: Block, arguments: Sequence[Dims], place: Mapping[int, int] | None = None
) -> dict[SSAValue, Dims]:
    """For every value of a body, the dimensions it varies along, given those of its arguments.

    `place` says what index dimensions are called there, where it is not by their number.
    """
    varies: dict[SSAValue, Dims] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        own: Dims = frozenset()
        if isinstance(op, loom.IndexOp):
            dim = op.dimension
            own = frozenset((dim if place is None else place.get(dim, dim),))
        found = own.union(*(varies[operand] for operand in op.operands))
        for result in op.results:
            varies[result] = found
    return varies


def needed_operations(
    values: Iterable[SSAValue], ends: Container[Operation] = ()
) -> set[Operation]:
    """The operations of a body that some of its values are computed by; not those before `ends`."""
    needed: set[Operation] = set()
    stack = list(values)
    while stack:
        owner = stack.pop().owner
        if isinstance(owner, Operation) and owner not in needed:
            needed.add(owner)
            if owner not in ends:
                stack.extend(owner.operands)
    return needed
