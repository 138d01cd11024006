"""Which of the kept dimensions the values of a map-fold vary along, part by part.

    loom.operation @attend over <[0, 0, 0] : [i, j, d]> [map, fold, map] by @softmax
      ins(%s : (i, j, d) -> (i, j), %v : (i, j, d) -> (j, d))
      wrap (%s: f32, %v: f32) { ... loom.yield %s, %one, %v : f32, f32, f32 }

The maximum and the sum of `@softmax` vary along i alone. The weighted sum reads `%v`, which varies
along d, and merging it reads the maxima, so it varies along i and d. Who stores the three needs a
number per i for the first two, and not one per i and d.

Dimensions are counted among the kept ones, as those of a state and of an output's projection are.
Of a body that is not verified, every value varies along all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims
from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.dialects import loom
from tapestry.zspace import Projection

Axes = tuple[int, ...]
"""Some of the kept dimensions, in order."""


def varying_axes(op: loom.BlockSignature) -> tuple[Axes, ...]:
    """Per part of the state (of what wrap yields, without a fold), what it varies along.

    A part varies along what its wrapped value varies along: the coordinates that wrap asks for and
    those that move what it reads. A domain decides which points every part counts, and a scan keeps
    a state per coordinate. What merging a part reads of other parts, it varies along as well.
    """
    count = len(op.state_types)
    everywhere = tuple(range(len(op.kept_dims)))
    if not _is_sound(op.wrap_block, len(op.in_maps)):
        return (everywhere,) * count
    found = _yielded(op.wrap_block, [moving_dims(p) for p in op.in_maps])
    if op.monoid_name is not None:
        monoid = monoid_of(op)
        if monoid is None or not _is_sound(monoid.merge, 2 * count):
            return (everywhere,) * count
        shared = _of_all_parts(op)
        found = closed(monoid, [dims | shared for dims in found])
    place = {dim: axis for axis, dim in enumerate(op.kept_dims)}
    return tuple(tuple(sorted(place[d] for d in dims if d in place)) for dims in found)


def closed(monoid: Monoid, parts: Sequence[Dims]) -> list[Dims]:
    """Dimensions per part of a state, joined with those of the parts that merging it reads.

    >>> from xdsl.dialects.builtin import f32, i64
    >>> from tapestry.algebra.monoids import builtin_monoid
    >>> argmax = builtin_monoid("argmax", (f32, i64))
    >>> [sorted(dims) for dims in closed(argmax, [frozenset({0}), frozenset()])]
    [[0], [0]]
    """
    number = [frozenset((part,)) for part in range(len(parts))]
    reads = _yielded(monoid.merge, [*number, *number])
    found = list(parts)
    while True:
        grown = [
            dims.union(*(found[part] for part in read))
            for dims, read in zip(found, reads, strict=True)
        ]
        if grown == found:
            return found
        found = grown


def output_axes(op: loom.BlockSignature) -> tuple[Axes, ...]:
    """Per output, the kept dimensions that its value varies along."""
    parts, unwrap = varying_axes(op), op.unwrap_block
    if unwrap is None:
        return parts
    arguments = [*map(frozenset, parts), *map(moving_dims, op.extra_maps)]
    if not _is_sound(unwrap, len(arguments)):
        return (tuple(range(len(op.kept_dims))),) * len(op.out_maps)
    place = {dim: axis for axis, dim in enumerate(op.kept_dims)}
    return tuple(tuple(sorted(dims)) for dims in _yielded(unwrap, arguments, place))


def repeated_axes(projection: Projection) -> Axes:
    """The dimensions that an output's projection leaves out: a cell is written all along them."""
    moving = moving_dims(projection)
    return tuple(axis for axis in range(projection.inputs) if axis not in moving)


def _of_all_parts(op: loom.BlockSignature) -> Dims:
    """The index dimensions that every part varies along."""
    rows = () if op.inside is None else op.inside.moving()
    scan = () if op.scan_dim is None else (op.scan_dim,)
    return frozenset(scan).union(*rows)


def _yielded(
    body: Block, arguments: Sequence[Dims], place: Mapping[int, int] | None = None
) -> list[Dims]:
    """What the values that a body yields vary along; `place` renumbers its coordinates."""
    varies = dependences(body, arguments, place)
    return [varies[value] for value in loom.yielded(body)]


def _is_sound(body: Block, arguments: int) -> bool:
    """Whether a body takes that many arguments, defines what it uses, and yields."""
    known: set[SSAValue] = set(body.args)
    for op in body.ops:
        if not known.issuperset(op.operands):
            return False
        known.update(op.results)
    last = body.last_op
    return len(body.args) == arguments and isinstance(last, loom.YieldOp)
