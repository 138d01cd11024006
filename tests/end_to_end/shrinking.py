"""A program over few cells, with the kernels that a device has for the same at its real size.

    made = chosen(loom_of(case), "h100")
    run = Shrunk(Cpu(), fallback=False, made=made).run(loom_of(case.small), inputs, NoWatch())

What is chosen by sizes is found at the real one: which groups are cut, which factors are stored or
copied, which products are parted, which maps join folds, which folds are in parts, and the
schedules. The small program gets the same, with tiles, persistent programs and swizzles made so
small that what has several steps has several there too.
"""

# ruff: noqa: ARG002 - what is overridden is given more than is needed here

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.loom.pad_fold import apply_paddings
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.relayout import Axes, apply_layouts
from tapestry.passes.triton.alternatives.alone import Scheduled
from tapestry.passes.triton.alternatives.joining import JoiningChooser, apply_joins
from tapestry.passes.triton.alternatives.layouts import (
    LayoutChooser,
    walks_points,
    written_well,
)
from tapestry.passes.triton.alternatives.padding import PaddingChooser
from tapestry.passes.triton.alternatives.parting import PartingChooser, apply_partings
from tapestry.passes.triton.alternatives.recutting import CutWhereFaster, Recutting
from tapestry.passes.triton.alternatives.splitting import PartsChooser, apply_parts, split
from tapestry.passes.triton.alternatives.storing import FactorChooser, Places, apply_stores
from tapestry.passes.triton.alternatives.taking import Alternatives
from tapestry.passes.triton.cost.ranking import Rankings
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.schedule import check
from tapestry.passes.triton.schedules.task import SCHEDULE, Task
from tapestry.passes.triton.schedules.tiling import MIN_DOT, power_of_two
from tapestry.runtime.constants import as_arguments
from tapestry.runtime.executor import Array
from tapestry.runtime.program import main_function
from tapestry.runtime.triton.devices import Device
from tapestry.runtime.triton.executor import TritonExecutor

STEP = 8
"""The points of a tile that multiplies nothing, along an axis that has several blocks."""

PROGRAMS = 3
"""So many persistent programs take several blocks each."""

TOGETHER = 2
"""The blocks of rows, or the heads, that are taken together."""

PARTS = 3
"""The parts of a fold that is split."""

Rungs = Mapping[str, Rung] | None
What = TypeVar("What")
Op = TypeVar("Op", bound=Scheduled)


@dataclass
class Chosen:
    """What is chosen for a program, by the labels of operations, and its kernels' schedules."""

    cut: set[str] = field(default_factory=set[str])
    stored: dict[str, Places] = field(default_factory=dict[str, Places])
    axes: dict[str, Axes] = field(default_factory=dict[str, Axes])
    padded: dict[str, int] = field(default_factory=dict[str, int])
    parted: list[set[str]] = field(default_factory=list[set[str]])
    joined: dict[str, str] = field(default_factory=dict[str, str])
    split: set[str] = field(default_factory=set[str])
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule])


def chosen(module: ModuleOp, device: str) -> Chosen:
    """What is chosen for a program in loom on a device; the program stays as it is."""
    made, lowered = Chosen(), module.clone()
    _Choosing(device=device, made=made).lower(Context(), lowered, lambda t: _see(made, t))
    kernels = (op for op in lowered.walk() if isinstance(op, triton.KernelOp))
    made.schedules = {op.sym_name.data: op.schedule.data for op in kernels}
    return made


def _see(made: Chosen, task: Task) -> None:
    made.tasks[task.name] = task


def small(schedule: Schedule, real: Task, task: Task) -> Schedule:
    """A schedule for a small task, with as much of it in several steps as at the real size."""
    tile = {axis: _side(axis, schedule.tile[axis], real, task) for axis in task.lengths}
    return replace(
        schedule,
        tile=tile,
        programs=min(schedule.programs, PROGRAMS),
        swizzle=min(schedule.swizzle, TOGETHER),
        parts=min(schedule.parts, PARTS),
    )


def _side(axis: str, size: int, real: Task, task: Task) -> int:
    """A side of a tile: of all points where it is so at the real size, else a few of them."""
    least = MIN_DOT if axis in task.multiplied else 1
    whole = power_of_two(task.lengths[axis])
    if axis in task.held or real.lengths[axis] <= size:
        return max(least, whole)
    return max(least, min(size, whole, STEP))


