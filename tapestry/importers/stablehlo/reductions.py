"""Folds: `reduce` with the body of a monoid.

    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]

becomes `weft.apply @sum`.
"""

from __future__ import annotations

from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.types import integers
from tapestry.importers.stablehlo.values import Value

_SINGLE = {
    "stablehlo.add": ("sum", 0),
    "stablehlo.multiply": ("prod", 1),
    "stablehlo.maximum": ("max", None),
    "stablehlo.minimum": ("min", None),
}


def _reduce(program: Program, op: Op) -> Value:
    axes = integers(op.attributes["dimensions"])
    body = [one.operation.name for one in op.block(0).operations]
    return program.apply(_SINGLE[body[0]][0], op.operands[0], parameters={"axis": axes})


TRANSLATIONS: dict[str, Translation] = {"stablehlo.reduce": _reduce}
