"""Writing at computed places: `scatter`.

x.at[i].add(u)  is  result[p] = x[p] + the sum over m with i[m] = p of u[m]

so a scatter is a fold over the updates, of which those for other cells count as nothing: it splits
along both. Where an update overwrites, the last one for a cell counts. An index that is a
coordinate, as in `x.at[jnp.arange(n), i].add(u)`, folds nothing, and what is written at known
places is assembled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Region, SSAValue

from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.importers.stablehlo.affine import affine_of
from tapestry.importers.stablehlo.attributes import flag
from tapestry.importers.stablehlo.bindings import stablehlo_dialect
from tapestry.importers.stablehlo.bodies import Body, cell_type
from tapestry.importers.stablehlo.folds import identity_of, single, takes_second
from tapestry.importers.stablehlo.indexing import clamped, column, unit
from tapestry.importers.stablehlo.movement import reshape, write
from tapestry.importers.stablehlo.operations import map_operation, maps
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.scalars import scalar_body
from tapestry.importers.stablehlo.values import Value
from tapestry.zspace import Projection, Range

_MONOIDS = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}


@dataclass(frozen=True)
class Window:
    """One dimension of the operand as a scatter writes it.

    A cell at p is written by the update whose window starts at `index`, as the window's cell
    `p - index`; the window has `size` cells, along dimension `update` of the updates if any.
    """

    extent: int
    index: Value | None
    size: int
    update: int | None


def _scatter(program: Program, op: Op) -> Value:
    if len(op.results) != 1:
        raise program.error(f"{op.name} of several tensors at once is not supported")
    x, indices, updates = op.operands
    numbers = stablehlo_dialect().ScatterDimensionNumbers(
        op.attributes["scatter_dimension_numbers"]
    )
    if not updates.spec.size or not x.spec.size:
        return x
    return _Scatter(program, op, x, indices, updates, numbers).made()


class _Scatter:
    """One scatter: which cell each update is for, as projections and conditions."""

    def __init__(
        self,
        program: Program,
        op: Op,
        x: Value,
        indices: Value,
        updates: Value,
        numbers: Any,
    ) -> None:
        self.program, self.op = program, op
        self.x, self.updates = x, updates
        named = _Numbers.of(numbers)
        rank = x.spec.rank
        self.points = [d for d in range(updates.spec.rank) if d not in named.window_dims]
        kept = [d for d in range(rank) if d not in named.inserted and d not in named.batching]
        window = dict(zip(kept, named.window_dims, strict=True))
        vector = named.vector
        columns = {
            dim: column(program, indices, place, vector) for place, dim in enumerate(named.indexed)
        }
        # Which dimension of the operand is the coordinate of an update, if one is.
        self.same: dict[int, int] = {}
        for dim, of in zip(named.batching, named.indices_batching, strict=True):
            self.same[of if of < vector else of - 1] = dim
        self.windows: list[Window] = []
        for dim in range(rank):
            size = updates.spec.shape[window[dim]] if dim in window else 1
            index = columns.get(dim)
            if index is not None and size == 1:
                point = self._coordinate(index, x.spec.shape[dim])
                if point is not None and point not in self.same:
                    self.same[point] = dim
                    index = None
            self.windows.append(Window(x.spec.shape[dim], index, size, window.get(dim)))
        self.folded = [place for place in range(len(self.points)) if place not in self.same]
        self.rank = rank + len(self.folded)

    def _coordinate(self, index: Value, extent: int) -> int | None:
        """The point dimension that an index is the coordinate along, all of an extent."""
        function = affine_of(index)
        if function is None or function.constant:
            return None
        for place, n in enumerate(index.spec.shape):
            if function.coefficients == unit(index.spec.rank, place) and n == extent:
                return place
        return None

    def _row(self, place: int) -> tuple[int, ...]:
        """The coordinate of a point dimension in the index space."""
        dim = self.same.get(place)
        if dim is None:
            dim = self.x.spec.rank + self.folded.index(place)
        return unit(self.rank, dim)

    def made(self) -> Value:
        starts = [window.index for window in self.windows if window.index is not None]
        if not self.folded and all(start.known is not None for start in starts):
            made = self._assembled()
            if made is not None:
                return made
        return self._fold()

    def _assembled(self) -> Value | None:
        """One update at a known place that overwrites: a box written over the operand."""
        if self.same or not takes_second(self.op.block(0)):
            return None
        start: list[int] = []
        for window in self.windows:
            at = (
                0 if window.index is None or window.index.known is None else int(window.index.known)
            )
            if at < 0 or at + window.size > window.extent:
                return self.x
            start.append(at)
        kept = [window.update for window in self.windows if window.update is not None]
        if kept != sorted(kept):
            return None
        patch = reshape(self.program, self.updates, [window.size for window in self.windows])
        return write(self.x, patch, start, self.program)

    def _fold(self) -> Value:
        rows = tuple(self._row(place) for place in range(len(self.points)))
        ins: list[loom.Read | tuple[SSAValue, Projection]] = []
        kinds: list[Attribute] = []
        for window in self.windows:
            if window.index is not None:
                ins.append(
                    (self.program.tensor(window.index), Projection.of(rows, inputs=self.rank))
                )
                kinds.append(cell_type(window.index.spec.dtype))
        read, kind = self._update(rows)
        ins.append(read)
        kinds.append(kind)
        if not self.folded:
            return self._replaced(ins, kinds)
        return self._folded(ins, kinds)

    def _update(self, rows: Sequence[tuple[int, ...]]) -> tuple[loom.Read, Attribute]:
        """How the updates are read: a cell, or a box along windows that move."""
        spec = self.updates.spec
        matrix: list[tuple[int, ...]] = [(0,) * self.rank] * spec.rank
        shape = [1] * spec.rank
        for place, dim in enumerate(self.points):
            matrix[dim] = rows[place]
        clipped = False
        for dim, window in enumerate(self.windows):
            if window.update is None:
                continue
            if window.index is not None and window.size > 1:
                shape[window.update] = window.size
            elif window.index is None:
                matrix[window.update] = unit(self.rank, dim)
                clipped |= window.size < window.extent
        cell = cell_type(spec.dtype)
        fill = number_attr(0, cell) if clipped else None
        projection = Projection.of(matrix, None, shape, inputs=self.rank)
        kind = cell if projection.is_unit else loom.BlockType.of(shape, cell)
        return loom.Read(self.program.tensor(self.updates), projection, fill), kind

    def _chosen(self, body: Body) -> tuple[SSAValue, SSAValue]:
        """Whether the update of the point is for the cell, and the update's cell."""
        indices = iter(body.arguments)
        conditions: list[SSAValue] = []
        places: list[SSAValue] = [body.number(0, i64)] * self.updates.spec.rank
        for dim, window in enumerate(self.windows):
            if window.index is None:
                if window.update is not None and window.size < window.extent:
                    most = body.number(window.size, i64)
                    conditions.append(body.add(arith.CmpiOp(body.index(dim), most, "slt")))
                continue
            unsigned = window.index.spec.is_unsigned
            start = body.widened(next(indices), unsigned=unsigned)
            if window.size == 1:
                conditions.append(body.add(arith.CmpiOp(start, body.index(dim), "eq")))
                continue
            inside = clamped(body, start, window.extent - window.size, unsigned=False)
            conditions.append(body.add(arith.CmpiOp(start, inside, "eq")))
            place = body.add(arith.SubiOp(body.index(dim), start))
            most = body.number(window.size, i64)
            conditions.append(body.add(arith.CmpiOp(place, most, "ult")))
            assert window.update is not None
            places[window.update] = place
        cell = body.arguments[-1]
        if isinstance(cell.type, loom.BlockType):
            none = body.number(0, cell.type.element_type)
            cell = body.add(loom.ReadOp(cell, places, none))
        return body.all_of(conditions), cell

    def _replaced(
        self, ins: list[loom.Read | tuple[SSAValue, Projection]], kinds: list[Attribute]
    ) -> Value:
        """At most one update per cell: nothing is folded."""
        body = Body([cell_type(self.x.spec.dtype), *kinds])
        inner = Body(kinds)
        chosen = body.inline(inner.region(*self._chosen(inner)), body.arguments[1:])
        old = body.arguments[0]
        new = body.inline(self._region(), [old, chosen[1]])[0]
        found = body.add(arith.SelectOp(chosen[0], new, old))
        reads = [(self.program.tensor(self.x), Projection.identity(self.rank)), *ins]
        kind = self.program.kind(self.x.spec)
        return self.program.insert(map_operation("scatter", kind, reads, body.region(found)))[0]

    def _region(self) -> Region:
        spec = self.x.spec.of(shape=())
        return scalar_body(self.program, self.op.block(0), [spec, spec], self.op.environment)

    def _folded(
        self, ins: list[loom.Read | tuple[SSAValue, Projection]], kinds: list[Attribute]
    ) -> Value:
        program, spec = self.program, self.x.spec
        cell = cell_type(spec.dtype)
        body = Body(kinds)
        held, value = self._chosen(body)
        name = _MONOIDS.get(single(self.op.block(0)) or "")
        if spec.is_unsigned and name in ("max", "min"):
            name = None
        # Where every cell has one update at most, the last one is that one.
        one = name is None and flag(self.op.attributes, "unique_indices")
        last = one or takes_second(self.op.block(0))
        if last:
            order = self._order(body)
            nothing = body.number(-1, i64)
            number = body.add(arith.SelectOp(held, order, nothing))
            kept = body.add(arith.SelectOp(held, value, body.number(0, cell)))
            monoid = _last(program, cell)
            wrap = body.region(number, kept)
            unwrap = Body([i64, cell, cell])
            written, folded, other = unwrap.arguments
            there = unwrap.add(arith.CmpiOp(written, unwrap.number(0, i64), "sge"))
            new = unwrap.inline(self._region(), [other, folded])[0]
            finish = unwrap.region(unwrap.add(arith.SelectOp(there, new, other)))
        elif name is not None:
            zero = identity_of(single(self.op.block(0)) or "", spec)
            nothing = body.number(zero, cell)
            wrap = body.region(body.add(arith.SelectOp(held, value, nothing)))
            monoid = name
            unwrap = Body([cell, cell])
            finish = unwrap.region(*unwrap.inline(self._region(), unwrap.arguments[::-1]))
        else:
            raise program.error(
                f"{self.op.name} is supported where updates overwrite, are added, multiplied, or "
                "the greatest or least is kept"
            )
        rank = spec.rank
        shape = [*spec.shape, *(self.updates.spec.shape[self.points[p]] for p in self.folded)]
        op = loom.OperationOp(
            "scatter",
            Range.of(shape),
            maps(rank, len(self.folded)),
            monoid,
            ins,
            [(Projection.identity(rank), program.kind(spec))],
            wrap,
            extras=[(program.tensor(self.x), Projection.identity(rank))],
            unwrap=finish,
        )
        return program.insert(op)[0]

    def _order(self, body: Body) -> SSAValue:
        """The number of an update among those that are folded."""
        order = body.number(0, i64)
        for place, of in enumerate(self.folded):
            extent = self.updates.spec.shape[self.points[of]]
            scaled = body.add(arith.MuliOp(order, body.number(extent, i64)))
            order = body.add(arith.AddiOp(scaled, body.index(self.x.spec.rank + place)))
        return order


