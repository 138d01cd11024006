"""What a kernel is made from: a map-fold with its tensors' places, apart from the IR around it.

`map_fold_of` reads a `loom.operation`, `applied_of` and `merged_of` a `loom.application` and a
`loom.merge`. `copy_of` makes the map-fold that reads one tensor through a projection and writes it,
which is how views that remain are materialized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, SSAValue

from tapestry.algebra.dtypes import body_type
from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.algebra.parts import repeated_axes
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.dialects.loom import Fill, Read, tensor_type
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.locations import location_of
from tapestry.passes.loom.split_fold import ENDS
from tapestry.passes.triton.kernels.assumptions import finite_inputs
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.zspace import Domain, Partition, Projection, Range, cut_dims


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor as a kernel reads or writes it: the cells it stores, and which a point selects.

    `fill` is what a point reads outside it, None when no point does.
    """

    name: str
    box: Range
    element: Attribute
    projection: Projection
    fill: Fill | None = None
    repeated: tuple[int, ...] = ()
    """For an output, the map dimensions that it lacks: the first point along each writes it."""
    buffer: int | None = None
    """A number that those of a kernel's tensors share which are read of one buffer."""


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
    inside: Domain | None = None
    finite: frozenset[str] = frozenset()
    """Tensors whose cells are taken to be finite also where the domain leaves points out."""
    ends: tuple[Attribute, ...] | None = None
    """Where states are written, of which types the results are that they are unwrapped to."""
    schedule: Schedule | None = None
    """The schedule that is given for its kernel."""

    @cached_property
    def kept_dims(self) -> tuple[int, ...]:
        """The index dimensions that are not folded, in order: what outputs are over."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind != "fold")

    @cached_property
    def fold_dims(self) -> tuple[int, ...]:
        """The index dimensions that are folded, in order."""
        return tuple(d for d, kind in enumerate(self.kinds) if kind == "fold")

    @cached_property
    def scan_dim(self) -> int | None:
        """The index dimension that is scanned, None without one."""
        return self.kinds.index("scan") if "scan" in self.kinds else None

    @cached_property
    def merged_dims(self) -> tuple[int, ...]:
        """The index dimensions along which states merge: the folds, or the scan."""
        return self.fold_dims if self.scan_dim is None else (self.scan_dim,)

    @cached_property
    def shards(self) -> tuple[Range, ...]:
        """The parts of the index space, each one launch; parts without points are left out.

        An empty fold over a map that is not empty still writes its zero: it is one shard.
        """
        if self.kept_range(self.index).is_empty:
            return ()
        if self.partition is None or self.index.is_empty:
            return (self.index,)
        return tuple(shard for shard in self.partition.ranges() if not shard.is_empty)

    @cached_property
    def cut(self) -> frozenset[int]:
        """The index dimensions that shards cut."""
        return cut_dims(self.index, self.shards)

    @cached_property
    def coordinates(self) -> frozenset[int]:
        """The index dimensions whose coordinates the bodies ask for."""
        return frozenset(
            op.dimension
            for body in (self.wrap, self.unwrap)
            if body is not None
            for op in body.ops
            if isinstance(op, loom.IndexOp)
        )

    @property
    def buffers(self) -> tuple[int, ...]:
        """A number for each of `ins` and `extras`, the same for those read of one buffer."""
        reads = enumerate((*self.ins, *self.extras))
        return tuple(-1 - n if t.buffer is None else t.buffer for n, t in reads)

    @property
    def folds_apart(self) -> bool:
        """Whether different shards fold different parts of the fold dimensions."""
        return not self.cut.isdisjoint(self.fold_dims)

    def kept_range(self, box: Range) -> Range:
        """The kept dimensions of a range of the index space."""
        return box.select(self.kept_dims)


def map_fold_of(op: loom.OperationOp) -> MapFold:
    """The map-fold that a verified operation is."""
    numbers = buffer_numbers(op.operands)
    ins = _tensors("in", op.in_reads, numbers)
    return MapFold(
        name=op.label.data,
        index=op.index,
        kinds=op.kinds,
        ins=ins,
        extras=_tensors("extra", op.extra_reads, numbers),
        outs=_written(op.outs, op.out_maps, op.kept_range(op.index)),
        wrap=op.wrap_block,
        unwrap=op.unwrap_block,
        monoid=monoid_of(op),
        partition=op.partition,
        inside=None if op.inside is None else op.inside.within(op.index),
        finite=finite_inputs(op, [(t.name, v) for t, v in zip(ins, op.ins, strict=True)]),
        ends=_ends(op),
        schedule=given_schedule(op),
    )


def given_schedule(op: loom.OperationOp | loom.FusedOp) -> Schedule | None:
    """The schedule that an operation says its kernel has; InvalidProgramError for what is none."""
    held = op.attributes.get(SCHEDULE)
    if held is None or isinstance(held, ScheduleAttr):
        return None if held is None else held.data
    raise InvalidProgramError(
        f"the attribute `{SCHEDULE}` of @{op.label.data} is {held}, which is no schedule",
        location=location_of(op),
        hint=f"write it as `{SCHEDULE} = #triton.schedule<M = 128, N = 128, K = 64, warps = 8>`",
    )


def _ends(op: loom.OperationOp) -> tuple[Attribute, ...] | None:
    held = op.attributes.get(ENDS)
    return cast("ArrayAttr[Attribute]", held).data if isinstance(held, ArrayAttr) else None


def buffer_numbers(values: Iterable[SSAValue]) -> dict[SSAValue, int]:
    """For each of some values its place among those that differ."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _tensors(
    role: str, reads: Iterable[Read], numbers: Mapping[SSAValue, int] | None = None
) -> tuple[Tensor, ...]:
    """The tensors of one role, named like their values; `numbers` are those of their buffers."""
    found: list[Tensor] = []
    for number, (value, projection, fill) in enumerate(reads):
        kind = tensor_type(value)
        name = value.name_hint or f"{role}{number}"
        buffer = None if numbers is None else numbers[value]
        found.append(Tensor(name, kind.box, kind.element_type, projection, fill, buffer=buffer))
    return tuple(found)


