"""One kernel of a group: grid, walks along K, what each walk folds and stores.

    place the programs (B, blocks of M) and what is resident (N)
    for each phase:                        # see `roles.py`
        for k in blocks of K:              # nothing to loop over if one block holds K
            the folds of this phase take a step; outputs along K of this phase are stored
    store the other outputs

Members are written on demand (`members.py`), each walk anew as far as it needs them: attention has
one walk, in which scores are a value of the folds' step; a softmax has two, of which the second
reads its row again unless one block holds it. So to add a sweep is to add a phase, and what it
reads follows. What a schedule decides is in `schedules.schedule`; a fold's step in `cascades.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tapestry.algebra.bodies import Dims, moving_dims
from tapestry.algebra.dtypes import byte_size, is_half
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule
from tapestry.passes.triton.groups.cascades import FoldWriter
from tapestry.passes.triton.groups.group import Group, Inner, NotOneKernelError, group_of
from tapestry.passes.triton.groups.members import Given, Members, Placed
from tapestry.passes.triton.groups.roles import Roles, assign
from tapestry.passes.triton.groups.sharing import read_together
from tapestry.passes.triton.indexing.positions import Axis, Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Access, Space
from tapestry.passes.triton.indexing.spans import grows, is_bounded
from tapestry.passes.triton.kernels.descriptors import any_described
from tapestry.passes.triton.kernels.lowering import finish_kernel
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.ports import Port
from tapestry.passes.triton.kernels.steps import Options, longest
from tapestry.passes.triton.kernels.writer import Kernel, KernelWriter, space_of
from tapestry.passes.triton.rewrites.branches import choose_in_branches
from tapestry.passes.triton.rewrites.exponentials import fold_scales
from tapestry.passes.triton.rewrites.keeping import keep_rows
from tapestry.passes.triton.rewrites.late_folds import fold_late
from tapestry.passes.triton.schedules.choosing import best
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import HALF, MAX_RESIDENT, MAX_THREADED, Tiling
from tapestry.passes.triton.tiles.folds import FoldState, State
from tapestry.zspace import Projection


@dataclass(frozen=True, eq=False)
class Partial:
    """A fold that shards fold apart: a tensor for each part of its state, over kept dimensions."""

    member: int
    tensors: tuple[Tensor, ...]
    finish: Kernel


@dataclass(frozen=True, eq=False)
class LoweredGroup:
    """The kernel of a group; it writes `outs`, and merges the states of `partials` into buffers.

    Those are unwrapped by a kernel each, once all shards are done.
    """

    main: Kernel
    outline: MapFold
    outs: tuple[Inner, ...]
    partials: tuple[Partial, ...]


def lower_group(group: Group, options: Options, origins: Sequence[str]) -> LoweredGroup:
    """The kernel of a group that has points; NotOneKernelError where there is none."""
    if group.index.is_empty:
        raise NotOneKernelError("it has no points")
    if options.rung(group.name) == Rung.APART:
        raise NotOneKernelError("as one, it does not run")
    roles = assign(group)

    def build(own: Options, schedule: Schedule | None) -> tuple[LoweredGroup, Kernel]:
        lowered = _lower(replace(group, schedule=schedule), roles, own, origins)
        return lowered, lowered.main

    if group.schedule is not None:
        return _lower(group, roles, options, origins)
    return best(options, group.shards, build)


def _lower(group: Group, roles: Roles, options: Options, origins: Sequence[str]) -> LoweredGroup:
    partials = tuple(_partials(group, roles, options))
    apart = [partial.member for partial in partials]
    outs = tuple(inner for inner in group.outs if inner.member not in apart)
    kernel = _GroupKernel(group, roles, options, outs, partials)
    return LoweredGroup(kernel.write(origins), kernel.outline, outs, partials)


def why_several_kernels(op: loom.FusedOp) -> str | None:
    """Why Triton gets a kernel for each member of a group, None where it gets one for all."""
    try:
        lower_group(group_of(op), Options(Tiling(), "ieee", rounds=True), ())
    except NotOneKernelError as error:
        return str(error)
    return None


def _partials(group: Group, roles: Roles, options: Options) -> Iterator[Partial]:
    """The folds whose dimensions are cut, with their states and what unwraps these."""
    for number, fold in roles.folds.items():
        member, own = fold.member, fold.member.fold
        if group.cut.isdisjoint(fold.folded):
            continue
        written = [inner for inner in group.outs if inner.member == number]
        if number not in roles.carried or len(written) != len(own.outs) or group.readers(number):
            raise NotOneKernelError(f"@{own.name} is folded apart, and is not all that is written")
        assert own.monoid is not None
        state = FoldState.of(own.monoid)
        spread = _spread(group, roles)
        if not spread | group.cut <= set(member.dims):
            raise NotOneKernelError(f"several programs fold the same points of @{own.name}")
        every = Projection.identity(len(own.kept_dims))
        box = own.kept_range(own.index)
        tensors: list[Tensor] = []
        for part, element in enumerate(state.elements):
            # Shards and programs that differ along other dimensions merge into other cells.
            dims = fold.varying[part] | group.cut | spread
            axes = [a for a, dim in enumerate(own.kept_dims) if member.dims[dim] in dims]
            name = "state" if len(state.elements) == 1 else f"state{part}"
            tensors.append(Tensor(name, box.select(axes), element, every.select_outputs(axes)))
        yield Partial(number, tuple(tensors), finish_kernel(own, tensors, state, options))


class _GroupKernel:
    """A kernel of a group while it is written."""

    def __init__(
        self,
        group: Group,
        roles: Roles,
        options: Options,
        outs: Sequence[Inner],
        partials: Sequence[Partial],
    ) -> None:
        self.group, self.roles, self.outs, self.partials = group, roles, outs, partials
        states = [
            replace(tensor, projection=tensor.projection.compose(group.members[p.member].kept))
            for p in partials
            for tensor in p.tensors
        ]
        spread = _spread(group, roles)
        written = [_written_once(group.written(inner), spread) for inner in outs]
        outline = group.outline([*written, *states])
        self.outline = outline
        inner = [axis for axis in roles.order if axis.startswith("C")]
        for out in outs:
            made = group.members[out.member]
            if not {*inner}.isdisjoint(roles.frame(moving_dims(made.written(out.out)))):
                raise NotOneKernelError(
                    f"@{made.fold.name} is written along a dimension that is folded inside a tile"
                )
        programs = any(
            roles.axes[d] == "B" for d in group.has_extent(frozenset(range(len(roles.axes))))
        )
        rows = ("M",) if roles.has_rows or not programs else ()
        space = space_of(outline, roles.axes, (*rows, *inner, FOLD_AXIS))
        axes = {
            name: Axis(name, space.on(name), None if name in roles.scalar else f"BLOCK_{name}")
            for name in ("B", *roles.order)
        }
        most = MAX_RESIDENT if _cell(group, roles) <= HALF else MAX_THREADED
        axes = read_together(outline, space, axes, most)
        grid = [name for name in ("B", "M") if axes[name].dims]
        grid += [name for name in roles.columns if any(roles.axes[dim] == name for dim in spread)]
        used = [axis for axis in axes.values() if axis.dims]
        described = any_described(outline, space, used)
        splits = options.precision == "bf16x6"
        task = _task(group, roles, space, axes, grid, described=described, splits=splits)
        schedule = options.schedule(task, group.schedule)
        self.writer = KernelWriter(outline, space, used, schedule, grid)
        self.members = Members(group, roles, self.writer, options)
        self.members.fold_inner = self._fold_inner
        for name in roles.columns:
            if axes[name].dims and name not in grid:
                self.writer.cover(axes[name])
        self.axes = axes

    def write(self, origins: Sequence[str]) -> Kernel:
        self.writer.versions(self._write)
        kernel = self.writer.finish(self.group.name, origins)
        if self.members.options.numerics != "strict":
            fold_scales(kernel.op)
        choose_in_branches(kernel.op, self.writer.positions.compared)
        fold_late(kernel.op)
        keep_rows(kernel.op)
        return kernel

    def _write(self) -> None:
        self.members.states = {}
        for phase in range(max(self.roles.phases) + 1):
            self._walk(phase)
        for place, inner in enumerate(self.outs):
            if not self._is_along(inner):
                self._store(place, inner)
        ports = self.writer.outs[len(self.outs) :]
        for partial in self.partials:
            count = len(partial.tensors)
            self._merge(partial.member, ports[:count])
            ports = ports[count:]

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
            for place, inner in enumerate(self.outs)
            if self._is_along(inner) and roles.phases[inner.member] == phase
        ]
        if not folds and not stored:
            return
        sizes = [fold.size for fold in folds]

        def start() -> State:
            return tuple(part for fold in folds for part in fold.zero())

        def step(carried: Sequence[SSAValue] | None) -> State:
            new: list[SSAValue] = []
            with members.walking(FOLD_AXIS, looped=carried is not None):
                for fold, size in zip(folds, sizes, strict=True):
                    own = None if carried is None else carried[len(new) : len(new) + size]
                    new += fold.step(own)
                for place, inner in stored:
                    self._store(place, inner)
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

        def step(carried: Sequence[SSAValue] | None) -> State:
            with self.members.walking(axis, looped=carried is not None):
                return writer.step(carried)

        parts = self.writer.walk(
            self.axes[axis],
            writer.zero,
            step,
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

    def _merge(self, number: int, ports: Sequence[Port]) -> None:
        """Merge the state of a fold into its buffers."""
        merge = self.roles.folds[number].folding.monoid.merge
        writer, tiles, members = self.writer, self.writer.tiles, self.members
        frames = [self._frame(port) for port in ports]
        given: Given = {}
        for part, (port, frame) in enumerate(zip(ports, frames, strict=True)):
            before = Placed(writer.load(port, frame, f"{port.name}_before"), frame)
            folded = members.states[number][part]
            given[merge.args[part]] = lambda before=before: before
            given[merge.args[len(ports) + part]] = lambda folded=folded: folded
        merged = members.evaluate(number, merge, list(loom.yielded(merge)), given)
        for port, frame, value in zip(ports, frames, merged, strict=True):
            writer.store(port, frame, value.over(tiles, frame))

    def _frame(self, port: Port) -> Frame:
        return self.members.joint(self.writer.space.along(port.access))

    def _store(self, place: int, inner: Inner) -> None:
        port = self.writer.outs[place]
        frame = self._frame(port)
        value = self.members.value(inner)
        self.writer.store(port, frame, value.over(self.writer.tiles, frame))


def _spread(group: Group, roles: Roles) -> Dims:
    """The dimensions along which programs differ."""
    axes = ["B", "M"]
    for name in roles.columns:
        columns = [dim for dim, axis in enumerate(roles.axes) if axis == name]
        length = max(prod(shard.shape[dim] for dim in columns) for shard in group.shards)
        axes += [name] * (length > MAX_RESIDENT)
    return group.has_extent(frozenset(d for d, axis in enumerate(roles.axes) if axis in axes))


def _written_once(tensor: Tensor, spread: Dims) -> Tensor:
    """An output that is written by the first of the programs that would write the same."""
    lacks = spread - moving_dims(tensor.projection)
    return replace(tensor, repeated=tuple(sorted(lacks)))


def _is_along(group: Group, roles: Roles, inner: Inner) -> bool:
    """Whether an output moves along K."""
    projection = group.members[inner.member].written(inner.out)
    return FOLD_AXIS in roles.frame(moving_dims(projection))


def _cell(group: Group, roles: Roles) -> int:
    """The bytes of a cell of what is multiplied.

    Products of float32 are of 16 bits where numbers of 16 bits are read, which they are made of.
    """
    products = [product for fold in roles.folds.values() for product in fold.products.values()]
    size = max((byte_size(product.left[0].type) for product in products), default=0)
    if size > byte_size(f32):
        return size
    halves = any(is_half(tensor.element) for tensor in group.reads)
    return HALF if halves else byte_size(f32)


def _walks(group: Group, roles: Roles) -> int:
    """How often K is walked: in phases that fold along it, and in those that write along it."""
    folding = {roles.phases[member] for member in roles.carried}
    return len(
        folding.union(roles.phases[o.member] for o in group.outs if _is_along(group, roles, o))
    )


def _task(
    group: Group,
    roles: Roles,
    space: Space,
    axes: Mapping[str, Axis],
    grid: Sequence[str],
    *,
    described: bool,
    splits: bool,
) -> Task:
    """What a schedule of a group is chosen for; columns that are not in the grid are held.

    Axes in one block are one of them.
    """
    dots, cell = any(fold.products for fold in roles.folds.values()), _cell(group, roles)
    sums = sum(len(roles.folds[member].products) for member in roles.carried)
    lengths = {
        axis: longest(space, axis, group.shards)
        for axis in roles.order
        if space.on(axis) and axes[axis].block == f"BLOCK_{axis}"
    }
    resident = [axes[name].block for name in roles.columns if name not in grid]
    return Task(
        group.name,
        "group",
        lengths,
        grid=tuple(grid),
        bounded=is_bounded(space),
        grows=grows(space),
        described=described,
        held=frozenset(axis for axis in lengths if f"BLOCK_{axis}" in resident),
        cell=cell,
        split=splits and cell == byte_size(f32),
        dots=dots,
        sums=max(1, sums),
        walks=_walks(group, roles),
        across=space.lies_along("M", FOLD_AXIS),
    )
