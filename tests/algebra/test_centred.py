"""Merges of means move a mean to the merged one: sums of squares about it are moved parts."""

from __future__ import annotations

from xdsl.dialects import arith

from tapestry.algebra.centred import centred
from tapestry.algebra.monoids import monoid_of
from tapestry.algebra.moved_parts import find_moved_parts
from tapestry.dialects import loom
from tapestry.frontend import parse_text

MERGE = """
loom.monoid @moments commutative zero [0.0 : f32, 0.0 : f32, 0.0 : f32]
  merge (%a: f32, %na: f32, %sa: f32, %b: f32, %nb: f32, %sb: f32) {{
    %t = arith.addf %a, %b : f32
    %n = arith.addf %na, %nb : f32
    %ma = arith.divf %a, %na : f32
    %mb = arith.divf %b, %nb : f32
    %d = arith.subf %ma, %mb : f32
    %share = arith.divf {share}, %n : f32
    %x = arith.mulf %d, %share : f32
    %xn = arith.mulf %na, %x : f32
    %xs = arith.mulf %xn, %x : f32
    %first = arith.addf %sa, %xs : f32
    %e = arith.subf %mb, %ma : f32
    %rest = arith.divf {rest}, %n : f32
    %y = arith.mulf %e, %rest : f32
    %yn = arith.mulf %nb, %y : f32
    %ys = arith.mulf %yn, %y : f32
    %second = arith.addf %sb, %ys : f32
    %s = arith.addf %first, %second : f32
    loom.yield %t, %n, %s : f32, f32, f32
  }}
!x = !loom.tensor<[0] : [8], f32>
!y = !loom.tensor<[] : [], f32>
func.func @main(%x: !x) -> !y {{
  %y = loom.operation @f over <[0] : [8]> [fold] by @moments ins(%x : (d0) -> (d0)) outs(() -> ())
    wrap (%v: f32) {{
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      loom.yield %v, %one, %zero : f32, f32, f32
    }}
    unwrap (%t: f32, %n: f32, %s: f32) {{ loom.yield %s : f32 }} : (!x) -> !y
  func.return %y : !y
}}
"""


def moments(share, rest):
    module = parse_text(MERGE.format(share=share, rest=rest))
    (op,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    return monoid_of(op)


def test_squares_about_a_mean_are_moved():
    monoid = moments("%nb", "%na")
    assert find_moved_parts(monoid) is None
    found = find_moved_parts(centred(monoid))
    assert found is not None
    assert [*found.plain] == [0, 1]
    kinds = [type(op) for op in found.moved[2].ops]
    # Each distance is the own mean less the merged one.
    assert kinds.count(arith.SubfOp) == 1
    assert kinds.count(arith.DivfOp) == 2


def test_other_products_stay():
    monoid = moments("%na", "%nb")
    assert find_moved_parts(centred(monoid)) is None
