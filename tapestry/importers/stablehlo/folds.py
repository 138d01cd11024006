"""Monoids from regions: the known ones by name, all others with a flag.

    reducer(%a, %b) { %0 = stablehlo.maximum %a, %b  stablehlo.return %0 }      max

StableHLO folds by any associative function, from a value that has to be its identity. A function
that is not known becomes a monoid whose zero is "nothing yet", so nothing has to be believed: the
state has a flag beside its parts, and the first value is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import is_complex, is_float, is_integer
from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.dialects.loom import Iterator
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.stablehlo.bindings import MlirBlock, MlirOperation, MlirValue
from tapestry.importers.stablehlo.program import Op, Program
from tapestry.importers.stablehlo.scalars import scalar_body
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import AffineMap, Projection, Range


def operations_of(block: MlirBlock) -> tuple[list[MlirOperation], list[MlirValue]]:
    """The operations of a region, and what it returns."""
    operations = [one.operation for one in block.operations]
    return operations[:-1], list(operations[-1].operands)


def single(block: MlirBlock) -> str | None:
    """The one operation that a region of two arguments applies to both, or None."""
    operations, returned = operations_of(block)
    if len(operations) != 1 or len(block.arguments) != 2:
        return None
    (operation,) = operations
    applied = [*operation.operands] in ([*block.arguments], [*block.arguments][::-1])
    return operation.name if applied and returned == [*operation.results] else None


def takes_second(block: MlirBlock) -> bool:
    """Whether a region of two arguments returns the second: what overwrites."""
    operations, returned = operations_of(block)
    return not operations and returned == [block.arguments[1]]


def ignores_second(block: MlirBlock) -> bool:
    """Whether a region of two arguments computes with the first alone."""
    operations, returned = operations_of(block)
    second = block.arguments[1]
    read = {value for operation in operations for value in operation.operands} | {*returned}
    return second not in read and not any(len(operation.regions) for operation in operations)


def identity_of(operation: str, spec: Spec) -> object | None:
    """The identity of a fold by a known operation, or None."""
    if spec.dtype == "i1":
        truths = {"add": False, "or": False, "maximum": False, "xor": False}
        truths |= {"and": True, "multiply": True, "minimum": True}
        return truths.get(operation.removeprefix("stablehlo."))
    ends: tuple[object, object] = (-np.inf, np.inf)
    if spec.is_integer:
        limits = np.iinfo(spec.numpy)
        ends = (limits.min, limits.max)
    numbers = {"add": 0, "multiply": 1, "maximum": ends[0], "minimum": ends[1]}
    return numbers.get(operation.removeprefix("stablehlo."))


def is_identity(init: Value, operation: str) -> bool:
    """Whether a fold by a known operation may begin with `init`, and the result is the same."""
    identity = identity_of(operation, init.spec)
    return init.splat is not None and identity is not None and bool(init.splat == identity)


def define_monoid(program: Program, op: Op, specs: Sequence[Spec], region: int = 0) -> str:
    """A monoid of the program that folds by a region: a flag, and parts like `specs`; its name."""
    kinds = [cell_type(spec.dtype) for spec in specs]
    both = [*(spec.of(shape=()) for spec in specs)] * 2
    function = scalar_body(program, op.block(region), both, op.environment)
    body = Body([i1, *kinds, i1, *kinds])
    left, right = body.arguments[: len(kinds) + 1], body.arguments[len(kinds) + 1 :]
    made = body.inline(function, [*left[1:], *right[1:]])
    parts: list[SSAValue] = []
    for a, b, merged in zip(left[1:], right[1:], made, strict=True):
        other = body.add(arith.SelectOp(right[0], b, body.add(_sum(a, b))))
        first = body.add(arith.SelectOp(left[0], a, other))
        both_there = body.add(arith.AndIOp(left[0], right[0]))
        parts.append(body.add(arith.SelectOp(both_there, merged, first)))
    there = body.add(arith.OrIOp(left[0], right[0]))
    zero = [number_attr(0, kind) for kind in (i1, *kinds)]
    merge = body.region(there, *parts)
    return program.define_monoid(zero, merge)


def _sum(a: SSAValue, b: SSAValue) -> Operation:
    """What states that are nothing merge to: any function with the identity 0."""
    if is_float(a.type):
        return arith.AddfOp(a, b)
    if is_complex(a.type):
        return complex_dialect.AddOp(a, b)
    assert is_integer(a.type)
    return arith.OrIOp(a, b)


def fold_by(
    program: Program,
    op: Op,
    index: Range,
    kinds: Sequence[Iterator],
    reads: Sequence[loom.Read],
    inits: Sequence[Value],
    results: Sequence[Spec],
) -> list[Value]:
    """Fold cells by the region of `op`, beginning with `inits`: `unwrap` merges them in.

    Where no dimension folds, what is folded at each point is one cell.
    """
    if "fold" not in kinds:
        alone = AffineMap.identity(index.rank + 1).select_outputs(range(index.rank))
        index = Range.of_sides([*index.sides, (0, 1)])
        kinds, reads = [*kinds, "fold"], [one.compose(alone) for one in reads]
    name = define_monoid(program, op, results)
    cells = [cell_type(spec.dtype) for spec in results]
    wrap = Body(cells)
    region = wrap.region(wrap.number(1, i1), *wrap.arguments)
    unwrap = Body([i1, *cells, *cells])
    there, parts = unwrap.arguments[0], unwrap.arguments[1 : len(cells) + 1]
    begin = unwrap.arguments[len(cells) + 1 :]
    both = [*(spec.of(shape=()) for spec in results)] * 2
    function = scalar_body(program, op.block(0), both, op.environment)
    merged = unwrap.inline(function, [*begin, *parts])
    chosen = [
        unwrap.add(arith.SelectOp(there, one, init))
        for one, init in zip(merged, begin, strict=True)
    ]
    kept = [dim for dim, kind in enumerate(kinds) if kind != "fold"]
    rank = len(kept)
    return program.insert(
        loom.OperationOp(
            op.name.partition(".")[2],
            index,
            kinds,
            name,
            reads,
            [(Projection.identity(rank), program.kind(spec)) for spec in results],
            region,
            extras=[(program.tensor(init), Projection.of([], inputs=rank)) for init in inits],
            unwrap=unwrap.region(*chosen),
        )
    )


def read(
    program: Program, x: Value, projection: Projection, fill: float | None = None
) -> loom.Read:
    """A tensor read through a projection; `fill` is what is outside."""
    outside = None if fill is None else number_attr(fill, cell_type(x.spec.dtype))
    return loom.Read(program.tensor(x), projection, outside)
