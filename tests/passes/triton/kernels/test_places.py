"""Places that folds keep in 32 bits: the same places, and only where they are but chosen."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

CHOSEN = "%at = arith.select %first, %i, %j : i64"


def last(index: str, inside: str, at: str = CHOSEN) -> str:
    """The place of the greatest cell of each row, of equal ones the last."""
    return f"""
    !x = !loom.tensor<[0, 0] : [8, 70], f32>
    !y = !loom.tensor<[0] : [8], i64>
    loom.monoid @last commutative zero [0xff800000 : f32, 0 : i64]
        merge (%a: f32, %i: i64, %b: f32, %j: i64) {{
      %greater = arith.cmpf ogt, %a, %b : f32
      %equal = arith.cmpf oeq, %a, %b : f32
      %later = arith.cmpi sgt, %i, %j : i64
      %tie = arith.andi %equal, %later : i1
      %first = arith.ori %greater, %tie : i1
      %m = arith.select %first, %a, %b : f32
      {at}
      loom.yield %m, %at : f32, i64
    }}
    func.func @main(%x: !x) -> !y {{
      %p = loom.operation @p over <[0, 0] : [8, 70]> [map, fold] by @last
             ins(%x : (i, k) -> (i, k)) outs((i) -> (i)) {inside}
             wrap (%a: f32) {{ {index}  loom.yield %a, %k : f32, i64 }}
             unwrap (%g: f32, %at: i64) {{ loom.yield %at : i64 }} : (!x) -> !y
      func.return %p : !y
    }}"""


PLACE = "%k = loom.index 1 : i64"
TWICE = "%d = loom.index 1 : i64  %two = arith.constant 2 : i64  %k = arith.muli %d, %two : i64"


@pytest.mark.parametrize(
    ("text", "narrow"),
    [
        (last(PLACE, ""), True),
        # What is computed of a place may be any number.
        (last(TWICE, ""), False),
        # No point may be left, and then the zero is.
        (last(PLACE, "domain(d1 - d0 >= 0)"), False),
        (last(PLACE, "", "%at = arith.addi %i, %j : i64"), False),
    ],
)
def test_places_are_narrow_where_they_are_only_chosen(text: str, narrow: bool) -> None:
    lowered = parse_text(text)
    run_pipeline(lowered, "loom-to-triton{tile=64}")
    source = print_module(lowered).source
    assert ("0, tl.int32)" in source) == narrow
    assert ("0, tl.int64)" in source) != narrow
    if "addi" in text:
        return
    x = np.random.default_rng(0).integers(0, 9, (8, 70)).astype(np.float32)
    (found,) = TritonExecutor(tile=64).run(parse_text(text), {"x": x}, NoWatch()).outputs
    for row, place in enumerate(found):
        first = row if "domain" in text else 0
        cells = x[row, first:]
        wanted = first + len(cells) - 1 - int(np.argmax(cells[::-1]))
        assert place == wanted * (2 if "two" in text else 1)
