"""The geometry of a loom program as axes: which dimensions are tied, and every row that ties them.

    %y = loom.operation @scale over <[0, 0] : [6, 64]> [map, map]
           ins(%x : (d0, d1) -> (64 * d0 + d1), %b : (d0, d1) -> (d1))
           outs((d0, d1) -> (d0, d1)) ...

ties d1 to the dimension of `%b`, to the second one of `%y` and to the lower digits of `%x`, and d0
to the first one of `%y` and the upper digits of `%x`. Of an operation that is not known, every
dimension keeps all its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.proving.sizes.axes import Axes
from tapestry.proving.sizes.bodies import Bodies
from tapestry.proving.sizes.holding import Held, state_holds
from tapestry.proving.sizes.plans import Comparison, Plan, Rows, Space, border, gap
from tapestry.proving.sizes.rows import Dimension, Row, tie_row
from tapestry.zspace import Projection, Range

_SIGNATURE = {
    "iterators",
    "monoid",
    "in_projections",
    "in_clips",
    "extra_projections",
    "extra_clips",
    "out_projections",
    "domain",
}
_KNOWN: dict[type[Operation], set[str]] = {
    loom.OperationOp: _SIGNATURE | {"label", "index_range", "shards", "operandSegmentSizes"},
    loom.KernelOp: _SIGNATURE | {"sym_name", "part_projections"},
    loom.ApplicationOp: {"kernel", "index_range", "selections", "partial"},
    loom.MergeOp: {"kernel", "index_range", "partial", "operandSegmentSizes"},
    loom.ViewOp: {"projection"},
    loom.ReshapeOp: set(),
    loom.AssembleOp: {"placements"},
    loom.ConstantOp: {"value"},
    loom.YieldOp: set(),
}
"""Properties that are understood: an operation with another one keeps its extents."""


class Structure:
    """The axes of some programs, filled one program after another by `add`."""

    def __init__(self) -> None:
        self.axes = Axes()
        self.plans: list[Plan] = []
        self.values: dict[SSAValue, Space] = {}
        self.bodies = Bodies(self.axes)

    def space_of(self, box: Range) -> Space:
        """New lines for a box."""
        found: list[Dimension] = []
        for start, end in zip(box.start, box.end, strict=True):
            line = self.axes.line()
            self.axes.extent(line, start, end)
            found.append(Dimension(line, start, end))
            if start == end:
                self.axes.pin(line)
        return tuple(found)

    def add(self, module: ModuleOp) -> None:
        """The functions of a module."""
        self.bodies.add(module)
        for op in module.body.block.ops:
            if isinstance(op, func.FuncOp):
                self._blocks(op)

    def keep(self, op: Operation) -> None:
        """Let an operation, wherever it is, keep all its extents."""
        while op.parent_op() is not None and not isinstance(op.parent_op(), func.FuncOp):
            parent = op.parent_op()
            assert parent is not None
            op = parent
        self._keep(op)
        for plan in self.plans:
            if plan.op is op:
                for dimension in plan.space:
                    self.axes.pin(dimension.line)

    def tie_spaces(self, one: Space, other: Space) -> None:
        """The same cells, wherever both boxes start."""
        for d, e in zip(one, other, strict=True):
            if d.extent > 1:
                self.axes.tie(d.line, e.line, e.start, e.end, shift=d.start - e.start)

    def spaces(self) -> Iterator[Space]:
        """All boxes: of tensors and of operations."""
        yield from self.values.values()
        yield from (plan.space for plan in self.plans)

    def _blocks(self, function: func.FuncOp) -> None:
        for block in function.body.blocks:
            for argument in block.args:
                self._value(argument)
            for op in block.ops:
                for result in op.results:
                    self._value(result)
                self._operation(op)

    def _value(self, value: SSAValue) -> None:
        if isinstance(value.type, TensorType):
            self.values[value] = self.space_of(value.type.box)

    def _operation(self, op: Operation) -> None:
        known = _KNOWN.get(type(op))
        if known is None or not set(op.properties) <= known:
            if not isinstance(op, func.ReturnOp):
                self._keep(op)
            return
        plan: Plan | None = None
        match op:
            case loom.OperationOp():
                plan = self._map_fold(op, op, op.index, op.ins, op.extras)
                self._partition(op, plan)
            case loom.ApplicationOp():
                plan = self._application(op)
            case loom.MergeOp():
                plan = self._merge(op)
            case loom.ViewOp():
                space = self.values[op.result]
                rows = self._rows(op.projection.data, self.values[op.source], space)
                plan = Plan(op, space, ins=(rows,))
            case loom.AssembleOp():
                result = self.values[op.result]
                placed = [
                    self._rows(Projection.cells(placement), result, self.values[part])
                    for part, placement in zip(op.parts, op.placed, strict=True)
                ]
                plan = Plan(op, ins=tuple(placed))
            case loom.ConstantOp() if op.splat is not None:
                plan = Plan(op)
            case loom.ReshapeOp():
                self._reshape(self.values[op.source], self.values[op.result])
                plan = Plan(op)
            case _:
                pass
        if plan is None:
            self._keep(op)
            return
        self.plans.append(plan)
        near = [d for value in (*op.operands, *op.results) for d in self.values.get(value, ())]
        self.axes.together(tuple(d.line for d in (*plan.space, *near) if d.extent > 1))

    def _keep(self, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            for dimension in self.values.get(value, ()):
                self.axes.pin(dimension.line)
        for operand in op.operands:
            self.bodies.pin_held(operand)

    def _rows(self, projection: Projection, target: Space, space: Space) -> Rows:
        mapping = projection.map
        rows: list[Row] = []
        for place, dimension in enumerate(target):
            coefficients, offset = mapping.matrix[place], mapping.offset[place]
            size = projection.shape[place]
            row = tie_row(self.axes, dimension.line, space, coefficients, offset, size)
            if all(d.extent for d in space):
                # What is read outside a tensor is a halo.
                low, high = row.bounds
                if low < dimension.start:
                    self.axes.rigid(dimension.line, low, dimension.start)
                if high + size > dimension.end:
                    self.axes.rigid(dimension.line, dimension.end, high + size)
            rows.append(row)
        return tuple(rows)

    def _map_fold(
        self,
        op: Operation,
        signature: loom.BlockSignature,
        index: Range,
        ins: Iterable[SSAValue],
        extras: Iterable[SSAValue],
    ) -> Plan:
        space = self.space_of(index)
        kept = tuple(space[d] for d in signature.kept_dims)
        plan = Plan(
            op,
            space,
            self._projected(signature.in_maps, ins, space),
            self._projected(signature.extra_maps, extras, kept),
            self._projected(signature.out_maps, op.results, kept),
            self.bodies.domain(op, signature, space),
            tuple(space[d] for d in signature.fold_dims),
        )
        dims = dict(enumerate(space))
        self.bodies.place(op, dims)
        given = [self.bodies.holding(value) for value in ins]
        state = state_holds(op, signature, given)
        self.bodies.read(op, signature.wrap_block, given, dims, plan.body)
        if signature.unwrap_block is not None:
            given = [*state, *(self.bodies.holding(value) for value in extras)]
            self.bodies.read(op, signature.unwrap_block, given, dims, plan.body)
        self.bodies.merged(op, signature, state, dims)
        return plan

    def _projected(
        self, projections: Sequence[Projection], values: Iterable[SSAValue], space: Space
    ) -> tuple[Rows, ...]:
        return tuple(
            self._rows(projection, self.values[value], space)
            for projection, value in zip(projections, values, strict=True)
        )

    def _application(self, op: loom.ApplicationOp) -> Plan | None:
        kernel = loom.find_kernel(op, op.kernel_name)
        if kernel is None or not set(kernel.properties) <= _KNOWN[loom.KernelOp]:
            return None
        inputs = len(kernel.in_projections)
        if not op.is_partial:
            return self._map_fold(op, kernel, op.index, op.args[:inputs], op.args[inputs:])
        space = self.space_of(op.index)
        plan = Plan(
            op,
            space,
            self._projected(kernel.in_maps, op.args, space),
            domain=self.bodies.domain(op, kernel, space),
        )
        self._states(op.outs, kernel, tuple(space[d] for d in kernel.kept_dims))
        dims = dict(enumerate(space))
        self.bodies.place(op, dims)
        given = [self.bodies.holding(value) for value in op.args]
        self.bodies.read(op, kernel.wrap_block, given, dims, plan.body)
        self.bodies.merged(op, kernel, state_holds(op, kernel, given), dims)
        return plan

    def _merge(self, op: loom.MergeOp) -> Plan | None:
        kernel = loom.find_kernel(op, op.kernel_name)
        if kernel is None or not set(kernel.properties) <= _KNOWN[loom.KernelOp]:
            return None
        space = self.space_of(op.index)
        self._states(op.states, kernel, space)
        if op.is_partial:
            self._states(op.outs, kernel, space)
            return Plan(op, space)
        plan = Plan(
            op,
            space,
            extras=self._projected(kernel.extra_maps, op.extras, space),
            outs=self._projected(kernel.out_maps, op.outs, space),
        )
        if kernel.unwrap_block is not None:
            dims = dict(zip(kernel.kept_dims, space, strict=True))
            self.bodies.place(op, dims)
            count = len(kernel.state_types)
            every = [self.bodies.holding(value) for value in op.states]
            state = [Held().joined(*every[part::count]) for part in range(count)]
            given = [*state, *(self.bodies.holding(value) for value in op.extras)]
            self.bodies.read(op, kernel.unwrap_block, given, dims, plan.body)
        return plan

    def _states(self, states: Iterable[SSAValue], kernel: loom.KernelOp, space: Space) -> None:
        """Stored parts of states are over some of the kept dimensions each."""
        for state, own in zip(states, cycle(kernel.part_axes)):
            part = self.values[state]
            axes = loom.stored_axes(tensor_type(state).box, own, len(space))
            for one, axis in zip(part, axes, strict=True):
                self.axes.tie(one.line, space[axis].line, one.start, one.end)

    def _partition(self, op: loom.OperationOp, plan: Plan) -> None:
        partition = op.partition
        if partition is None:
            return
        if partition.cuts is not None:
            for cuts, dimension in zip(partition.cuts, plan.space, strict=True):
                self.axes.cut(dimension.line, cuts)
            return
        for box in partition.ranges():
            for start, end, dimension in zip(box.start, box.end, plan.space, strict=True):
                self.axes.extent(dimension.line, start, end)

    def _reshape(self, source: Space, result: Space) -> None:
        """Both shapes are digits of the position in row-major order."""
        cells = prod(d.extent for d in source)
        flat = self.axes.line()
        self.axes.extent(flat, 0, cells)
        if cells == 0:
            return
        for space in (source, result):
            current = flat
            moving = [d for d in space if d.extent > 1]
            for place, dimension in enumerate(moving):
                width = prod(d.extent for d in moving[place + 1 :])
                digits = (current, current)
                if width > 1:
                    found = self.axes.split(current, width, 0)
                    if found is None:
                        for line in (flat, *(d.line for d in (*source, *result))):
                            self.axes.pin(line)
                        return
                    digits = found
                start, end = dimension.start, dimension.end
                self.axes.tie(digits[0], dimension.line, start, end, shift=-start)
                current = digits[1]

    def settle(self) -> None:
        """Give every comparison of coordinates its border; all ties have been made."""
        for plan in self.plans:
            for comparison in (*plan.domain, *plan.body.comparisons):
                self._border(comparison)

    def _border(self, comparison: Comparison) -> None:
        left, right = comparison.left, comparison.right
        if left is None or right is None:
            row = left or right
            if row is not None:
                at = border(comparison)
                self.axes.mark(row.target, at)
                self.axes.mark(row.target, at + 1)
            return
        one, other = left.target, right.target
        if self.axes.frame(one).root != self.axes.frame(other).root:
            low, high = right.bounds
            self.axes.tie(one, other, low, high + 1)
        apart = abs(gap(self.axes, comparison))
        if self.axes.frame(one).sign < 0 or self.axes.frame(other).sign < 0:
            self.axes.pin(one)
        elif apart:
            for cells in (apart - 1, apart, apart + 1):
                self.axes.distance(one, cells)
