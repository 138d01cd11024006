"""Monoids on tiles: the zero, merging two states, folding or scanning a tile along an axis.

The parts of a state are tiles of one shape. A monoid of one scalar operation on 16-bit floats keeps
its state in float32 until the fold is done: sums of half precision accumulate in single.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra.monoids import BUILTIN_MONOIDS, Monoid, accumulating, builtin_monoid
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import shape_of
from tapestry.passes.triton.tiles.bodies import Values, no_coordinate, no_read, write_body
from tapestry.passes.triton.tiles.builder import TileBuilder

State = tuple[SSAValue, ...]


_ATOMICS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}
"""Not maxima of floats: those here propagate NaN, and atomics do not."""


def builtin_of(primitive: type[Operation], element: Attribute) -> Monoid | None:
    """The monoid that merges numbers of a type by one operation."""
    made = (builtin_monoid(name, (element,)) for name in BUILTIN_MONOIDS)
    return next((one for one in made if one is not None and one.primitive is primitive), None)


@dataclass(frozen=True, eq=False)
class FoldState:
    """A monoid and the element types that its parts are kept in while folding."""

    monoid: Monoid
    elements: tuple[Attribute, ...]

    @staticmethod
    def of(monoid: Monoid) -> FoldState:
        """The state that `monoid` folds in."""
        return FoldState(monoid, accumulating(monoid).state)

    @property
    def atomic(self) -> str | None:
        """How memory merges states by itself, whichever comes first; None where it cannot."""
        monoid = accumulating(self.monoid)
        if not monoid.commutative or monoid.state[0] not in (f32, f64, i32, i64):
            return None
        return _ATOMICS.get(monoid.primitive) if monoid.primitive is not None else None

    def enter(self, tiles: TileBuilder, parts: Sequence[SSAValue]) -> State:
        """Parts in their own types as they are kept."""
        return tuple(tiles.cast(p, e) for p, e in zip(parts, self.elements, strict=True))

    def leave(self, tiles: TileBuilder, parts: Sequence[SSAValue]) -> State:
        """Kept parts in their own types."""
        return tuple(tiles.cast(p, e) for p, e in zip(parts, self.monoid.state, strict=True))

    def zero(self, tiles: TileBuilder, blocks: Sequence[str], names: Sequence[str]) -> State:
        """The state of an empty fold, over a tile of named blocks; `names` are for its parts."""
        rows = zip(self.monoid.real_zero, self.elements, names, strict=True)
        return tuple(tiles.full(zero, element, blocks, name) for zero, element, name in rows)

    def masked(self, tiles: TileBuilder, parts: Sequence[SSAValue], mask: SSAValue | None) -> State:
        """The zero in lanes that are not points: what value masks are for."""
        if mask is None:
            return tuple(parts)
        pairs = zip(parts, self.monoid.real_zero, self.elements, strict=True)
        return tuple(
            tiles.where(mask, part, tiles.constant(zero, element)) for part, zero, element in pairs
        )

    def merge(self, tiles: TileBuilder, a: Sequence[SSAValue], b: Sequence[SSAValue]) -> State:
        """Two states merged, cell by cell, in the types that they are accumulated in."""
        wide = accumulating(self.monoid)
        body = (wide if tuple(self.elements) == tuple(wide.state) else self.monoid).merge
        values: Values = dict(zip(body.args, (*a, *b), strict=True))
        write_body(tiles, body.ops, values, no_coordinate, no_read)
        return tuple(values[value] for value in loom.yielded(body))

    def reduce(
        self, tiles: TileBuilder, parts: Sequence[SSAValue], axis: int, names: Sequence[str]
    ) -> State:
        """A state folded along one axis of its tiles; `names` are for the parts that are left.

        Parts that merge by themselves are folded by themselves.
        """
        apart = self._apart()
        if apart is None:
            return self._combine(triton.ReduceOp, tiles, parts, axis, names)
        return tuple(
            single.reduce(tiles, [part], axis, [name])[0]
            for single, part, name in zip(apart, parts, names, strict=True)
        )

    def _apart(self) -> tuple[FoldState, ...] | None:
        """The parts of a state as states, where each is merged by an operation of its own."""
        primitives = self.monoid.primitives
        if len(primitives) == 1 or None in primitives:
            return None
        pairs = zip(primitives, self.elements, strict=True)
        found = [builtin_of(primitive, element) for primitive, element in pairs if primitive]
        # One that accumulates in another type would round in other places.
        singles = [
            FoldState(one, one.state)
            for one in found
            if one is not None and accumulating(one) is one
        ]
        return tuple(singles) if len(singles) == len(primitives) else None

    def scan(
        self, tiles: TileBuilder, parts: Sequence[SSAValue], axis: int, names: Sequence[str]
    ) -> State:
        """The running states along one axis of tiles; `names` are for their parts."""
        return self._combine(triton.ScanOp, tiles, parts, axis, names)

    def _combine(
        self,
        kind: type[triton.ReduceOp | triton.ScanOp],
        tiles: TileBuilder,
        parts: Sequence[SSAValue],
        axis: int,
        names: Sequence[str],
    ) -> State:
        body = Block(arg_types=self.elements * 2)
        combiner = TileBuilder(body, {}, tiles.index)
        half = len(self.elements)
        for number, argument in enumerate(body.args):
            side = "ab"[number // half]
            argument.name_hint = side if half == 1 else f"{side}{number % half}"
        merged = self.merge(combiner, body.args[:half], body.args[half:])
        body.add_op(triton.YieldOp(*merged))
        shape = shape_of(parts[0])
        assert all(shape_of(part) == shape for part in parts)
        op = kind(self.monoid.name, parts, axis, Region(body))
        tiles.append(op)
        for out, name in zip(op.outs, names, strict=True):
            out.name_hint = name
        return tuple(op.outs)
