"""Where an operation of a StableHLO program comes from, as a location of xDSL.

JAX writes the names it traced and the user's Python lines, call site by call site:

    loc("jit(f)/add"(callsite("f"("model.py":4:18 to :21) at "<module>"("run.py":9:2 to :40))))

so an operation that is made of it says `model.py:4:18` in every message. Text that says no
locations has those of the text itself.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
)

from tapestry.locations import fuse_locations, source_locations


class Locations:
    """Converts locations; `name` stands for the text where MLIR says `-`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, LocationAttr] = {}

    def convert(self, location: object, caller: LocationAttr = UNKNOWN_LOC) -> LocationAttr:
        """The location, called from `caller`, which also stands for one without a source place."""
        own = self._converted(location)
        if own == UNKNOWN_LOC:
            return caller
        if caller == UNKNOWN_LOC or source_locations(own):
            return own
        return CallSiteLoc(own, caller)

    def _converted(self, location: Any) -> LocationAttr:
        key = str(location)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._new(location)
        return found

    def _new(self, location: Any) -> LocationAttr:
        match type(location).__name__:
            case "FileLineColLoc":
                file = self._name if location.filename == "-" else str(location.filename)
                line, column = int(location.start_line), int(location.start_col)
                return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
            case "NameLoc":
                inner = self._converted(location.child_loc)
                return NameLoc(StringAttr(str(location.name_str)), inner)
            case "CallSiteLoc":
                callee = self._converted(location.callee)
                caller = self._converted(location.caller)
                return CallSiteLoc(callee, caller)
            case "FusedLoc":
                return reduce(fuse_locations, map(self._converted, location.locations), UNKNOWN_LOC)
            case _:
                return UNKNOWN_LOC
