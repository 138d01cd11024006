"""One kernel of a group: grid, walks along K, what each walk folds and stores.

    place the programs (B, blocks of M) and what is resident (N)
    for each phase:                        # see `roles.py`
        for k in blocks of K:              # nothing to loop over if one block holds K
            the folds of this phase take a step; outputs along K of this phase are stored
    store the other outputs

Members are written on demand (`members.py`), each walk anew as far as it needs them: attention has
one walk, in which scores are a value of the folds' step; a softmax has two, of which the second
reads its row again unless one block holds it. So to add a sweep is to add a phase, and what it
reads follows. What a schedule decides is in `schedule.py`; a fold's step is in `cascades.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tapestry.algebra.bodies import moving_dims
from tapestry.algebra.dtypes import is_half
from tapestry.passes.triton.cascades import FoldWriter
from tapestry.passes.triton.folds import State
from tapestry.passes.triton.groups import Group, Inner, NotOneKernelError
from tapestry.passes.triton.members import Members
from tapestry.passes.triton.positions import Axis
from tapestry.passes.triton.roles import Roles, assign
from tapestry.passes.triton.schedule import Blocks
from tapestry.passes.triton.spaces import FOLD_AXIS, Access, Space
from tapestry.passes.triton.steps import Options, longest
from tapestry.passes.triton.writer import Kernel, KernelWriter, space_of


def group_kernel(group: Group, options: Options, origins: Sequence[str]) -> Kernel:
    """The kernel of a group that has points; NotOneKernelError where there is none."""
    if group.index.is_empty:
        raise NotOneKernelError("it has no points")
    if any(not group.cut.isdisjoint(member.fold_dims) for member in group.members):
        raise NotOneKernelError("its shards fold apart, and their states merge afterwards")
    roles = assign(group)
    return _GroupKernel(group, roles, options).write(origins)


class _GroupKernel:
    """A kernel of a group while it is written."""

    def __init__(self, group: Group, roles: Roles, options: Options) -> None:
        self.group, self.roles = group, roles
        outline = group.outline
        inner = [axis for axis in roles.order if axis.startswith("C")]
        space = space_of(outline, roles.axes, ("M", *inner, FOLD_AXIS))
        blocks = _blocks(group, roles, space, options)
        axes = {
            name: Axis(name, space.on(name), None if name == "B" else f"BLOCK_{name}")
            for name in ("B", *roles.order)
        }
        spread = [name for name in ("B", "M") if axes[name].dims]
        if axes["N"].dims and blocks.blocks["BLOCK_N"] < longest(space, "N", group.shards):
            spread.append("N")
        used = [axis for axis in axes.values() if axis.dims]
        self.writer = KernelWriter(outline, space, used, blocks, spread)
        self.members = Members(group, roles, self.writer, options)
        self.members.fold_inner = self._fold_inner
        if axes["N"].dims and "N" not in spread:
            self.writer.cover(axes["N"])
        self.axes = axes

    def write(self, origins: Sequence[str]) -> Kernel:
        for phase in range(max(self.roles.phases) + 1):
            self._walk(phase)
        for place, inner in enumerate(self.group.outs):
            if not self._is_along(inner):
                self._store(place, inner)
        return self.writer.finish(self.group.name, origins)

    def _walk(self, phase: int) -> None:
        """One walk along K: the folds of a phase, and the outputs that are made on the way."""
        roles, members = self.roles, self.members
        folds = [
            FoldWriter(members, n, roles.folds[n], FOLD_AXIS)
            for n in roles.carried
            if roles.phases[n] == phase
        ]
        stored = [
            (place, inner)
            for place, inner in enumerate(self.group.outs)
            if self._is_along(inner) and roles.phases[inner.member] == phase
        ]
        if not folds and not stored:
            return
        sizes = [len(fold.fold.folding.monoid.state) for fold in folds]

        def start() -> State:
            return tuple(part for fold in folds for part in fold.zero())

        def step(carried: Sequence[SSAValue] | None) -> State:
            before = dict(members.states)
            new: list[SSAValue] = []
            for fold, size in zip(folds, sizes, strict=True):
                own = None if carried is None else carried[len(new) : len(new) + size]
                new += fold.step(own)
            for place, inner in stored:
                self._store(place, inner)
            members.states = before
            return tuple(new)

        ends = self.writer.walk(
            self.axes[FOLD_AXIS],
            start,
            step,
            everywhere=bool(stored),
            within=self._common_rows([fold.number for fold in folds]),
            hoist=True,
        )
        for fold, size in zip(folds, sizes, strict=True):
            parts, ends = ends[:size], ends[size:]
            members.states[fold.number] = fold.placed(parts)

    def _fold_inner(self, number: int) -> None:
        """Fold a member along its own axis at the tile that is walked now."""
        fold = self.roles.folds[number]
        axis = self.roles.axis_of(fold)
        if axis == FOLD_AXIS:
            raise NotOneKernelError(f"@{fold.member.fold.name} is read before it is finished")
        writer = FoldWriter(self.members, number, fold, axis)
        parts = self.writer.walk(
            self.axes[axis],
            writer.zero,
            writer.step,
            everywhere=False,
            within=self.members.domain(number),
            hoist=True,
        )
        self.members.states[number] = writer.placed(parts)

    def _common_rows(self, folds: Sequence[int]) -> list[Access]:
        """The rows outside of which none of some folds has points."""
        found = [self.members.domain(number) for number in folds]
        if not found:
            return []
        shared = set(self.group.rows[folds[0]]).intersection(*(self.group.rows[n] for n in folds))
        rows = zip(self.group.rows[folds[0]], found[0], strict=True)
        return [access for row, access in rows if row in shared]

    def _is_along(self, inner: Inner) -> bool:
        return _is_along(self.group, self.roles, inner)

    def _store(self, place: int, inner: Inner) -> None:
        port = self.writer.outs[place]
        along = self.writer.space.along(port.access)
        frame = tuple(axis for axis in self.roles.order if axis in along)
        if len(frame) > 2:
            raise NotOneKernelError(f"its output {place} varies along {len(frame)} tile axes")
        value = self.members.value(inner)
        self.writer.store(port, frame, value.over(self.writer.tiles, frame))


def _is_along(group: Group, roles: Roles, inner: Inner) -> bool:
    """Whether an output moves along K."""
    projection = group.members[inner.member].written(inner.out)
    return FOLD_AXIS in roles.frame(moving_dims(projection))


def _walks(group: Group, roles: Roles) -> int:
    """How often K is walked: in phases that fold along it, and in those that write along it."""
    folding = {roles.phases[member] for member in roles.carried}
    return len(
        folding.union(roles.phases[o.member] for o in group.outs if _is_along(group, roles, o))
    )


def _blocks(group: Group, roles: Roles, space: Space, options: Options) -> Blocks:
    """The schedule's blocks for the axes of a group."""
    dots = any(fold.products for fold in roles.folds.values())
    half = any(is_half(tensor.element) for tensor in group.reads)
    lengths = {axis: longest(space, axis, group.shards) for axis in roles.order if space.on(axis)}
    return options.schedule.group_blocks(
        lengths,
        half=half,
        dots=dots,
        walks=_walks(group, roles),
        across=space.lies_along("M", FOLD_AXIS),
    )
