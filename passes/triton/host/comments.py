"""What comments above kernels and launches say: what a kernel computes, and how that is split.

# softmax, model.mlir:12
# index space <[0, 0] : [64, 300]> in shards <grid [[0, 20, 64], [0, 300]]>
"""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr

from tapestry.locations import source_locations
from tapestry.passes.triton.kernels.mapfold import MapFold

_LONGEST = 100


def origin(name: str, location: LocationAttr) -> str:
    """What a kernel computes, and from which lines of the program."""
    places = ", ".join(f"{place.file}:{place.line}" for place in source_locations(location))
    return f"{name}, {places}" if places else name


def shards_comment(fold: MapFold) -> str | None:
    """What the launches are: the index space and how it is cut."""
    if fold.partition is None or not fold.cut:
        return None
    cut = f"index space <{fold.index}> in shards <{fold.partition}>"
    if len(cut) > _LONGEST:
        cut = f"index space <{fold.index}> in {len(fold.shards)} shards"
    return cut
