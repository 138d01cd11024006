"""What a verdict says to people.

equal (numeric): generic, wide, huge, small, zero, tiny inputs, 3 seeds each
differ: output 0 at [1, 2] is 3.0 in the first, 2.5 in the second (tolerance 1e-15)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapestry.proving.counterexample import Counterexample
from tapestry.proving.equality import Verdict

_SHOWN = 8
"""Cells of an input that are written out."""


def describe(verdict: Verdict) -> list[str]:
    """The verdict, line by line."""
    match verdict.answer:
        case "differs":
            lines = [f"differ: {verdict.reason}"]
            if verdict.counterexample is not None:
                lines += describe_counterexample(verdict.counterexample)
        case "certified":
            lines = [f"equal (certified): {verdict.reason}"]
        case "numeric":
            lines = [f"equal (numeric): {verdict.reason}"]
        case _:
            lines = [f"undecided: {verdict.reason}"]
    lines += [f"  {kind} inputs: {why}" for kind, why in verdict.skipped.items()]
    return lines + [f"  {note}" for note in verdict.notes]


def describe_counterexample(found: Counterexample) -> list[str]:
    """Where and on what inputs the programs part."""
    d = found.difference
    lines = [
        f"  output {d.output} at {list(d.cell)}: {_number(d.first)} in the first, "
        f"{_number(d.second)} in the second"
        + (f", tolerance {d.tolerance:.1e}" if d.tolerance else "")
        + f" ({d.count} of {d.size} cells differ)",
        f"  class {found.kind}, seed {found.seed}, sizes {found.sizes or 'none'}",
    ]
    if found.where:
        lines.append(f"  they part at {found.where}")
    for name, draw in zip(found.names, found.inputs, strict=True):
        lines.append(f"  {name}: {_cells(draw.as_argument())}")
    if not found.exact:
        lines.append("  these inputs are shown rounded: only with all their 60 bits do they part")
    return lines


def _number(value: Any) -> str:
    """All digits that tell a number apart."""
    return str(value)


def _cells(array: np.ndarray[Any, Any]) -> str:
    places = np.argwhere(array != 0)
    if not array.ndim:
        return str(array.item())
    if not len(places):
        return "all zero"
    shown = [f"{place.tolist()} = {array[tuple(place)].item()!r}" for place in places[:_SHOWN]]
    rest = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    zeros = ", zero elsewhere" if len(places) < array.size else ""
    return ", ".join(shown) + rest + zeros
