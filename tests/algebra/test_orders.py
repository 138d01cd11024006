"""Parts of a state are seen to be maxima or minima where the merge says so, and nowhere else."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Region

from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import Monoid, builtin_monoid, monoid_from
from tapestry.algebra.orders import chosen_by_order
from tapestry.dialects import loom


@pytest.mark.parametrize("kind", [f32, f64, bf16, i32, i64, i1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_values_of_extremes(name: str, kind: Attribute) -> None:
    monoid = builtin_monoid(name, (kind, i64))
    assert monoid is not None
    single = chosen_by_order(monoid, 0)
    assert single is builtin_monoid(name.removeprefix("arg"), (kind,))
    assert chosen_by_order(monoid, 1) is None  # positions depend on values


def _monoid(predicate: str, *, kind: Attribute = f32, zero: float = float("-inf")) -> Monoid:
    """The first value if it compares so with the second, or if its position is larger."""
    block = Block(arg_types=[kind, i64, kind, i64])
    a, i, b, j = block.args
    wins = (arith.CmpfOp if kind == f32 else arith.CmpiOp)(a, b, predicate)
    later = arith.CmpiOp(i, j, "sgt")
    tie = arith.CmpfOp(a, b, "ueq") if kind == f32 else arith.CmpiOp(a, b, "eq")
    either = arith.AndIOp(tie.result, later.result)
    take = arith.OrIOp(wins.result, either.result)
    value = arith.SelectOp(take.result, a, b)
    position = arith.SelectOp(take.result, i, j)
    block.add_ops([wins, later, tie, either, take, value, position])
    block.add_op(loom.YieldOp(value, position))
    zeros = [number_attr(zero, kind), number_attr(0, i64)]
    return monoid_from(loom.MonoidOp("own", zeros, Region(block), commutative=True))


def test_what_is_no_maximum() -> None:
    low = -(1 << 31)
    # A NaN of the second is lost by a comparison that is false beside it only on the one side.
    assert chosen_by_order(_monoid("ogt"), 0) is None
    # Of values that do not compare, the position decides: a NaN may be lost.
    assert chosen_by_order(_monoid("ugt"), 0) is None
    # The zero is another one's.
    assert chosen_by_order(_monoid("sgt", kind=i32, zero=0), 0) is None
    # -1 is larger than 1 by an unsigned comparison.
    assert chosen_by_order(_monoid("ugt", kind=i32, zero=low), 0) is None
    found = chosen_by_order(_monoid("sgt", kind=i32, zero=low), 0)
    assert found is not None
    assert found.name == "max"


def test_sums_are_not_chosen() -> None:
    monoid = builtin_monoid("add", (f32,))
    assert monoid is not None
    assert chosen_by_order(monoid, 0) is None
