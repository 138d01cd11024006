"""Whether what a mask lets through is far above the number that it puts elsewhere.

    select(i >= j, 0.125 * (sum of q * k), -2.38e38)

JAX masks with -0.7 times the greatest float32, others with the least one. Beside scores, such a
number is as good as -inf: `exp(-2.38e38 - m)` is 0 for the maximum m of any of them. But only
beside such scores: what a row sees may itself be masked, by cells that are known when the program
runs, with the same number or with -inf. If all of it is, then what the row's mask puts elsewhere
counts, and the mean is over all. So what is seen has to be computed of products alone, of which it
is taken that they stay far above -1e38, as it is taken that cells are finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xdsl.dialects import arith, math

from tapestry.passes.loom.derivation.terms import Term
from tapestry.passes.loom.masks.specials import number_of

LEAST: Final = -1e38
"""Numbers not above this are masks: nothing else is computed that is as low."""

_MODERATE = 1e30
"""Numbers of formulas are not beyond this."""

_ALIKE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp)
_BOUNDED = (math.TanhOp, math.SinOp, math.CosOp, math.ErfOp)


def is_moderate(term: Term, is_sum_of_products: Callable[[str], bool]) -> bool:
    """Whether a float is computed of sums of products, moderate numbers and coordinates alone.

    `is_sum_of_products` says it of folds by name. Cells are not: they may be masks.
    """
    number = number_of(term)
    if number is not None:
        return abs(number) <= _MODERATE
    if term.result is not None:
        return is_sum_of_products(term.result)
    match term.op:
        case arith.SIToFPOp():
            return not term.leaves() and not term.results()
        case arith.SelectOp():
            return all(is_moderate(arg, is_sum_of_products) for arg in term.args[1:])
        case op if isinstance(op, _BOUNDED):
            return True
        case op if isinstance(op, _ALIKE):
            return all(is_moderate(arg, is_sum_of_products) for arg in term.args)
        case _:
            return False