def _alike(task: Task, real: Task) -> bool:
    """Whether a kernel has the tile axes of the real one; maps of few cells may have others."""
    return task.kind != "map" or set(task.lengths) == set(real.lengths)


@dataclass(frozen=True)
class _Remembered(Alternatives):
    """What is taken for a device; `made` gets it."""

    made: Chosen = field(default_factory=Chosen)

    def cut_groups(self, module: ModuleOp) -> None:
        parts = PartsChooser(self.spec, self.predict)
        own = _Cuts(self.predict, lambda _: False, parts, made=self.made)
        PatternRewriteWalker(CutWhereFaster(own), apply_recursively=False).rewrite_module(module)

    def store_factors(self, module: ModuleOp) -> None:
        found = FactorChooser(self.predict).chosen(module)
        self.made.stored |= {one.label.data: what for one, what in found.items()}
        apply_stores(module, found)

    def part_products(self, module: ModuleOp) -> None:
        chooser = PartingChooser(self.predict)
        while found := chooser.chosen(module):
            self.made.parted.append({one.label.data for one in found})
            apply_partings(module, found)

    def join_maps(self, module: ModuleOp) -> None:
        found = JoiningChooser(self.predict).chosen(module)
        self.made.joined |= {one.label.data: fold.label.data for one, fold in found.items()}
        apply_joins(module, found)

    def pad_folds(self, module: ModuleOp) -> None:
        found = PaddingChooser(self.predict).chosen(module)
        self.made.padded |= {one.label.data: dim for one, (dim, _) in found.items()}
        apply_paddings(module, found)

    def relayout_inputs(self, module: ModuleOp) -> None:
        found = LayoutChooser(self.predict).chosen(module)
        self.made.axes |= {one.label.data: what for one, what in found.items()}
        apply_layouts(module, found, written_well, walks_points)

    def split_folds(self, module: ModuleOp) -> None:
        found = PartsChooser(self.spec, self.predict).chosen(module)
        self.made.split |= {one.label.data for one in found}
        apply_parts(module, found)


@dataclass(frozen=True)
class _Choosing(LoomToTriton):
    """The lowering; `made` gets what is chosen."""

    made: Chosen = field(default_factory=Chosen, compare=False)

    def alternatives(
        self, ctx: Context, rungs: Rungs = None, rankings: Rankings | None = None
    ) -> Alternatives | None:
        own = super().alternatives(ctx, rungs, rankings)
        return None if own is None else _Remembered(own.spec, own.predict, made=self.made)


@dataclass
class _Cuts(Recutting):
    """Remembers what is cut."""

    made: Chosen = field(default_factory=Chosen)

    def is_faster(self, op: loom.FusedOp) -> bool:
        faster = super().is_faster(op)
        self.made.cut |= {op.label.data} if faster else set()
        return faster


@dataclass
class _SameCuts(_Cuts):
    """Cuts what was cut."""

    def is_faster(self, op: loom.FusedOp) -> bool:
        return op.label.data in self.made.cut


@dataclass(frozen=True)
class _Split(RewritePattern):
    """Splits what was split. Legal where `loom-split-fold` or `loom-split-scan` may split it."""

    labels: set[str]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Scheduled, rewriter: PatternRewriter) -> None:
        if op.label.data in self.labels and not in_group(op):
            split(op, PARTS, rewriter, least=1)


