"""`loom.fused`: a group of operations that becomes one kernel.

From outside it is an operation like any other: an index space, tensors it reads and writes, shards.
Inside are members, whole `loom.operation`s on inner tensors that never leave:

    %y = loom.fused @total over <[0, 0] : [4, 8]>
           aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
           ins(%x) group (%a: !x) {
             %e = loom.operation @exp over <[0, 0] : [4, 8]> [map, map] ...
             %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add ...
             loom.yield %s : !y
           } : (!x) -> !y

`aligned` says, member by member, which point of a member's index space belongs to a point of the
group's: each member's dimension is one of the group's, perhaps shifted, and no two are the same. A
member that lacks a dimension of the group runs again for each of its parts. Everything else follows
from the members: what is read and written (`reads`, `out_maps`), and what a dimension is for
(`dim_classes`). Computing something twice is a member that stands there twice; keeping an inner
tensor is one more output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import BlockArgument, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, Pure

from tapestry.dialects import _loom_fused_syntax as syntax
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._dominance import DefinedBeforeUse
from tapestry.dialects._loom_bodies import yielded
from tapestry.dialects._loom_reads import Read
from tapestry.dialects._loom_types import TensorType, projections_attr
from tapestry.dialects.zspace import PartitionAttr, ProjectionAttr, RangeAttr
from tapestry.issues import Problem
from tapestry.zspace import AffineMap, Partition, Projection, Range
from tapestry.zspace.affine import image_box

if TYPE_CHECKING:
    from tapestry.dialects import loom

DimClass = Literal["shared", "private", "inner", "cascade"]
"""What a dimension of a group is for: see `FusedOp.dim_classes`."""


def member_part(place: AffineMap, part: Range) -> Range:
    """The part of a member's index space that belongs to a part of the group's.

    Row by row: where the group has no points along some dimension, a member that lacks it has.
    """
    return image_box(place, part, (1,) * place.outputs)


def member_partition(partition: Partition, place: AffineMap) -> Partition | None:
    """The cuts of a grid along a member's dimensions; None without cuts, or for no grid."""
    if partition.cuts is None:
        return None
    cuts: list[list[int]] = []
    for terms, shift in zip(place.matrix, place.offset, strict=True):
        cuts.append([cut + shift for cut in partition.cuts[terms.index(1)]])
    return Partition.grid(cuts) if any(len(along) > 2 for along in cuts) else None


