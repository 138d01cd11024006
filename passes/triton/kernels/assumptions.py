"""What operations take for granted of the tensors that they read (`loom-mask-to-domain`).

    %k = loom.operation @factor ... ins(%x ..., %cos ...)               maps alone
    %y = loom.operation @scores ... ins(%q ..., %k ...) {assumes = ["finite(x)", "finite(cos)"]}

takes `%x` and `%cos` to be finite, and so `%k` where it is computed without poles: sums, products
and exponentials of cells that are finite are taken to be finite as well, quotients and logarithms
are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, FloatAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from tapestry.dialects import loom
from tapestry.dialects.loom import Fill
from tapestry.passes.loom.rebuilding.notes import ASSUMES

_WITHOUT_POLES = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.SelectOp),
    *(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
    *(arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.UIToFPOp),
    *(math.AbsFOp, math.CopySignOp, math.CeilOp, math.FloorOp, math.RoundOp, math.RoundEvenOp),
    *(math.ErfOp, math.ExpOp, math.Exp2Op, math.ExpM1Op, math.FmaOp),
    *(math.AtanOp, math.CosOp, math.SinOp, math.TanhOp),
)
"""What is finite of finite numbers, as far as results are in the range of their type."""


def keeps_finite(ops: Iterable[Operation]) -> bool:
    """Whether operations of a body make nothing of finite numbers that is not finite."""
    return all(
        isinstance(op, _WITHOUT_POLES)
        or (isinstance(op, arith.ConstantOp) and is_finite(op.value))
        or not any(isa(result.type, AnyFloat) for result in op.results)
        for op in ops
        if not isinstance(op, loom.YieldOp)
    )


def is_finite(number: Attribute | Fill | None) -> bool:
    """Whether a constant, or what is read outside a tensor if anything is, is a finite number."""
    return not isinstance(number, FloatAttr) or isfinite(number.value.data)


def finite_inputs(
    op: loom.OperationOp | loom.KernelOp, inputs: Sequence[tuple[str, SSAValue]]
) -> frozenset[str]:
    """The names of those inputs of an operation that it takes to be finite.

    A name that several values have says nothing: it may be noted of another one.
    """
    held = op.attributes.get(ASSUMES)
    notes = cast("ArrayAttr[Attribute]", held).data if isinstance(held, ArrayAttr) else ()
    said = {note.data for note in notes if isinstance(note, StringAttr)}
    if not said:
        return frozenset()
    named: dict[str, set[SSAValue]] = defaultdict(set)
    made: dict[str, list[str]] = {}
    for name, value in inputs:
        outer = _outside(value)
        named[name].add(outer)
        writer = outer.owner
        if isinstance(writer, loom.OperationOp) and _keeps_finite(writer):
            made[name] = [read.value.name_hint or "" for read in writer.in_reads]
            for read in writer.in_reads:
                named[read.value.name_hint or ""].add(read.value)
    known = {n for n, values in named.items() if len(values) == 1 and f"finite({n})" in said}
    computed = {name for name, names in made.items() if names and known.issuperset(names)}
    return frozenset(name for name, _ in inputs if name in known or name in computed)


def _keeps_finite(op: loom.OperationOp) -> bool:
    """Whether an operation is a map that makes finite cells of finite cells."""
    plain = set(op.kinds) == {"map"} and keeps_finite(op.wrap_block.ops)
    return plain and all(is_finite(read.fill) for read in op.in_reads)


def _outside(value: SSAValue) -> SSAValue:
    """What a value is outside of the group that it is an argument of."""
    if not isinstance(value, BlockArgument):
        return value
    group = value.owner.parent_op()
    return group.operands[value.index] if isinstance(group, loom.FusedOp) else value
