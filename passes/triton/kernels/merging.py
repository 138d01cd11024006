"""Merges of partial states as maps: which parts a kernel merges, over which dimensions.

    %y = loom.merge @attention over <[0, 0] : [4, 8]> states(%m0, %o0, %m1, %o1)
           : (!loom.tensor<[0] : [4], f32>, !loom.tensor<[0, 0] : [4, 8], f32>, ...) -> ...

A merged state is kept in buffers, into which one partial state after another is merged in place. So
each cell must be merged by one point: parts over the same dimensions are merged by a kernel over
those, the maxima above by one over d0. A part with more dimensions comes before those that merging
it reads, which are still those from before then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.parts import Axes, closed
from tapestry.dialects import loom
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor, copy_of
from tapestry.zspace import Projection, Range


@dataclass(frozen=True, eq=False)
class Step:
    """A map, and which arguments of the monoid's merge it reads and parts it writes."""

    fold: MapFold
    arguments: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Merging:
    """A merge's index space and monoid, and the kept dimensions that each part is kept over."""

    fold: MapFold
    monoid: Monoid
    axes: tuple[Axes, ...]

    @staticmethod
    def of(fold: MapFold, states: Sequence[Sequence[Axes]]) -> Merging:
        """The merge of states whose parts are stored over some of the kept dimensions each.

        A part is kept over the dimensions that any of its states has, or that any part has which
        merging it reads.
        """
        assert fold.monoid is not None
        held = [frozenset[int]().union(*along) for along in zip(*states, strict=True)]
        axes = tuple(tuple(sorted(dims)) for dims in closed(fold.monoid, held))
        return Merging(fold, fold.monoid, axes)

    @property
    def over(self) -> Range:
        """The range of the kept dimensions that is merged."""
        return self.fold.kept_range(self.fold.index)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The merged state, as a map over the kept dimensions reads it."""
        every = tuple(range(self.over.rank))
        return tuple(self._state(part, every) for part in range(len(self.axes)))

    def steps(self, box: Range, stored: Sequence[Axes]) -> list[Step]:
        """The maps that merge a partial state over `box`, stored over some dimensions, in order."""
        groups = sorted(set(self.axes), key=lambda axes: -len(axes))
        return [self._step(box, stored, axes) for axes in groups]

    def copy(self, part: int, axes: Axes, name: str) -> MapFold:
        """The map that writes a part of the merged state over other dimensions."""
        source = self._state(part, axes)
        box = self.over.select(axes)
        target = Tensor(name, box, source.element, Projection.identity(len(axes)))
        return copy_of("copy", box, source, target)

    def _step(self, box: Range, stored: Sequence[Axes], axes: Axes) -> Step:
        """The map of the parts that are kept over `axes`.

        It merges with what is in the same cell (zero at first), or where a scan goes on, with the
        state just before `box`.
        """
        parts = tuple(part for part, along in enumerate(self.axes) if along == axes)
        body, arguments = _merge_of(self.monoid, parts)
        scan, held = self.fold.scan_dim, dict[int, int]()
        if scan is not None and box.start[scan] != self.over.start[scan]:
            held = {scan: box.start[scan] - 1}
        ins: list[Tensor] = []
        for argument in arguments:
            part = argument % len(self.axes)
            state = self._state(part, axes, held)
            if argument >= len(self.axes):
                along = stored[part]
                projection = _projection(along, axes)
                name = f"{state.name}_partial"
                state = Tensor(name, box.select(along), state.element, projection)
            ins.append(state)
        fold = MapFold(
            name=f"{self.fold.name}_merge",
            index=box.select(axes),
            kinds=("map",) * len(axes),
            ins=tuple(ins),
            extras=(),
            outs=tuple(self._state(part, axes) for part in parts),
            wrap=body,
            unwrap=None,
            monoid=None,
            partition=None,
        )
        return Step(fold, arguments, parts)

    def _state(self, part: int, axes: Axes, held: dict[int, int] | None = None) -> Tensor:
        """A part of the merged state as a map over `axes` reads it; some coordinates are `held`.

        A dimension that the map lacks is held too: the part is the same all along it.
        """
        along = self.axes[part]
        name = "state" if len(self.axes) == 1 else f"state{part}"
        fixed = {axis: self.over.start[axis] for axis in along if axis not in axes} | (held or {})
        box = self.over.select(along)
        return Tensor(name, box, self.monoid.state[part], _projection(along, axes, fixed))


def _projection(along: Axes, axes: Axes, held: dict[int, int] | None = None) -> Projection:
    """From a point over `axes` to its cell of a tensor over `along`; `held` has fixed coordinates.

    >>> print(_projection((0, 2), (0, 1, 2)), _projection((0, 2), (0,), {2: 5}))
    (d0, d1, d2) -> (d0, d2) (d0) -> (d0, 5)
    """
    fixed = held or {}
    rows = [[int(a == axis and axis not in fixed) for a in axes] for axis in along]
    return Projection.of(rows, [fixed.get(axis, 0) for axis in along], inputs=len(axes))


def _merge_of(monoid: Monoid, parts: tuple[int, ...]) -> tuple[Block, tuple[int, ...]]:
    """What merges some parts alone, and which arguments of the merge it takes."""
    merge = monoid.merge
    if len(parts) == len(monoid.state):
        return merge, tuple(range(len(merge.args)))
    wanted = [monoid.merged[part] for part in parts]
    needed = needed_operations(wanted)
    used = {operand for op in needed for operand in op.operands} | set(wanted)
    arguments = tuple(n for n, argument in enumerate(merge.args) if argument in used)
    body = Block(arg_types=[merge.args[n].type for n in arguments])
    values: dict[SSAValue, SSAValue] = {}
    for n, new in zip(arguments, body.args, strict=True):
        new.name_hint = merge.args[n].name_hint
        values[merge.args[n]] = new
    for op in merge.ops:
        if op in needed:
            body.add_op(op.clone(value_mapper=values))
    body.add_op(loom.YieldOp(*(values[value] for value in wanted)))
    return body, arguments
