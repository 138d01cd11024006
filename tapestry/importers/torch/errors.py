"""What is said of a graph that cannot be imported as asked."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tapestry.diagnostics import Location, TapestryError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr

    from tapestry.importers.torch.registry import Context


class ImportingError(TapestryError):
    """A graph that cannot be imported as asked."""

    kind = "import"


class Unsupported(Exception):  # noqa: N818 (it is no mistake: the operator stays PyTorch's)
    """Why an operator cannot be expressed with these arguments."""


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
    from tapestry.locations import source_locations  # which knows IR

    places = source_locations(location)
    return places[0] if places else None
