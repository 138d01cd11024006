"""Writing at computed places: `scatter`.

x.at[i].add(u)  is  result[p] = x[p] + the sum over m with i[m] = p of u[m]

so a scatter is a fold over the updates, of which those for other cells count as nothing: it splits
along both. Where an update overwrites, the last one for a cell counts; of `x.at[i].apply(f)` is
folded how often a cell is named. An index that is a coordinate, as in
`x.at[jnp.arange(n), i].add(u)`, folds nothing, and what is written at known places is assembled.
"""

from __future__ import annotations

from math import prod
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Region, SSAValue

from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.importers.bodies import Body, cell_type
from tapestry.importers.operations import map_operation, maps
from tapestry.importers.stablehlo.attributes import flag
from tapestry.importers.stablehlo.bindings import stablehlo_dialect
from tapestry.importers.stablehlo.folds import identity_of, ignores_second, single, takes_second
from tapestry.importers.stablehlo.movement import reshape, write
from tapestry.importers.stablehlo.places import Places, Reads
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

_UNSIGNED = {"max": arith.MaxUIOp, "min": arith.MinUIOp}
"""Of numbers without a sign, what these mean."""

_MOST_TIMES: Final = 64
"""How often a function is applied to a cell that is named again and again: it is written out."""


def _scatter(program: Program, op: Op) -> Value:
    if len(op.results) != 1:
        raise program.error(f"{op.name} of several tensors at once is not supported")
    x, indices, updates = op.operands
    numbers = stablehlo_dialect().ScatterDimensionNumbers(
        op.attributes["scatter_dimension_numbers"]
    )
    if not updates.spec.size or not x.spec.size:
        return x
    return _Scatter(program, op, Places(program, x, indices, updates, numbers)).made()


class _Scatter:
    """One scatter: an assembly, a choice for each cell, or a fold over the updates."""

    def __init__(self, program: Program, op: Op, places: Places) -> None:
        self.program, self.op, self.places = program, op, places
        self.x, self.updates = places.x, places.updates

    def made(self) -> Value:
        starts = [window.index for window in self.places.windows if window.index is not None]
        if not self.places.folded and all(start.known is not None for start in starts):
            made = self._assembled()
            if made is not None:
                return made
        ins, kinds = self.places.reads()
        return (self._folded if self.places.folded else self._replaced)(ins, kinds)

    def _assembled(self) -> Value | None:
        """One update at a known place that overwrites: a box written over the operand."""
        if self.places.same or not takes_second(self.op.block(0)):
            return None
        start: list[int] = []
        for window in self.places.windows:
            at = (
                0 if window.index is None or window.index.known is None else int(window.index.known)
            )
            if at < 0 or at + window.size > window.extent:
                return self.x
            start.append(at)
        kept = [window.update for window in self.places.windows if window.update is not None]
        if kept != sorted(kept):
            return None
        patch = reshape(self.program, self.updates, [window.size for window in self.places.windows])
        return write(self.x, patch, start, self.program)

    def _replaced(self, ins: Reads, kinds: list[Attribute]) -> Value:
        """At most one update per cell: nothing is folded."""
        body = Body([cell_type(self.x.spec.dtype), *kinds])
        inner = Body(kinds)
        chosen = body.inline(inner.region(*self.places.chosen(inner)), body.arguments[1:])
        old = body.arguments[0]
        new = body.inline(self._region(), [old, chosen[1]])[0]
        found = body.add(arith.SelectOp(chosen[0], new, old))
        reads = [(self.program.tensor(self.x), Projection.identity(self.places.rank)), *ins]
        kind = self.program.kind(self.x.spec)
        return self.program.insert(map_operation("scatter", kind, reads, body.region(found)))[0]

    def _region(self) -> Region:
        spec = self.x.spec.of(shape=())
        return scalar_body(self.program, self.op.block(0), [spec, spec], self.op.environment)

    def _folded(self, ins: Reads, kinds: list[Attribute]) -> Value:
        program, spec = self.program, self.x.spec
        cell = cell_type(spec.dtype)
        body = Body(kinds)
        held, value = self.places.chosen(body)
        name = _MONOIDS.get(single(self.op.block(0)) or "")
        # Where every cell has one update at most, the last one is that one.
        one = name is None and flag(self.op.attributes, "unique_indices")
        last = one or takes_second(self.op.block(0))
        if last:
            order = self.places.order(body)
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
            merge = _UNSIGNED.get(name) if spec.is_unsigned else None
            monoid = name
            if merge is not None:
                assert isinstance(zero, int)
                monoid = _merged(program, merge, cell, zero)
            unwrap = Body([cell, cell])
            finish = unwrap.region(*unwrap.inline(self._region(), unwrap.arguments[::-1]))
        elif ignores_second(self.op.block(0)):
            one, none = body.number(1, i64), body.number(0, i64)
            wrap = body.region(body.add(arith.SelectOp(held, one, none)))
            monoid = "add"
            unwrap = Body([i64, cell])
            finish = unwrap.region(self._repeated(unwrap))
        else:
            raise program.error(
                f"{self.op.name} is supported where updates overwrite, are added, multiplied, or "
                "the greatest or least is kept, and where a function of the cell alone is applied"
            )
        rank = spec.rank
        shape = [
            *spec.shape,
            *(self.updates.spec.shape[self.places.points[p]] for p in self.places.folded),
        ]
        op = loom.OperationOp(
            "scatter",
            Range.of(shape),
            maps(rank, len(self.places.folded)),
            monoid,
            ins,
            [(Projection.identity(rank), program.kind(spec))],
            wrap,
            extras=[(program.tensor(self.x), Projection.identity(rank))],
            unwrap=finish,
        )
        return program.insert(op)[0]

    def _repeated(self, body: Body) -> SSAValue:
        """What `.at[i].apply(f)` makes of a cell: `f` as often as the cell is named."""
        sizes = [self.updates.spec.shape[self.places.points[p]] for p in self.places.folded]
        most = prod(sizes)
        if most > _MOST_TIMES:
            raise self.program.error(
                f"{self.op.name} applies a function up to {most} times to a cell; at most "
                f"{_MOST_TIMES} are supported",
                hint=".at[i].apply(f, unique_indices=True) applies it once",
            )
        times, cell = body.arguments
        for number in range(most):
            (new,) = body.inline(self._region(), [cell, cell])
            again = body.add(arith.CmpiOp(times, body.number(number, i64), "sgt"))
            cell = body.add(arith.SelectOp(again, new, cell))
        return cell


def _merged(
    program: Program, merge: type[arith.MaxUIOp | arith.MinUIOp], cell: Attribute, zero: int
) -> str:
    """The monoid that merges cells by an operation."""
    body = Body([cell, cell])
    a, b = body.arguments
    region = body.region(body.add(merge(a, b)))
    return program.define_monoid([number_attr(zero, cell)], region)


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
