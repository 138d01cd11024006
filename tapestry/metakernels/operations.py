"""One operation of a template, for given sizes: its index space, projections, outputs and bodies.

    index: "[$rows, $cols]"              # the space
    inputs: {x: {..., ipf: "[@cols]"}}   # what each point reads
    wrap: "x * s"                        # what it computes

A template without `for` is one operation; with it, one for each member (`families`). Selections are
checked to be inside their tensors here, since the member's numbers are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tapestry.metakernels.blocks import looks_up, parted
from tapestry.metakernels.bodies import Body
from tapestry.metakernels.domains import domain_of, row_forms
from tapestry.metakernels.dtypes import evaluate_dtype, promote
from tapestry.metakernels.errors import (
    DomainError,
    DtypeMismatchError,
    IndexOutOfRangeError,
    NotTiledError,
    UnknownNameError,
)
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.expansion import (
    Expansion,
    MapFold,
    Move,
    Opaque,
    Space,
    Tensor,
)
from tapestry.metakernels.externals import external_kernel, require_cells
from tapestry.metakernels.kernels import type_bodies
from tapestry.metakernels.operands import Operand
from tapestry.metakernels.picking import Group
from tapestry.metakernels.projections import build_projection
from tapestry.metakernels.scalars import Cell, Constant
from tapestry.metakernels.spaces import build_space
from tapestry.metakernels.templates import Output, Template
from tapestry.metakernels.values import Affine, Names, describe
from tapestry.zspace import Domain, Point, Projection, Range
from tapestry.zspace.affine import image_box


@dataclass(frozen=True, slots=True)
class Result:
    """An output of the template, or one of a list; `names` are known inside its entry."""

    entry: Output
    position: int | None
    names: Names


@dataclass(frozen=True, slots=True)
class Draft:
    """An operation before the outputs have their shapes.

    `operands` and `results` are those that it reads and writes, by their numbers in the template's.
    """

    names: Names
    space: Space
    scope: Scope
    kept: Scope
    operands: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def written(self) -> Point:
        """The extents of the dimensions that are kept."""
        return self.space.extents[: self.space.kept]


def draft_operation(
    template: Template, read: Iterable[Group], written: Iterable[Group], names: Names
) -> Draft:
    """The operation that `names` (those of the member included) give."""
    space, scope, kept = build_space(template, names)
    operands = tuple(number for group in read for number in group.picked(names))
    results = tuple(number for group in written for number in group.picked(names))
    return Draft(names, space, scope, kept, operands, results)


def _place(operand: Operand) -> Names:
    return {} if operand.place is None else operand.place.names


def _known_in(result: Result, names: Names) -> Names:
    """The names of a member and, for one of a list of outputs, its position."""
    each = result.entry.each
    return names if each is None else {**names, each: result.names[each]}


@dataclass(frozen=True, slots=True)
class Target:
    """The tensor that an operation writes for a result: the whole output, or a part to assemble.

    The cell that a point writes is found by the template's projection, unless the operation makes
    a part, whose cells are the points themselves.
    """

    tensor: Tensor
    write: Projection


def build_operation(
    template: Template,
    operands: Sequence[Operand],
    results: Sequence[Result],
    plan: Draft,
    targets: Sequence[Target],
) -> Expansion:
    """The operation, with what it writes for each of its results."""
    read = [operands[number] for number in plan.operands]
    chosen = [_read(template, operand, plan) for operand in read]
    reads = tuple(projection for projection, _ in chosen)
    expansion = Expansion(
        template.name,
        tuple(operand.tensor for operand in read),
        tuple(target.tensor for target in targets),
        plan.space,
        reads,
        tuple(target.write for target in targets),
        Opaque(template.name),
        tuple(fill for _, fill in chosen),
        _inside(template, plan.scope),
    )
    body = type_bodies(template, expansion, plan.scope, plan.kept)
    if body is None and (template.external is not None or not _is_moved(expansion)):
        return replace(expansion, body=external_kernel(template, expansion, plan.names))
    if body is None:
        for number, target in zip(plan.results, targets, strict=True):
            require_moved(results[number].entry, target.tensor, read[0].tensor)
    require_cells(template, expansion)
    if body is None or all(isinstance(part, Cell) for part in body.wrap):
        ins = body.ins if body is not None else (0,)
        body = _movement(expansion, ins) or body or _copy(expansion)
    return replace(expansion, body=body)


def _is_moved(expansion: Expansion) -> bool:
    """Whether each point reads one cell of the only input, and computes nothing."""
    return len(expansion.reads) == 1 and expansion.reads[0].is_unit


def _inside(template: Template, scope: Scope) -> Domain | None:
    """The points that are folded, where not all are."""
    forms: list[Affine] = []
    for row in template.domain:
        with row.explain("domain"):
            forms += row_forms(row.tree, scope)
    inside = domain_of(forms, scope.extents)
    if inside is not None and template.monoid is None:
        with template.domain[0].explain("domain"):
            raise DomainError(
                "nothing is folded, so every point must be inside",
                hint="choose a value in wrap: where(condition, value, other)",
            )
    return inside


def _fill(operand: Operand, read: Projection, plan: Draft) -> Constant | None:
    """What is read outside the tensor, where the template says so and something is."""
    entry = operand.entry
    if entry.fill is None:
        return None
    with entry.fill.explain(f"inputs.{entry.name}.bounds.clip"):
        body = Body(Scope({**plan.names, **_place(operand)}), {})
        fill = body.constant(entry.fill.tree, operand.tensor.spec.dtype)
    return None if _is_inside(operand, read, plan) else fill


def _is_inside(operand: Operand, read: Projection, plan: Draft) -> bool:
    """Whether all that is read is inside the tensor."""
    box = image_box(read.map, Range.of(plan.space.extents), read.shape)
    return Range.of(operand.tensor.spec.shape).contains_range(box) or plan.space.size == 0


def _read(template: Template, operand: Operand, plan: Draft) -> tuple[Projection, Constant | None]:
    """Which cells each point selects, and what is read outside the tensor."""
    projection, scope = _selection(operand, plan)
    entry, dtype = operand.entry, operand.tensor.spec.dtype
    if entry.fill is not None:
        return projection, _fill(operand, projection, plan)
    bodies = (source.tree for _, source in (*template.wrap, *template.unwrap))
    data = {"fold", *(each.name for each in template.inputs)}
    if any(looks_up(body, entry.name, data) for body in bodies):
        longer = parted(entry.projection.tree, projection, scope)
        if longer is not None:
            return longer, Constant(0, dtype)
    return projection, None


def _selection(operand: Operand, plan: Draft) -> tuple[Projection, Scope]:
    """The projection that the template says, and the names that are known in it."""
    shape, space = operand.tensor.spec.shape, plan.space
    scope = replace(plan.scope, names={**plan.scope.names, **_place(operand)})
    entry = operand.entry
    with entry.projection.explain(f"inputs.{entry.name}.ipf"):
        projection = build_projection(
            entry.projection.tree, scope, inputs=len(space.extents), rank=len(shape)
        )
        if entry.fill is None and not _is_inside(operand, projection, plan):
            box = projection.apply_range(Range.of(space.extents))
            raise IndexOutOfRangeError(
                f"{operand.tensor.title} is read at {box}, and it has only {Range.of(shape)}",
                hint="bounds: {clip: 0} reads 0 outside",
            )
    return projection, scope


def build_write(result: Result, shape: Point, plan: Draft) -> Projection:
    """Which cell of a result of that shape each kept point writes."""
    scope = replace(plan.kept, names=_known_in(result, plan.kept.names))
    with result.entry.projection.explain(f"outputs.{result.entry.name}.ipf"):
        return build_projection(
            result.entry.projection.tree, scope, inputs=plan.space.kept, rank=len(shape)
        )


def require_tiled(result: Result, shape: Point, plan: Draft, write: Projection) -> None:
    """One operation writes each cell of a result exactly once."""
    space = plan.space
    if not write.tiles(space.kept_range, Range.of(shape)):
        with result.entry.projection.explain(f"outputs.{result.entry.name}.ipf"):
            raise NotTiledError(
                f"the index {describe(space.kept_range.shape)} does not write each cell of "
                f"{result.entry.name} {describe(shape)} exactly once"
            )


def output_dtype(
    template: Template, output: Output, operands: Sequence[Operand], names: Names
) -> str:
    """The dtype of an output: as it says, or what the operands promote to."""
    if output.dtype is not None:
        with output.dtype.explain(f"outputs.{output.name}.dtype"):
            return evaluate_dtype(output.dtype.tree, names)
    if not operands:
        raise UnknownNameError(
            f"template {template.name}: the dtype of {output.name} is not given",
            location=template.location,
            hint="a template without inputs states it: dtype: f32",
        )
    return reduce(promote, (operand.tensor.spec.dtype for operand in operands))


def require_moved(output: Output, tensor: Tensor, source: Tensor) -> None:
    """Cells that are moved and not computed keep their dtype."""
    dtype, moved = tensor.spec.dtype, source.spec.dtype
    if dtype == moved:
        return
    error = DtypeMismatchError(
        f"the cells that are moved are {moved}", hint=f"wrap: cast(..., {dtype})"
    )
    if output.dtype is None:
        raise error
    with output.dtype.explain(f"outputs.{output.name}.dtype"):
        raise error


def _movement(expansion: Expansion, read: Sequence[int]) -> Move | None:
    """The view from result to input cells, when each result cell is one input cell."""
    space = expansion.space
    if space is None or len(expansion.writes) != 1 or len(read) != 1:
        return None
    if expansion.fills[read[0]] is not None:
        return None
    source, (write,) = expansion.reads[read[0]], expansion.writes
    back = write.map.inverse_on(space.kept_range)
    if back is None or space.maps != len(space.extents) or not (source.is_unit and write.is_unit):
        return None
    return Move(source.map.compose(back), read[0])


def _copy(expansion: Expansion) -> MapFold:
    """Data movement that is no view: each point reads one cell, perhaps outside, and writes it."""
    tensor = expansion.inputs[0]
    cells = (Cell(tensor.cell, tensor.spec.dtype),) * len(expansion.outputs)
    return MapFold(None, (0,), (), cells, None)