@dataclass(frozen=True)
class _Again(Alternatives):
    """What `made` says of the same program at its real size; `given` has schedules by label."""

    made: Chosen = field(default_factory=Chosen)
    given: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule])

    def cut_groups(self, module: ModuleOp) -> None:
        own = _SameCuts(self.predict, lambda _: False, made=self.made)
        PatternRewriteWalker(CutWhereFaster(own), apply_recursively=False).rewrite_module(module)

    def store_factors(self, module: ModuleOp) -> None:
        scheduled = (one for one in module.walk() if isinstance(one, Scheduled))
        apply_stores(module, _labelled(scheduled, self.made.stored))

    def part_products(self, module: ModuleOp) -> None:
        for labels in self.made.parted:
            operations = [one for one in module.walk() if isinstance(one, loom.OperationOp)]
            apply_partings(module, [one for one in operations if one.label.data in labels])

    def join_maps(self, module: ModuleOp) -> None:
        every = [one for one in module.walk() if isinstance(one, Scheduled)]
        folds = _labelled(every, {label: label for label in self.made.joined.values()})
        named = {label: one for one, label in folds.items()}
        maps = _labelled(every, self.made.joined)
        apply_joins(
            module,
            {
                one: named[label]
                for one, label in maps.items()
                if isinstance(one, loom.OperationOp) and label in named
            },
        )

    def pad_folds(self, module: ModuleOp) -> None:
        operations = (one for one in module.walk() if isinstance(one, loom.OperationOp))
        padded = _labelled(operations, self.made.padded)
        # One point more is as good as more of them, where the extent is another one.
        sides = {one: (dim, one.index.shape[dim] + 1) for one, dim in padded.items()}
        apply_paddings(module, sides)

    def relayout_inputs(self, module: ModuleOp) -> None:
        operations = (one for one in module.walk() if isinstance(one, loom.OperationOp))
        apply_layouts(module, _labelled(operations, self.made.axes), written_well, walks_points)

    def split_folds(self, module: ModuleOp) -> None:
        split = _Split(self.made.split)
        PatternRewriteWalker(split, apply_recursively=False).rewrite_module(module)
        # Nothing is rewritten after this.
        for one in module.walk():
            if isinstance(one, Scheduled) and not in_group(one) and one.label.data in self.given:
                one.attributes[SCHEDULE] = ScheduleAttr(self.given[one.label.data])


@dataclass(frozen=True)
class _Same(LoomToTriton):
    """The lowering of a small program as `made` says; `given` has the schedules by label."""

    made: Chosen = field(default_factory=Chosen, compare=False)
    given: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule], compare=False)

    def alternatives(
        self, ctx: Context, rungs: Rungs = None, rankings: Rankings | None = None
    ) -> Alternatives | None:
        own = super().alternatives(ctx, rungs, rankings)
        made, given = self.made, self.given
        return None if own is None else _Again(own.spec, own.predict, made=made, given=given)


def _labelled(ops: Iterable[Op], known: Mapping[str, What]) -> dict[Op, What]:
    """What is known by the labels of operations that are in no group, by those of a program."""
    found = {op.label.data: op for op in ops if not in_group(op)}
    return {op: known[label] for label, op in found.items() if label in known}


@dataclass(frozen=True)
class Shrunk(TritonExecutor):
    """Runs a small program with the kernels that were chosen for it at its real size."""

    made: Chosen = field(default_factory=Chosen, compare=False)
    on: str = "h100"

    def lowered(
        self, module: ModuleOp, device: Device, rungs: Rungs = None, refused: object = None
    ) -> tuple[ModuleOp, list[Array]]:
        """The program in triton, for the device whose choices it gets, and its constants."""
        lowered = module.clone()
        constants = as_arguments(main_function(lowered))
        return same(lowered, self.on, self.made), constants


def same(module: ModuleOp, device: str, made: Chosen) -> ModuleOp:
    """A small program in loom with what was chosen for a device; it stays as it is.

    Raises ScheduleError where a small kernel cannot have what a real one has.
    """
    tasks: list[Task] = []
    plain, lowered = module.clone(), module.clone()
    _Same(device=device, made=made).lower(Context(), plain, tasks.append, choose=False)
    # Copies are all named alike, and get the default schedules.
    alone = [one for one in tasks if [task.name for task in tasks].count(one.name) == 1]
    given = {
        task.name: small(made.schedules[task.name], made.tasks[task.name], task)
        for task in alone
        if task.name in made.schedules and _alike(task, made.tasks[task.name])
    }
    for task in tasks:
        if task.name in given:
            check(task, given[task.name])
    _Same(device=device, made=made, given=given).lower(Context(), lowered, choose=False)
    return lowered


def names(module: ModuleOp) -> Sequence[str]:
    """The kernels of a program in triton."""
    return sorted(op.sym_name.data for op in module.walk() if isinstance(op, triton.KernelOp))
