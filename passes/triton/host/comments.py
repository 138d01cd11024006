"""What comments above kernels and launches say: what a kernel computes, and how that is split.

# softmax, model.mlir:12, 14
# index space <[0, 0] : [64, 300]> in shards <grid [[0, 20, 64], [0, 300]]>
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import LocationAttr

from tapestry.locations import source_locations
from tapestry.passes.triton.kernels.mapfold import MapFold

APART_FROM: Final = "apart from @"
"""How the comment begins that says why an operation is not in a group's kernel."""

_LONGEST = 100


def origin(name: str, location: LocationAttr, within: LocationAttr | None = None) -> str:
    """What a kernel computes, and from which lines of the program, file by file.

    Of a member of a group, the lines are left out where they are those of all that it is `within`.
    """
    lines = _lines(location)
    if within is not None and lines == _lines(within):
        return name
    return ", ".join([name, *(f"{file}:{', '.join(map(str, at))}" for file, at in lines.items())])


def _lines(location: LocationAttr) -> dict[str, list[int]]:
    """The lines that a location names, by file."""
    found: dict[str, set[int]] = {}
    for place in source_locations(location):
        found.setdefault(place.file, set()).add(place.line)
    return {file: sorted(lines) for file, lines in found.items()}


def shards_comment(fold: MapFold) -> str | None:
    """What the launches are: the index space and how it is cut."""
    if fold.partition is None or not fold.cut:
        return None
    cut = f"index space <{fold.index}> in shards <{fold.partition}>"
    if len(cut) > _LONGEST:
        cut = f"index space <{fold.index}> in {len(fold.shards)} shards"
    return cut