def _written(
    values: Sequence[SSAValue], projections: Sequence[Projection], kept: Range
) -> tuple[Tensor, ...]:
    """The outputs of a map-fold whose kept dimensions run over `kept`."""
    return tuple(
        replace(
            tensor,
            repeated=tuple(d for d in repeated_axes(tensor.projection) if kept.shape[d] > 1),
        )
        for tensor in _tensors("out", map(Read, values, projections))
    )


def copy_of(name: str, index: Range, source: Tensor, target: Tensor) -> MapFold:
    """The map-fold that writes what `source` selects at each point of `index` to `target`."""
    body = Block(arg_types=[body_type(source.element)])
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


def applied_of(op: loom.ApplicationOp, kernel: loom.KernelOp) -> MapFold:
    """The map-fold that an application of a kernel to a shard is.

    A partial one writes the parts of its state, over the map dimensions.
    """
    reads = len(kernel.in_maps)
    rank = len(kernel.kept_dims)
    out_maps = kernel.out_maps
    if op.is_partial:
        every = Projection.identity(rank)
        own = kernel.part_axes
        pairs = zip(op.outs, own, strict=True)
        along = [loom.stored_axes(tensor_type(out).box, axes, rank) for out, axes in pairs]
        out_maps = tuple(every.select_outputs(axes) for axes in along)
    numbers = buffer_numbers(op.args)
    ins = _tensors("in", map(Read, op.args[:reads], kernel.in_maps, kernel.in_fills), numbers)
    return MapFold(
        name=op.kernel_name,
        index=op.index,
        kinds=kernel.kinds,
        ins=ins,
        extras=() if op.is_partial else _extras(op.args[reads:], kernel, numbers),
        outs=_written(op.outs, out_maps, kernel.kept_range(op.index)),
        wrap=kernel.wrap_block,
        unwrap=None if op.is_partial else kernel.unwrap_block,
        monoid=monoid_of(kernel),
        partition=None,
        inside=None if kernel.inside is None else kernel.inside.within(op.index),
        finite=finite_inputs(kernel, [(t.name, v) for t, v in zip(ins, op.args, strict=False)]),
        ends=_unwrapped(kernel) if op.is_partial else None,
    )


def _unwrapped(kernel: loom.KernelOp) -> tuple[Attribute, ...]:
    """The types of what a kernel makes of its state."""
    body = kernel.unwrap_block
    if body is None:
        return kernel.state_types
    return tuple(value.type for value in loom.yielded(body))


def _extras(
    values: Sequence[SSAValue],
    kernel: loom.KernelOp,
    numbers: Mapping[SSAValue, int] | None = None,
) -> tuple[Tensor, ...]:
    """The extra inputs that a kernel is given."""
    reads = map(Read, values, kernel.extra_maps, kernel.extra_fills)
    return _tensors("extra", reads, numbers)


def merged_of(op: loom.MergeOp, kernel: loom.KernelOp) -> MapFold:
    """The map-fold that a merge finishes, with one point along each fold dimension.

    A partial one writes nothing: what is left are the parts of its state.
    """
    return MapFold(
        name=op.kernel_name,
        index=kernel.whole_range(op.index, Range.of((1,) * len(kernel.fold_dims))),
        kinds=kernel.kinds,
        ins=(),
        extras=() if op.is_partial else _extras(op.extras, kernel),
        outs=() if op.is_partial else _written(op.outs, kernel.out_maps, op.index),
        wrap=kernel.wrap_block,
        unwrap=None if op.is_partial else kernel.unwrap_block,
        monoid=monoid_of(kernel),
        partition=None,
    )
