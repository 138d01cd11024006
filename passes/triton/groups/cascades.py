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
from xdsl.ir import Block, SSAValue

from tapestry.algebra.monoids import builtin_monoid
from tapestry.dialects import loom
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.groups.counts import counted_parts, total
from tapestry.passes.triton.groups.dots import Dot
from tapestry.passes.triton.groups.folding import Addend, Cluster, vanishes
from tapestry.passes.triton.groups.members import Given, Members, Placed
from tapestry.passes.triton.groups.roles import Fold
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

    def zero(self) -> State:
        """The state of an empty fold."""
        monoid, tiles = self.fold.folding.monoid, self.members.tiles
        parts = zip(monoid.real_zero, monoid.state, self._state, strict=True)
        return tuple(
            tiles.full(zero, kind, self.members.writer.blocks(self.frame(part)), name)
            for part, (zero, kind, name) in enumerate(parts)
        )

    def placed(self, parts: Sequence[SSAValue]) -> list[Placed]:
        """Parts of a finished state with the axes of their tiles."""
        tiles, wrap = self.members.tiles, self.fold.member.fold.wrap
        found: list[Placed] = []
        length = self.members.writer.positions.length(self._walked)
        for part, value in enumerate(parts):
            if part in self._counts:
                value = self._total(part, length)
            product = self.fold.products.get(part)
            if product is not None and self._scales_later(product):
                given = self.members.inputs(self.number, wrap.args)
                scale = self.members.evaluate(self.number, wrap, product.scale, given)
                for factor in joint_factors(tiles, [one.value for one in scale]):
                    value = tiles.once(arith.MulfOp, *tiles.pair(value, factor))
            found.append(Placed(value, self.frame(part)))
        return found

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
            if cluster.parts[0] in new:
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
            return tuple(new[part] for part in range(len(new)))
        # A loop carries tiles, until it is seen that nothing needs a count from the step before.
        tiles, blocks = self.members.tiles, self.members.writer.blocks
        return tuple(tiles.spread(new[part], blocks(self.frame(part))) for part in range(len(new)))

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
        if not self._scales_later(product):
            product = product.joined
        dot = Dot(members, self.number, self.axis, body, given, zeros, maxima or {})
        if acc is None:
            kind = summed_type(product.left[0].type)
            acc = members.tiles.full(0.0, kind, members.writer.blocks(self.frame(part)), name)
        return dot.write(product, self.frame(part), part, acc, name)

    def _mask(self, frame: Frame) -> SSAValue | None:
        """Which points of a tile are folded: those that exist and are inside the domain."""
        return self.members.mask(self.number, self.axis, frame)
