"""Operations, groups, applications and merges become launches of their kernels.

    %y = loom.operation @twice over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) ...

becomes, beside a `triton.kernel @twice`,

    %y = triton.allocate : memref<8xf32>
    triton.launch @twice(%x, %y : memref<8xf32>, memref<8xf32>) ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    StringAttr,
)
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from tapestry.algebra.parts import Axes
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.ungroup import take_apart
from tapestry.passes.triton.groups.cutting import cut
from tapestry.passes.triton.groups.group import NotOneKernelError, group_of
from tapestry.passes.triton.host.buffers import allocate, as_buffer, replace_by
from tapestry.passes.triton.host.comments import APART_FROM, origin
from tapestry.passes.triton.host.in_place import InPlace, places_of, standing
from tapestry.passes.triton.host.launching import Launcher
from tapestry.passes.triton.kernels.mapfold import (
    applied_of,
    map_fold_of,
    merged_of,
)
from tapestry.passes.triton.kernels.merging import Merging
from tapestry.passes.triton.schedules.given import (
    illegal_schedules,
    refuse_schedule,
    refuse_schedules_inside,
)
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.zspace import Range

APART = "apart"
"""The attribute in which a member says why its group is not one kernel."""


@dataclass(frozen=True)
class LowerOperation(RewritePattern):
    """An operation is a launch of its kernel per shard."""

    launcher: Launcher
    in_place: InPlace

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        operands = [as_buffer(rewriter, value) for value in op.operands]
        fold, places = map_fold_of(op), places_of(op.results)
        outs = [standing(tensor, places.get(out)) for out, tensor in enumerate(fold.outs)]
        fold = replace(fold, outs=tuple(outs))
        made = self.in_place.outs(rewriter, op)
        split = len(op.ins)
        with illegal_schedules(op):
            launched = self.launcher.launch(
                fold, op.location, operands[:split], operands[split:], made, _notes(op)
            )
        rewriter.insert(launched)
        replace_by(rewriter, op, made)


def _notes(op: loom.OperationOp | loom.FusedOp) -> list[str]:
    """Why an operation or a group is a kernel of its own, where it was in a larger group."""
    reason = op.attributes.get(APART)
    return [reason.data] if isinstance(reason, StringAttr) else []


@dataclass(frozen=True)
class LowerGroup(RewritePattern):
    """A group is a launch of its kernel; where it has none, of those of the groups it is cut into.

    Legal in either case: see `cut`. What was cut apart says why in a comment (`APART`).
    """

    launcher: Launcher
    in_place: InPlace

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        self._lower(op, rewriter)

    def _lower(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        options, name = self.launcher.options, op.label.data
        try:
            group = replace(group_of(op), places=places_of(op.results))
            with illegal_schedules(op):
                lowered = self.launcher.lower_group(group)
        except NotOneKernelError as error:
            runs = options.rung(name) < Rung.APART
            if runs:
                refuse_schedule(op, str(error))
            reason = StringAttr(f"{APART_FROM}{name}: {error}")
            for member in op.members:
                member.attributes[APART] = reason
            if not runs:
                take_apart(op, rewriter)
                return
            for piece in cut(op, rewriter, self._is_one_kernel):
                piece.attributes[APART] = reason
                rewriter.insertion_point = InsertPoint.before(piece)
                self._lower(piece, rewriter)
            return
        refuse_schedules_inside(op)
        operands = [as_buffer(rewriter, value) for value in op.ins]
        made = self.in_place.outs(rewriter, op)
        origins = [origin(name, op.location), *_notes(op)]
        origins += [
            f"  {origin(member.label.data, member.location, op.location)}" for member in op.members
        ]
        rewriter.insert(
            self.launcher.launch_group(group, lowered, op.location, operands, made, origins)
        )
        replace_by(rewriter, op, made)

    def _is_one_kernel(self, op: loom.FusedOp) -> bool:
        try:
            self.launcher.lower_group(group_of(op))
        except NotOneKernelError:
            return False
        return True


@dataclass(frozen=True)
class LowerApplication(RewritePattern):
    """An application is a launch on its shard."""

    launcher: Launcher

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ApplicationOp, rewriter: PatternRewriter) -> None:
        fold = applied_of(op, _kernel_of(op))
        operands = [as_buffer(rewriter, value) for value in op.operands]
        made = allocate(rewriter, op.results)
        split = len(fold.ins)
        rewriter.insert(
            self.launcher.launch(fold, op.location, operands[:split], operands[split:], made)
        )
        replace_by(rewriter, op, made)


@dataclass(frozen=True)
class LowerMerge(RewritePattern):
    """A merge is a launch per partial state, and one that unwraps unless it is partial."""

    launcher: Launcher

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.MergeOp, rewriter: PatternRewriter) -> None:
        kernel = _kernel_of(op)
        operands = [as_buffer(rewriter, value) for value in op.operands]
        own = kernel.part_axes
        parts, split = len(own), len(op.states)
        boxes = loom.state_boxes(op, own)
        stored = [
            _stored(op.states[first : first + parts], own, op.index)
            for first in range(0, split, parts)
        ]
        merging = Merging.of(merged_of(op, kernel), stored)
        partials = [
            (box, axes, operands[first : first + parts])
            for first, box, axes in zip(range(0, split, parts), boxes, stored, strict=True)
        ]
        name = op.outs[0].name_hint or "out0"
        merges, made = self.launcher.merge(merging, op.location, partials, name)
        rewriter.insert(merges)
        if op.is_partial:
            made = self._as_stored(op, rewriter, merging, made, own)
        else:
            states, made = made, allocate(rewriter, op.results)
            extras = operands[split:]
            rewriter.insert(self.launcher.unwrap(merging, op.location, states, extras, made))
        replace_by(rewriter, op, made)

    def _as_stored(
        self,
        op: loom.MergeOp,
        rewriter: PatternRewriter,
        merging: Merging,
        made: Sequence[SSAValue],
        own: Sequence[Axes],
    ) -> list[SSAValue]:
        """The parts of a merged state over the dimensions that a partial merge leaves them on."""
        buffers = list(made)
        for part, axes in enumerate(_stored(op.outs, own, op.index)):
            if axes != merging.axes[part]:
                (buffers[part],) = allocate(rewriter, [op.outs[part]])
                copy = merging.copy(part, axes, op.outs[part].name_hint or f"out{part}")
                source, target = [made[part]], [buffers[part]]
                rewriter.insert(self.launcher.launch(copy, op.location, source, [], target))
        return buffers


def _stored(values: Sequence[SSAValue], own: Sequence[Axes], over: Range) -> list[Axes]:
    """The kept dimensions that each stored part of a state has."""
    pairs = zip(values, own, strict=True)
    return [loom.stored_axes(tensor_type(v).box, axes, over.rank) for v, axes in pairs]


def _kernel_of(op: loom.Dispatch) -> loom.KernelOp:
    """The kernel that runs, which verified operations have."""
    kernel = loom.find_kernel(op, op.kernel_name)
    assert kernel is not None
    return kernel
