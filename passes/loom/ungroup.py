"""`loom-ungroup`: groups taken apart, their members put where they stood.

    %y = loom.fused @total over <[0, 0] : [4, 8]> aligned(...) ins(%x) group (%a: !x) {
           %e = loom.operation @exp ...   %s = loom.operation @sum ...   loom.yield %s : !y } ...

becomes

    %e = loom.operation @exp ...
    %y = loom.operation @sum ...

Input: any verified loom program; `op` names groups by label (all without it). Output: the same
values, without those groups. Shards on a grid go to the members: each dimension is cut where the
group's is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom
from tapestry.dialects._loom_fused import member_partition
from tapestry.dialects.zspace import PartitionAttr
from tapestry.passes._collection import collection_paused


@dataclass(frozen=True)
class Ungroup(RewritePattern):
    """The members of a group stand in its place.

    Always legal: members are whole operations in an order that runs, and what a group yields is
    what its members write. A member takes the cuts of a grid along its own dimensions, where the
    group's legality has made sure that it maps them, or that its states may merge; explicit shards
    are dropped, which changes no value.
    """

    op: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        if self.op is None or op.label.data == self.op:
            take_apart(op, rewriter)


def take_apart(op: loom.FusedOp, rewriter: PatternRewriter) -> list[loom.OperationOp]:
    """Put a group's members where it stands, and give them."""
    values: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, op.ins, strict=True))
    members: list[loom.OperationOp] = []
    for member, place in op.aligned:
        copy = member.clone(value_mapper=values)
        if op.partition is not None:
            partition = member_partition(op.partition, place)
            copy.shards = None if partition is None else PartitionAttr(partition)
        members.append(copy)
    results = [values[value] for value in op.yielded]
    for outer, result in zip(op.outs, results, strict=True):
        result.name_hint = outer.name_hint or result.name_hint
    rewriter.replace(op, members, results)
    return members


def names_inside(op: loom.FusedOp) -> dict[SSAValue, str | None]:
    """What a group calls what it reads: what its members assume of that, they say by name."""
    arguments = op.body.block.args
    return {value: inside.name_hint for value, inside in zip(op.ins, arguments, strict=True)}


def name_inside(op: loom.FusedOp, names: Mapping[SSAValue, str | None]) -> None:
    """Have a group call what it reads as another one did."""
    for value, inside in zip(op.ins, op.body.block.args, strict=True):
        inside.name_hint = names.get(value, inside.name_hint)


@dataclass(frozen=True)
class LoomUngroup(ModulePass):
    """Take groups apart."""

    name = "loom-ungroup"

    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Put members where their groups stood."""
        with collection_paused():
            PatternRewriteWalker(Ungroup(self.op), apply_recursively=False).rewrite_module(op)
