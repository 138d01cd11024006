"""Running @main operation by operation over NumPy arrays, freeing each tensor after its last use.

`ArrayExecutor` does everything but the map-folds themselves; a subclass says how one operation runs
(`operation`), how a part of the index space folds (`fold`), and both share views, assemblies,
applications and merges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.algebra.parts import Axes
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.graph import Work, shards, traffic
from tapestry.locations import location_of
from tapestry.passes.loom.outline import inlined
from tapestry.runtime.arrays.access import cells
from tapestry.runtime.arrays.mapfold import (
    Tensor,
    finished,
    merged,
    new_tensor,
    stored,
    write,
)
from tapestry.runtime.arrays.scans import before
from tapestry.runtime.arrays.states import Layout
from tapestry.runtime.constants import constant_cells
from tapestry.runtime.executor import Array, Record, Result, Watch
from tapestry.runtime.externals import (
    call_external,
    external_results,
    find_external,
    gives_new,
    parameters_of,
)
from tapestry.runtime.program import arguments, main_function
from tapestry.zspace import Projection, Range


class ArrayExecutor(ABC):
    """Runs a program in order on arrays of this process."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The executor's name."""

    @abstractmethod
    def operation(
        self, op: loom.OperationOp, ins: Sequence[Tensor], extras: Sequence[Tensor], watch: Watch
    ) -> list[Tensor]:
        """Run one operation and return its outputs."""

    @abstractmethod
    def fold(self, op: loom.BlockSignature, box: Range, ins: Sequence[Tensor]) -> list[Array]:
        """The folded state over the map dimensions of a box of the index space."""

    @abstractmethod
    def steps(self, op: Operation) -> int:
        """How many times running `op` reports a step."""

    def run(self, module: ModuleOp, inputs: Mapping[str, Array], watch: Watch) -> Result:
        """Run @main, with what it calls in place."""
        module = inlined(module)
        block = main_function(module).body.block
        values: dict[SSAValue, Tensor] = {}
        for argument, value in zip(arguments(module), block.args, strict=True):
            values[value] = Tensor(argument.type.box, inputs[argument.name])
        last_use = {operand: op for op in block.ops for operand in op.operands}
        watch.total(sum(self.steps(op) for op in block.ops))
        records: list[Record] = []
        for op in block.ops:
            if isinstance(op, func.ReturnOp):
                returned = [
                    np.require(values[v].data, requirements=["C", "W"]) for v in op.operands
                ]
                return Result(tuple(returned), tuple(records))
            started = perf_counter()
            with np.errstate(all="ignore"):  # what IEEE 754 defines is no news
                outs = self.dispatch(op, [values[operand] for operand in op.operands], watch)
            seconds = perf_counter() - started
            values.update(zip(op.results, outs, strict=True))
            steps = self.steps(op)
            if steps:
                records.append(_record(op, steps, seconds))
            for operand in op.operands:
                if last_use[operand] is op:
                    values.pop(operand, None)
        raise InvalidProgramError("@main does not return")

    def dispatch(self, op: Operation, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        """Run one operation of @main."""
        match op:
            case loom.OperationOp():
                return self.operation(op, operands[: len(op.ins)], operands[len(op.ins) :], watch)
            case loom.FusedOp():
                return self.group(op, operands, watch)
            case loom.ViewOp():
                kind = tensor_type(op.result)
                source = operands[0]
                view = cells(source.data, source.box, op.projection.data, kind.box)
                return [Tensor(kind.box, np.broadcast_to(view, kind.box.shape))]
            case loom.ConstantOp():
                return [Tensor(tensor_type(op.result).box, constant_cells(op))]
            case loom.ReshapeOp():
                box = tensor_type(op.result).box
                return [Tensor(box, operands[0].data.reshape(box.shape))]
            case loom.AssembleOp():
                out = new_tensor(tensor_type(op.result))
                for part, placement in zip(operands, op.placed, strict=True):
                    if not part.box.is_empty:
                        at = Projection.cells(placement)
                        cells(out.data, out.box, at, part.box)[...] = part.data
                return [out]
            case loom.ExternalOp():
                return self._external(op, operands, watch)
            case loom.ApplicationOp():
                outs = self._application(op, operands)
            case loom.MergeOp():
                outs = self._merge(op, operands)
            case _:
                raise InvalidProgramError(
                    f"the {self.name} executor cannot run {op.name}",
                    location=location_of(op),
                    hint="apply weft-apply first" if op.name.startswith("weft.") else None,
                )
        watch.step(op.kernel_name)
        return outs

    def _external(self, op: loom.ExternalOp, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        name, location = op.callee.data, location_of(op)
        implementation = find_external(name, "numpy", location)
        if gives_new(name) and self.steps(op) == 1 and _are_whole(op):
            kinds = [tensor_type(result) for result in op.outs]
            wanted = [(kind.box.shape, numpy_dtype(kind.element_type)) for kind in kinds]
            read = _selected(operands, op.in_maps, op.index)
            made = external_results(name, implementation, read, wanted, parameters_of(op), location)
            watch.step(name)
            return [Tensor(kind.box, one) for kind, one in zip(kinds, made, strict=True)]
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        for shard in shards(op) if self.steps(op) > 1 else (op.index,):
            read = _selected(operands, op.in_maps, shard)
            written = _selected(outs, op.out_maps, shard)
            call_external(name, implementation, read, written, parameters_of(op), location)
            watch.step(name)
        return outs

    def group(self, op: loom.FusedOp, operands: list[Tensor], watch: Watch) -> list[Tensor]:
        """Run a group whole: its members in order, each whole."""
        values: dict[SSAValue, Tensor] = dict(zip(op.body.block.args, operands, strict=True))
        for member in op.members:
            given = [values[operand] for operand in member.operands]
            split = len(member.ins)
            outs = self.operation(member, given[:split], given[split:], watch)
            values.update(zip(member.outs, outs, strict=True))
        return [values[value] for value in op.yielded]

    def _application(self, op: loom.ApplicationOp, operands: list[Tensor]) -> list[Tensor]:
        kernel = _kernel(op)
        ins = operands[: len(kernel.in_maps)]
        kept_box = kernel.kept_range(op.index)
        state = self.fold(kernel, op.index, ins)
        if op.is_partial:
            return _as_tensors(stored(kernel, state), op.outs, kept_box, kernel.part_axes)
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        values = finished(kernel, kept_box, state, operands[len(ins) :])
        write(kernel, kept_box, values, outs)
        return outs

    def _merge(self, op: loom.MergeOp, operands: list[Tensor]) -> list[Tensor]:
        kernel = _kernel(op)
        monoid = accumulating_monoid_of(kernel)
        assert monoid is not None
        own, rank = kernel.part_axes, op.index.rank
        parts = len(monoid.state)
        kinds = list(map(tensor_type, op.states))
        held = [
            axes if all(kind.box.rank < rank for kind in kinds[part::parts]) else range(rank)
            for part, axes in enumerate(own)
        ]
        layout = Layout.holding(monoid, held)
        total = layout.zero(op.index)
        states = operands[: len(op.states)]
        boxes = loom.state_boxes(op, own)
        for first, box in zip(range(0, len(states), parts), boxes, strict=True):
            new = [
                _over_kept(state, axes, rank)
                for state, axes in zip(states[first : first + parts], own, strict=True)
            ]
            if kernel.scan_dim is None:
                met = layout.at(total, box, op.index)
            else:
                met = before(layout, total, op.index, box, kernel.scan_dim)
            layout.put(total, box, op.index, merged(monoid, met, new))
        if op.is_partial:
            return _as_tensors(stored(kernel, total), op.outs, op.index, own)
        outs = [new_tensor(tensor_type(result)) for result in op.outs]
        write(kernel, op.index, finished(kernel, op.index, total, operands[len(states) :]), outs)
        return outs


def _over_kept(part: Tensor, axes: Axes, rank: int) -> Array:
    """A stored part of a state with an axis per kept dimension."""
    if part.box.rank == rank:
        return part.data
    missing = [axis for axis in range(rank) if axis not in axes]
    return np.expand_dims(part.data, missing)


def _as_tensors(
    state: Sequence[Array], outs: Sequence[SSAValue], box: Range, own: Sequence[Axes]
) -> list[Tensor]:
    """The parts of a state over a box of the kept dimensions, as they are to be stored."""
    found: list[Tensor] = []
    for part, out, axes in zip(state, outs, own, strict=True):
        kind = tensor_type(out)
        if kind.box.rank < box.rank:
            part = part[tuple(slice(None) if a in axes else 0 for a in range(box.rank))]
        found.append(Tensor(kind.box, np.broadcast_to(part, kind.box.shape)))
    return found


def _are_whole(op: loom.ExternalOp) -> bool:
    """Whether an operation writes all of its outputs at once."""
    pairs = zip(op.out_maps, op.outs, strict=True)
    return all(place.apply_range(op.index) == tensor_type(out).box for place, out in pairs)


def _selected(
    tensors: Sequence[Tensor], projections: Sequence[Projection], index: Range
) -> list[Array]:
    """What projections select of tensors over a range of the index space, as views."""
    pairs = zip(tensors, projections, strict=True)
    # The Ellipsis keeps a view where there is no dimension to slice.
    return [tensor.data[(*p.apply_range(index).slices(tensor.box), ...)] for tensor, p in pairs]


def _kernel(op: loom.Dispatch) -> loom.KernelOp:
    kernel = loom.find_kernel(op, op.kernel_name)
    assert kernel is not None
    return kernel


def _record(op: Operation, shards: int, seconds: float) -> Record:
    """What an operation moved, from its projections: each shard reads what it selects."""
    assert isinstance(op, Work | loom.FusedOp)
    name = op.subject.removeprefix("@")
    moved = traffic(op)
    return Record(name, shards, moved.read, moved.written, seconds)
