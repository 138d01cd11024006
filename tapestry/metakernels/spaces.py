"""Index spaces: extents and labels from `index`, `scan` and `fold`, and what the labels stand for.

    index: "[$pre..., y = 2 * $n]"          # labels @pre (several coordinates) and @y (one)
    fold:  {k: {extent: $k, monoid: add}}   # label @k; fold dimensions follow the map dimensions

Inputs and `wrap` see all coordinates, outputs and `unwrap` those that are not folded.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tapestry.metakernels.checking import labels
from tapestry.metakernels.errors import KindMismatchError, LimitError
from tapestry.metakernels.evaluation import Scope, evaluate, evaluate_elements
from tapestry.metakernels.expansion import Space
from tapestry.metakernels.syntax import ListExpr
from tapestry.metakernels.templates import Template
from tapestry.metakernels.values import Affine, Names, Value, describe, integer

MAX_RANK: Final = 32
"""Dimensions of an index space."""


class _Run(NamedTuple):
    """Consecutive dimensions of one label; `several` when the label stands for a list."""

    label: str | None
    extents: tuple[int, ...]
    several: bool


def build_space(template: Template, names: Names) -> tuple[Space, Scope, Scope]:
    """The index space of `template`, the scope of all its dimensions and that of the kept ones."""
    scope = Scope(names)
    mapped = _map_runs(template, scope)
    kept = [*mapped, *_scan_runs(template, scope)]
    folded = _fold_runs(template, scope)
    maps, count = (sum(len(run.extents) for run in runs) for runs in (mapped, kept))
    extents = tuple(extent for run in (*kept, *folded) for extent in run.extents)
    assert template.index is not None
    with template.index.explain("index"):
        if len(extents) > MAX_RANK:
            raise LimitError(f"the index has {len(extents)} dimensions, more than {MAX_RANK}")
    dims = tuple(run.label for run in (*kept, *folded) for _ in run.extents)
    return (
        Space(extents, dims, maps, count - maps),
        Scope(names, _coordinates([*kept, *folded], len(extents)), extents),
        Scope(names, _coordinates(kept, count), extents[:count]),
    )


def _map_runs(template: Template, scope: Scope) -> list[_Run]:
    runs: list[_Run] = []
    source = template.index
    assert source is not None
    with source.explain("index"):
        for element in source.tree.elements:
            values = tuple(value for value, _ in evaluate_elements(ListExpr((element,)), scope))
            found = labels([element])
            runs.append(_Run(found[0] if found else None, _extents(values), element.spread))
    return runs


def _scan_runs(template: Template, scope: Scope) -> list[_Run]:
    runs: list[_Run] = []
    for scan in template.scans:
        with scan.extent.explain(f"scan.{scan.label}.extent"):
            extents = _extents((evaluate(scan.extent.tree, scope),))
            runs.append(_Run(scan.label, extents, several=False))
    return runs


def _fold_runs(template: Template, scope: Scope) -> list[_Run]:
    runs: list[_Run] = []
    for fold in template.folds:
        with fold.extent.explain(f"fold.{fold.label}.extent"):
            value = evaluate(fold.extent.tree, scope)
            several = isinstance(value, tuple)
            values = value if isinstance(value, tuple) else (value,)
            runs.append(_Run(fold.label, _extents(values), several))
    return runs


def _extents(values: tuple[Value, ...]) -> tuple[int, ...]:
    for value in values:
        if isinstance(value, tuple):
            raise KindMismatchError(
                f"an extent is the list {describe(value)}", hint="splice it: write `...` after it"
            )
        if integer(value, "an extent") < 0:
            raise KindMismatchError(f"an extent is negative: {describe(value)}")
    return tuple(integer(value, "an extent") for value in values)


def _coordinates(runs: list[_Run], rank: int) -> dict[str, Value]:
    """What each label stands for: the coordinate of its dimension, or a list of them."""
    coordinates: dict[str, Value] = {}
    first = 0
    for run in runs:
        dims = range(first, first + len(run.extents))
        units = tuple(Affine(tuple(int(dim == d) for d in range(rank)), 0) for dim in dims)
        if run.label is not None:
            coordinates[run.label] = units if run.several else units[0]
        first += len(run.extents)
    return coordinates