@dataclass(frozen=True)
class _Numbers:
    """Dimension numbers of a scatter."""

    window_dims: list[int]
    inserted: list[int]
    batching: list[int]
    indices_batching: list[int]
    indexed: list[int]
    vector: int

    @staticmethod
    def of(numbers: Any) -> _Numbers:
        named = {
            key: [int(dim) for dim in getattr(numbers, attribute)]
            for key, attribute in (
                ("window_dims", "update_window_dims"),
                ("inserted", "inserted_window_dims"),
                ("batching", "input_batching_dims"),
                ("indices_batching", "scatter_indices_batching_dims"),
                ("indexed", "scattered_dims_to_operand_dims"),
            )
        }
        return _Numbers(**named, vector=int(numbers.index_vector_dim))


def _last(program: Program, cell: Attribute) -> str:
    """The monoid of (number, value) that keeps the value of the greatest number."""
    body = Body([i64, cell, i64, cell])
    a, x, b, y = body.arguments
    later = body.add(arith.CmpiOp(b, a, "sge"))
    number = body.add(arith.SelectOp(later, b, a))
    value = body.add(arith.SelectOp(later, y, x))
    zero = [number_attr(-(2**63), i64), number_attr(0, cell)]
    return program.define_monoid(zero, body.region(number, value))


TRANSLATIONS: dict[str, Translation] = {"stablehlo.scatter": _scatter}
