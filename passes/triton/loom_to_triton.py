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
that is still there is copied. A `loom.fused` becomes one kernel where it can (`groups`); where
not, it is cut into groups that can (`groups.cutting`), and a comment says why.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter
from xdsl.transforms.reconcile_unrealized_casts import reconcile_unrealized_casts

from tapestry.devices import find_spec
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import MAX_CELLS, Schedule
from tapestry.passes.loom.outline import LoomInline
from tapestry.passes.loom.simplification.constants import (
    FoldViewOfEqualCells,
    WriteEqualCellsIntoBody,
)
from tapestry.passes.loom.simplify import LoomSimplify
from tapestry.passes.loom.split_complex import LoomSplitComplex, holds_complex
from tapestry.passes.loom.ungroup import Ungroup
from tapestry.passes.triton.alternatives.alone import canonical
from tapestry.passes.triton.alternatives.early import Early
from tapestry.passes.triton.alternatives.splitting import Predict
from tapestry.passes.triton.alternatives.taking import Alternatives
from tapestry.passes.triton.cost.predicting import Build, Calls, Choose, Prediction, predictions
from tapestry.passes.triton.cost.ranking import Rankings
from tapestry.passes.triton.host.functions import LowerFunction, LowerReturn, check_function
from tapestry.passes.triton.host.in_place import AssembleUnreshaped, InPlace
from tapestry.passes.triton.host.launching import Launcher, Made
from tapestry.passes.triton.host.operations import (
    LowerApplication,
    LowerGroup,
    LowerMerge,
    LowerOperation,
)
from tapestry.passes.triton.host.tensors import (
    LowerAssemble,
    LowerConstant,
    LowerExternal,
    LowerReshape,
    LowerView,
)
from tapestry.passes.triton.kernels.lowering import Options
from tapestry.passes.triton.rewrites.indices import replace_indices
from tapestry.passes.triton.rewrites.rounding import round_where_needed
from tapestry.passes.triton.schedules.choosing import Chooser, never
from tapestry.passes.triton.schedules.given import give_schedules, refuse_schedule
from tapestry.passes.triton.schedules.measured import give_measured
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import Tiling, power_of_two

NUMERICS = {"strict": "ieee", "mixed": "bf16x6", "fast": "tf32"}
"""How float32 factors of a `tl.dot` are multiplied on a device whose tensor cores take bfloat16."""

Told = Callable[[Task, Schedule | None], None]
"""Told of the schedule that is chosen for a task, None where the default stays."""

NO_DEVICE = "none"
"""The device of kernels that run nowhere in particular."""


