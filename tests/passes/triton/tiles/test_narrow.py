"""Integers of 64 bits that are computed in 32 where they fit: the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, test
from xdsl.dialects.builtin import i64

from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.tiles.narrow import bounds_after
from tapestry.runtime.executor import NoWatch, find_executor

OPERATIONS = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.RemSIOp: lambda a, b: a % b,
}

intervals = st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(sorted).map(tuple)


@given(
    st.sampled_from([op for op in OPERATIONS if op not in (arith.FloorDivSIOp, arith.RemSIOp)]),
    intervals,
    intervals,
    st.data(),
)
def test_results_are_within_bounds(kind, a, b, data):
    x, y = data.draw(st.integers(*a)), data.draw(st.integers(*b))
    low, high = bounds_after(kind(*test.TestOp(result_types=[i64, i64]).results), a, b)
    assert low <= OPERATIONS[kind](x, y) <= high


@given(
    st.sampled_from([arith.FloorDivSIOp, arith.RemSIOp]), intervals, st.integers(1, 9), st.data()
)
def test_quotients_are_within_bounds(kind, a, by, data):
    a = (abs(a[0]), abs(a[0]) + abs(a[1]))
    x = data.draw(st.integers(*a))
    low, high = bounds_after(kind(*test.TestOp(result_types=[i64, i64]).results), a, (by, by))
    assert low <= OPERATIONS[kind](x, by) <= high


def test_quotients_of_negative_numbers_are_not_bounded():
    op = arith.RemSIOp(*test.TestOp(result_types=[i64, i64]).results)
    assert bounds_after(op, (-1, 5), (8, 8)) is None
    assert bounds_after(op, (0, 5), (0, 8)) is None


def counted(factor: int) -> str:
    """`i * factor - j` at each cell, in 64 bits."""
    kind = "!loom.tensor<[0, 0] : [40, 70], i64>"
    return f"""
    func.func @main() -> {kind} {{
      %y = loom.operation @y over <[0, 0] : [40, 70]> [map, map] outs((i, j) -> (i, j))
             wrap () {{
               %i = loom.index 0 : i64
               %j = loom.index 1 : i64
               %c = arith.constant {factor} : i64
               %p = arith.muli %i, %c : i64
               %r = arith.subi %p, %j : i64
               loom.yield %r : i64 }} : () -> {kind}
      func.return %y : {kind}
    }}"""


# 39 * factor fits in 32 bits, just so or not.
@pytest.mark.parametrize(("factor", "narrow"), [(3, True), (55063683, True), (55063684, False)])
def test_products_are_narrow_where_the_greatest_fits(factor, narrow):
    module = parse_text(counted(factor))
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    # Narrow numbers are converted once, when they are stored.
    assert len(re.findall(r"\.to\(tl\.int64\)", source)) == (1 if narrow else 2)
    (found,) = find_executor("triton").run(parse_text(counted(factor)), {}, NoWatch()).outputs
    i, j = np.indices((40, 70))
    np.testing.assert_array_equal(found, i * factor - j)
