"""The loom dialect: static graphs of block operations over positioned tensors.

Everything a dense tensor program does is maps, monoids and arrows. One `loom.operation` is one
map-fold over an index space:

    out[P_out(i)] = unwrap(FOLD over k of wrap(in_1[P_1(i, k)], ...), extra_1[Q_1(i)], ...)

The index space is one range over all dimensions; each dimension is a `map`, a `fold` or a `scan`.
Input projections are over the whole index space; extra and output projections are over the *kept*
dimensions (all but the folds), in order. Example, `Y = relu(X W + b)`:

    %y = loom.operation @linear_relu over <[0, 0, 0] : [64, 32, 784]> [map, map, fold] by @add
           ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
           extra(%b : (d0, d1) -> (d1))
           outs((d0, d1) -> (d0, d1))
           wrap (%xe: f32, %we: f32) {
             %p = arith.mulf %xe, %we : f32
             loom.yield %p : f32
           }
           unwrap (%acc: f32, %be: f32) {
             %s = arith.addf %acc, %be : f32
             %z = arith.constant 0.0 : f32
             %r = arith.maximumf %s, %z : f32
             loom.yield %r : f32
           }
           : (!loom.tensor<[0, 0] : [64, 784], f32>, !loom.tensor<[0, 0] : [784, 32], f32>,
              !loom.tensor<[0] : [32], f32>) -> !loom.tensor<[0, 0] : [64, 32], f32>

An output may leave out kept dimensions that its value does not vary along: a log-sum-exp over
`(i, d) -> (i)` beside attention's `(i, d) -> (i, d)`.

A scan keeps every state of the fold along one dimension, in increasing coordinate, the point itself
included: unwrap sees the running state. An operation folds or scans, never both. Running sums:

    %y = loom.operation @cumsum over <[0, 0] : [4, 9]> [map, scan] by @add
           ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
           wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x

An input may leave its tensor when it says what is there, as padding is zero here:

    ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0.0 : f32, %w : (d0, d1) -> (d1))

A *domain*, `domain(d0 - d1 >= 0)` after `outs(...)`, says which points are folded: those where
every row holds. The others contribute the monoid's zero, whatever their cells are.

Where a projection selects a box of each tensor per point, the body takes a block, which it reads at
computed places (`loom.read` has an example): an embedding, a gather.

Views (`loom.view`, `loom.reshape`, `loom.assemble`) move no data. Sharding is an attribute first
(`shards <grid [[0, 32, 64], [0, 32], [0, 784]]>` before `wrap`); `loom.kernel`,
`loom.application` and `loom.merge` say it shard by shard. Nothing is silent: every rule about
ranges, projections, shards, bodies and definition order is verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import (
    Attribute,
    Dialect,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    Pure,
)

from tapestry.dialects import _loom_syntax as syntax
from tapestry.dialects import _loom_verify as rules
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_blocks import BlockType, ReadOp, argument_type
from tapestry.dialects._loom_bodies import yielded
from tapestry.dialects._loom_constant import ConstantOp, DataAttr, SideFileAttr
from tapestry.dialects._loom_external import ExternalOp
from tapestry.dialects._loom_fused import FusedOp
from tapestry.dialects._loom_monoids import MonoidOp
from tapestry.dialects._loom_parts import state_boxes, stored_axes
from tapestry.dialects._loom_random import RandomOp
from tapestry.dialects._loom_reads import Fill, Read, fills_attr, selected
from tapestry.dialects._loom_shards import ApplicationOp, Dispatch, KernelOp, MergeOp, find_kernel
from tapestry.dialects._loom_signature import BlockSignature, IndexOp, YieldOp
from tapestry.dialects._loom_types import (
    Iterator,
    IteratorsAttr,
    TensorType,
    projections_attr,
    tensor_type,
)
from tapestry.dialects._loom_views import AssembleOp, ReshapeOp, ViewOp
from tapestry.dialects.zspace import DomainAttr, PartitionAttr, RangeAttr
from tapestry.issues import Problem
from tapestry.zspace import Domain, Partition, Projection, Range

__all__ = [
    "ApplicationOp",
    "AssembleOp",
    "BlockSignature",
    "BlockType",
    "ConstantOp",
    "DataAttr",
    "Dispatch",
    "ExternalOp",
    "Fill",
    "FusedOp",
    "IndexOp",
    "Iterator",
    "IteratorsAttr",
    "KernelOp",
    "Loom",
    "MergeOp",
    "MonoidOp",
    "OperationOp",
    "RandomOp",
    "Read",
    "ReadOp",
    "ReshapeOp",
    "SideFileAttr",
    "TensorType",
    "ViewOp",
    "YieldOp",
    "argument_type",
    "fills_attr",
    "find_kernel",
    "projections_attr",
    "selected",
    "state_boxes",
    "stored_axes",
    "tensor_type",
    "yielded",
]


def _reads(
    values: Sequence[SSAValue], maps: Sequence[Projection], fills: Sequence[Fill | None]
) -> list[Read]:
    return [Read(v, p, fill) for v, p, fill in zip(values, maps, fills, strict=True)]


def _with_fills(reads: Sequence[Read | tuple[SSAValue, Projection]]) -> list[Read]:
    return [read if isinstance(read, Read) else Read(*read) for read in reads]


@irdl_op_definition
class OperationOp(BlockSignature):
    """One map-fold over an index space (the module's docstring has an example).

    `@label` names the operation for people, options and kernels; labels need not be unique.
    """

    name = "loom.operation"

    label = prop_def(StringAttr)
    index_range = prop_def(RangeAttr)
    shards = opt_prop_def(PartitionAttr)

    ins = var_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    outs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(Pure(), IsolatedFromAbove(), DefinedBeforeUse())

    def __init__(
        self,
        label: str,
        index: Range,
        kinds: Sequence[Iterator],
        monoid: str | None,
        ins: Sequence[Read | tuple[SSAValue, Projection]],
        outs: Sequence[tuple[Projection, TensorType]],
        wrap: Region,
        *,
        extras: Sequence[Read | tuple[SSAValue, Projection]] = (),
        unwrap: Region | None = None,
        partition: Partition | None = None,
        inside: Domain | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        in_reads, extra_reads = _with_fills(ins), _with_fills(extras)
        super().__init__(
            operands=[[read.value for read in reads] for reads in (in_reads, extra_reads)],
            result_types=[[tensor for _, tensor in outs]],
            properties={
                "label": StringAttr(label),
                "index_range": RangeAttr(index),
                "iterators": IteratorsAttr(tuple(kinds)),
                "monoid": None if monoid is None else SymbolRefAttr(monoid),
                "in_projections": projections_attr(read.projection for read in in_reads),
                "in_clips": fills_attr([read.fill for read in in_reads]),
                "extra_projections": projections_attr(read.projection for read in extra_reads),
                "extra_clips": fills_attr([read.fill for read in extra_reads]),
                "out_projections": projections_attr(p for p, _ in outs),
                "domain": None if inside is None else DomainAttr(inside),
                "shards": None if partition is None else PartitionAttr(partition),
            },
            attributes=dict(attributes or {}),
            regions=[wrap, Region() if unwrap is None else unwrap],
        )

    @property
    def index(self) -> Range:
        """The index space."""
        return self.index_range.data

    @property
    def in_reads(self) -> list[Read]:
        """What wrap reads."""
        return _reads(self.ins, self.in_maps, self.in_fills)

    @property
    def extra_reads(self) -> list[Read]:
        """What unwrap reads besides the folded state."""
        return _reads(self.extras, self.extra_maps, self.extra_fills)

    @property
    def partition(self) -> Partition | None:
        """How the index space is split, None when it is whole."""
        return None if self.shards is None else self.shards.data

    def sharding_problems(
        self, partition: Partition, outs: Sequence[Projection] | None = None
    ) -> list[Problem]:
        """Why the operation cannot be split as `partition` says; none when it can.

        With `outs`, as if it wrote through those projections from its kept dimensions.
        """
        return rules.sharding_problems(self, partition, outs)

    @classmethod
    def parse(cls, parser: Parser) -> OperationOp:
        return syntax.parse_operation(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_operation(self, printer)

    @property
    def subject(self) -> str:
        return f"@{self.label.data}"

    def problems(self) -> list[Problem]:
        return rules.operation_problems(self)


Loom = Dialect(
    "loom",
    [
        OperationOp,
        FusedOp,
        ViewOp,
        ReshapeOp,
        AssembleOp,
        ConstantOp,
        ExternalOp,
        MonoidOp,
        KernelOp,
        ApplicationOp,
        MergeOp,
        IndexOp,
        RandomOp,
        ReadOp,
        YieldOp,
    ],
    [TensorType, BlockType, IteratorsAttr, DataAttr, SideFileAttr],
)
