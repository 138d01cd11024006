"""Sorting by comparators that JAX writes: less or greater, of one key or of several in order.

"stablehlo.sort"(%x, %iota) <{dimension = 1}> ({ compare LT, canonical(%a), canonical(%b) })

    %values, %indices = weft.apply @sort(%x) {axis = 1, descending = false}

Other operands are taken at the same places. Of several keys, the last is sorted first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tapestry.importers.ordering import ordering
from tapestry.importers.stablehlo.attributes import integers_or, text, word
from tapestry.importers.stablehlo.bindings import MlirBlock, MlirOperation, MlirValue
from tapestry.importers.stablehlo.constants import cells_of
from tapestry.importers.stablehlo.control import run_composite
from tapestry.importers.stablehlo.elementwise import total_order
from tapestry.importers.stablehlo.folds import operations_of
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.specs import spec_of
from tapestry.importers.stablehlo.values import Value


@dataclass(frozen=True)
class Key:
    """An operand that is sorted by; `total` where -0 is below 0, and NaN has a sign."""

    operand: int
    descending: bool
    total: bool


class _Comparator:
    """Reads what a region of a sort compares."""

    def __init__(self, block: MlirBlock, outside: Mapping[MlirValue, Value]) -> None:
        operations, (self._result,) = operations_of(block)
        self._made: dict[MlirValue, MlirOperation] = {
            operation.results[0]: operation for operation in operations
        }
        self._places = {value: place for place, value in enumerate(block.arguments)}
        self._outside = outside

    def keys(self) -> list[Key] | None:
        """The keys in order, or None for a comparator of another form."""
        return self._keys(self._result)

    def _keys(self, value: MlirValue) -> list[Key] | None:
        made = self._made.get(value)
        if made is None:
            return None
        if made.name == "stablehlo.compare":
            key = self._key(made)
            return None if key is None else [key]
        if made.name != "stablehlo.or":
            return None
        # First key less, or equal and the others less.
        for one, other in (made.operands, [*made.operands][::-1]):
            first, both = self._made.get(one), self._made.get(other)
            if first is None or both is None or both.name != "stablehlo.and":
                continue
            key = self._key(first) if first.name == "stablehlo.compare" else None
            for equal, rest in (both.operands, [*both.operands][::-1]):
                if key is not None and self._is_equal(equal, key.operand):
                    others = self._keys(rest)
                    if others is not None:
                        return [key, *others]
        return None

    def _key(self, compare: MlirOperation) -> Key | None:
        direction = word(compare.attributes["comparison_direction"])
        sides = [self._canonical(value) for value in compare.operands]
        if direction not in ("LT", "GT") or None in sides:
            return None
        (left, plain), (right, other) = [side for side in sides if side is not None]
        if left // 2 != right // 2 or left == right or plain != other:
            return None
        named = "compare_type" in compare.attributes
        swapped = left > right
        total = plain and named and word(compare.attributes["compare_type"]) == "TOTALORDER"
        return Key(left // 2, (direction == "GT") != swapped, total)

    def _is_equal(self, value: MlirValue, operand: int) -> bool:
        made = self._made.get(value)
        if made is None or made.name != "stablehlo.compare":
            return False
        sides = [self._canonical(side) for side in made.operands]
        places = {side[0] for side in sides if side is not None}
        equal = word(made.attributes["comparison_direction"]) == "EQ"
        return equal and places == {2 * operand, 2 * operand + 1}

    def _canonical(self, value: MlirValue) -> tuple[int, bool] | None:
        """The argument that a value is, and whether as it is: else zeros and NaN have no sign."""
        if value in self._places:
            return self._places[value], True
        made = self._made.get(value)
        if made is None or made.name != "stablehlo.select":
            return None
        condition, special, rest = made.operands
        test, number = self._made.get(condition), self._number(special)
        below = self._canonical(rest)
        if test is None or test.name != "stablehlo.compare" or number is None or below is None:
            return None
        direction = word(test.attributes["comparison_direction"])
        left, right = (self._canonical(side) for side in test.operands)
        is_zero = direction == "EQ" and number == 0 and self._number(test.operands[1]) == 0
        is_nan = direction == "NE" and np.isnan(number) and right is not None and right == left
        same = left is not None and left[0] == below[0]
        return (below[0], False) if same and (is_zero or is_nan) else None

    def _number(self, value: MlirValue) -> float | None:
        known = self._outside.get(value)
        if known is not None and known.splat is not None:
            return float(known.splat)
        made = self._made.get(value)
        if made is None or made.name != "stablehlo.constant":
            return None
        return float(cells_of(made, spec_of(made.results[0].type)).reshape(-1)[0])


def _sort(program: Program, op: Op) -> Sequence[Value]:
    (axis,) = integers_or(op.attributes, "dimension", [-1])
    axis %= op.results[0].rank
    keys = _Comparator(op.block(0), op.environment).keys()
    if keys is None:
        raise program.error(
            f"{op.name} is supported for comparators that say which of two keys is less or greater"
        )
    operands = op.operands
    if operands[0].spec.shape[axis] < 2:
        return operands
    sort = ordering("sort", operands[0].spec.shape[axis])
    order: Value | None = None
    for key in reversed(keys):
        x = operands[key.operand]
        if key.total and x.spec.is_float:
            x = total_order(program, x)
        elif x.spec.dtype == "i1":  # false is before true, as 0 is before 1
            x = program.apply("cast", x, parameters={"dtype": "i8"})
        x = x if order is None else _taken(program, x, order, axis)
        parameters = {"axis": axis, "descending": key.descending}
        values, places = program.apply_all(sort, x, parameters=parameters)
        if len(keys) == 1 and len(operands) == 1 and values.spec == operands[0].spec:
            return [values]
        order = places if order is None else _taken(program, order, places, axis)
    assert order is not None
    return [_at(program, value, order, axis) for value in operands]


def _taken(program: Program, x: Value, order: Value, axis: int) -> Value:
    return program.apply("gather", x, order, parameters={"axis": axis})


def _at(program: Program, x: Value, order: Value, axis: int) -> Value:
    """The operand in order; an iota along the axis is the order itself."""
    function = x.affine
    row = tuple(int(dim == axis) for dim in range(x.spec.rank))
    if function is not None and function.coefficients == row and not function.constant:
        return program.apply("cast", order, parameters={"dtype": x.spec.dtype})
    return _taken(program, x, order, axis)


def _top_k(program: Program, op: Op) -> Sequence[Value]:
    (x,) = op.operands
    count = op.results[0].shape[-1]
    parameters = {"k": count, "axis": x.spec.rank - 1, "largest": True}
    topk = ordering("topk", x.spec.shape[-1])
    values, places = program.apply_all(topk, x, parameters=parameters)
    return [values, program.apply("cast", places, parameters={"dtype": op.results[1].dtype})]


def _composite(program: Program, op: Op) -> Sequence[Value]:
    if text(op.attributes["name"]) == "chlo.top_k":
        return _top_k(program, op)
    return run_composite(program, op)


TRANSLATIONS: dict[str, Translation] = {
    "chlo.top_k": _top_k,
    "stablehlo.composite": _composite,
    "stablehlo.sort": _sort,
}
