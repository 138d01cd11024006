"""What operations note in their attributes, and what one notes that was several.

{assumes = ["finite(v)"]}, {assumes = ["finite(w)"]}  ->  {assumes = ["finite(v)", "finite(w)"]}
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from tapestry.dialects import loom

ASSUMES = "assumes"
"""The attribute in which an operation records what its domain takes for granted."""


def joined_attributes(first: loom.OperationOp, second: loom.OperationOp) -> dict[str, Attribute]:
    """The attributes of two operations made one: it assumes what both do. The second leads."""
    found = [op.attributes.get(ASSUMES) for op in (first, second)]
    lists = [cast("ArrayAttr[Attribute]", one) for one in found if isinstance(one, ArrayAttr)]
    notes = dict.fromkeys(note for one in lists for note in one.data)
    assumed: dict[str, Attribute] = {ASSUMES: ArrayAttr(tuple(notes))} if notes else {}
    return first.attributes | second.attributes | assumed
