"""`loom-to-triton`: operations become Triton kernels, functions a host that launches them.

In: `func.func`s over `!loom.tensor` made of `loom.operation`, views, and `loom.application` and
`loom.merge` where shards were spelled out. Out: the same functions over `memref`, with a
`triton.launch` for each operation (run once per shard), a `triton.kernel` for each different
kernel, and no loom.

    func.func @main(%x: !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [8], f32> {
      %y = loom.operation @twice over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) ...

becomes

    triton.kernel @twice(%x_ptr: !triton.ptr<f32>, %y_ptr: !triton.ptr<f32>) ...
    func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
      %y = triton.allocate : memref<8xf32>
      triton.launch @twice(%x, %y : memref<8xf32>, memref<8xf32>) ...

Complex tensors are split into real ones first (`loom-split-complex`), so that functions take and
return pairs of real numbers for them. Tensors become row-major buffers: where a tensor starts is
part of the kernels' offsets. A reshape is another view of the same buffer; a view or an assembly
that is still there is copied. A `loom.fused` becomes one kernel where it can (`groups.py`); where
not, its members become kernels of their own, and a comment says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    StringAttr,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.reconcile_unrealized_casts import reconcile_unrealized_casts

from tapestry.algebra.parts import Axes
from tapestry.devices import find_spec
from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.locations import location_of
from tapestry.passes.loom._constants import FoldViewOfEqualCells, WriteEqualCellsIntoBody
from tapestry.passes.loom.outline import LoomInline
from tapestry.passes.loom.simplify import LoomSimplify
from tapestry.passes.loom.split_complex import LoomSplitComplex, holds_complex
from tapestry.passes.loom.ungroup import Ungroup
from tapestry.passes.triton.buffers import allocate, as_buffer, buffer_of, replace_by
from tapestry.passes.triton.choosing import Chooser
from tapestry.passes.triton.given import give_schedules, illegal_schedules, refuse_schedule
from tapestry.passes.triton.group_kernels import lower_group
from tapestry.passes.triton.groups import NotOneKernelError, group_of
from tapestry.passes.triton.in_place import AssembleUnreshaped, InPlace, places_of, standing
from tapestry.passes.triton.indices import replace_indices
from tapestry.passes.triton.kernels import Options
from tapestry.passes.triton.launching import Launcher, origin
from tapestry.passes.triton.mapfold import (
    applied_of,
    map_fold_of,
    merged_of,
)
from tapestry.passes.triton.merging import Merging
from tapestry.passes.triton.rungs import Rung
from tapestry.passes.triton.schedule import Task
from tapestry.passes.triton.tensors import (
    LowerAssemble,
    LowerConstant,
    LowerExternal,
    LowerReshape,
    LowerView,
)
from tapestry.passes.triton.tiling import MAX_CELLS, Tiling, power_of_two
from tapestry.zspace import Range

NUMERICS = {"strict": "ieee", "mixed": "ieee", "fast": "tf32"}
"""What float32 factors of a `tl.dot` may be rounded to."""

NO_DEVICE = "none"
"""The device of kernels that run nowhere in particular."""

APART = "apart"
"""The attribute in which a member says why its group is not one kernel."""


class LowerFunction(RewritePattern):
    """A function over tensors takes and returns buffers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.FuncOp, rewriter: PatternRewriter) -> None:
        block = op.body.block
        for argument in block.args:
            if isinstance(kind := argument.type, TensorType):
                cast, tensor = UnrealizedConversionCastOp.cast_one(argument, kind)
                argument.replace_uses_with_if(
                    tensor, lambda use, cast=cast: use.operation is not cast
                )
                rewriter.replace_value_with_new_type(argument, buffer_of(kind))
                rewriter.insert(cast, InsertPoint.at_start(block))
        op.properties["function_type"] = FunctionType.from_lists(
            [_buffers(kind) for kind in op.function_type.inputs],
            [_buffers(kind) for kind in op.function_type.outputs],
        )
        rewriter.handle_operation_modification(op)


def _buffers(kind: Attribute) -> Attribute:
    return buffer_of(kind) if isinstance(kind, TensorType) else kind


