"""Projections of inputs and outputs: cursor form, affine form, offset and box.

    >>> scope = Scope({"axis": 2})
    >>> print(build_projection(parse_projection("[1...{$axis}, +, 1...]"), scope, inputs=3, rank=4))
    (d0, d1, d2) -> (d0, d1, 0, d2)

In cursor form a coefficient consumes the next index dimension and emits a row, `+` emits a row that
no dimension moves, and `-` consumes a dimension and emits nothing. In affine form (some `@label`
occurs) each element is one row, its offset included.
"""

from __future__ import annotations

from tapestry.metakernels.errors import KindMismatchError, RankMismatchError
from tapestry.metakernels.evaluation import Scope, evaluate, evaluate_list, fill_count
from tapestry.metakernels.parsing import parse_projection
from tapestry.metakernels.syntax import Element, ListExpr, ProjectionExpr, coordinates
from tapestry.metakernels.values import Affine, Value, describe, integer, integers
from tapestry.zspace import AffineMap, Projection

__all__ = ["build_projection", "parse_projection"]

_Row = int | str
"""A step of the cursor: a coefficient, `+` or `-`."""


def build_projection(expr: ProjectionExpr, scope: Scope, *, inputs: int, rank: int) -> Projection:
    """The projection from `inputs` index dimensions to a tensor of that rank.

    Raises RankMismatchError when the rows do not make `rank` dimensions or do not use every index
    dimension, NotAffineError when a row is not affine in the coordinates.
    """
    if any(coordinates(element) for element in expr.rows.elements):
        matrix, offset = _affine_rows(expr.rows, scope, inputs, rank)
    else:
        matrix, offset = _cursor_rows(expr.rows, scope, inputs, rank), [0] * rank
    if expr.offset is not None:
        moved = _sizes(expr.offset, scope, rank, "the offset")
        offset = [a + b for a, b in zip(offset, moved, strict=True)]
    box = (1,) * rank if expr.box is None else _sizes(expr.box, scope, rank, "the shape of the box")
    if any(size < 0 for size in box):
        raise KindMismatchError(f"the shape of the box {describe(box)} has a negative size")
    return Projection(AffineMap.of(matrix, offset, inputs), box)


def _sizes(expr: ListExpr, scope: Scope, rank: int, what: str) -> tuple[int, ...]:
    sizes = integers(evaluate_list(expr, scope, rank), what)
    if len(sizes) != rank:
        raise RankMismatchError(
            f"{what} {describe(sizes)} has {len(sizes)} elements, and the tensor has rank {rank}"
        )
    return sizes


def _affine_rows(
    expr: ListExpr, scope: Scope, inputs: int, rank: int
) -> tuple[list[tuple[int, ...]], list[int]]:
    for element in expr.elements:
        if isinstance(element.value, str):
            raise KindMismatchError(
                f"`{element.value}` belongs to the cursor form, and this projection names "
                "coordinates (@)",
                hint="write the row 0 for a dimension that no index dimension moves",
            )
    values = evaluate_list(expr, scope, rank)
    if len(values) != rank:
        raise RankMismatchError(f"it has {len(values)} rows, and the tensor has rank {rank}")
    rows = [_affine_row(value, inputs) for value in values]
    return [row.coefficients for row in rows], [row.constant for row in rows]


def _affine_row(value: Value, inputs: int) -> Affine:
    if isinstance(value, tuple):
        raise KindMismatchError(
            f"a row is the list {describe(value)}", hint="splice it: write `...` after it"
        )
    if isinstance(value, Affine):
        return value
    return Affine((0,) * inputs, integer(value, "a row"))


def _cursor_rows(expr: ListExpr, scope: Scope, inputs: int, rank: int) -> list[tuple[int, ...]]:
    matrix: list[tuple[int, ...]] = []
    dim = 0
    for step in _cursor_steps(expr, scope, inputs, rank):
        row = [0] * inputs
        if step != "+":
            if dim == inputs:
                raise RankMismatchError(
                    f"it moves more than the {inputs} index dimensions there are",
                    hint="`+` makes a row that no index dimension moves",
                )
            if isinstance(step, int):
                row[dim] = step
            dim += 1
        if step != "-":
            matrix.append(tuple(row))
    if len(matrix) != rank:
        raise RankMismatchError(f"it has {len(matrix)} rows, and the tensor has rank {rank}")
    if dim != inputs:
        raise RankMismatchError(
            f"it uses {dim} of the {inputs} index dimensions",
            hint="write `-` for an index dimension that moves nothing",
        )
    return matrix


def _cursor_steps(expr: ListExpr, scope: Scope, inputs: int, rank: int) -> list[_Row]:
    """The steps, with the one open fill made as long as the rank (or the index, for `-`) leaves."""
    runs = [_cursor_run(element, scope) for element in expr.elements]
    fixed = [step for run in runs if isinstance(run, list) for step in run]
    steps: list[_Row] = []
    fills = 0
    for run in runs:
        if isinstance(run, list):
            steps.extend(run)
            continue
        fills += 1
        if run == "-":
            left = inputs - sum(step != "+" for step in fixed)
        else:
            left = rank - sum(step != "-" for step in fixed)
        if left < 0:
            raise RankMismatchError(
                f"it has {len(fixed)} elements without its `...`, more than fit "
                f"(rank {rank}, {inputs} index dimensions)"
            )
        steps.extend([run] * left)
    if fills > 1:
        raise RankMismatchError(
            "a list has at most one `...` without a length", hint="write `value...{count}`"
        )
    return steps


def _cursor_run(element: Element, scope: Scope) -> list[_Row] | _Row:
    """The steps of one element; a single step when it is the open fill."""
    step: _Row
    if isinstance(element.value, str):
        step = element.value
    else:
        value = evaluate(element.value, scope)
        if isinstance(value, tuple) and element.spread:
            return list(integers(value, "the rows"))
        step = _cursor_step(value)
    if not element.spread:
        return [step]
    return step if element.count is None else [step] * fill_count(element.count, scope)


def _cursor_step(value: Value) -> int:
    if isinstance(value, tuple):
        raise KindMismatchError(
            f"a row is the list {describe(value)}", hint="splice it: write `...` after it"
        )
    return integer(value, "a row")
