"""The first operation at which two programs part, where operations of both can be paired.

Operations correspond when they have the same label and results of the same types, in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.locations import location_of
from tapestry.proving.evaluation import Evaluator, run_on
from tapestry.proving.floats import NARROW, FloatArithmetic
from tapestry.proving.inputs import Draw
from tapestry.runtime.arrays.mapfold import Tensor
from tapestry.runtime.executor import Array, Watch

_APART = 1e-9
"""Results that are further apart than this, relative to the largest, have parted."""

_Key = tuple[str, tuple[Attribute, ...]]


class _Tracer(Evaluator):
    """An evaluator that remembers what each operation made."""

    def __init__(self, arithmetic: FloatArithmetic) -> None:
        super().__init__(arithmetic)
        self.made: dict[_Key, list[tuple[loom.OperationOp, list[Array]]]] = defaultdict(list)

    def dispatch(self, op: Operation, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        outs = super().dispatch(op, operands, watch)
        if isinstance(op, loom.OperationOp):
            key = op.label.data, tuple(result.type for result in op.results)
            self.made[key].append((op, [out.data for out in outs]))
        return outs


def first_parting(a: ModuleOp, b: ModuleOp, inputs: Sequence[Draw]) -> str:
    """The first operation of `a` whose pair in `b` makes something else; empty without one."""
    traces: list[_Tracer] = []
    for module in (a, b):
        tracer = _Tracer(FloatArithmetic(NARROW))
        try:
            run_on(tracer, module, [draw.as_cells(NARROW) for draw in inputs])
        except TapestryError:
            return ""  # casts are the identity here, and may be what kept indices inside
        traces.append(tracer)
    first, second = traces
    for key, made in first.made.items():
        for (op, mine), (other, theirs) in zip(made, second.made.get(key, ()), strict=False):
            if any(_apart(x, y) for x, y in zip(mine, theirs, strict=True)):
                places = [str(place) for place in (location_of(op), location_of(other)) if place]
                where = f" ({' and '.join(dict.fromkeys(places))})" if places else ""
                return f"@{op.label.data}{where}"
    return ""


def _apart(x: Array, y: Array) -> bool:
    if x.dtype != NARROW:
        return not np.array_equal(x, y)
    size = float(np.max(np.abs(x[np.isfinite(x)]), initial=0))
    return not np.allclose(x, y, rtol=0, atol=_APART * size, equal_nan=True)
