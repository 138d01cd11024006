"""What is held at once fits the registers of most processors."""

from __future__ import annotations

import re

import pytest

from tapestry.codegen.loops import Folded, Graph, Layout, loop_text
from tapestry.codegen.loops.holding import fitting
from tapestry.codegen.loops.vectors import BYTES

ONE = Layout((True,), ((True,), (False,)), (True, True))
"""A fold of an only axis."""

ROWS = Layout((False, True), ((True, True), (True, False)), (True, True))
"""A fold of each row."""

VECTOR = re.compile(r"alloca <(\d+) x (\w+)>")


@pytest.mark.parametrize("layout", [ONE, ROWS], ids=["one", "rows"])
@pytest.mark.parametrize(
    ("primitive", "kind"),
    [
        ("arith.addf", "float"),
        ("arith.addf", "double"),
        ("arith.addi", "i64"),
        ("arith.maximumf", "float"),
        ("arith.minimumf", "double"),
    ],
)
def test_four_shares_fill_the_registers_at_most(primitive: str, kind: str, layout: Layout) -> None:
    text = loop_text(Graph((kind,), (), (), (), (Folded(0, primitive, 0),)), layout)
    held = [int(lanes) * BYTES[kind] for lanes, kind in VECTOR.findall(text)]
    parts = 3 if primitive.startswith("arith.m") else 1
    blocks = 4 if primitive == "arith.addf" else 1  # what blocks fold to is not in the inner loop
    shares = 4 * blocks * parts
    assert len(held) >= shares
    assert sum(held) / len(held) * 4 * parts <= 16 * 32
    assert min(held) >= 32  # as much as one has


def test_fewer_shares_where_a_part_of_each_would_not_fill_a_register() -> None:
    folds = (Folded(0, "arith.maximumf", 0), Folded(0, "arith.minimumf", 0))
    rows = Layout((False, True), ((True, True), (True, False), (True, False)), (True,) * 3)
    assert fitting(Graph(("float",), (), (), (), folds[:1]), 4) == 4
    assert fitting(Graph(("float",), (), (), (), folds), 4) == 2
    assert fitting(Graph(("float",), (), (), (0,)), 4) == 4
    text = loop_text(Graph(("float",), (), (), (), folds), rows)
    assert min(int(lanes) * BYTES[kind] for lanes, kind in VECTOR.findall(text)) >= 32
