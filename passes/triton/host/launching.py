"""Launches: which kernel runs on which buffers, once per shard, and what it moves.

A `Launcher` makes the host operations for the map-folds of a module, and puts their kernels in
front of its functions, each different one once. What does the same as something before, as the
layers of a network do, is a launch of its kernels (`sameness.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tapestry.algebra.dtypes import byte_size
from tapestry.algebra.monoids import Monoid
from tapestry.algebra.parts import Axes
from tapestry.dialects import triton
from tapestry.dialects.loom import selected
from tapestry.encoding import text_without_names
from tapestry.locations import fuse_locations
from tapestry.passes.triton.groups.folding import Folding
from tapestry.passes.triton.groups.group import Group, Inner, NotOneKernelError, alone
from tapestry.passes.triton.groups.lowering import LoweredGroup, lower_group
from tapestry.passes.triton.groups.roles import assign
from tapestry.passes.triton.host.comments import origin, shards_comment
from tapestry.passes.triton.host.sameness import Once, key
from tapestry.passes.triton.kernels.lowering import Lowered, Options, finish_kernel, lower
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.merging import Merging
from tapestry.passes.triton.kernels.writer import Kernel
from tapestry.passes.triton.rewrites.rounding import round_where_needed
from tapestry.passes.triton.tiles.builder import number
from tapestry.passes.triton.tiles.folds import FoldState
from tapestry.zspace import Range

Made: TypeAlias = "Callable[[triton.KernelOp, triton.LaunchOp], None]"
"""Told of a kernel as soon as it is made, with the first launch of it."""


class Launcher:
    """Makes launches, and the kernels that they run; `made` is told of each of these."""

    def __init__(self, options: Options, module: ModuleOp, made: Made | None = None) -> None:
        self.options, self._made = options, made
        self._start = InsertPoint.at_start(module.body.block)
        self._names: set[str] = set()
        self._told: set[triton.KernelOp] = set()
        self._kernels: dict[str, triton.KernelOp] = {}
        # Who chooses schedules is told of the task of each operation, so all are made then.
        shared = options.seen is None
        self._folds: Once[Lowered | LoweredGroup] = Once(shared)
        self._groups: Once[LoweredGroup] = Once(shared)

    def lower_group(self, group: Group) -> LoweredGroup:
        """The kernels of a group; NotOneKernelError where there are none."""
        alike = (key(group), self.options.rung(group.name))
        options = replace(self.options, alike=alike)
        return self._groups.made(alike, lambda: lower_group(group, options, ()))

    def _lower(self, fold: MapFold) -> Lowered | LoweredGroup:
        """The kernels of a map-fold, as a group's where that is more than a fold's."""
        alike = (key(fold), self.options.rung(fold.name))
        options = replace(self.options, alike=alike)

        def make() -> Lowered | LoweredGroup:
            return _cascade(fold, options) or lower(fold, options, ())

        return self._folds.made(alike, make)

    def launch(
        self,
        fold: MapFold,
        location: LocationAttr,
        ins: Sequence[SSAValue],
        extras: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        notes: Sequence[str] = (),
    ) -> list[Operation]:
        """The host operations that compute a map-fold into the buffers `outs`.

        `notes` are said in the kernel's comment.
        """
        shards = fold.shards
        if not shards:
            return []
        origins = [origin(fold.name, location), *notes]
        lowered = self._lower(fold)
        if isinstance(lowered, LoweredGroup):
            return self.launch_group(alone(fold), lowered, location, [*ins, *extras], outs, origins)
        if lowered.finish is not None and fold.inside is not None:
            # A shard outside folds nothing into the state, which starts at the zero.
            shards = [shard for shard in shards if not fold.inside.misses(shard)]
        maps = [fold.kept_range(shard) for shard in shards]
        reads, writes = _moved(fold.ins, shards), _moved(fold.outs, maps)
        states: list[triton.AllocateOp] = []
        if lowered.states:
            assert fold.monoid is not None
            states = _new_states(lowered.states, fold.monoid, fold.outs[0].name, location)
        buffers = [state.result for state in states]
        # Each launch reads the state that the ones before it left, and writes it back.
        touched = _moved(lowered.states, maps)
        if lowered.finish is None:
            reads += _moved(fold.extras, maps) + touched
            operands = [*ins, *extras, *outs, *buffers]
            writes += touched
            main = self._run(lowered.main, operands, shards, reads, writes, fold, location, origins)
            return [*states, main]
        made: list[Operation] = [*states]
        if shards:
            operands = [*ins, *buffers]
            moved = (reads + touched, touched)
            made.append(self._run(lowered.main, operands, shards, *moved, fold, location, origins))
        operands = [*buffers, *extras, *outs]
        made.append(self._finish(lowered.finish, fold, lowered.states, operands, location))
        return made

    def launch_group(
        self,
        group: Group,
        lowered: LoweredGroup,
        location: LocationAttr,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        origins: Sequence[str],
    ) -> list[Operation]:
        """The host operations that run a group's kernel on its operands into the buffers `outs`.

        `origins` say in the kernel's comment what it is made of.
        """
        outline, shards = lowered.outline, group.shards
        made: list[Operation] = []
        reads, writes = _moved(outline.ins, shards), _moved(outline.outs, shards)
        written = dict(zip(group.outs, outs, strict=True))
        operands = [ins[operand] for operand in group.operands]
        operands += [written[inner] for inner in lowered.outs]
        states: list[list[SSAValue]] = []
        for partial in lowered.partials:
            fold = group.members[partial.member].fold
            assert fold.monoid is not None
            new = _new_states(partial.tensors, fold.monoid, fold.outs[0].name, location)
            made += new
            states.append([state.result for state in new])
            operands += states[-1]
            # Each launch reads the state that the ones before it left, and writes it back.
            kept = [fold.kept_range(member_box) for member_box in group.parts(partial.member)]
            reads += _moved(partial.tensors, kept)
        main = self._run(lowered.main, operands, shards, reads, writes, outline, location, origins)
        made.append(main)
        for partial, buffers in zip(lowered.partials, states, strict=True):
            member = group.members[partial.member]
            sources = [s for s in member.sources[len(member.fold.ins) :] if isinstance(s, int)]
            arguments = [*buffers, *(ins[group.operands[source]] for source in sources)]
            arguments += [written[Inner(partial.member, n)] for n in range(len(member.fold.outs))]
            made.append(
                self._finish(partial.finish, member.fold, partial.tensors, arguments, location)
            )
        return made

    def merge(
        self,
        merging: Merging,
        location: LocationAttr,
        partials: Sequence[tuple[Range, Sequence[Axes], Sequence[SSAValue]]],
        name: str,
    ) -> tuple[list[Operation], list[SSAValue]]:
        """The host operations that merge partial states, and the merged state called `name`.

        Each partial state has its range, and parts over some of the kept dimensions.
        """
        states = _new_states(merging.tensors, merging.monoid, name, location)
        buffers: list[SSAValue] = [allocation.result for allocation in states]
        made: list[Operation] = [*states]
        for box, stored, parts in partials:
            arguments = [*buffers, *parts]
            for step in merging.steps(box, stored):
                ins = [arguments[n] for n in step.arguments]
                outs = [buffers[part] for part in step.parts]
                made += self.launch(step.fold, location, ins, [], outs)
        return made, buffers

    def unwrap(
        self,
        merging: Merging,
        location: LocationAttr,
        states: Sequence[SSAValue],
        extras: Sequence[SSAValue],
        outs: Sequence[SSAValue],
    ) -> list[Operation]:
        """The host operations that make the outputs of a merged state."""
        fold, tensors = merging.fold, merging.tensors
        if merging.over.is_empty:
            return []
        state = FoldState(merging.monoid, merging.monoid.state)
        finish = finish_kernel(fold, tensors, state, self.options)
        return [self._finish(finish, fold, tensors, [*states, *extras, *outs], location)]

    def _finish(
        self,
        kernel: Kernel,
        fold: MapFold,
        states: Sequence[Tensor],
        operands: Sequence[SSAValue],
        location: LocationAttr,
    ) -> triton.LaunchOp:
        """The launch that unwraps a state."""
        whole = [fold.kept_range(fold.index)]
        reads = _moved(states, whole) + _moved(fold.extras, whole)
        writes = _moved(fold.outs, whole)
        return self._run(kernel, operands, [fold.index], reads, writes, None, location)

    def _run(
        self,
        kernel: Kernel,
        buffers: Sequence[SSAValue],
        shards: Sequence[Range],
        reads: int,
        writes: int,
        sharded: MapFold | None,
        location: LocationAttr,
        origins: Sequence[str] | None = None,
    ) -> triton.LaunchOp:
        """The launches of a kernel, one per shard; `origins` are its own, unless they are given.

        `buffers` are those of all that it reads and writes: it takes each once.
        """
        own = tuple(kernel.op.origins if origins is None else map(StringAttr, origins))
        kernel.op.properties["numerics"] = StringAttr(self.options.numerics)
        round_where_needed(kernel.op, strict=self.options.numerics == "strict")
        launch = triton.LaunchOp(
            self._insert(kernel.op, own, location),
            [buffers[place] for place in kernel.places],
            kernel.grid,
            [dim.name for dim in kernel.cut],
            [[n for dim in kernel.cut for n in dim.bounds(shard)] for shard in shards],
            bytes_read=reads,
            bytes_written=writes,
            comment=None if sharded is None else shards_comment(sharded),
        )
        launch.location = location
        if self._made is not None and kernel.op.parent is not None and kernel.op not in self._told:
            self._told.add(kernel.op)
            self._made(kernel.op, launch)
        return launch

    def _insert(
        self, kernel: triton.KernelOp, origins: Sequence[StringAttr], location: LocationAttr
    ) -> str:
        """The name of a kernel in the module that does what `kernel` does, put there if needed."""
        known = kernel if kernel.parent is not None else self._known(kernel)
        if known is not None:
            merged = dict.fromkeys((*known.origins, *origins))
            known.properties["origins"] = ArrayAttr(list(merged))
            known.location = fuse_locations(known.location, location)
            return known.sym_name.data
        unique = self._unique(kernel.sym_name.data)
        kernel.properties |= {"sym_name": StringAttr(unique), "origins": ArrayAttr(list(origins))}
        kernel.location = location
        Rewriter.insert_op(kernel, self._start)
        return unique

    def _known(self, kernel: triton.KernelOp) -> triton.KernelOp | None:
        """The kernel in the module that does what one does; None where it is the first."""
        name = kernel.sym_name
        kernel.properties |= {"sym_name": StringAttr("kernel"), "origins": ArrayAttr([])}
        known = self._kernels.setdefault(text_without_names(kernel), kernel)
        kernel.properties["sym_name"] = name
        return None if known is kernel else known

    def _unique(self, label: str) -> str:
        """`label`, or `label` and a number, so that no other kernel has it."""
        unique, count = label, 1
        while unique in self._names:
            count += 1
            unique = f"{label}_{count}"
        self._names.add(unique)
        return unique


def _cascade(fold: MapFold, options: Options) -> LoweredGroup | None:
    """The kernels of a fold alone as a group, if it is one kernel and there is more to it.

    That is so where parts of its state are moved to be added, or sums of several parts are
    contractions.
    """
    if fold.monoid is None or fold.scan_dim is not None or fold.index.is_empty:
        return None
    moved = bool(Folding.of(fold.monoid, fold.wrap).addends)
    if not moved and len(fold.monoid.state) == 1:
        return None
    group = alone(fold)
    try:
        if not moved and not any(one.products for one in assign(group).folds.values()):
            return None
        return lower_group(group, options, ())
    except NotOneKernelError:
        return None


def _new_states(
    tensors: Sequence[Tensor], monoid: Monoid, name: str, location: LocationAttr
) -> list[triton.AllocateOp]:
    """Buffers for the parts of a state, all zero."""
    states: list[triton.AllocateOp] = []
    for tensor, zero in zip(tensors, monoid.real_zero, strict=True):
        kind = MemRefType(tensor.element, tensor.box.shape)
        state = triton.AllocateOp(kind, number(zero, tensor.element))
        state.result.name_hint = f"{name}_{tensor.name}"
        state.location = location
        states.append(state)
    return states


def _moved(tensors: Iterable[Tensor], boxes: Sequence[Range]) -> int:
    """Bytes of what tensors' projections select over some boxes, each box for itself."""
    return sum(
        selected(tensor.projection, box, tensor.box, tensor.fill).size * byte_size(tensor.element)
        for tensor in tensors
        for box in boxes
    )
