"""Folds and scans of few points of many cells: in parts side by side, where a device gains by it.

    %y = loom.operation @sum over <[0, 0] : [4, 1048576]> [map, fold] by @add ...

is four programs, which leave most of a GPU idle. `loom-split-fold` makes a fold of its parts, and
one of what these folded; `loom-split-scan` lets each part of a scan go on from what the ones before
it are. How many parts, the cost model says, which counts all their kernels. Parts are folded and
merged in one order, so results do not depend on timing.

In and out: loom. What has a schedule is left as it is, for that is of the whole fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, prod
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.devices import DeviceSpec
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.split_fold import Choice, SplitGroup, SplitOperation, may_be_stored
from tapestry.passes.loom.split_scan import ScanChoice, SplitScan
from tapestry.passes.triton.alternatives.alone import Scheduled, alone, canonical
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.schedules.task import SCHEDULE


class Predict(Protocol):
    """What the kernels of a program take, with the schedules `chosen` for the device, or default
    ones. Where one of them takes more than `worth` seconds anyway, what it takes is some more.
    """

    def __call__(self, program: ModuleOp, chosen: bool, worth: float = inf) -> list[Prediction]: ...


PARTS = (4, 16, 64, 256)
"""How many parts are tried, about."""

LEAST = 256
"""The points that a part has at least."""

GAIN = 1.2
"""How many times as fast as the whole the parts have to be predicted to be."""

POINTS = 4096
"""The most points that a program of a fold maps, about: those of a tile of a product."""


@dataclass(frozen=True)
class SplitChosen(RewritePattern):
    """What parts are chosen for is folded, or scanned, in these.

    Legal where `loom-split-fold` or `loom-split-scan` may split it: merges associate, parts keep
    the order of what does not commute, and states are stored in the types that they are folded in.
    """

    chosen: Mapping[Scheduled, int]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Scheduled, rewriter: PatternRewriter) -> None:
        if op in self.chosen:
            split(op, self.chosen[op], rewriter)


def split(op: Scheduled, parts: int, rewriter: PatternRewriter, least: int = LEAST) -> None:
    """Split a fold, a scan or a group in about so many parts of `least` points, if it may be."""
    if isinstance(op, loom.FusedOp):
        SplitGroup(Choice(parts, least)).match_and_rewrite(op, rewriter)
    elif op.scan_dim is not None:
        SplitScan(ScanChoice(parts, least)).match_and_rewrite(op, rewriter)
    else:
        SplitOperation(Choice(parts, least)).match_and_rewrite(op, rewriter)


def _may_split(op: Scheduled, parts: int) -> bool:
    if isinstance(op, loom.OperationOp) and op.scan_dim is not None:
        return may_be_stored(op) and ScanChoice(parts, LEAST).split(op) is not None
    return Choice(parts, LEAST).split(op) is not None


@dataclass
class PartsChooser:
    """Chooses parts for the folds and scans of a program; equal ones are looked at once."""

    spec: DeviceSpec
    predict: Predict
    _known: dict[str, int] = field(default_factory=dict[str, int])

    def chosen(self, module: ModuleOp) -> dict[Scheduled, int]:
        """What is to be split, with how many parts each gets."""
        found: dict[Scheduled, int] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp | loom.FusedOp) and self._may_gain(op):
                program = alone(op)
                text = canonical(program)
                if text not in self._known:
                    self._known[text] = self._parts(program)
                if self._known[text] > 1:
                    found[op] = self._known[text]
        return found

    def _may_gain(self, op: Scheduled) -> bool:
        """Whether programs may be too few: known without a kernel, so that most cost nothing."""
        if in_group(op) or any(SCHEDULE in one.attributes for one in op.walk()):
            return False
        if not _may_split(op, max(PARTS)):
            return False
        points = prod(op.index.shape[dim] for dim in op.map_dims)
        return points < POINTS * self.spec.multiprocessors

    def _parts(self, program: ModuleOp) -> int:
        """The number of parts that is clearly faster than the whole; 1 where none is."""
        try:
            whole = self.predict(program, False)
            if min(one.estimate.waves for one in whole) >= 1:
                return 1
            tried = {parts: self._seconds(program, parts, chosen=False) for parts in PARTS}
            best = min(tried, key=lambda parts: tried[parts])
            if tried[best] * GAIN > seconds(whole):
                return 1
            apart = self._seconds(program, best, chosen=True) * GAIN
            return best if apart <= seconds(self.predict(program, True, apart)) else 1
        except TapestryError:
            return 1  # What it has no kernel for is said where it is lowered.

    def _seconds(self, program: ModuleOp, parts: int, *, chosen: bool) -> float:
        own = program.clone()
        ops = [op for op in own.walk() if isinstance(op, loom.OperationOp | loom.FusedOp)]
        (op,) = [op for op in ops if not in_group(op)]
        apply_parts(own, {op: parts})
        return seconds(self.predict(own, chosen))


def apply_parts(module: ModuleOp, chosen: Mapping[Scheduled, int]) -> None:
    """Split the folds and scans that are chosen."""
    PatternRewriteWalker(SplitChosen(chosen), apply_recursively=False).rewrite_module(module)


def seconds(found: list[Prediction]) -> float:
    """What kernels take one after another."""
    return sum(one.estimate.seconds for one in found)