class LowerReturn(RewritePattern):
    """A function returns buffers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: func.ReturnOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, func.ReturnOp(*(as_buffer(rewriter, v) for v in op.operands)))


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


def _notes(op: loom.OperationOp) -> list[str]:
    """Why an operation is a kernel of its own, where it was in a group."""
    reason = op.attributes.get(APART)
    return [reason.data] if isinstance(reason, StringAttr) else []


@dataclass(frozen=True)
class LowerGroup(RewritePattern):
    """A group is a launch of its kernel; where it has none, its members are taken out of it.

    Legal in either case: see `Ungroup`. Members say why in a comment (`APART`).
    """

    launcher: Launcher
    in_place: InPlace

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        try:
            group = replace(group_of(op), places=places_of(op.results))
            with illegal_schedules(op):
                lowered = lower_group(
                    group,
                    self.launcher.options,
                    [origin(op.label.data, op.location)]
                    + [f"  {origin(m.label.data, m.location)}" for m in op.members],
                )
        except NotOneKernelError as error:
            if self.launcher.options.rung(op.label.data) < Rung.APART:
                refuse_schedule(op, str(error))
            for member in op.members:
                member.attributes[APART] = StringAttr(f"apart from @{op.label.data}: {error}")
            Ungroup().match_and_rewrite(op, rewriter)
            return
        operands = [as_buffer(rewriter, value) for value in op.ins]
        made = self.in_place.outs(rewriter, op)
        rewriter.insert(self.launcher.launch_group(group, lowered, op.location, operands, made))
        replace_by(rewriter, op, made)


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


@dataclass(frozen=True)
class LoomToTriton(ModulePass):
    """Lower loom to Triton kernels and a host that launches them.

    `tile` is the most cells of a tile of an elementwise kernel or a fold (a power of two).
    `numerics` is `strict` (contractions give what the fold gives, in exact products of float32),
    `mixed` (the default: beside a factor of 16 bits, a computed one that is at most 1 is rounded to
    its type, if what is folded is stored in 16 bits) or `fast` (also TF32; cells outside a domain
    are taken to be finite).

    Schedules follow from extents alone, or with a `device` (`h200`, `sm_90`, a file: see
    `tapestry.devices`) are what the cost model takes for the fastest there. Others, `schedules`,
    are given for operations by label, each as `LABEL: M = 128, N = 128, ...`; see
    `triton.Schedule` for what is in them. An operation's attribute `schedule` says the same.
    """

    name = "loom-to-triton"

    tile: int = 2048
    numerics: str = "mixed"
    schedules: tuple[str, ...] = ()
    device: str = NO_DEVICE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function of the module."""
        self.lower(ctx, op)

    def lower(
        self,
        ctx: Context,
        op: ModuleOp,
        seen: Callable[[Task], None] | None = None,
        rungs: Mapping[str, Rung] | None = None,
    ) -> None:
        """Lower every function of the module; `seen` is told of each task that is scheduled.

        `rungs` says by name which operations are to be made with more care (`rungs.py`).
        """
        if self.tile < 16 or self.tile > MAX_CELLS or power_of_two(self.tile) != self.tile:
            raise UsageError(
                f"tile = {self.tile} is not a size of a tile",
                hint=f"a power of two from 16 to {MAX_CELLS}",
            )
        if self.numerics not in NUMERICS:
            raise UsageError(
                f"numerics = {self.numerics!r} is not known", hint=f"one of {', '.join(NUMERICS)}"
            )
        give_schedules(op, self.schedules)
        LoomInline().apply(ctx, op)
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]
        for function in functions:
            _check(function)
        replace_indices(op)
        if holds_complex(op):
            # Members are split one by one.
            PatternRewriteWalker(Ungroup(), apply_recursively=False).rewrite_module(op)
            # Triton has no complex numbers; simplified, operations read the parts where they are.
            LoomSplitComplex().apply(ctx, op)
            LoomSimplify().apply(ctx, op)
        # What a body can hold as a number needs no buffer, however large the constant is.
        PatternRewriteWalker(
            GreedyRewritePatternApplier([FoldViewOfEqualCells(), WriteEqualCellsIntoBody()])
        ).rewrite_module(op)
        tiling = Tiling(self.tile)
        options = Options(
            tiling,
            NUMERICS[self.numerics],
            rounds=self.numerics != "strict",
            seen=seen,
            chooser=None if self.device == NO_DEVICE else Chooser(find_spec(self.device), tiling),
            rungs=rungs or {},
        )
        launcher, in_place = Launcher(options, op), InPlace()
        PatternRewriteWalker(AssembleUnreshaped()).rewrite_module(op)
        # First, because members that are taken out of a group are operations like any other.
        PatternRewriteWalker(
            LowerGroup(launcher, in_place), apply_recursively=False
        ).rewrite_module(op)
        patterns: list[RewritePattern] = [
            LowerFunction(),
            LowerReturn(),
            LowerOperation(launcher, in_place),
            LowerApplication(launcher),
            LowerMerge(launcher),
            LowerConstant(),
            LowerExternal(),
            LowerReshape(),
            LowerView(launcher),
            LowerAssemble(launcher, in_place),
        ]
        applier = GreedyRewritePatternApplier(patterns, dce_enabled=False)
        PatternRewriteWalker(applier, apply_recursively=False).rewrite_module(op)
        reconcile_unrealized_casts(op)
        for definition in list(op.body.block.ops):
            if isinstance(definition, loom.MonoidOp | loom.KernelOp):
                Rewriter.erase_op(definition)


def _check(function: func.FuncOp) -> None:
    """Raise InvalidProgramError for what cannot be lowered."""
    name = function.sym_name.data
    if function.is_declaration:
        raise InvalidProgramError(
            f"@{name} has no body, so there is nothing to lower to Triton",
            location=location_of(function),
            hint="remove the declaration, or give it a body",
        )
    for value in (*function.function_type.inputs, *function.function_type.outputs):
        if not isinstance(value, TensorType):
            raise InvalidProgramError(
                f"@{name} takes or returns {value}; only tensors can be lowered to Triton",
                location=location_of(function),
            )
    if len(function.body.blocks) != 1:
        raise InvalidProgramError(
            f"@{name} has {len(function.body.blocks)} blocks; only straight-line functions can be "
            "lowered to Triton",
            location=location_of(function),
        )
    lowered = (
        loom.OperationOp,
        loom.FusedOp,
        loom.ApplicationOp,
        loom.MergeOp,
        loom.ViewOp,
        loom.ReshapeOp,
        loom.AssembleOp,
        loom.ConstantOp,
        loom.ExternalOp,
        func.ReturnOp,
    )
    for op in function.body.block.ops:
        if not isinstance(op, lowered):
            raise InvalidProgramError(
                f"{op.name} cannot be lowered to Triton",
                location=location_of(op),
                hint="run weft-apply first" if op.name.startswith("weft.") else None,
            )
