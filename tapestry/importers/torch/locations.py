"""The user's Python line of a node of a graph, as a location of the IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, LocationAttr, StringAttr

from tapestry.importers.torch.stacks import line_of_node

if TYPE_CHECKING:
    from torch import fx


def location_of_node(node: fx.Node) -> LocationAttr:
    """The innermost line of a node's stack that is not PyTorch's own."""
    found = line_of_node(node)
    if found is None:
        return UNKNOWN_LOC
    file, line = found
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1))
