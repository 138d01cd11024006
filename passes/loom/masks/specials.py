"""What floats may be besides finite: infinite, or no number.

    select(m == -inf, 0, m)        where m is a maximum, -inf or finite:        is finite

Whatever an expression is computed of is taken to be finite, but for numbers that it holds and for
folds whose zero is not.
"""

from __future__ import annotations

from math import inf, isfinite, isnan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from tapestry.passes.loom.derivation.terms import Term

NAN = "nan"
"""Stands for NaN, which is not equal to itself."""

Special = float | str
Specials = frozenset[Special]

_NONE: Specials = frozenset()
_ALL: Specials = frozenset((inf, -inf, NAN))
_ONE_OF = (arith.ExtFOp, arith.TruncFOp, arith.MaximumfOp, arith.MinimumfOp, arith.SelectOp)
_EQUAL = 1
"""The predicate `oeq`."""


class Nature:
    """Says of terms what they may be; `of_leaves` says it of those that are not finite."""

    def __init__(self, of_leaves: dict[Term, Specials]) -> None:
        self._found: dict[Term, Specials] = dict(of_leaves)

    def __call__(self, term: Term) -> Specials:
        """What a float may be besides finite."""
        if term not in self._found:
            self._found[term] = self._specials(term)
        return self._found[term]

    def _specials(self, term: Term) -> Specials:
        number = number_of(term)
        if number is not None:
            return special(number)
        args = [self(arg) for arg in term.args]
        below = _NONE.union(*args)
        match term.op:
            case arith.SelectOp():
                return args[1] | (args[2] - _excluded(term))
            case arith.NegfOp():
                return _negative(below)
            case arith.AddfOp() | arith.SubfOp():
                right = args[1] if isinstance(term.op, arith.AddfOp) else _negative(args[1])
                lost = any((a, b) in ((inf, -inf), (-inf, inf)) for a in args[0] for b in right)
                return args[0] | right | ({NAN} if lost else _NONE)
            case math.ExpOp() | math.Exp2Op():
                return below - {-inf}
            case _:
                keeps = not below or isinstance(term.op, _ONE_OF)
                return below if keeps else _ALL


def special(number: float) -> Specials:
    """A number, if it is not finite."""
    return _NONE if isfinite(number) else frozenset((NAN if isnan(number) else number,))


def number_of(term: Term) -> float | None:
    """The number that a term is, None where it is none."""
    if not isinstance(term.op, arith.ConstantOp):
        return None
    held = term.op.value
    return held.value.data if isinstance(held, FloatAttr | IntegerAttr) else None


def _negative(specials: Specials) -> Specials:
    return frozenset(-s if isinstance(s, float) else s for s in specials)


def _excluded(choice: Term) -> Specials:
    """What the second of two values is not, because then the first is chosen."""
    condition, _, other = choice.args
    if not isinstance(condition.op, arith.CmpfOp) or condition.op.predicate.value.data != _EQUAL:
        return _NONE
    numbers = [number_of(arg) for arg in condition.args if arg is not other]
    return special(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else _NONE
