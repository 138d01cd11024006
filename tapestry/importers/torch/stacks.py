"""The user's Python line of a node of a graph.

Dynamo keeps the stack of each operation as text, the innermost frame last; gradients know the
stack of the operation that they belong to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import fx

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)

_LIBRARY = re.compile(
    r"/torch/(nn|_refs|_decomp|_functorch|_dynamo|functional|fx)/|<eval_with_key>"
)
"""Frames between the user's line and the operator."""


def line_of_node(node: fx.Node) -> tuple[str, int] | None:
    """File and line, the innermost of a node's stack that are not PyTorch's own."""
    trace = node.meta.get("stack_trace")
    frames = _FRAME.findall(trace) if isinstance(trace, str) else []
    if not frames:
        return None
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line = (own or frames)[-1]
    return file, int(line)
