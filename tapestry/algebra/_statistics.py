"""The built-in monoids whose state is a statistic, as IR over a float type `T`.

`logsumexp` keeps the largest value and the sum of exponentials relative to it: wrap yields
`(x, 1)`, unwrap `m + log(s)`. `welford` keeps count, mean and the sum of squared deviations: wrap
yields `(1, x, 0)`; its merge is Chan, Golub and LeVeque, "Updating formulae and a pairwise
algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.math import Math
from xdsl.ir import Attribute
from xdsl.parser import Parser

from tapestry.dialects import loom

STATISTICS = {
    "logsumexp": (
        2,
        """
loom.monoid @logsumexp commutative zero [NEGATIVE_INFINITY : T, 0.0 : T]
    merge (%m1: T, %s1: T, %m2: T, %s2: T) {
  %m = arith.maximumf %m1, %m2 : T
  %low = arith.constant NEGATIVE_INFINITY : T
  %size = math.absf %m : T
  %top = arith.negf %low : T
  %none = arith.cmpf oeq, %size, %top : T
  %zero = arith.constant 0.0 : T
  %ref = arith.select %none, %zero, %m : T    // inf - inf must not appear
  %d1 = arith.subf %m1, %ref : T
  %e1 = math.exp %d1 : T
  %t1 = arith.mulf %s1, %e1 : T
  %d2 = arith.subf %m2, %ref : T
  %e2 = math.exp %d2 : T
  %t2 = arith.mulf %s2, %e2 : T
  %s = arith.addf %t1, %t2 : T
  loom.yield %m, %s : T, T
}
""",
    ),
    "welford": (
        3,
        """
loom.monoid @welford commutative zero [0.0 : T, 0.0 : T, 0.0 : T]
    merge (%n1: T, %mean1: T, %q1: T, %n2: T, %mean2: T, %q2: T) {
  %n = arith.addf %n1, %n2 : T
  %zero = arith.constant 0.0 : T
  %one = arith.constant 1.0 : T
  %empty = arith.cmpf oeq, %n, %zero : T
  %count = arith.select %empty, %one, %n : T
  %share = arith.divf %n2, %count : T
  %d = arith.subf %mean2, %mean1 : T
  %step = arith.mulf %d, %share : T
  %mean = arith.addf %mean1, %step : T
  %scaled = arith.mulf %step, %n1 : T          // first, so that nothing overflows when n1 is 0
  %weighted = arith.mulf %d, %scaled : T
  %inside = arith.addf %q1, %q2 : T
  %q = arith.addf %inside, %weighted : T
  loom.yield %n, %mean, %q : T, T, T
}
""",
    ),
}
"""Per name, the number of parts of the state and the definition."""

_NEGATIVE_INFINITY = {
    "f16": "0xFC00",
    "bf16": "0xFF80",
    "f32": "0xFF800000",
    "f64": "0xFFF0000000000000",
}


def statistic(name: str, element: Attribute) -> loom.MonoidOp:
    """The definition of one of `STATISTICS` over a float element type."""
    text = STATISTICS[name][1].replace("NEGATIVE_INFINITY", _NEGATIVE_INFINITY[str(element)])
    ctx = Context()
    for dialect in (Builtin, Arith, Math, loom.Loom):
        ctx.load_dialect(dialect)
    definition = Parser(ctx, text.replace(": T", f": {element}").replace(" T", f" {element}"))
    op = definition.parse_operation()
    assert isinstance(op, loom.MonoidOp)
    return op
