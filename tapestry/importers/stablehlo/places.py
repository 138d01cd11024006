"""Which cell each update of a scatter is for, as projections and conditions.

    x.at[jnp.arange(4), i].add(u)      cell (p, q) has the update p, where i[p] == q

The index space of a scatter is the operand's dimensions, and those of the updates that are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.stablehlo.affine import affine_of
from tapestry.importers.stablehlo.indexing import clamped, column, unit
from tapestry.importers.stablehlo.program import Program
from tapestry.importers.stablehlo.values import Value
from tapestry.zspace import Projection

Reads = list[loom.Read | tuple[SSAValue, Projection]]


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


@dataclass(frozen=True)
class Numbers:
    """Dimension numbers of a scatter."""

    window_dims: list[int]
    inserted: list[int]
    batching: list[int]
    indices_batching: list[int]
    indexed: list[int]
    vector: int

    @staticmethod
    def of(numbers: Any) -> Numbers:
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
        return Numbers(**named, vector=int(numbers.index_vector_dim))


class Places:
    """Where the updates of one scatter go."""

    def __init__(
        self,
        program: Program,
        x: Value,
        indices: Value,
        updates: Value,
        numbers: Any,
    ) -> None:
        self.program, self.x, self.updates = program, x, updates
        named = Numbers.of(numbers)
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

    def reads(self) -> tuple[Reads, list[Attribute]]:
        """The indices and the updates as a body takes them, and their types there."""
        rows = tuple(self._row(place) for place in range(len(self.points)))
        ins: Reads = []
        kinds: list[Attribute] = []
        for window in self.windows:
            if window.index is not None:
                projection = Projection.of(rows, inputs=self.rank)
                ins.append((self.program.tensor(window.index), projection))
                kinds.append(cell_type(window.index.spec.dtype))
        read, kind = self._update(rows)
        return [*ins, read], [*kinds, kind]

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

    def chosen(self, body: Body) -> tuple[SSAValue, SSAValue]:
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

    def order(self, body: Body) -> SSAValue:
        """The number of an update among those that are folded."""
        order = body.number(0, i64)
        for place, of in enumerate(self.folded):
            extent = self.updates.spec.shape[self.points[of]]
            scaled = body.add(arith.MuliOp(order, body.number(extent, i64)))
            order = body.add(arith.AddiOp(scaled, body.index(self.x.spec.rank + place)))
        return order