@dataclass(frozen=True)
class LoomToTriton(ModulePass):
    """Lower loom to Triton kernels and a host that launches them.

    `tile` is the most cells of a tile of an elementwise kernel or a fold (a power of two).
    `numerics` is `strict` (contractions give what the fold gives, in exact products of float32),
    `mixed` (the default: beside a factor of 16 bits, a computed one that is at most 1 is rounded to
    its type, if what is folded is stored in 16 bits; on a `device` with tensor cores for bfloat16,
    products of float32 are six of these, which are within 2^-20 of them; functions are written as
    cheaper ones, `rewrites/functions.py`) or `fast` (also TF32; cells outside a domain are taken to
    be finite).

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
    split: bool = True
    relayout: bool = True
    store: bool = True

    @property
    def settled(self) -> LoomToTriton:
        """The same for operations of what `settle` left: alternatives are taken already."""
        return replace(self, schedules=(), split=False, relayout=False, store=False)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function of the module."""
        self.lower(ctx, op)

    def lower(
        self,
        ctx: Context,
        op: ModuleOp,
        seen: Callable[[Task], None] | None = None,
        rungs: Mapping[str, Rung] | None = None,
        refused: Callable[[triton.KernelOp], bool] = never,
        chosen: Told | None = None,
        choose: bool = True,
        rankings: Rankings | None = None,
        worth: float = inf,
        made: Made | None = None,
    ) -> None:
        """Lower every function of the module; `seen` is told of each task that is scheduled.

        `rungs` says by name which operations are to be made with more care (`schedules.rungs`),
        `refused` which kernels are known to be no good on the device. `chosen` is told of what is
        chosen in place of a default; without `choose`, default schedules stay, and so they do where
        no kernel takes `worth` seconds or less. `rankings` are what is found of schedules, for
        other programs that are lowered by the same options. `made` is told of each kernel as soon
        as it is there.
        """
        rankings = {} if rankings is None else rankings

        def make(ways: Alternatives, program: ModuleOp) -> None:
            self._take(ways, program)
            self.settled.lower(ctx, program, refused=refused, rankings=rankings, made=made)

        # Where something is made with more care, it may be because a compiler worked in vain.
        begins = made is not None and not rungs and self != self.settled
        self.settle(ctx, op, rungs, rankings, make if begins else None)
        give_measured(op, self.device)
        options = Options(
            Tiling(self.tile),
            self._precision(),
            rounds=self.numerics != "strict",
            seen=seen,
            chooser=self._chooser(refused, chosen, rankings, worth) if choose else None,
            rungs=rungs or {},
        )
        launcher, in_place = Launcher(options, op, made), InPlace()
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

    def settle(
        self,
        ctx: Context,
        op: ModuleOp,
        rungs: Mapping[str, Rung] | None = None,
        rankings: Rankings | None = None,
        make: Callable[[Alternatives, ModuleOp], None] | None = None,
    ) -> None:
        """Bring a program to the operations that become its kernels, which are loom still.

        On a device they are what the alternatives make of those that it has; `make` is given them
        and programs of one operation, whose kernels are made before those of the others. Where
        complex numbers were, functions take and return pairs.
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
            check_function(function)
        replace_indices(op)
        if holds_complex(op):
            for group in op.walk():
                if isinstance(group, loom.FusedOp):
                    refuse_schedule(group, "in a program with complex numbers, each member is one")
            # Members are split one by one.
            PatternRewriteWalker(Ungroup(), apply_recursively=False).rewrite_module(op)
            # Triton has no complex numbers; simplified, operations read the parts where they are.
            LoomSplitComplex().apply(ctx, op)
            LoomSimplify().apply(ctx, op)
        # What a body can hold as a number needs no buffer, however large the constant is.
        PatternRewriteWalker(
            GreedyRewritePatternApplier([FoldViewOfEqualCells(), WriteEqualCellsIntoBody()])
        ).rewrite_module(op)
        ways = self.alternatives(ctx, rungs, rankings)
        if ways is not None:
            self._take(ways, op, None if make is None else Early(partial(make, ways)))

    def _take(self, ways: Alternatives, op: ModuleOp, early: Early | None = None) -> None:
        """Compute a program in other ways where that is faster."""
        if early is not None:
            early.products(op)
        if self.split:
            ways.cut_groups(op)
        if early is not None:
            early.groups(op)
        if self.store:
            ways.store_factors(op)
            ways.part_products(op)
            ways.join_maps(op)
        if self.relayout:
            ways.pad_folds(op)
            ways.relayout_inputs(op)
        if self.split:
            ways.split_folds(op)

    def alternatives(
        self,
        ctx: Context,
        rungs: Mapping[str, Rung] | None = None,
        rankings: Rankings | None = None,
    ) -> Alternatives | None:
        """The other ways to compute programs that are taken on the device; None without one.

        What is to be made with more care, by `rungs`, stays as it is.
        """
        if self.device == NO_DEVICE:
            return None
        careful = {name for name, rung in (rungs or {}).items() if rung > Rung.GIVEN}
        predict = self._predictor(ctx, {} if rankings is None else rankings)
        spec = find_spec(self.device)
        return Alternatives(spec, predict, frozenset(careful), self.relayout)

    def _predictor(self, ctx: Context, rankings: Rankings) -> Predict:
        """What tells what the kernels of a program as it is take on the device."""
        spec = find_spec(self.device)
        known: dict[tuple[str, bool, float], list[Prediction]] = {}

        def predict(program: ModuleOp, chosen: bool, worth: float = inf) -> list[Prediction]:
            key = canonical(program), chosen, worth
            if key not in known:
                lowered, device = program.clone(), self.device if chosen else NO_DEVICE
                own = replace(self.settled, device=device)
                own.lower(ctx, lowered, rankings=rankings, worth=worth)
                known[key] = predictions(lowered, spec)
            return known[key]

        return predict

    def _precision(self) -> str:
        """How float32 factors are multiplied; more slowly is right where no device is known."""
        precision = NUMERICS[self.numerics]
        if precision == "bf16x6" and not (
            self.device != NO_DEVICE and find_spec(self.device).has_bfloat16
        ):
            return "ieee"
        return precision

    def _chooser(
        self,
        refused: Callable[[triton.KernelOp], bool],
        chosen: Told | None,
        rankings: Rankings,
        worth: float,
    ) -> Choose | None:
        if self.device == NO_DEVICE:
            return None

        def refused_when_launched(kernel: triton.KernelOp) -> bool:
            """What is known is known of kernels as they are launched (`Launcher`)."""
            launched = kernel.clone()
            round_where_needed(launched, strict=self.numerics == "strict")
            return refused(launched)

        known = never if refused is never else refused_when_launched
        chooser = Chooser(find_spec(self.device), Tiling(self.tile), known, rankings, worth)
        if chosen is None:
            return chooser

        def told(
            task: Task, default: triton.KernelOp, calls: Calls, build: Build, alike: Hashable
        ) -> Schedule | None:
            schedule = chooser(task, default, calls, build, alike)
            chosen(task, schedule)
            return schedule

        return told
