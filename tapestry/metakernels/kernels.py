"""Types the bodies of an expansion: in which precision they compute, and what they read.

Bodies that round (arithmetic, functions, sums and products) compute half-precision cells in f32 and
round once, when the output is written; choosing among cells (max, where, comparisons) stays in
their own type. Integers compute in their own type, but what has no sign folds in a signed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tapestry.metakernels.blocks import Block, block_of
from tapestry.metakernels.bodies import Body, rounds
from tapestry.metakernels.constants import Known, extreme
from tapestry.metakernels.dtypes import is_unsigned
from tapestry.metakernels.errors import DtypeMismatchError, RankMismatchError, UnsupportedError
from tapestry.metakernels.evaluation import Scope
from tapestry.metakernels.expansion import Expansion, MapFold
from tapestry.metakernels.monoids import (
    MONOIDS,
    STATISTICS,
    find,
    same_float,
    type_definition,
    widens,
)
from tapestry.metakernels.scalars import (
    Cast,
    Folded,
    Operation,
    Scalar,
    cell_names,
    replaced,
    with_state,
)
from tapestry.metakernels.syntax import ProjectionExpr
from tapestry.metakernels.templates import Bodies, Source, Template


def type_bodies(
    template: Template, expansion: Expansion, scope: Scope, mapped: Scope
) -> MapFold | None:
    """The typed bodies of `expansion`; None for a template without `wrap`.

    `scope` is that of the whole index, `mapped` that of the kept dimensions, which `unwrap` runs
    over.
    """
    if not template.wrap:
        return None
    return _Typing(template, expansion, _blocks(template, expansion, scope)).bodies(scope, mapped)


def _blocks(template: Template, expansion: Expansion, scope: Scope) -> dict[str, Block]:
    """The blocks that bodies read, by the names of inputs."""
    entries = {entry.name: entry for entry in template.inputs}
    blocks: dict[str, Block | None] = {}
    for tensor, read in zip(expansion.inputs, expansion.reads, strict=True):
        entry = entries[tensor.name]
        local = {} if entry.each is None else {entry.each: tensor.position or 0}
        inside = replace(scope, names={**scope.names, **local})
        blocks[tensor.cell] = block_of(entry.projection.tree, read, inside)
    return {name: block for name, block in blocks.items() if block is not None}


class _Typing:
    def __init__(
        self, template: Template, expansion: Expansion, blocks: Mapping[str, Block]
    ) -> None:
        self.template = template
        self.expansion = expansion
        self.cells = {tensor.cell: tensor.spec.dtype for tensor in expansion.inputs}
        self.positions = {tensor.cell: i for i, tensor in enumerate(expansion.inputs)}
        self.absent = frozenset(entry.name for entry in template.inputs) - {
            tensor.name for tensor in expansion.inputs
        }
        self.entries = {entry.name: entry for entry in template.inputs}
        sources = [source for _, source in (*template.wrap, *template.unwrap)]
        self.blocks = blocks
        self.widen = widens(template.monoid, template.monoids) or any(
            rounds(source.tree) for source in sources
        )

    def bodies(self, scope: Scope, mapped: Scope) -> MapFold:
        template = self.template
        if template.monoid is None:
            wrap = self._outputs(template.wrap, self._body(scope), "wrap")
            return MapFold(None, self._read(wrap), (), wrap, None)
        wrap = self._state(scope, template.monoid)
        unwrap = self._unwrap(mapped, tuple(part.dtype for part in wrap))
        wrap, unwrap = _signed_state(wrap, unwrap, template.monoid)
        if self._folds_nothing():
            single = wrap if unwrap is None else tuple(with_state(part, wrap) for part in unwrap)
            return MapFold(None, self._read(single), (), single, None)
        ins, extras = self._read(wrap), self._extras(unwrap or ())
        own = find(template.monoid, template.monoids)
        state = tuple(part.dtype for part in wrap)
        monoid = template.monoid if own is None else type_definition(own, scope, state)
        return MapFold(monoid, ins, extras, wrap, unwrap)

    def _folds_nothing(self) -> bool:
        """Whether the fold is over no dimensions: then each point is all that is folded."""
        space = self.expansion.space
        if space is None or self.expansion.inside is not None:
            return False
        return not {"fold", "scan"} & set(space.kinds)

    def _body(self, scope: Scope, state: tuple[str, ...] = ()) -> Body:
        return Body(scope, self.cells, state, self.widen, blocks=self.blocks, absent=self.absent)

    def _state(self, scope: Scope, monoid: str) -> tuple[Scalar, ...]:
        body = self._body(scope)
        parts: list[Scalar] = []
        if monoid in STATISTICS:
            terms: list[Scalar | Known] = []
            for _, source in self.template.wrap:
                with source.explain("wrap"):
                    terms.append(body.term(source.tree))
            with self.template.wrap[0][1].explain("wrap"):
                return tuple(same_float(terms, monoid))
        for _, source in self.template.wrap:
            with source.explain("wrap"):
                parts.append(body.state(source.tree))
        if find(monoid, self.template.monoids) is not None:
            return tuple(parts)
        first, source = parts[0], self.template.wrap[0][1]
        with source.explain("wrap"):
            if first.dtype == "i1" and monoid not in ("and", "or"):
                raise DtypeMismatchError(
                    f"{monoid} of truth values (i1)", hint="count them as numbers: cast(..., i64)"
                )
            if first.dtype != "i1" and monoid in ("and", "or"):
                raise DtypeMismatchError(
                    f"{monoid} folds truth values (i1), not {first.dtype}",
                    hint="make one: x != 0",
                )
        if MONOIDS[monoid] == 2:
            source = self.template.wrap[1][1]
            with source.explain("wrap"):
                if parts[1].dtype != "i64":
                    raise DtypeMismatchError(
                        f"the second part of {monoid} is a position (i64), not {parts[1].dtype}"
                    )
        return tuple(parts)

    def _unwrap(self, scope: Scope, state: tuple[str, ...]) -> tuple[Scalar, ...] | None:
        template = self.template
        if template.unwrap:
            body = self._body(scope, state)
            return self._outputs(template.unwrap, body, "unwrap")
        outputs = self.expansion.outputs
        if len(outputs) != len(state):
            raise RankMismatchError(
                f"template {template.name}: the folded state has {len(state)} parts for "
                f"{len(outputs)} outputs",
                location=template.location,
                hint='unwrap says which: unwrap: "fold[1]"',
            )
        wanted = tuple(output.spec.dtype for output in outputs)
        if wanted == state:
            return None
        body = Body(scope, {}, state)
        parts: list[Scalar] = []
        for part, dtype in enumerate(wanted):
            with template.wrap[part][1].explain("wrap"):
                parts.append(body.convert(Folded(part, state[part]), dtype))
        return tuple(parts)

    def _outputs(self, bodies: Bodies, body: Body, what: str) -> tuple[Scalar, ...]:
        entries = {entry.name: entry for entry in self.template.outputs}
        sources = {
            name or entry: source for entry, (name, source) in zip(entries, bodies, strict=True)
        }
        values: list[Scalar] = []
        for output in self.expansion.outputs:
            source, each = sources[output.name], entries[output.name].each
            local = body.within({} if each is None else {each: output.position or 0})
            with source.explain(what):
                values.append(local.read(source.tree, output.spec.dtype))
        return tuple(values)

    def _read(self, bodies: tuple[Scalar, ...]) -> tuple[int, ...]:
        return tuple(sorted(self.positions[name] for name in cell_names(bodies)))

    def _projection(self, position: int) -> Source[ProjectionExpr]:
        return self.entries[self.expansion.inputs[position].name].projection

    def _extras(self, bodies: tuple[Scalar, ...]) -> tuple[int, ...]:
        space = self.expansion.space
        assert space is not None
        read = self._read(bodies)
        for position in read:
            matrix = self.expansion.reads[position].map.matrix
            if any(c for row in matrix for c in row[space.kept :]):
                source = self._projection(position)
                raise UnsupportedError(
                    f"unwrap reads {self.expansion.inputs[position].title}, whose projection "
                    f"`{source.text}` moves with a folded dimension",
                    location=source.text.location,
                    hint="after the fold only the dimensions that are kept have a coordinate",
                )
        return read


_SIGNED: Final = {"ui8": "i32", "ui16": "i32", "ui32": "i64", "ui64": "i64"}
"""What holds unsigned parts of a state: their numbers, or their bits where none is wider."""
_ORDERED: Final = ("max", "min", "argmax", "argmin")
"""Monoids that compare the first part of their states."""


def _signed_state(
    wrap: tuple[Scalar, ...], unwrap: tuple[Scalar, ...] | None, monoid: str
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...] | None]:
    """The bodies, with unsigned parts of the state kept in signed types.

    Sums and products of bits are the bits of sums and products. For an order, the sign bit of 64
    bits is flipped, which puts the greatest numbers above the least.
    """
    if not any(is_unsigned(part.dtype) for part in wrap):
        return wrap, unwrap
    flipped = monoid in _ORDERED and wrap[0].dtype == "ui64"

    def narrowed(part: Scalar) -> Scalar | None:
        if isinstance(part, Folded) and is_unsigned(part.dtype):
            held = Folded(part.part, _SIGNED[part.dtype])
            return Cast(_flipped(held) if flipped and part.part == 0 else held, part.dtype)
        return None

    wide = [Cast(part, _SIGNED[part.dtype]) if is_unsigned(part.dtype) else part for part in wrap]
    if flipped:
        wide[0] = _flipped(wide[0])
    plain = tuple(Folded(place, part.dtype) for place, part in enumerate(wrap))
    return tuple(wide), tuple(replaced(body, narrowed) for body in unwrap or plain)


def _flipped(part: Scalar) -> Scalar:
    return Operation("xor", (part, extreme("lowest", "i64")), "i64")
