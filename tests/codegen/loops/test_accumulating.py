"""What is said of folds in memory: the largest of floats as bits, until it is written."""

from __future__ import annotations

import pytest

from tapestry.codegen.loops import Folded, Graph, Layout, loop_text

ROWS = Layout((True, False), ((True, True), (False, True)), (True, True), (), ())
"""A fold of all rows of an array into one."""


@pytest.mark.parametrize("primitive", ["arith.maximumf", "arith.minimumf"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_largest_in_memory_is_in_parts_too(primitive: str, kind: str) -> None:
    """Of bits, whose order says all: the rule for NaN and zeros is many instructions.

    Processors have no such order of 64 bits: it is numbers, what is missing and signs.
    """
    zero = float("-inf" if primitive == "arith.maximumf" else "inf")
    text = loop_text(Graph((kind,), (), (), (), (Folded(0, primitive, zero),)), ROWS)
    by_bits = kind == "float"
    assert ("llvm.smax" in text) == by_bits
    assert ("fcmp" not in text) == by_bits
    assert ("fcmp uno" in text) != by_bits
    assert "llvm.maximum" not in text
    assert "llvm.minimum" not in text
