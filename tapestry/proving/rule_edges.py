"""What both sides of a rule do at the edges of their types, run as they are.

    check_edges(rule, sample, before, after)        # or a RuleError with the inputs

The comparison over the reals (`equality`) says nothing of what wraps, overflows or is NaN. Here
both programs run in their own dtypes on the reference executor, on inputs of `edges`. A rule that
keeps floats has to give the very same results, NaN and infinities too; only signs of zeros may
differ. One that rounds otherwise is run so where there is no float at all: integers never round.
Its floats are compared as reals, near the literals that the programs name.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.proving.comparing import Difference
from tapestry.proving.covering import uncovered_sites
from tapestry.proving.edges import edge_draws, edge_inputs, literals_of
from tapestry.proving.inputs import CLASSES
from tapestry.proving.pair import Pair
from tapestry.rewriting.rules import Rule, RuleError
from tapestry.rewriting.samples import Sample
from tapestry.runtime.executor import Array, NoWatch
from tapestry.runtime.program import arguments
from tapestry.runtime.reference import ReferenceExecutor

_TRIED = 4
"""Inputs near literals on which floats that are rounded otherwise are compared as reals."""

_SAMPLED = 12
"""Inputs near literals that may show that a branch is taken."""


def check_edges(rule: Rule, sample: Sample, before: ModuleOp, after: ModuleOp, pair: Pair) -> None:
    """Raise a RuleError where both programs part at the edges of their types."""
    taken = [(numpy_dtype(a.type.element_type), a.type.box.shape) for a in arguments(before)]
    literals = literals_of(before, after)
    if rule.exact or not any(dtype.kind not in "iub" for dtype in _dtypes(before, after)):
        for given in edge_inputs(taken, literals):
            _run_both(rule, sample, before, after, given)
        return
    for inputs in edge_draws(taken, literals, moderate=True)[:_TRIED]:
        if isinstance(pair.compare(inputs), Difference):
            raise _parted(rule, sample, before, [draw.as_argument() for draw in inputs])


def _run_both(
    rule: Rule, sample: Sample, before: ModuleOp, after: ModuleOp, given: list[Array]
) -> None:
    names = [argument.name for argument in arguments(before)]
    first = _run(before, dict(zip(names, given, strict=True)))
    if first is None:
        return  # what the program does not compute need not be kept
    names = [argument.name for argument in arguments(after)]
    second = _run(after, dict(zip(names, given, strict=True)))
    if second is None or not all(map(_same, first, second)):
        raise _parted(rule, sample, before, given, first, second)


def _run(module: ModuleOp, given: Mapping[str, Array]) -> tuple[Array, ...] | None:
    try:
        with np.errstate(all="ignore"):
            return ReferenceExecutor().run(module, given, NoWatch()).outputs
    except TapestryError:
        return None


def _same(one: Array, other: Array) -> bool:
    return bool(_agreeing(one, other).all())


def _agreeing(one: Array, other: Array) -> Array:
    """Cell by cell: equal, or NaN both."""
    if one.dtype.kind in "iub":
        return np.asarray(one == other)
    a, b = one.astype(np.float64), other.astype(np.float64)
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _parted(
    rule: Rule,
    sample: Sample,
    module: ModuleOp,
    given: list[Array],
    first: tuple[Array, ...] | None = None,
    second: tuple[Array, ...] | None = None,
) -> RuleError:
    told = [f"rule {rule.name}: what is matched and what is produced differ at edges of types"]
    if first is not None and second is None:
        told.append("  what is produced does not run where what is matched does")
    for name, one, other in zip(rule.outputs, first or (), second or (), strict=False):
        cells = np.argwhere(~_agreeing(one, other))
        if len(cells):
            cell = tuple(cells[0].tolist())
            told.append(f"  {name} at {list(cell)}: {one[cell]} is matched, {other[cell]} produced")
            break
    for argument, array in zip(arguments(module), given, strict=True):
        told.append(f"  {argument.name}: {np.array2string(array, threshold=8)}")
    told.append(f"  for {sample.describe(rule)}")
    return RuleError(
        "\n".join(told),
        location=rule.location,
        hint="say in `types` for which dtypes it holds"
        + (", or `exact: false` where only floats differ" if rule.exact else ""),
    )


def _dtypes(*modules: ModuleOp) -> set[np.dtype[np.generic]]:
    """The dtypes of all tensors of some programs."""
    return {
        numpy_dtype(value.type.element_type)
        for module in modules
        for op in module.walk()
        for value in (
            *op.results,
            *(arg for region in op.regions for b in region.blocks for arg in b.args),
        )
        if isinstance(value.type, loom.TensorType)
    }


def unsampled_literals(module: ModuleOp, pair: Pair, which: str) -> set[str]:
    """Branches at a literal that no inputs of any kind take both ways, in words.

    Those at zero, and between what is computed, are left: the inputs have both signs and many
    sizes, so that a branch which is never taken is hardly one (a relu of what is positive).
    """
    taken = [(numpy_dtype(a.type.element_type), a.type.box.shape) for a in arguments(module)]
    draws = [pair.draw(CLASSES[kind], seed) for seed in (0, 1) for kind in ("generic", "wide")]
    draws += edge_draws(taken, literals_of(pair.a, pair.b), moderate=True)[:_SAMPLED]
    return {
        f"the branch at {literal:g}{site.outcome(outcome).removeprefix(site.op.name)},"
        f" in what is {which}"
        for site, outcome in uncovered_sites(module, draws)
        if (literal := _literal(site.op)) is not None
    }


def _literal(site: Operation) -> float | None:
    """The number, not zero, that a branch compares with; None where it is computed."""
    for operand in site.operands:
        value = _named(operand)
        if value is not None and np.isfinite(value) and value:
            return value
    return None


def _named(value: SSAValue) -> float | None:
    """The number that a value of a body is, through casts and constant inputs."""
    while True:
        owner = value.owner
        match owner:
            case arith.ConstantOp(value=FloatAttr() | IntegerAttr() as number):
                return float(number.value.data)
            case loom.ConstantOp():
                return None if owner.splat is None else float(owner.splat.item())
            case Operation() if len(owner.operands) == 1:
                value = owner.operands[0]
            case _:
                found = _given(value) if isinstance(value, BlockArgument) else None
                if found is None:
                    return None
                value = found


def _given(argument: BlockArgument) -> SSAValue | None:
    """What an operation is given for an argument of its body."""
    op = argument.block.parent_op()
    if not isinstance(op, loom.OperationOp) or argument.block is not op.wrap_block:
        return None
    return op.ins[argument.index] if argument.index < len(op.ins) else None
