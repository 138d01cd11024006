"""Monoids of a module: defined once, and several as one.

    loom.monoid @add_max commutative zero [0.0 : f32, 0xFF800000 : f32]
      merge (%a: f32, %b: f32, %c: f32, %d: f32) { addf %a, %c   maximumf %b, %d ... }

folds by `add` and by `max` side by side: its state is both states, which merge apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from tapestry.algebra.literals import number_attr
from tapestry.algebra.monoids import BUILTIN_MONOIDS, Monoid
from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.bodies import inlined, kind


def defined_once(op: Operation, new: loom.MonoidOp, rewriter: PatternRewriter) -> loom.MonoidOp:
    """`new` in the module of `op`, under a name that is free; or the equal one that is there."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None
    defined = [o for o in module.body.block.ops if isinstance(o, loom.MonoidOp)]
    for other in defined:
        if kind(other, without=("sym_name",)) == kind(new, without=("sym_name",)):
            return other
    name = new.sym_name.data
    taken = {other.sym_name.data for other in defined} | set(BUILTIN_MONOIDS)
    free = next(n for n in (name, *(f"{name}_{k}" for k in range(1, len(taken)))) if n not in taken)
    new.sym_name = StringAttr(free)
    new.location = op.location
    first = module.body.block.first_op
    assert first is not None
    rewriter.insert(new, InsertPoint.before(first))
    return new


def product_monoid(name: str, factors: Sequence[Monoid]) -> loom.MonoidOp:
    """The monoid whose state is the states of others, one after the other, merged each by its own.

    It is commutative if all are.
    """
    kinds: list[Attribute] = [kind for factor in factors for kind in factor.state]
    block = Block(arg_types=[*kinds, *kinds])
    merged: list[SSAValue] = []
    for factor in factors:
        at, count = len(merged), len(factor.state)
        both = [*block.args[at : at + count], *block.args[len(kinds) + at :][:count]]
        merged += inlined(factor.merge, both, block)
    block.add_op(loom.YieldOp(*merged))
    numbers = [number for factor in factors for number in factor.zero]
    zeros = [number_attr(number, kind) for number, kind in zip(numbers, kinds, strict=True)]
    commutative = all(factor.commutative for factor in factors)
    return loom.MonoidOp(name, zeros, Region(block), commutative=commutative)
