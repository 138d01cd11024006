"""A fold inside of a kernel, block by block: rebase what was folded, fold the block, add.

    m_new = tl.maximum(m, tl.reduce(s, 1, ...))                 # a cluster merges by itself
    scale = tl.exp(m - m_new)
    p = tl.exp(s - m_new[:, None])
    l = l * scale + tl.sum(p, 1)                                # an addend: moved, and added to
    o = tl.dot(p.to(tl.float16), v, o * scale[:, None])         # a product's sum is a contraction

Nothing here knows what is folded: `folding.py` says which parts are which, from the monoid and the
body alone. A part is a tile over the axes that it varies along, rows alone or rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from tapestry.algebra.monoids import builtin_monoid
from tapestry.dialects import loom
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.groups.counts import counted_parts, total
from tapestry.passes.triton.groups.dots import Dot, unit_dims
from tapestry.passes.triton.groups.folding import Addend, Cluster, vanishes
from tapestry.passes.triton.groups.members import Given, Members, Placed
from tapestry.passes.triton.groups.roles import Fold
from tapestry.passes.triton.groups.units import LEAST
from tapestry.passes.triton.indexing.positions import Axis, Frame
from tapestry.passes.triton.kernels.products import Product, joint_factors, summed_type
from tapestry.passes.triton.kernels.steps import part_names
from tapestry.passes.triton.tiles.folds import FoldState, State


@dataclass(frozen=True, eq=False)
class FoldWriter:
    """Writes one fold of a group along its axis."""

    members: Members
    number: int
    fold: Fold
    axis: str

    @property
    def _state(self) -> tuple[str, ...]:
        return tuple(part_names(self.fold.member.fold, len(self.fold.folding.monoid.state)))

    def frame(self, part: int) -> Frame:
        """The axes that a part of the state is a tile over."""
        roles = self.members.roles
        found = roles.frame(self.fold.varying[part])
        return found if found or not roles.has_rows else roles.frame(frozenset(), "M")

    @property
    def size(self) -> int:
        """How many tiles the state is: a part each, and then the units of parts that have some."""
        return len(self.fold.folding.monoid.state) + len(self._unit_frames)

    @cached_property
    def _unit_frames(self) -> Mapping[int, Frame]:
        """The parts that are sums in units, in order, and the axis of each one's units.

        No part that others are computed of while it is folded. Nor where the domain leaves out
        points of some columns of a row alone: its cells could be far greater than all that others
        have, and a unit be too large for these.
        """
        if not self.members.options.rounds or self.fold.folding.addends:
            return {}
        space, roles = self.members.writer.space, self.members.roles
        rows = [space.along(row) - roles.scalar for row in self.members.domain(self.number)]
        found: dict[int, Frame] = {}
        for part, product in sorted(self.fold.products.items()):
            dims = unit_dims(self.members.group, self.number, part, self._summed_product(product))
            if dims is None:
                continue
            frame = roles.frame(dims)
            if all(along <= {*frame, self.axis} for along in rows):
                found[part] = frame
        return found

    def zero(self) -> State:
        """The state of an empty fold."""
        monoid, tiles = self.fold.folding.monoid, self.members.tiles
        blocks = self.members.writer.blocks
        parts = zip(monoid.real_zero, monoid.state, self._state, strict=True)
        return (
            *(
                tiles.full(zero, kind, blocks(self.frame(part)), name)
                for part, (zero, kind, name) in enumerate(parts)
            ),
            *(
                tiles.full(LEAST, f32, blocks(frame), f"{self._state[part]}_unit")
                for part, frame in self._unit_frames.items()
            ),
        )

    def placed(self, parts: Sequence[SSAValue]) -> list[Placed]:
        """Parts of a finished state with the axes of their tiles."""
        tiles, wrap = self.members.tiles, self.fold.member.fold.wrap
        found: list[Placed] = []
        length = self.members.writer.positions.length(self._walked)
        count = len(self.fold.folding.monoid.state)
        units = dict(zip(self._unit_frames, parts[count:], strict=True))
        for part, value in enumerate(parts[:count]):
            if part in self._counts:
                value = self._total(part, length)
            if part in units:
                unit = Placed(units[part], self._unit_frames[part])
                by = unit.over(tiles, self.frame(part))
                value = tiles.once(arith.MulfOp, *tiles.pair(value, by))
            product = self.fold.products.get(part)
            if product is not None and self._scales_later(product):
                given = self.members.inputs(self.number, wrap.args)
                scale = self.members.evaluate(self.number, wrap, product.scale, given)
                for factor in joint_factors(tiles, [one.value for one in scale]):
                    value = tiles.once(arith.MulfOp, *tiles.pair(value, factor))
            found.append(Placed(value, self.frame(part)))
        return found

    def _summed_product(self, product: Product) -> Product:
        """A product as it is summed up: with its scale, unless the finished sum is scaled."""
        return product if self._scales_later(product) else product.joined

    def _scales_later(self, product: Product) -> bool:
        """Whether the finished sum is scaled instead of a side: no part needs it before."""
        rounds = self.members.options.rounds
        return rounds and product.multiplies_halves and not self.fold.folding.addends

    @property
    def _walked(self) -> Axis:
        return self.members.writer.axes[self.axis]

    @cached_property
    def _counts(self) -> Mapping[int, float]:
        """What each point adds to the parts that are known by where the walk is."""
        return counted_parts(self.members, self.number, self.fold, self._walked)

    def _total(self, part: int, points: SSAValue) -> SSAValue:
        """What such a part is after so many points."""
        kind = self.fold.folding.monoid.state[part]
        return total(self.members.tiles, points, self._counts[part], kind)

    def step(self, carried: Sequence[SSAValue] | None) -> State:
        """The state after one block: `carried` merged with it, or the block's alone."""
        new: dict[int, SSAValue] = {}
        own: dict[int, Placed] = {}
        units: list[SSAValue] = []
        if self._counts:
            before, after = self.members.writer.positions.passed(self._walked)
            carried = None if carried is None else list(carried)
            for part, number in self._counts.items():
                kind = self.fold.folding.monoid.state[part]
                own[part] = Placed(self.members.tiles.constant(number, kind), ())
                new[part] = self._total(part, after)
                if carried is not None:
                    carried[part] = self._total(part, before)
                    if not isinstance(carried[part].owner, Block):
                        carried[part].name_hint = f"{self._state[part]}_before"
        for cluster in self.fold.folding.clusters:
            first = cluster.parts[0]
            if first in new:
                continue
            if first in self._unit_frames:
                place = len(self.fold.folding.monoid.state) + len(units)
                before = None if carried is None else (carried[first], carried[place])
                new[first], unit = self._in_units(first, before)
                units.append(unit)
                continue
            before = None if carried is None else [carried[part] for part in cluster.parts]
            values, merged = self._cluster(cluster, before)
            own.update(zip(cluster.parts, values, strict=False))
            new.update(zip(cluster.parts, merged, strict=True))
        for addend in self.fold.folding.addends:
            before = None if carried is None else self._moved(addend, carried, new)
            new[addend.part] = self._added(addend, before, own, new)
        for part, value in new.items():
            if part not in self._counts or value.name_hint is None:
                value.name_hint = self._state[part]
        if carried is None:
            return (*(new[part] for part in range(len(new))), *units)
        # A loop carries tiles, until it is seen that nothing needs a count from the step before.
        tiles, blocks = self.members.tiles, self.members.writer.blocks
        parts = (tiles.spread(new[part], blocks(self.frame(part))) for part in range(len(new)))
        return (*parts, *units)

    def _in_units(
        self, part: int, before: tuple[SSAValue, SSAValue] | None
    ) -> tuple[SSAValue, SSAValue]:
        """A sum of products in units, and these; `before` the block, None where there is none."""
        product = self._summed_product(self.fold.products[part])
        wrap = self.fold.member.fold.wrap
        given = self.members.inputs(self.number, wrap.args)
        dot = Dot(self.members, self.number, self.axis, wrap, given, {}, {})
        acc, unit = (self._no_sum(part, product), None) if before is None else before
        return dot.write_in_units(product, self.frame(part), acc, unit, self._state[part])

    def _no_sum(self, part: int, product: Product) -> SSAValue:
        """A sum of no products."""
        kind, blocks = summed_type(product.left[0].type), self.members.writer.blocks
        return self.members.tiles.full(0.0, kind, blocks(self.frame(part)), self._state[part])

    def _cluster(
        self, cluster: Cluster, before: Sequence[SSAValue] | None
    ) -> tuple[list[Placed], State]:
        """The parts of a block's points, and the merged parts."""
        tiles, wrap = self.members.tiles, self.fold.member.fold.wrap
        first = cluster.parts[0]
        product = self.fold.products.get(first)
        given = self.members.inputs(self.number, wrap.args)
        if product is not None:
            acc = None if before is None else before[0]
            return [], (self._contracted(first, product, wrap, given, {}, acc),)
        wanted = [loom.yielded(wrap)[part] for part in cluster.parts]
        made = self.members.evaluate(self.number, wrap, wanted, given)
        frame = self.members.joint(self.frame(first), (self.axis,))
        values = cluster.state.enter(tiles, [value.over(tiles, frame) for value in made])
        values = cluster.state.masked(tiles, values, self._mask(frame))
        blocks = self.members.writer.blocks(frame)
        spread = tuple(tiles.spread(value, blocks) for value in values)
        names = [f"{self._state[part]}_block" for part in cluster.parts]
        folded = spread
        if self.axis in frame:
            folded = cluster.state.reduce(tiles, spread, frame.index(self.axis), names)
        if before is not None:
            folded = cluster.state.merge(tiles, before, folded)
        return [Placed(value, frame) for value in values], folded

    def _moved(
        self, addend: Addend, carried: Sequence[SSAValue], new: Mapping[int, SSAValue]
    ) -> SSAValue:
        """A part as it was carried, at where the merged plain parts are now."""
        count = len(carried)
        given: Given = {}
        for part, value in enumerate(carried):
            given[addend.move.args[part]] = self._known(part, value)
        for part, value in new.items():
            given[addend.move.args[count + part]] = self._known(part, value)
        (value,) = loom.yielded(addend.move)
        (moved,) = self.members.evaluate(self.number, addend.move, [value], given)
        moved.value.name_hint = f"{self._state[addend.part]}_moved"
        return moved.over(self.members.tiles, self.frame(addend.part))

    def _known(self, part: int, value: SSAValue) -> Callable[[], Placed]:
        return lambda: Placed(value, self.frame(part))

    def _added(
        self,
        addend: Addend,
        before: SSAValue | None,
        own: Mapping[int, Placed],
        new: Mapping[int, SSAValue],
    ) -> SSAValue:
        """A moved part and what the block's points add to it."""
        tiles, folding, body = self.members.tiles, self.fold.folding, addend.body
        reads, plain = len(self.fold.member.fold.wrap.args), folding.plain
        given = self.members.inputs(self.number, body.args[:reads])
        zeros: dict[SSAValue, float] = {}
        for part, mine, merged in zip(
            plain, body.args[reads:], body.args[reads + len(plain) :], strict=False
        ):
            if part in own:
                given[mine] = lambda part=part: own[part]
                zeros[mine] = float(folding.monoid.real_zero[part])
            given[merged] = self._known(part, new[part])
        product = self.fold.products.get(addend.part)
        if product is not None:
            return self._contracted(addend.part, product, body, given, zeros, before, addend.maxima)
        (made,) = self.members.evaluate(self.number, body, [addend.value], given)
        frame = self.members.joint(self.frame(addend.part), (self.axis,))
        value = made.over(tiles, frame)
        if not vanishes(addend.value, zeros):
            mask = self._mask(frame)
            if mask is not None:
                value = tiles.where(mask, value, tiles.constant(0.0, element_of(value)))
        value = tiles.spread(value, self.members.writer.blocks(frame))
        summed = value
        if self.axis in frame:
            summed = self._summed(value, frame, f"{self._state[addend.part]}_block")
        return summed if before is None else tiles.value(arith.AddfOp(before, summed))

    def _summed(self, value: SSAValue, frame: Frame, name: str) -> SSAValue:
        """A tile summed along the axis."""
        add = builtin_monoid("add", (element_of(value),))
        assert add is not None
        sums = FoldState(add, add.state)
        return sums.reduce(self.members.tiles, [value], frame.index(self.axis), [name])[0]

    def _contracted(
        self,
        part: int,
        product: Product,
        body: Block,
        given: Given,
        zeros: Mapping[SSAValue, float],
        acc: SSAValue | None,
        maxima: Mapping[SSAValue, SSAValue] | None = None,
    ) -> SSAValue:
        """A sum of products as a dot, added to `acc`."""
        members, name = self.members, self._state[part]
        product = self._summed_product(product)
        dot = Dot(members, self.number, self.axis, body, given, zeros, maxima or {})
        if acc is None:
            acc = self._no_sum(part, product)
        return dot.write(product, self.frame(part), part, acc, name)

    def _mask(self, frame: Frame) -> SSAValue | None:
        """Which points of a tile are folded: those that exist and are inside the domain."""
        return self.members.mask(self.number, self.axis, frame)
