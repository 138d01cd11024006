"""Where operations came from, and how a location is read for messages and comments.

Parsed operations carry the place they were written at; a pass gives what it creates the location of
what it replaces, or of everything it joins:

    >>> from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
    >>> a, b = (FileLineColLoc(StringAttr("m.mlir"), IntAttr(n), IntAttr(3)) for n in (4, 7))
    >>> [str(place) for place in source_locations(fuse_locations(a, b))]
    ['m.mlir:4:3', 'm.mlir:7:3']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
)
from xdsl.ir import Attribute, Operation

from tapestry.diagnostics import Location


def source_locations(attribute: Attribute) -> tuple[Location, ...]:
    """The source places that a location names, in order and without repeats."""
    places: dict[Location, None] = {}
    _collect(attribute, places)
    return tuple(places)


def _collect(attribute: Attribute, places: dict[Location, None]) -> None:
    match attribute:
        case FileLineColLoc():
            place = Location(attribute.filename.data, attribute.line.data, attribute.column.data)
            places[place] = None
        case FusedLoc():
            for part in _parts(attribute):
                _collect(part, places)
        case NameLoc():
            _collect(attribute.location, places)
        case CallSiteLoc():
            _collect(attribute.callee, places)
            _collect(attribute.caller, places)
        case _:
            pass


def _parts(fused: FusedLoc) -> Sequence[LocationAttr]:
    return cast(ArrayAttr[LocationAttr], fused.locations).data


def location_of(op: Operation) -> Location | None:
    """The first source place of an operation, None when it has none."""
    places = source_locations(op.location)
    return places[0] if places else None


def nearest_location(op: Operation) -> Location | None:
    """The place of an operation, or of the nearest one around it that has a place."""
    inner: Operation | None = op
    while inner is not None:
        place = location_of(inner)
        if place is not None:
            return place
        inner = inner.parent_op()
    return None


def fuse_locations(*locations: LocationAttr) -> LocationAttr:
    """One location that names all places of the given ones, without repeats."""
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        if isinstance(location, FusedLoc):
            parts.update(dict.fromkeys(_parts(location)))
        elif location != UNKNOWN_LOC:
            parts[location] = None
    if not parts:
        return UNKNOWN_LOC
    if len(parts) == 1:
        return next(iter(parts))
    return FusedLoc(ArrayAttr(parts), NoneAttr())
