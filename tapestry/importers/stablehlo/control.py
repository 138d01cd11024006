"""Calls, loops and branches: nothing of them is left in the program.

Functions that are called are inlined. A loop runs here, trip by trip, while its condition is known;
a branch is chosen where it is known, and otherwise all are computed, and one result selected.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.importers.stablehlo.attributes import text
from tapestry.importers.stablehlo.cells import as_one_operation
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value

MAX_TRIPS = 10_000
"""How often a loop may run."""


def _call(program: Program, op: Op) -> Sequence[Value]:
    callee = text(op.attributes["callee"])
    made = as_one_operation(program, op, callee)
    return program.run_function(callee, op.operands) if made is None else made


def run_composite(program: Program, op: Op) -> Sequence[Value]:
    """The function that says what a composite operation computes, inlined."""
    return program.run_function(text(op.attributes["decomposition"]), op.operands)


def _while(program: Program, op: Op) -> Sequence[Value]:
    state: Sequence[Value] = op.operands
    condition, body = op.block(0), op.block(1)
    for _ in range(MAX_TRIPS):
        (goes_on,) = program.run_block(condition, state, op.environment)
        if goes_on.known is None:
            raise program.error(
                "whether this loop goes on is computed; its trip count must be known",
                hint="a lax.scan, or a lax.fori_loop with fixed bounds, has one",
            )
        if not goes_on.known:
            return state
        state = program.run_block(body, state, op.environment)
    raise program.error(f"this loop runs more than {MAX_TRIPS} times; it cannot be unrolled")


def _case(program: Program, op: Op) -> Sequence[Value]:
    """The branch by its number; one that does not exist is the last."""
    count = len(op.source.regions)
    (index,) = op.operands
    if index.known is not None:
        number = int(index.known)
        chosen = number if 0 <= number < count else count - 1
        return program.run_block(op.block(chosen), [], op.environment)
    results = program.run_block(op.block(count - 1), [], op.environment)
    for number in range(count - 1):
        here = program.apply("eq", index, program.known(number, index.spec))
        others = program.run_block(op.block(number), [], op.environment)
        results = [
            program.apply("where", here, other, result)
            for other, result in zip(others, results, strict=True)
        ]
    return results


def _if(program: Program, op: Op) -> Sequence[Value]:
    (condition,) = op.operands
    if condition.known is not None:
        return program.run_block(op.block(0 if condition.known else 1), [], op.environment)
    yes, no = (program.run_block(op.block(place), [], op.environment) for place in (0, 1))
    return [program.apply("where", condition, a, b) for a, b in zip(yes, no, strict=True)]


def _custom_call(program: Program, op: Op) -> Sequence[Value]:
    target = text(op.attributes["call_target_name"])
    if target in _NOTES:
        return op.operands
    raise program.error(
        f"custom_call @{target} is a kernel of XLA's, which says nothing of what it computes"
    )


_NOTES = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
"""Calls that only say where something is."""


def _partition(program: Program, op: Op) -> Value:
    return program.known(0, op.results[0])


def _operands(_program: Program, op: Op) -> Sequence[Value]:
    return op.operands


TRANSLATIONS: dict[str, Translation] = {
    "func.call": _call,
    "sdy.sharding_constraint": _operands,
    "stablehlo.optimization_barrier": _operands,
    "stablehlo.case": _case,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.if": _if,
    "stablehlo.partition_id": _partition,
    "stablehlo.replica_id": _partition,
    "stablehlo.while": _while,
}
