"""How two programs of any size are compared: changed regions alone, at smaller sizes.

    every changed region agrees          -> equal, by the weakest of their answers
    some region does not                 -> all that changed, from the arguments on, decides

Regions that are small are compared as they are, others at two different reductions. A difference
that could come from a literal that stands for an extent (the 0.125 of a head of 64) counts only
when it is still there where such extents are kept. Only literals of changed regions matter there:
others are the same in both programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.proving.reduction import Reduced, reduce_sizes
from tapestry.proving.scope import Scope, cut_scope, cut_scopes

if TYPE_CHECKING:
    from tapestry.proving.equality import Verdict

SMALL = 1 << 10
"""Points of index spaces, or cells, up to which programs are compared at their own sizes alone."""

_SEEDS = (0, 1)
"""The reductions that are compared."""

_LITERALS = "they differ at smaller sizes, but literals could stand for extents"

_EQUAL = ("certified", "numeric")

Compare = Callable[[ModuleOp, ModuleOp], "Verdict"]
"""Compares two programs at their own sizes."""


def work_of(module: ModuleOp) -> int:
    """How many points of index spaces a program has, or cells of tensors where those are more."""
    points = cells = 0
    for op in module.walk():
        values = op.body.block.args if isinstance(op, func.FuncOp) else op.results
        cells += sum(v.type.box.size for v in values if isinstance(v.type, loom.TensorType))
        if isinstance(op, loom.OperationOp | loom.ApplicationOp):
            points += op.index.size
    return max(points, cells)


def compare_in_stages(a: ModuleOp, b: ModuleOp, compare: Compare) -> Verdict | None:
    """Compare two verified programs of one signature; None when every operation is the same."""
    scopes = cut_scopes(a, b)
    if not scopes:
        return None
    sized = [compare_sizes(scope.a, scope.b, compare) for scope in scopes]
    verdicts = [found.verdict for found in sized]
    if all(verdict.answer in _EQUAL for verdict in verdicts):
        return _together(scopes, verdicts)
    if len(scopes) == 1 and scopes[0].is_whole:
        return verdicts[0]
    whole = cut_scope(a, b, rounds=None)
    # Literals outside of what changed are the same in both programs.
    settled = all(found.settled for found in sized)
    return compare_sizes(whole.a, whole.b, compare, settled=settled).verdict


@dataclass(frozen=True)
class Sized:
    """What comparing at smaller sizes gave."""

    verdict: Verdict
    settled: bool = True
    """Whether literals that could stand for extents had no part in it."""


def compare_sizes(a: ModuleOp, b: ModuleOp, compare: Compare, *, settled: bool = False) -> Sized:
    """Compare two programs at smaller sizes, or at their own where those are small.

    `settled` says that no literal can be the reason of a difference.
    """
    if max(work_of(a), work_of(b)) <= SMALL:
        return Sized(compare(a, b))
    verdicts: list[Verdict] = []
    told = True
    for seed in _SEEDS:
        reduced = reduce_sizes(a, b, seed=seed)
        if not reduced.is_smaller:
            return Sized(compare(a, b))
        verdict = _noted(compare(reduced.a, reduced.b), reduced)
        if verdict.answer == "differs" and not settled:
            kept = reduce_sizes(a, b, seed=seed, literals="pin")
            if kept.sizes != reduced.sizes:
                verdict = _noted(compare(kept.a, kept.b), kept)
                told = told and verdict.answer == "differs"
                if verdict.answer == "undecided":
                    verdict = replace(verdict, reason=f"{_LITERALS}: {verdict.reason}")
        if verdict.answer not in _EQUAL:
            return Sized(verdict, told and verdict.answer == "differs")
        verdicts.append(verdict)
    return Sized(_weakest(verdicts), told)


def _noted(verdict: Verdict, reduced: Reduced) -> Verdict:
    sizes = ", ".join(str(size) for size in reduced.sizes if size.before != size.after)
    return replace(verdict, notes=(*verdict.notes, f"at smaller sizes: {sizes}"))


def _weakest(verdicts: Sequence[Verdict]) -> Verdict:
    """The answer that says least, with what all of them noted and left out."""
    weakest = max(verdicts, key=lambda verdict: _EQUAL.index(verdict.answer))
    skipped = {kind: why for verdict in verdicts for kind, why in verdict.skipped.items()}
    notes = tuple(dict.fromkeys(note for verdict in verdicts for note in verdict.notes))
    return replace(weakest, skipped=skipped, notes=notes)


def _together(scopes: Iterable[Scope], verdicts: Sequence[Verdict]) -> Verdict:
    """What follows for the programs when every region agrees."""
    weakest = _weakest(verdicts)
    places = sum(scope.count for scope in scopes)
    if places == 1:
        return weakest
    if len(verdicts) == 1:
        return replace(weakest, reason=f"in {places} places alike, {weakest.reason}")
    reason = f"in {places} places, {len(verdicts)} of them unlike, {weakest.reason}"
    # Sizes of many regions say little.
    return replace(weakest, reason=reason, notes=tuple(n for n in weakest.notes if _is_brief(n)))


def _is_brief(note: str) -> bool:
    return not note.startswith("at smaller sizes")