@irdl_op_definition
class FusedOp(CheckedOperation):
    """A group of operations that becomes one kernel.

    Example, a sum of exponentials without storing them:

        %y = loom.fused @total over <[0, 0] : [4, 8]>
               aligned((d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1))
               ins(%x) group (%a: !loom.tensor<[0, 0] : [4, 8], f32>) {
                 %e = loom.operation @exp over <[0, 0] : [4, 8]> [map, map]
                        ins(%a : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
                        wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 }
                        : (!loom.tensor<[0, 0] : [4, 8], f32>)
                          -> !loom.tensor<[0, 0] : [4, 8], f32>
                 %s = loom.operation @sum over <[0, 0] : [4, 8]> [map, fold] by @add
                        ins(%e : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
                        wrap (%c: f32) { loom.yield %c : f32 }
                        : (!loom.tensor<[0, 0] : [4, 8], f32>) -> !loom.tensor<[0] : [4], f32>
                 loom.yield %s : !loom.tensor<[0] : [4], f32>
               } : (!loom.tensor<[0, 0] : [4, 8], f32>) -> !loom.tensor<[0] : [4], f32>
    """

    name = "loom.fused"

    label = prop_def(StringAttr)
    index_range = prop_def(RangeAttr)
    alignments = prop_def(ArrayAttr[ProjectionAttr])
    shards = opt_prop_def(PartitionAttr)

    ins = var_operand_def(TensorType)
    outs = var_result_def(TensorType)
    body = region_def("single_block")

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), IsolatedFromAbove(), DefinedBeforeUse())

    def __init__(
        self,
        label: str,
        index: Range,
        alignments: Sequence[AffineMap],
        ins: Sequence[SSAValue],
        outs: Sequence[TensorType],
        body: Region,
        *,
        partition: Partition | None = None,
    ) -> None:
        super().__init__(
            operands=[ins],
            result_types=[outs],
            properties={
                "label": StringAttr(label),
                "index_range": RangeAttr(index),
                "alignments": projections_attr(map(Projection.cells, alignments)),
                "shards": None if partition is None else PartitionAttr(partition),
            },
            regions=[body],
        )

    @property
    def index(self) -> Range:
        """The group's index space."""
        return self.index_range.data

    @property
    def partition(self) -> Partition | None:
        """How the index space is split, None when it is whole."""
        return None if self.shards is None else self.shards.data

    @property
    def members(self) -> tuple[loom.OperationOp, ...]:
        """The operations of the group, in order."""
        from tapestry.dialects import loom

        return tuple(op for op in self.body.block.ops if isinstance(op, loom.OperationOp))

    @property
    def aligned(self) -> tuple[tuple[loom.OperationOp, AffineMap], ...]:
        """Each member, and its index point as a function of the group's."""
        return tuple(zip(self.members, (a.data.map for a in self.alignments), strict=True))

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The inner tensors that are the group's outputs."""
        return yielded(self.body.block)

    @property
    def reads(self) -> tuple[Read, ...]:
        """What members read of the group's operands, from the group's index space."""
        inner = [read for member, place in self.aligned for read in member_reads(member, place)]
        return tuple(
            read._replace(value=self.ins[read.value.index])
            for read in inner
            if isinstance(read.value, BlockArgument)
        )

    @property
    def out_maps(self) -> tuple[Projection, ...]:
        """Per output, its projection from the group's index space."""
        written = {
            out: projection
            for member, place in self.aligned
            for out, projection in member_writes(member, place)
        }
        return tuple(written[value] for value in self.yielded)

    @property
    def dim_classes(self) -> tuple[DimClass, ...]:
        """Per dimension of the group:

        shared: a map of every member, so it may be cut and spread over programs;
        private: a map of some members, and others lack it: cutting it runs those again;
        inner: folded or scanned by the one member that has it;
        cascade: folded or scanned by one member and used by another.
        """
        from tapestry.dialects import _loom_group_rules as rules

        return rules.dim_classes(self)

    @property
    def map_dims(self) -> tuple[int, ...]:
        """The dimensions that no member folds or scans, in order."""
        classes = enumerate(self.dim_classes)
        return tuple(dim for dim, kind in classes if kind in ("shared", "private"))

    @property
    def merged_dims(self) -> tuple[int, ...]:
        """The dimensions along which states of members merge from shard to shard, in order.

        Members fold along them for the group's outputs alone, and no member scans them.
        """
        from tapestry.dialects import _loom_group_rules as rules

        edges = rules.inner_edges(self)
        return tuple(
            dim
            for dim in range(self.index.rank)
            if dim not in self.map_dims and rules.why_whole(self, dim, edges) is None
        )

    @property
    def merging(self) -> tuple[tuple[loom.OperationOp, AffineMap], ...]:
        """The members, and where they are, of which shards fold different parts."""
        partition = self.partition
        if partition is None or partition.cuts is None:
            return ()
        cut = {dim for dim, cuts in enumerate(partition.cuts) if len(cuts) > 2}
        return tuple(
            (member, place)
            for member, place in self.aligned
            if any(place.matrix[own].index(1) in cut for own in member.fold_dims)
        )

    def sharding_problems(self, partition: Partition) -> list[Problem]:
        """Why the group cannot be split as `partition` says; none when it can."""
        from tapestry.dialects import _loom_group_rules as rules

        return rules.sharding_problems(self, partition)

    @classmethod
    def parse(cls, parser: Parser) -> FusedOp:
        return syntax.parse_fused(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_fused(self, printer)

    @property
    def subject(self) -> str:
        return f"@{self.label.data}"

    def problems(self) -> list[Problem]:
        from tapestry.dialects import _loom_group_rules as rules

        return rules.fused_problems(self)


def member_reads(member: loom.OperationOp, place: AffineMap) -> list[Read]:
    """What a member reads, from the group's index space."""
    kept = place.select_outputs(member.kept_dims)
    ins = [read.compose(place) for read in member.in_reads]
    return ins + [read.compose(kept) for read in member.extra_reads]


def member_writes(member: loom.OperationOp, place: AffineMap) -> list[tuple[SSAValue, Projection]]:
    """The tensors that a member writes, projected from the group's index space."""
    kept = place.select_outputs(member.kept_dims)
    return [(v, p.compose(kept)) for v, p in zip(member.outs, member.out_maps, strict=True)]
