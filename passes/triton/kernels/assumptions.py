"""What operations take for granted of the tensors that they read (`loom-mask-to-domain`).

    %k = loom.operation @factor ... ins(%x ..., %cos ...)               maps alone
    %y = loom.operation @scores ... ins(%q ..., %k ...) {assumes = ["finite(x)", "finite(cos)"]}

takes `%x` and `%cos` to be finite, and so `%k`: what is computed in the body of finite cells is
taken to be finite as well, and `%k` was computed there before it was stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from tapestry.dialects import loom
from tapestry.passes.loom.rebuilding.notes import ASSUMES


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
        if isinstance(writer, loom.OperationOp) and set(writer.kinds) == {"map"}:
            made[name] = [read.value.name_hint or "" for read in writer.in_reads]
            for read in writer.in_reads:
                named[read.value.name_hint or ""].add(read.value)
    known = {n for n, values in named.items() if len(values) == 1 and f"finite({n})" in said}
    computed = {name for name, names in made.items() if names and known.issuperset(names)}
    return frozenset(name for name, _ in inputs if name in known or name in computed)


def _outside(value: SSAValue) -> SSAValue:
    """What a value is outside of the group that it is an argument of."""
    if not isinstance(value, BlockArgument):
        return value
    group = value.owner.parent_op()
    return group.operands[value.index] if isinstance(group, loom.FusedOp) else value
