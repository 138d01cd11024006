"""The user's Python line of a node of a graph, as a location of the IR.

Dynamo keeps the stack of each operation as text, the innermost frame last; gradients know the
stack of the operation that they belong to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, LocationAttr, StringAttr

if TYPE_CHECKING:
    from torch import fx

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)

_LIBRARY = re.compile(
    r"/torch/(nn|_refs|_decomp|_functorch|_dynamo|functional|fx)/|<eval_with_key>"
)
"""Frames between the user's line and the operator."""


def location_of_node(node: fx.Node) -> LocationAttr:
    """The innermost line of a node's stack that is not PyTorch's own."""
    trace = node.meta.get("stack_trace")
    frames = _FRAME.findall(trace) if isinstance(trace, str) else []
    if not frames:
        return UNKNOWN_LOC
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line = (own or frames)[-1]
    return FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(1))
