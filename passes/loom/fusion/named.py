"""Two operations that a plan names, joined in whichever way is legal, whatever it costs.

loom-fuse{ops=linear,relu}      @relu moves into the unwrap of @linear
loom-fuse{ops=norm,linear}      @norm is computed where @linear reads it
loom-fuse{ops=q,k}              @q and @k, which read the same, become one of two outputs
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.locations import location_of
from tapestry.passes.loom.fusion.beside import join_beside, why_not_beside
from tapestry.passes.loom.fusion.conditions import Following, computed_at, following
from tapestry.passes.loom.fusion.indexing import Indexed
from tapestry.passes.loom.fusion.joining import compute_in, follow, joined_label
from tapestry.passes.loom.fusion.order import Order
from tapestry.passes.loom.rebuilding.labels import operation_named
from tapestry.zspace import AffineMap


class IllegalFusionError(InvalidProgramError):
    """Operations that cannot be one."""

    kind = "illegal_fusion"


@dataclass(frozen=True)
class JoinNamed(RewritePattern):
    """Two operations become one; legal where `way` finds how, of which it is the rewrite."""

    first: loom.OperationOp
    second: loom.OperationOp
    order: Order
    limit: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op is not self.second:
            return
        how = way(self.first, self.second, self.order, self.limit)
        if isinstance(how, dict):
            reader = self.second
            for position in sorted(how, reverse=True):
                label = joined_label(self.first, self.second)
                reader = compute_in(self.first, reader, position, how[position], label, rewriter)
            if all(out.first_use is None for out in self.first.outs):
                rewriter.erase(self.first)
        elif isinstance(how, tuple):
            follow(self.first, self.second, how[0], rewriter, place=how[1])
        elif isinstance(how, loom.OperationOp):
            join_beside(self.first, self.second, how, rewriter)


def way(
    first: loom.OperationOp, second: loom.OperationOp, order: Order, limit: int
) -> dict[int, AffineMap | Indexed] | tuple[Following, loom.OperationOp] | loom.OperationOp | str:
    """How two operations become one, or why they do not.

    That is the points at which the second computes what it reads of the first; or how the second
    moves into the first, and where both stand; or where both stand, beside one another.
    """
    reads = [n for n, value in enumerate(second.operands) if value in first.outs]
    if not reads:
        reason = why_not_beside(first, second, limit, len(first.state_types + second.state_types))
        place = order.joined(first, second)
        return reason or place or _between(first, second)
    if first.monoid_name is None:
        points = {n: computed_at(first, second, n, limit) for n in reads}
        legal = {n: found for n, found in points.items() if not isinstance(found, str)}
        if len(legal) == len(points):
            return legal
        if second.monoid_name is not None:
            return next(found for found in points.values() if isinstance(found, str))
    how = following(first, second, limit)
    if isinstance(how, str):
        return how
    place = order.joined(first, second, feeds=True)
    return _between(first, second) if place is None else (how, place)


def _between(first: loom.OperationOp, second: loom.OperationOp) -> str:
    return f"what stands between needs {first.subject}, and {second.subject} needs it"


def named_pair(module: ModuleOp, labels: tuple[str, ...], limit: int) -> JoinNamed:
    """The rewrite that joins two named operations; IllegalFusionError where there is none."""
    if len(set(labels)) != 2 or len(labels) != 2:
        raise UsageError(f"loom-fuse: ops names two operations, not {', '.join(labels)}")
    order = Order(module)
    one, other = (operation_named(module, label, "loom-fuse") for label in labels)
    first = order.first(one, other)
    second = other if first is one else one
    how = way(first, second, order, limit)
    if isinstance(how, str):
        raise IllegalFusionError(
            f"{first.subject} and {second.subject} cannot be one operation: {how}",
            location=location_of(second),
        )
    return JoinNamed(first, second, order, limit)
