"""Whether any cell is not an extremum's zero, asked of the extremum instead of each cell.

    %m = max of %x along j      %any = or of (%x != -inf) along j

`%any` becomes a map: `%m != -inf`. PyTorch guards the softmax of a row that sees nothing so, and a
pass over its scores that carries truths beside numbers is three times as long.
"""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, i1
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.passes.loom.derivation.chain import is_plain_fold
from tapestry.passes.loom.derivation.terms import Term, Terms
from tapestry.passes.loom.masks.specials import number_of
from tapestry.passes.loom.rebuilding.bodies import inlined, reindex
from tapestry.passes.loom.rebuilding.operations import writes_of
from tapestry.zspace import AffineMap

_ZEROS = {"max": -inf, "min": inf}
_EQUAL, _ORDERED_EQUAL, _UNORDERED_UNEQUAL = 0, 1, 13
"""Predicates of integers, and of floats: NaN is unequal to all by both."""


class AskExtremum(RewritePattern):
    """A fold by `or` of whether cells are not an extremum's zero becomes a map of the extremum.

    Legal where the extremum of the same cells, at the same points, is folded before, and stored as
    it is. It is its zero exactly where all cells are: NaN, which is not the zero either, is what it
    is then. Points outside a domain are the zero of both.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name != "or" or op.state_types != (i1,) or not is_plain_fold(op):
            return
        terms = Terms(op.index)
        (asked,) = terms.body(op.wrap_block, [terms.cell(read) for read in op.in_reads])
        cell, zero = _unequal(asked)
        if cell is None:
            return
        users = dict.fromkeys(use.operation for read in op.in_reads for use in read.value.uses)
        for user in users:
            if (
                isinstance(user, loom.OperationOp)
                and _ZEROS.get(user.monoid_name or "") == zero
                and _folds(user, cell, op, terms)
                and user.is_before_in_block(op)
            ):
                self._ask(op, user, zero, rewriter)
                return

    def _ask(
        self,
        op: loom.OperationOp,
        extremum: loom.OperationOp,
        zero: float,
        rewriter: PatternRewriter,
    ) -> None:
        kept = op.kept_dims
        rank, start = op.index.rank, op.index.start
        points = AffineMap.of(
            [[int(dim == old) for dim in kept] for old in range(rank)],
            [0 if dim in kept else start[dim] for dim in range(rank)],
            inputs=len(kept),
        )
        kind = extremum.state_types[0]
        unwrap = op.unwrap_block
        extras = () if unwrap is None else unwrap.args[1:]
        body = Block(arg_types=[kind, *(argument.type for argument in extras)])
        assert isinstance(kind, AnyFloat)
        number = arith.ConstantOp(FloatAttr(zero, kind))
        found = arith.CmpfOp(body.args[0], number, "une")
        body.add_ops([number, found])
        values = [found.result]
        if unwrap is not None:
            reindex(unwrap, points, range(len(kept)), rewriter)
            values = inlined(unwrap, [*values, *body.args[1:]], body)
        body.add_op(loom.YieldOp(*values))
        kinds: list[loom.Iterator] = ["map"] * len(kept)
        new = loom.OperationOp(
            op.label.data,
            op.index.select(kept),
            kinds,
            None,
            [Read(extremum.outs[0], extremum.out_maps[0]), *op.extra_reads],
            writes_of(op),
            Region(body),
        )
        new.location = op.location
        for old, result in zip(op.outs, new.outs, strict=True):
            result.name_hint = old.name_hint
        rewriter.insert(new, InsertPoint.before(op))
        rewriter.replace(op, [], new.outs)


def _folds(op: loom.OperationOp, cell: Term, other: loom.OperationOp, terms: Terms) -> bool:
    """Whether an operation folds a cell at the points of another, and stores what it folded."""
    if not is_plain_fold(op) or op.unwrap_block is not None or op.parent is not other.parent:
        return False
    if (op.index, op.kinds, op.inside) != (other.index, other.kinds, other.inside):
        return False
    args = [terms.cell(read) for read in op.in_reads]
    return terms.body(op.wrap_block, args) == [cell]


def _unequal(term: Term) -> tuple[Term | None, float]:
    """What a truth says not to be a number, and the number; None where it says something else."""
    said = True
    while True:
        constants = [number_of(argument) for argument in term.args]
        places = [place for place, number in enumerate(constants) if number is None]
        if term.op is None or len(term.args) != 2 or len(places) != 1:
            return None, 0.0
        other, number = term.args[places[0]], constants[1 - places[0]]
        assert number is not None
        match term.op:
            case arith.CmpfOp():
                wanted = _UNORDERED_UNEQUAL if said else _ORDERED_EQUAL
                found = term.op.predicate.value.data == wanted
                return (other, number) if found else (None, 0.0)
            case arith.CmpiOp() if other.kind == i1 and term.op.predicate.value.data < 2:
                equal = term.op.predicate.value.data == _EQUAL
                said ^= equal != bool(number)
            case arith.XOrIOp() if other.kind == i1:
                said ^= bool(number)
            case _:
                return None, 0.0
        term = other
