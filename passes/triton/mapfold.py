"""What a kernel is made from: a map-fold with its tensors' places, apart from the IR around it.

`map_fold_of` reads a `loom.operation`; `copy_of` makes the map-fold that reads one tensor through a
projection and writes it, which is how views that remain are materialized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Attribute, Block, SSAValue

from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.triton.spaces import cut_dimensions
from tapestry.zspace import Partition, Projection, Range


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor as a kernel reads or writes it: the cells it stores, and which a point selects."""

    name: str
    box: Range
    element: Attribute
    projection: Projection


@dataclass(frozen=True, eq=False)
class MapFold:
    """A map-fold over `index`; see `loom.operation` for what its parts mean.

    Projections of `ins` are over all index dimensions, those of `extras` and `outs` over the map
    dimensions.
    """

    name: str
    index: Range
    kinds: tuple[loom.Iterator, ...]
    ins: tuple[Tensor, ...]
    extras: tuple[Tensor, ...]
    outs: tuple[Tensor, ...]
    wrap: Block
    unwrap: Block | None
    monoid: Monoid | None
    partition: Partition | None

    @cached_property
    def map_dims(self) -> tuple[int, ...]:
        """The index dimensions that are mapped, in order."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind == "map")

    @cached_property
    def fold_dims(self) -> tuple[int, ...]:
        """The index dimensions that are folded, in order."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind == "fold")

    @cached_property
    def shards(self) -> tuple[Range, ...]:
        """The parts of the index space, each one launch; parts without points are left out.

        An empty fold over a map that is not empty still writes its zero: it is one shard.
        """
        map_range = subrange(self.index, self.map_dims)
        if map_range.is_empty:
            return ()
        if self.partition is None or self.index.is_empty:
            return (self.index,)
        return tuple(shard for shard in self.partition.ranges() if not shard.is_empty)

    @cached_property
    def cut(self) -> frozenset[int]:
        """The index dimensions that shards cut."""
        return cut_dimensions(self.index, self.shards)

    @property
    def folds_apart(self) -> bool:
        """Whether different shards fold different parts of the fold dimensions."""
        return not self.cut.isdisjoint(self.fold_dims)

    def map_range(self, box: Range) -> Range:
        """The map dimensions of a range of the index space."""
        return subrange(box, self.map_dims)


def subrange(box: Range, dims: Sequence[int]) -> Range:
    """Some dimensions of a range."""
    return Range(tuple(box.start[d] for d in dims), tuple(box.end[d] for d in dims))


def map_fold_of(op: loom.OperationOp) -> MapFold:
    """The map-fold that a verified operation is."""
    return MapFold(
        name=op.label.data,
        index=op.index,
        kinds=op.kinds,
        ins=_tensors("in", op.ins, op.in_maps),
        extras=_tensors("extra", op.extras, op.extra_maps),
        outs=_tensors("out", op.outs, op.out_maps),
        wrap=op.wrap_block,
        unwrap=op.unwrap_block,
        monoid=monoid_of(op),
        partition=op.partition,
    )


def _tensors(
    role: str, values: Sequence[SSAValue], projections: Sequence[Projection]
) -> tuple[Tensor, ...]:
    """The tensors of one role, named like their values."""
    found: list[Tensor] = []
    for number, (value, projection) in enumerate(zip(values, projections, strict=True)):
        kind = tensor_type(value)
        name = value.name_hint or f"{role}{number}"
        found.append(Tensor(name, kind.box, kind.element_type, projection))
    return tuple(found)


def copy_of(name: str, index: Range, source: Tensor, target: Tensor) -> MapFold:
    """The map-fold that writes what `source` selects at each point of `index` to `target`."""
    body = Block(arg_types=[source.element])
    body.add_op(loom.YieldOp(body.args[0]))
    return MapFold(
        name=name,
        index=index,
        kinds=("map",) * index.rank,
        ins=(source,),
        extras=(),
        outs=(target,),
        wrap=body,
        unwrap=None,
        monoid=None,
        partition=None,
    )
