"""Scalar expressions simplified where some conditions are known, and what that takes for granted.

    select(i >= j, x, -inf)         where i >= j fails          is   -inf
    exp(-inf - m) * v               for finite m and v          is   0

An operation on numbers is computed by `tapestry.algebra.scalars`, as executors do. Rules that need
an operand to be finite take it that what is read and what is folded is finite, and note of what; so
do those that need a divisor not to be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Attribute

from tapestry.algebra.literals import number_attr
from tapestry.algebra.scalars import compute, constant, has_meaning
from tapestry.passes.loom.derivation.terms import Term, Terms
from tapestry.passes.loom.masks.conditions import Fact, Row, condition_rows
from tapestry.passes.loom.masks.specials import Nature, number_of
from tapestry.zspace import Range

_EQUALITY = {1: True, 13: False}
"""The predicates `oeq` and `une`, and whether they hold of what is equal."""

Numbers = Sequence["float | None"]
"""What the operands of an operation are, None for what is no number."""


class Folding:
    """Simplifies terms over an index space, given some facts about its points.

    `finite` collects the leaves that are taken to be finite, cells and results of folds, `nonzero`
    those that are taken not to be zero. Numbers not above the `lowest` are taken for -inf.
    """

    def __init__(
        self,
        terms: Terms,
        index: Range,
        nature: Nature,
        facts: Sequence[Fact] = (),
        lowest: float = -inf,
    ) -> None:
        self.finite: set[Term] = set()
        self.nonzero: set[Term] = set()
        self._terms = terms
        self._index = index
        self._nature = nature
        self._facts = facts
        self._lowest = lowest
        self._known: dict[Term, Term] = {}

    def __call__(self, term: Term) -> Term:
        """The term as simple as it gets."""
        stack = [term]
        while stack:
            top = stack[-1]
            missing = [arg for arg in top.args if arg not in self._known]
            if top not in self._known and missing:
                stack += missing
                continue
            stack.pop()
            if top not in self._known:
                self._known[top] = self._folded(top)
        return self._known[term]

    def number(self, value: float, kind: Attribute) -> Term:
        """A number as a term."""
        attribute = number_attr(value, kind)
        assert not isinstance(attribute, ComplexNumberAttr)
        return self._terms.apply(arith.ConstantOp(attribute), [])

    def decided(self, term: Term) -> bool | None:
        """What a comparison of coordinates is by the facts, if that is known."""
        found = condition_rows(term, self._index)
        if found is None:
            return None
        rows, together = found
        verdicts = [self._holds(row) for row in rows]
        if all(verdicts):
            return together
        return not together if False in verdicts else None

    def _holds(self, row: Row) -> bool | None:
        low, high = row.bounds(self._index)
        if low >= 0 or high < 0:
            return low >= 0
        verdicts = (fact.decides(row) for fact in self._facts)
        return next((verdict for verdict in verdicts if verdict is not None), None)

    def _folded(self, term: Term) -> Term:
        number = number_of(term)
        if isinstance(term.kind, AnyFloat) and number is not None and number <= self._lowest:
            return self.number(-inf, term.kind)
        if term.op is None or not term.args:
            return term
        decided = self.decided(term)
        if decided is not None:
            return self.number(decided, i1)
        new = self._terms.apply(term.op, [self._known[arg] for arg in term.args])
        assert new.op is not None
        numbers = [number_of(arg) for arg in new.args]
        if has_meaning(new.op) and None not in numbers:
            pairs = zip(numbers, new.args, strict=True)
            cells = [constant(n, arg.kind) for n, arg in pairs if n is not None]
            return self.number(compute(new.op, cells).item(), new.kind)
        return self._simplified(new, numbers)

    def _simplified(self, term: Term, numbers: Numbers) -> Term:
        """An operation of which some operands are numbers, simpler where a rule says so."""
        match term.op:
            case arith.SelectOp():
                _, then, other = term.args
                if then is other:
                    return then
                return term if numbers[0] is None else then if numbers[0] else other
            case arith.AndIOp() | arith.OrIOp() if term.kind == i1:
                return self._connected(term, numbers, isinstance(term.op, arith.OrIOp))
            case arith.MaximumfOp() | arith.MinimumfOp():
                zero = -inf if isinstance(term.op, arith.MaximumfOp) else inf
                kept = [a for a, n in zip(term.args, numbers, strict=True) if n != zero]
                return kept[0] if len(kept) == 1 else term
            case arith.AddfOp() | arith.SubfOp():
                return self._sum(term, numbers)
            case arith.MulfOp():
                return self._product(term, numbers)
            case arith.DivfOp() if numbers[0] == 0:
                return self._quotient(term)
            case arith.CmpfOp() if term.op.predicate.value.data in _EQUALITY:
                return self._compared(term, numbers)
            case _:
                return term

    def _connected(self, term: Term, numbers: Numbers, top: bool) -> Term:
        """`and` or `or` of truths, one of which may be known; `top` is the one that decides."""
        for place, number in enumerate(numbers):
            if number is not None:
                return self.number(top, i1) if bool(number) == top else term.args[1 - place]
        return term

    def _sum(self, term: Term, numbers: Numbers) -> Term:
        """What is infinite stays so if nothing is added that takes it back."""
        for place, number in enumerate(numbers):
            if number in (inf, -inf):
                minus = isinstance(term.op, arith.SubfOp)
                total = -number if minus and place == 1 else number
                other = term.args[1 - place]
                harmless = -total if minus and place == 0 else total
                if self._nature(other) <= {harmless}:
                    self._note(other)
                    return self.number(total, term.kind)
        return term

    def _product(self, term: Term, numbers: Numbers) -> Term:
        """Zero times what is finite is zero, its sign apart."""
        for place, number in enumerate(numbers):
            other = term.args[1 - place]
            if number == 0 and not self._nature(other):
                self._note(other)
                return self.number(0.0, term.kind)
        return term

    def _quotient(self, term: Term) -> Term:
        """Zero divided by what a fold gives, which is taken not to be zero."""
        divisor = term.args[1]
        if divisor.op is not None or self._nature(divisor):
            return term
        self._note(divisor)
        self.nonzero.add(divisor)
        return self.number(0.0, term.kind)

    def _compared(self, term: Term, numbers: Numbers) -> Term:
        """Whether something is infinite that cannot be."""
        assert isinstance(term.op, arith.CmpfOp)
        for place, number in enumerate(numbers):
            other = term.args[1 - place]
            if number in (inf, -inf) and not self._nature(other):
                self._note(other)
                return self.number(not _EQUALITY[term.op.predicate.value.data], i1)
        return term

    def _note(self, term: Term) -> None:
        below = term.below()
        self.finite |= {t for t in below if t.op is None and isinstance(t.kind, AnyFloat)}
