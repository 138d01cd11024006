"""How the arrays of loops are seen to lie, for tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tapestry.codegen.loops import Graph, Layout
from tapestry.runtime.prepared.loops import axes
from tapestry.runtime.prepared.loops import loop as loops


def noted(monkeypatch: pytest.MonkeyPatch, of: Callable[[Layout], int]) -> list[int]:
    """What is asked of each layout that is compiled from now on; few numbers are many."""
    found: list[int] = []
    written = loops.loop_text

    def kept(graph: Graph, layout: Layout) -> str:
        found.append(of(layout))
        return written(graph, layout)

    monkeypatch.setattr(axes, "_IN_ROWS", 1)
    monkeypatch.setattr(loops, "loop_text", kept)
    return found
