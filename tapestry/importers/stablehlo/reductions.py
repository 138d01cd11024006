"""Folds: `reduce` by any associative region.

    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]

is `weft.apply @sum`, and a maximum beside its position is `max_with_index`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.importers.operations import maps
from tapestry.importers.stablehlo.attributes import integers, word
from tapestry.importers.stablehlo.bindings import MlirBlock, MlirValue
from tapestry.importers.stablehlo.complexes import total
from tapestry.importers.stablehlo.folds import (
    fold_by,
    is_identity,
    operations_of,
    read,
    single,
)
from tapestry.importers.stablehlo.movement import broadcast
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value
from tapestry.zspace import AffineMap, Projection, Range

_FOLDS = {
    "stablehlo.add": "sum",
    "stablehlo.multiply": "prod",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}
_TRUTH_FOLDS = {
    "stablehlo.add": "any",
    "stablehlo.or": "any",
    "stablehlo.maximum": "any",
    "stablehlo.and": "all",
    "stablehlo.multiply": "all",
    "stablehlo.minimum": "all",
}
_COMPLEX = {"stablehlo.add": "add", "stablehlo.multiply": "mul"}
_MERGES = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum",
}
_TRUTH_MERGES = {"any": "bitwise_or", "all": "bitwise_and"}


def _reduce(program: Program, op: Op) -> Sequence[Value]:
    axes = integers(op.attributes["dimensions"])
    count = len(op.results)
    inputs, inits = op.operands[:count], op.operands[count:]
    if not all(value.spec.size for value in inputs):
        return [
            broadcast(program, init, [], spec.shape)
            for init, spec in zip(inits, op.results, strict=True)
        ]
    if count == 1:
        made = _single(program, op, inputs[0], inits[0], axes)
        if made is not None:
            return [made]
    if count == 2 and len(axes) == 1:
        found = _with_index(program, op, inputs, inits, axes[0])
        if found is not None:
            return found
    return _by_region(program, op, inputs, inits, axes)


def _single(program: Program, op: Op, x: Value, init: Value, axes: list[int]) -> Value | None:
    """A fold by one operation that there is a metakernel for."""
    name = single(op.block(0)) or ""
    if x.spec.is_complex and name in _COMPLEX and is_identity(init, name):
        return total(program, x, axes, _COMPLEX[name], op.results[0])
    truths = x.spec.dtype == "i1"
    kernel = (_TRUTH_FOLDS if truths else _FOLDS).get(name)
    if kernel is None or x.spec.is_complex:
        return None
    # An empty list of axes stands for all of them.
    made = program.apply(kernel, x, parameters={"axis": axes}) if axes else x
    if is_identity(init, name):
        return made
    merge = _TRUTH_MERGES[kernel] if truths else _MERGES[name]
    return program.apply(merge, init, made)


def _with_index(
    program: Program, op: Op, inputs: Sequence[Value], inits: Sequence[Value], axis: int
) -> list[Value] | None:
    """The greatest or least cell and its position, as JAX folds them: the first of equals."""
    x, places = inputs
    row = tuple(int(dim == axis) for dim in range(places.spec.rank))
    counted = places.affine is not None and places.affine.coefficients == row
    if not counted or places.affine is None or places.affine.constant:
        return None
    direction = _position_order(op.block(0))
    if direction is None or inits[1].splat != 0:
        return None
    if not is_identity(inits[0], "stablehlo.maximum" if direction == "GT" else "stablehlo.minimum"):
        return None
    kernel = "max_with_index" if direction == "GT" else "min_with_index"
    if x.spec.dtype == "i1":
        x = program.apply("cast", x, parameters={"dtype": "ui8"})
    found = program.apply_all(kernel, x, parameters={"axis": axis})
    return [
        program.apply("cast", value, parameters={"dtype": spec.dtype})
        if value.spec != spec
        else value
        for value, spec in zip(found, op.results, strict=True)
    ]


def _position_order(block: MlirBlock) -> str | None:
    """GT or LT where a region is what `jnp.argmax` or `jnp.argmin` fold by."""
    operations, returned = operations_of(block)
    numbers: dict[MlirValue, int] = {value: place for place, value in enumerate(block.arguments)}
    lines: list[str] = []
    for operation in operations:
        arguments = [str(numbers.get(value, "?")) for value in operation.operands]
        direction = ""
        if operation.name == "stablehlo.compare":
            direction = word(operation.attributes["comparison_direction"])
        lines.append(f"{operation.name.removeprefix('stablehlo.')} {direction} {arguments}")
        for result in operation.results:
            numbers[result] = len(numbers)
    lines.append(f"return {[numbers.get(value) for value in returned]}")
    for direction in ("GT", "LT"):
        if lines == _position_body(direction):
            return direction
    return None


def _position_body(direction: str) -> list[str]:
    """The region: the greater value, the one that is NaN, or of equal ones the first."""
    return [
        f"compare {direction} ['0', '2']",
        "compare NE ['0', '0']",
        "or  ['4', '5']",
        "compare EQ ['0', '2']",
        "compare LT ['1', '3']",
        "and  ['7', '8']",
        "or  ['6', '9']",
        "select  ['6', '0', '2']",
        "select  ['10', '1', '3']",
        "return [11, 12]",
    ]


def _by_region(
    program: Program,
    op: Op,
    inputs: Sequence[Value],
    inits: Sequence[Value],
    axes: Sequence[int],
) -> list[Value]:
    """A fold by whatever the region computes."""
    shape = inputs[0].spec.shape
    kept = [dim for dim in range(len(shape)) if dim not in axes]
    order = [*kept, *axes]
    back = AffineMap.identity(len(shape)).select_outputs(
        [order.index(dim) for dim in range(len(shape))]
    )
    reads = [read(program, value, Projection.cells(back)) for value in inputs]
    index = Range.of([shape[dim] for dim in order])
    kinds = maps(len(kept), len(axes))
    return fold_by(program, op, index, kinds, reads, inits, op.results)


TRANSLATIONS: dict[str, Translation] = {"stablehlo.reduce": _reduce}
