"""Bodies without the conditions that are known where they run.

    %seen = arith.cmpi sge, %i, %j    %y = arith.select %seen, %x, %lowest

is `%x` in the body of an operation whose points all have `d0 - d1 >= 0`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.passes.loom.derivation.terms import Term, Terms
from tapestry.passes.loom.masks.conditions import Fact
from tapestry.passes.loom.masks.folding import Folding
from tapestry.passes.loom.masks.specials import Nature
from tapestry.passes.loom.rebuilding.bodies import drop_unused
from tapestry.zspace import Range


def settle(block: Block, index: Range, facts: Sequence[Fact], rewriter: PatternRewriter) -> bool:
    """Write what comparisons of coordinates are, and choose where they choose."""
    terms = Terms(index)
    folding = Folding(terms, index, Nature({}), facts)
    values: dict[SSAValue, Term] = {
        argument: Term(argument.type, frozenset()) for argument in block.args
    }
    truths: dict[SSAValue, bool] = {}
    for op in list(block.ops)[:-1]:
        args = [values[operand] for operand in op.operands]
        for result in op.results:
            values[result] = terms.apply(op, args)
        truth = folding.decided(values[op.results[0]])
        if truth is not None:
            truths[op.results[0]] = truth
    if not truths:
        return False
    for value, truth in truths.items():
        assert isinstance(value.owner, Operation)
        rewriter.replace(value.owner, arith.ConstantOp(IntegerAttr(int(truth), i1)))
    for op in list(block.ops):
        known = _chosen(op)
        if known is not None:
            rewriter.replace(op, [], [known])
    drop_unused(block, rewriter)
    return True


def _chosen(op: Operation) -> SSAValue | None:
    """The operand that an operation on truths, or a choice, is; None where it is neither."""
    match op:
        case arith.SelectOp():
            truth = _truth(op.cond)
            return None if truth is None else op.lhs if truth else op.rhs
        case arith.AndIOp() | arith.OrIOp() if op.result.type == i1:
            for known, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                truth = _truth(known)
                if truth is not None:
                    return known if truth == isinstance(op, arith.OrIOp) else other
            return None
        case _:
            return None


def _truth(value: SSAValue) -> bool | None:
    """A truth that is written down."""
    if isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, IntegerAttr):
        return bool(value.owner.value.value.data)
    return None
