"""Why what reads a tensor is not in one group with what writes it.

The condition is the one of `loom-group`, asked of the members that both are made of: groups are
taken apart in a copy of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriteWalker

from tapestry.dialects import loom
from tapestry.movement import Splittable, splittables
from tapestry.passes.loom.group import why_apart
from tapestry.passes.loom.grouping.one_kernel import Limits
from tapestry.passes.loom.ungroup import Ungroup

_NUMBER = "number"


@dataclass(frozen=True)
class FlatProgram:
    """A program whose groups are taken apart: the members of each, in program order."""

    members: dict[Splittable, list[loom.OperationOp]]
    order: dict[Operation, int]

    @staticmethod
    def of(module: ModuleOp) -> FlatProgram:
        """A copy of a program without its groups."""
        own = splittables(module)
        copy = module.clone()
        for number, op in enumerate(splittables(copy)):
            for member in op.members if isinstance(op, loom.FusedOp) else (op,):
                member.attributes[_NUMBER] = StringAttr(str(number))
        PatternRewriteWalker(Ungroup(), apply_recursively=False).rewrite_module(copy)
        members: dict[Splittable, list[loom.OperationOp]] = {op: [] for op in own}
        order: dict[Operation, int] = {}
        for place, op in enumerate(copy.walk()):
            number = op.attributes.pop(_NUMBER, None)
            if isinstance(op, loom.OperationOp) and isinstance(number, StringAttr):
                members[own[int(number.data)]].append(op)
                order[op] = place
        return FlatProgram(members, order)

    def why_no_group(self, producer: Splittable, reader: Splittable) -> str | None:
        """Why two are not one group, None when they could be."""
        both = {*self.members[producer], *self.members[reader]}
        if any(isinstance(op, loom.ExternalOp) for op in (producer, reader)):
            return "an external kernel is no member of a group"
        return why_apart(sorted(both, key=self.order.__getitem__), Limits())
