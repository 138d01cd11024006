"""The recipe of an application, from what its template expands to for some operand types.

    recipe = make_recipe(expansion, operands, results, monoids)

A map-fold is one operation, and what only moves cells is a view or a reshape. A composite is what
its calls become, one after another, a family what its members do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    StringAttr,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Operation

from tapestry.algebra.dtypes import body_type
from tapestry.algebra.literals import number_attr
from tapestry.attributes import attribute_of
from tapestry.dialects import loom
from tapestry.dialects.zspace import DomainAttr, ProjectionAttr, RangeAttr
from tapestry.metakernels.expansion import (
    Composite,
    Expansion,
    Family,
    MapFold,
    Member,
    Move,
    Opaque,
    Reshape,
    TensorSpec,
)
from tapestry.metakernels.scalars import Scalar
from tapestry.passes.weft.recipes.bodies import build_region, element_type
from tapestry.passes.weft.recipes.monoids import Monoids, name_of
from tapestry.passes.weft.recipes.recipe import BodyRecipe, OpRecipe, Recipe
from tapestry.zspace import AffineMap, Point, Projection, Range


def make_recipe(
    expansion: Expansion,
    operands: Sequence[loom.TensorType],
    results: Sequence[loom.TensorType],
    monoids: Monoids,
) -> Recipe:
    """The operations that compute `expansion` on tensors that may start anywhere (rule 8).

    The monoids that they fold by are defined in `monoids`.
    """
    builder = _Builder(list(operands), monoids)
    numbers = builder.build(expansion, range(len(operands)), results, "")
    return Recipe(tuple(builder.ops), tuple(numbers))


@dataclass
class _Builder:
    """Collects operations; `types` are those of all values so far."""

    types: list[loom.TensorType]
    monoids: Monoids
    ops: list[OpRecipe] = field(default_factory=list[OpRecipe])

    def build(
        self,
        expansion: Expansion,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
        label: str,
    ) -> list[int]:
        """The numbers of the values that hold the results."""
        match expansion.body:
            case MapFold() as body:
                return self._operation(expansion, body, operands, results, label)
            case Move(source, read):
                return [self._view(source, operands[read], results[0])]
            case Family() as body:
                return self._family(body, operands, results, label)
            case Reshape():
                return [self._add(loom.ReshapeOp, (operands[0],), (results[0],), {})]
            case Composite() as body:
                return self._composite(expansion, body, operands, results, label)
            case Opaque() as body:
                return self._external(expansion, body, operands, results)

    def _add(
        self,
        kind: type[Operation],
        operands: tuple[int, ...],
        results: Sequence[loom.TensorType],
        properties: Mapping[str, Attribute],
        bodies: tuple[BodyRecipe | None, ...] = (),
        label: str | None = None,
    ) -> int:
        number = len(self.types)
        self.ops.append(OpRecipe(kind, operands, tuple(results), properties, bodies, label))
        self.types.extend(results)
        return number

    def _composite(
        self,
        expansion: Expansion,
        body: Composite,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
        label: str,
    ) -> list[int]:
        values = {tensor.cell: n for tensor, n in zip(expansion.inputs, operands, strict=True)}
        declared = _declared(body, results)
        for call in body.calls:
            outputs = zip(call.made, call.expansion.outputs, strict=True)
            types = [declared.get(name) or tensor_of(tensor.spec) for name, tensor in outputs]
            numbers = [values[name] for name in call.operands]
            name = "" if any(made in declared for made in call.made) else call.name
            path = "_".join(part for part in (label, name) if part)
            built = self.build(call.expansion, numbers, types, path)
            values.update(zip(call.made, built, strict=True))
        found = [values[name] for name in body.results]
        self._relabel(found, label)
        return found

    def _family(
        self,
        body: Family,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
        label: str,
    ) -> list[int]:
        """The members, and an assembly for each result that several of them make."""
        whole: dict[int, int] = {}
        parts: dict[int, list[tuple[int, AffineMap]]] = {}
        for position, member in enumerate(body.members):
            read = [operands[n] for n in member.operands]
            types, placements = self._parts(member, results)
            number = str(position) if len(body.members) > 1 else ""
            path = "_".join(part for part in (label, number) if part)
            values = self.build(member.expansion, read, types, path)
            for part, value, placement in zip(member.parts, values, placements, strict=True):
                if placement is None:
                    whole[part.output] = value
                else:
                    parts.setdefault(part.output, []).append((value, placement))
        for output, made in parts.items():
            whole[output] = self._assembly(made, results[output])
        return [whole[output] for output in range(len(results))]

    def _parts(
        self, member: Member, results: Sequence[loom.TensorType]
    ) -> tuple[list[loom.TensorType], list[AffineMap | None]]:
        """The types of what a member makes, and where that is placed in the results.

        A part that is only moved stands where its cells are in the result.
        """
        types: list[loom.TensorType] = []
        placements: list[AffineMap | None] = []
        for part, tensor in zip(member.parts, member.expansion.outputs, strict=True):
            result, placement = results[part.output], part.placement
            if placement is None:
                types.append(result)
                placements.append(None)
                continue
            placement = placement.translate(result.box.start)
            box = Range.of(tensor.spec.shape)
            identity = AffineMap.identity(placement.outputs)
            if placement.matrix == identity.matrix:
                box, placement = box.translate(placement.offset), identity
            types.append(loom.TensorType.of(box, result.element_type))
            placements.append(placement)
        return types, placements

    def _assembly(self, parts: Sequence[tuple[int, AffineMap]], result: loom.TensorType) -> int:
        rank = result.box.rank
        properties: dict[str, Attribute] = {}
        if any(placement != AffineMap.identity(rank) for _, placement in parts):
            maps = (Projection.cells(placement) for _, placement in parts)
            properties["placements"] = loom.projections_attr(maps)
        return self._add(loom.AssembleOp, tuple(n for n, _ in parts), (result,), properties)

    def _relabel(self, results: Sequence[int], label: str) -> None:
        """Give the operations that make the results the composite's label, not their step's.

        They differ where the last step moves nothing and was left out.
        """
        number = len(self.types)
        for position in reversed(range(len(self.ops))):
            op = self.ops[position]
            number -= len(op.result_types)
            if number in results:
                self.ops[position] = replace(op, label=label)

    def _view(self, source: AffineMap, operand: int, result: loom.TensorType) -> int:
        tensor = self.types[operand]
        if tensor == result and _is_identity(source):
            return operand
        moved = source.compose(
            AffineMap.identity(source.inputs).translate([-x for x in result.box.start])
        ).translate(tensor.box.start)
        projection = ProjectionAttr(Projection.cells(moved))
        return self._add(loom.ViewOp, (operand,), (result,), {"projection": projection})

    def _projections(
        self,
        expansion: Expansion,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
    ) -> tuple[list[Projection], list[Projection]]:
        """What points read and write, of tensors that may start anywhere."""
        reads = [
            _moved(projection, self.types[operand].box.start)
            for projection, operand in zip(expansion.reads, operands, strict=True)
        ]
        writes = [
            _moved(projection, result.box.start)
            for projection, result in zip(expansion.writes, results, strict=True)
        ]
        return reads, writes

    def _external(
        self,
        expansion: Expansion,
        body: Opaque,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
    ) -> list[int]:
        assert expansion.space is not None
        reads, writes = self._projections(expansion, operands, results)
        properties: dict[str, Attribute] = {
            "callee": StringAttr(body.kernel),
            "index_range": RangeAttr(Range.of(expansion.space.extents)),
            "in_projections": loom.projections_attr(reads),
            "out_projections": loom.projections_attr(writes),
        }
        if body.parameters:
            given = {name: attribute_of(value) for name, value in body.parameters}
            properties["parameters"] = DictionaryAttr(given)
        first = self._add(loom.ExternalOp, tuple(operands), results, properties)
        return list(range(first, first + len(results)))

    def _operation(
        self,
        expansion: Expansion,
        body: MapFold,
        operands: Sequence[int],
        results: Sequence[loom.TensorType],
        label: str,
    ) -> list[int]:
        space = expansion.space
        assert space is not None
        reads, writes = self._projections(expansion, operands, results)
        kept = range(space.kept)
        properties: dict[str, Attribute] = {
            "index_range": RangeAttr(Range.of(space.extents)),
            "iterators": loom.IteratorsAttr(space.kinds),
            "in_projections": loom.projections_attr(reads[n] for n in body.ins),
            "extra_projections": loom.projections_attr(
                reads[n].select_inputs(kept) for n in body.extras
            ),
            "out_projections": loom.projections_attr(writes),
            "operandSegmentSizes": _segments(len(body.ins), len(body.extras)),
        }
        for name, used in (("in_clips", body.ins), ("extra_clips", body.extras)):
            clips = loom.fills_attr([_fill(expansion, n) for n in used])
            if clips is not None:
                properties[name] = clips
        if expansion.inside is not None:
            properties["domain"] = DomainAttr(expansion.inside)
        if body.monoid is not None:
            properties["monoid"] = SymbolRefAttr(name_of(body.monoid, self.monoids))
        used = tuple(operands[n] for n in (*body.ins, *body.extras))
        first = self._add(
            loom.OperationOp, used, results, properties, _bodies(expansion, body), label
        )
        return list(range(first, first + len(results)))


def _moved(projection: Projection, start: Point) -> Projection:
    return projection.translate(start) if any(start) else projection


@lru_cache
def _segments(*sizes: int) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def _fill(expansion: Expansion, position: int) -> loom.Fill | None:
    fill = expansion.fills[position]
    return None if fill is None else number_attr(fill.value, body_type(element_type(fill.dtype)))


def _declared(body: Composite, results: Sequence[loom.TensorType]) -> dict[str, loom.TensorType]:
    """The types of the values that are results, and of those that are only passed on."""
    declared = dict(zip(body.results, results, strict=True))
    calls = {name: call for call in body.calls for name in call.made}
    for result in body.results:
        name = result
        while name in calls and _passes_on(calls[name].expansion):
            moved = calls[name].expansion.body
            source = calls[name].operands[moved.operand if isinstance(moved, Move) else 0]
            if source not in calls or source in declared:
                break
            declared[source] = declared[name]
            name = source
    return declared


def _passes_on(expansion: Expansion) -> bool:
    """Whether the result is the input: every cell of it, each where it was."""
    if not isinstance(expansion.body, Move) or not _is_identity(expansion.body.source):
        return False
    return expansion.inputs[expansion.body.operand].spec == expansion.outputs[0].spec


def _is_identity(source: AffineMap) -> bool:
    return source == AffineMap.identity(source.inputs)


def _bodies(expansion: Expansion, body: MapFold) -> tuple[BodyRecipe | None, ...]:
    def cells(positions: tuple[int, ...]) -> list[tuple[str, Attribute]]:
        given = [(expansion.inputs[n], expansion.reads[n]) for n in positions]
        return [
            (tensor.cell, loom.argument_type(read, element_type(tensor.spec.dtype)))
            for tensor, read in given
        ]

    wrap = _body_recipe(body.wrap, (), tuple(cells(body.ins)))
    if body.unwrap is None:
        return wrap, None
    state = tuple(part.dtype for part in body.wrap)
    return wrap, _body_recipe(body.unwrap, state, tuple(cells(body.extras)))


@lru_cache(maxsize=1024)
def _body_recipe(
    bodies: tuple[Scalar, ...], state: tuple[str, ...], cells: tuple[tuple[str, Attribute], ...]
) -> BodyRecipe:
    """Bodies do not depend on sizes as a rule, so most applications share theirs."""
    return BodyRecipe.of(build_region(bodies, state, cells))


def tensor_of(spec: TensorSpec) -> loom.TensorType:
    """The type of a tensor of that shape and dtype that starts at zero."""
    return loom.TensorType.of(Range.of(spec.shape), element_type(spec.dtype))
