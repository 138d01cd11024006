"""Groups that one kernel would be slower for than several: cut, where a device is known.

    loom.fused @out {a = softmax(x @ u); b = softmax(a @ v); out = b @ w}

in one kernel stores neither `a` nor `b`: each block of `b` takes all of `a` again, and programs are
along rows alone. Where that is more than the device has to spare, or leaves it idle, groups of
fewer members store what they make; the cost model says so, which counts the kernels of both. Which
members stay together, `groups.cutting` says. What leaves a device idle whole may fill it in parts
(`splitting`) without storing anything, and inputs that lie badly for one member may lie well for
that member alone (`layouts`): so both are compared as they are in the end.

In and out: loom. What has a schedule is left as it is, for that is of the whole group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.passes.loom.relayout import apply_layouts
from tapestry.passes.triton.alternatives.alone import alone, canonical
from tapestry.passes.triton.alternatives.layouts import (
    Free,
    LayoutChooser,
    free_inputs,
    give_as_wanted,
    reads_badly,
    walks_points,
    written_well,
)
from tapestry.passes.triton.alternatives.splitting import (
    PartsChooser,
    Predict,
    apply_parts,
    seconds,
)
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.groups.cutting import cut
from tapestry.passes.triton.groups.lowering import why_several_kernels
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.kernels.matching import has_keys
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.2
"""How many times as fast as the whole the pieces have to be predicted to be."""


@dataclass
class Recutting:
    """Cuts groups that are slower whole, but those whose names `skips` holds for.

    Equal ones are looked at once. `parts` chooses the parts of folds, where these are split, and
    `layouts` how inputs lie.
    """

    predict: Predict
    skips: Callable[[str], bool]
    parts: PartsChooser | None = None
    layouts: LayoutChooser | None = None
    _known: dict[tuple[str, Free | None], bool] = field(
        default_factory=dict["tuple[str, Free | None]", bool]
    )

    def apply(self, module: ModuleOp) -> None:
        """Cut the groups of a program that are faster so."""
        PatternRewriteWalker(CutWhereFaster(self), apply_recursively=False).rewrite_module(module)

    def is_faster(self, op: loom.FusedOp) -> bool:
        """Whether the pieces of a group are clearly faster than one kernel of all."""
        if self.skips(op.label.data) or any(SCHEDULE in one.attributes for one in op.walk()):
            return False
        if sum(bool(member.fold_dims) for member in op.members) < 2:
            return False
        program = alone(op)
        key = canonical(program), self._free(op)
        if key not in self._known:
            self._known[key] = self._is_faster(program, key[1])
        return self._known[key]

    def _free(self, op: loom.FusedOp) -> Free | None:
        """Which inputs may lie otherwise without a copy; None where that is no question."""
        asked = self.layouts is not None and any(map(reads_badly, op.members))
        return free_inputs(op) if asked else None

    def _is_faster(self, program: ModuleOp, free: Free | None) -> bool:
        """Whether the pieces are faster, where `free` inputs, unless it is None, may lie well."""
        try:
            whole = self.predict(program, False)
            # One kernel of several folds goes to all points of each, whatever their keys.
            keyed = any(map(_has_keys, program.walk()))
            may_gain = keyed or any(map(_may_gain, whole))
            if not may_gain and free is None:
                return False
            cuts = list(_cuts(program))
            if len(whole) > 1 and any(map(self.is_faster, _groups(cuts[0]))):
                return True  # It is several kernels anyway, of which one is better cut again.
            if free is not None:
                well = [self._lie_well(cut, free) for cut in cuts]
                may_gain |= any(well)
            if not may_gain:
                return False
            # Once, or all the way: what is between is seldom better than both.
            taken = {cut: seconds(self.predict(cut, False)) for cut in (cuts[0], cuts[-1])}
            best = cuts[-1] if keyed else min(taken, key=lambda cut: taken[cut])
            # What a default schedule takes that does not fit says little.
            fits = not any(one.estimate.problems for one in whole)
            if not keyed and taken[best] * (GAIN if fits else 1) > seconds(whole):
                return False
            apart = self._seconds(best) * GAIN
            if apart > self._seconds(program, apart):
                return False
            for cut in cuts[:-1] if best is cuts[-1] else ():
                self._known |= {
                    (canonical(alone(one)), self._free(one)): True for one in _groups(cut)
                }
            return True
        except TapestryError:
            return False  # What it has no kernel for is said where it is lowered.

    def _lie_well(self, pieces: ModuleOp, free: Free) -> bool:
        """Make inputs of the pieces of a group lie well, where that pays; whether it does."""
        if self.layouts is None:
            return False
        (main,) = (op for op in pieces.body.block.ops if isinstance(op, func.FuncOp))
        written = [(main.body.block.args[number], axis) for number, axis in free]
        chosen = self.layouts.chosen(pieces, written)
        apply_layouts(pieces, chosen, written_well, walks_points)
        give_as_wanted(pieces, free)
        return bool(chosen)

    def _seconds(self, program: ModuleOp, worth: float = inf) -> float:
        """What a program takes with the schedules, and the parts of folds, that are chosen."""
        if self.parts is not None:
            program = program.clone()
            apply_parts(program, self.parts.chosen(program))
        return seconds(self.predict(program, True, worth))


def _cuts(program: ModuleOp) -> Iterator[ModuleOp]:
    """A program with its groups cut, then with what these became cut, and so on."""
    cut = program
    while True:
        cut = cut.clone()
        PatternRewriteWalker(CutOnce(), apply_recursively=False).rewrite_module(cut)
        yield cut
        if not _groups(cut):
            return


def _groups(module: ModuleOp) -> list[loom.FusedOp]:
    """The groups of a program."""
    return [op for op in module.walk() if isinstance(op, loom.FusedOp)]


def _has_keys(op: Operation) -> bool:
    """Whether an operation is a fold of which points count by their keys."""
    if not isinstance(op, loom.OperationOp) or op.monoid_name is None or not op.fold_dims:
        return False
    return has_keys(map_fold_of(op))


def _may_gain(one: Prediction) -> bool:
    """Whether programs are too few for the device or too large for it, or a fold is walked again
    inside another.
    """
    inner = [axis for axis in one.schedule.tile if axis.startswith("C")]
    return one.estimate.waves < 1 or bool(one.estimate.problems) or len(inner) > 1


@dataclass(frozen=True)
class CutOnce(RewritePattern):
    """A group becomes the groups that `cut` makes of its members. Legal as that is."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        cut(op, rewriter, lambda piece: why_several_kernels(piece) is None)


@dataclass(frozen=True)
class CutWhereFaster(RewritePattern):
    """A group becomes those that `cut` makes of it, where these are faster. Legal as `cut` is."""

    recutting: Recutting

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.FusedOp, rewriter: PatternRewriter) -> None:
        if self.recutting.is_faster(op):
            for piece in cut(op, rewriter, lambda one: why_several_kernels(one) is None):
                self.match_and_rewrite(piece, rewriter)
