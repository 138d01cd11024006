"""What is said of a graph that cannot be imported as asked."""

from __future__ import annotations

import difflib

from xdsl.dialects.builtin import LocationAttr

from tapestry.diagnostics import Location, TapestryError
from tapestry.importers.torch.registry import Context
from tapestry.locations import source_locations


class ImportingError(TapestryError):
    """A graph that cannot be imported as asked."""

    kind = "import"


def missing(context: Context, reason: str) -> ImportingError:
    """An operator that cannot be imported, with the metakernels of similar names."""
    base = context.operator.split(".")[1].strip("_")
    near = difflib.get_close_matches(base, context.build.library.names, 3)
    return ImportingError(
        f"{context.operator} cannot be imported: {reason}",
        location=place_of(context.location),
        hint=f"the nearest metakernels are {', '.join(near)}" if near else None,
    )


def place_of(location: LocationAttr) -> Location | None:
    """The first place that a location names."""
    places = source_locations(location)
    return places[0] if places else None
