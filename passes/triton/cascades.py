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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from tapestry.algebra.monoids import builtin_monoid
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.bodies import Values, no_coordinate, no_read, write_body, yielded
from tapestry.passes.triton.dots import Dot
from tapestry.passes.triton.folding import Addend, Cluster, Product, vanishes
from tapestry.passes.triton.folds import FoldState, State
from tapestry.passes.triton.groups import NotOneKernelError
from tapestry.passes.triton.members import Given, Members, Placed
from tapestry.passes.triton.positions import Frame
from tapestry.passes.triton.roles import Fold
from tapestry.passes.triton.steps import part_names


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
        return found or roles.frame(frozenset(), "M")

    def zero(self) -> State:
        """The state of an empty fold."""
        monoid, tiles = self.fold.folding.monoid, self.members.tiles
        parts = zip(monoid.real_zero, monoid.state, self._state, strict=True)
        return tuple(
            tiles.full(zero, kind, self.members.writer.blocks(self.frame(part)), name)
            for part, (zero, kind, name) in enumerate(parts)
        )

    def placed(self, parts: Sequence[SSAValue]) -> list[Placed]:
        """Parts of a state with the axes of their tiles."""
        return [Placed(value, self.frame(part)) for part, value in enumerate(parts)]

    def step(self, carried: Sequence[SSAValue] | None) -> State:
        """The state after one block: `carried` merged with it, or the block's alone."""
        new: dict[int, SSAValue] = {}
        own: dict[int, Placed] = {}
        for cluster in self.fold.folding.clusters:
            before = None if carried is None else [carried[part] for part in cluster.parts]
            values, merged = self._cluster(cluster, before)
            own.update(zip(cluster.parts, values, strict=False))
            new.update(zip(cluster.parts, merged, strict=True))
        for addend in self.fold.folding.addends:
            before = None if carried is None else self._moved(addend, carried, new)
            new[addend.part] = self._added(addend, before, own, new)
        for part, value in new.items():
            value.name_hint = self._state[part]
        return tuple(new[part] for part in range(len(new)))

    def _cluster(
        self, cluster: Cluster, before: Sequence[SSAValue] | None
    ) -> tuple[list[Placed], State]:
        """The parts of a block's points, and the merged parts."""
        tiles, wrap = self.members.tiles, self.fold.member.fold.wrap
        first = cluster.parts[0]
        product = self.fold.products.get(first)
        if product is not None:
            given = self.members.inputs(self.number, wrap, wrap.args)
            acc = None if before is None else before[0]
            return [], (self._contracted(first, product, wrap, given, {}, acc),)
        frame = self._along(self.frame(first))
        given = self.members.inputs(self.number, wrap, wrap.args)
        wanted = [yielded(wrap)[part] for part in cluster.parts]
        values = cluster.state.enter(
            tiles, self.members.evaluate(self.number, wrap, wanted, given, frame)
        )
        values = cluster.state.masked(tiles, values, self._mask(frame))
        blocks = self.members.writer.blocks(frame)
        spread = tuple(tiles.spread(value, blocks) for value in values)
        names = [f"{self._state[part]}_block" for part in cluster.parts]
        folded = cluster.state.reduce(tiles, spread, frame.index(self.axis), names)
        if before is not None:
            folded = cluster.state.merge(tiles, before, folded)
        return [Placed(value, frame) for value in values], folded

    def _moved(
        self, addend: Addend, carried: Sequence[SSAValue], new: Mapping[int, SSAValue]
    ) -> SSAValue:
        """A part as it was carried, at where the merged plain parts are now."""
        frame = self.frame(addend.part)
        count = len(carried)
        values: Values = {}
        for part, value in enumerate(carried):
            if set(self.frame(part)) <= set(frame):
                values[addend.move.args[part]] = self._placed(part, value, frame)
        for part, value in new.items():
            if set(self.frame(part)) <= set(frame):
                values[addend.move.args[count + part]] = self._placed(part, value, frame)
        write_body(self.members.tiles, addend.move.ops, values, no_coordinate, no_read)
        (moved,) = yielded(addend.move)
        return values[moved]

    def _added(
        self,
        addend: Addend,
        before: SSAValue | None,
        own: Mapping[int, Placed],
        new: Mapping[int, SSAValue],
    ) -> SSAValue:
        """A moved part and what the block's points add to it."""
        tiles, folding, body = self.members.tiles, self.fold.folding, addend.body
        reads = len(self.fold.member.fold.wrap.args)
        given = self.members.inputs(self.number, body, body.args[:reads])
        plain = folding.plain
        monoid = folding.monoid
        zeros: dict[SSAValue, float] = {}
        for part, mine, merged in zip(
            plain, body.args[reads:], body.args[reads + len(plain) :], strict=False
        ):
            if part in own:
                given[mine] = own[part].at(tiles)
                zeros[mine] = float(monoid.real_zero[part])
            given[merged] = Placed(new[part], self.frame(part)).at(tiles)
        product = self.fold.products.get(addend.part)
        if product is not None:
            return self._contracted(addend.part, product, body, given, zeros, before, addend.maxima)
        frame = self._along(self.frame(addend.part))
        (value,) = self.members.evaluate(self.number, body, [addend.value], given, frame)
        if not vanishes(addend.value, zeros):
            mask = self._mask(frame)
            if mask is not None:
                value = tiles.where(mask, value, tiles.constant(0.0, element_of(value)))
        value = tiles.spread(value, self.members.writer.blocks(frame))
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
        dot = Dot(members, self.number, self.axis, body, given, zeros, maxima or {})
        if acc is None:
            acc = members.tiles.full(0.0, f32, members.writer.blocks(self.frame(part)), name)
        return dot.write(product, self.frame(part), part, acc, name)

    def _mask(self, frame: Frame) -> SSAValue | None:
        """Which points of a tile are folded: those that exist and are inside the domain."""
        return self.members.mask(self.number, self.axis, frame)

    def _along(self, frame: Frame) -> Frame:
        """A part's frame with the axis that is folded."""
        roles = self.members.roles
        axes = set(frame) | {self.axis}
        found = tuple(axis for axis in roles.order if axis in axes)
        if len(found) > 2:
            raise NotOneKernelError(
                f"@{self.fold.member.fold.name} folds what varies along {len(found)} tile axes "
                "and is no product"
            )
        return found

    def _placed(self, part: int, value: SSAValue, frame: Frame) -> SSAValue:
        return Placed(value, self.frame(part)).over(self.members.tiles, frame)
