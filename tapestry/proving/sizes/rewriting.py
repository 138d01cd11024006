"""Programs rewritten over shorter axes: types, ranges, projections, partitions, borders in bodies.

`plan_updates` computes everything that changes; `apply_updates` changes it, in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, projections_attr, tensor_type
from tapestry.dialects.zspace import DomainAttr, PartitionAttr, ProjectionAttr, RangeAttr
from tapestry.proving.sizes.axes import UnplacedError
from tapestry.proving.sizes.coordinates import Affine, materialize
from tapestry.proving.sizes.literals import follow
from tapestry.proving.sizes.plans import Comparison, Plan, Rows, Space, border, gap
from tapestry.proving.sizes.rows import Dimension, Row
from tapestry.proving.sizes.shortening import Shorter
from tapestry.proving.sizes.structure import Structure
from tapestry.zspace import Partition, Projection, Range
from tapestry.zspace.domain import Domain

Place = tuple[int, int]
"""An operation of a body: the region, and the position in its block."""


@dataclass(frozen=True)
class BodyChange:
    """New operands of one operation of a body, or a new constant."""

    place: Place
    operands: tuple[tuple[int, Affine], ...] = ()
    constant: Attribute | None = None


@dataclass
class Updates:
    """What changes in the programs."""

    kernels: list[tuple[loom.KernelOp, loom.KernelOp]] = field(
        default_factory=list[tuple[loom.KernelOp, loom.KernelOp]]
    )
    """Kernels that some applications need otherwise, and what they need."""
    types: list[tuple[SSAValue, TensorType]] = field(
        default_factory=list[tuple[SSAValue, TensorType]]
    )
    properties: list[tuple[Operation, dict[str, Attribute]]] = field(
        default_factory=list[tuple[Operation, dict[str, Attribute]]]
    )
    bodies: list[tuple[Operation, tuple[BodyChange, ...]]] = field(
        default_factory=list[tuple[Operation, tuple[BodyChange, ...]]]
    )


def plan_updates(structure: Structure, shorter: Shorter) -> Updates:
    """What has to change; UnplacedError names a line that cannot get shorter so."""
    updates = Updates()
    planner = _Planner(structure, shorter, updates)
    for value, space in structure.values.items():
        box, kind = planner.box(space), tensor_type(value)
        if box != kind.box:
            updates.types.append((value, TensorType.of(box, kind.element_type)))
    for plan in structure.plans:
        planner.visit(plan)
    return updates


@dataclass
class _Planner:
    structure: Structure
    shorter: Shorter
    updates: Updates
    variants: dict[object, str] = field(default_factory=dict[object, str])
    places: dict[Block, dict[Operation, int]] = field(
        default_factory=dict[Block, dict[Operation, int]]
    )

    def box(self, space: Space) -> Range:
        edge = self.shorter.edge
        return Range.of_sides((edge(d.line, d.start), edge(d.line, d.end)) for d in space)

    def projection(self, rows: Rows, old: Projection) -> Projection:
        found = [row.shortened(self.shorter) for row in rows]
        return Projection.of(
            [coefficients for coefficients, _ in found],
            [offset for _, offset in found],
            old.shape,
            inputs=old.inputs,
        )

    def projections(self, all_rows: Sequence[Rows], old: Iterable[Projection]) -> ArrayAttr:
        pairs = zip(all_rows, old, strict=True)
        return projections_attr(self.projection(rows, projection) for rows, projection in pairs)

    def visit(self, plan: Plan) -> None:
        match plan.op:
            case loom.OperationOp() as op:
                self._operation(op, plan)
            case loom.ApplicationOp() | loom.MergeOp() as op:
                self._dispatch(op, plan)
            case loom.ViewOp() as op:
                new = self.projection(plan.ins[0], op.projection.data)
                self._set(op, {"projection": ProjectionAttr(new)})
            case loom.AssembleOp() as op:
                placed = [Projection.cells(placement) for placement in op.placed]
                new = self.projections(plan.ins, placed)
                if op.placements is not None or new != projections_attr(placed):
                    self._set(op, {"placements": new})
            case _:
                pass

    def _set(self, op: Operation, properties: Mapping[str, Attribute]) -> None:
        changed = {k: v for k, v in properties.items() if op.properties.get(k) != v}
        if changed:
            self.updates.properties.append((op, changed))

    def _operation(self, op: loom.OperationOp, plan: Plan) -> None:
        index = self.box(plan.space)
        properties: dict[str, Attribute] = {
            "index_range": RangeAttr(index),
            **self._signature(plan, op),
        }
        if op.partition is not None:
            properties["shards"] = PartitionAttr(self._partition(op.partition, plan.space))
        self._set(op, properties)
        changes = self._body(plan, op, op.fold_range(index).size)
        if changes:
            self.updates.bodies.append((op, changes))

    def _signature(self, plan: Plan, signature: loom.BlockSignature) -> dict[str, Attribute]:
        """The projections, where the plan has rows for them."""
        found: dict[str, Attribute] = {}
        if plan.ins:
            found["in_projections"] = self.projections(plan.ins, signature.in_maps)
        if plan.extras:
            found["extra_projections"] = self.projections(plan.extras, signature.extra_maps)
        if plan.outs:
            found["out_projections"] = self.projections(plan.outs, signature.out_maps)
        if plan.domain:
            rows = [self._row(comparison, len(plan.space)) for comparison in plan.domain]
            matrix, offset = [row for row, _ in rows], [constant for _, constant in rows]
            found["domain"] = DomainAttr(Domain.of(matrix, offset, len(plan.space)))
        return found

    def _partition(self, partition: Partition, space: Space) -> Partition:
        if partition.cuts is None:
            boxes = [
                self.box(
                    tuple(
                        Dimension(d.line, start, end)
                        for d, start, end in zip(space, box.start, box.end, strict=True)
                    )
                )
                for box in partition.ranges()
            ]
            return Partition.explicit(boxes)
        return Partition.grid(
            self._cuts(dimension.line, cuts)
            for dimension, cuts in zip(space, partition.cuts, strict=True)
        )

    def _cuts(self, line: int, cuts: Sequence[int]) -> list[int]:
        """The cuts of a grid that were kept."""
        first, *inner, last = cuts
        found = [self.shorter.edge(line, first)]
        for at in inner:
            try:
                found.append(self.shorter.edge(line, at))
            except UnplacedError:
                continue
        return [*found, self.shorter.edge(line, last)]

    def _dispatch(self, op: loom.ApplicationOp | loom.MergeOp, plan: Plan) -> None:
        kernel = loom.find_kernel(op, op.kernel_name)
        assert kernel is not None
        index = self.box(plan.space)
        signature = {
            name: value
            for name, value in self._signature(plan, kernel).items()
            if kernel.properties.get(name) != value
        }
        whole = isinstance(op, loom.ApplicationOp) and not op.is_partial
        changes = self._body(plan, kernel, kernel.fold_range(index).size if whole else 1)
        properties: dict[str, Attribute] = {"index_range": RangeAttr(index)}
        if isinstance(op, loom.ApplicationOp):
            kept = kernel.kept_range(index)
            reads = [
                *zip(plan.ins, kernel.in_maps, kernel.in_fills, strict=True),
                *(
                    zip(plan.extras, kernel.extra_maps, kernel.extra_fills, strict=True)
                    if plan.extras
                    else ()
                ),
            ]
            properties["selections"] = ArrayAttr(
                RangeAttr(
                    loom.selected(
                        self.projection(rows, projection),
                        index if place < len(plan.ins) else kept,
                        self.box(self.structure.values[value]),
                        fill,
                    )
                )
                for place, ((rows, projection, fill), value) in enumerate(
                    zip(reads, op.args, strict=True)
                )
            )
        if signature or changes:
            properties["kernel"] = SymbolRefAttr(self._variant(kernel, signature, changes))
        self._set(op, properties)

    def _variant(
        self,
        kernel: loom.KernelOp,
        signature: dict[str, Attribute],
        changes: tuple[BodyChange, ...],
    ) -> str:
        """The name of a kernel that differs as given; those that differ alike share one."""
        key = (kernel, frozenset(signature.items()), changes)
        name = self.variants.get(key)
        if name is None:
            block = kernel.parent
            assert block is not None
            taken = {op.properties.get("sym_name") for op in block.ops}
            names = (f"{kernel.sym_name.data}_{number}" for number in count(1))
            used = set(self.variants.values())
            name = next(n for n in names if StringAttr(n) not in taken and n not in used)
            self.variants[key] = name
            variant = kernel.clone()
            variant.properties["sym_name"] = StringAttr(name)
            self.updates.kernels.append((kernel, variant))
            self.updates.properties.append((variant, signature))
            self.updates.bodies.append((variant, changes))
        return name

    def _body(
        self, plan: Plan, signature: loom.BlockSignature, folded: int
    ) -> tuple[BodyChange, ...]:
        found: list[BodyChange] = []
        for comparison in plan.body.comparisons:
            operands = self._comparison(comparison)
            if operands:
                found.append(BodyChange(self._place(signature, comparison.op), operands))
        for number in plan.body.numbers:
            value = self._affine(number.row, number.dims)
            if value != number.use.value:
                place = self._place(signature, number.use.op)
                found.append(BodyChange(place, ((number.use.operand, value),)))
        for literal in plan.body.literals if plan.folds > 1 else ():
            new = follow(literal, plan.folds, folded)
            if new is not None:
                found.append(BodyChange(self._place(signature, literal), constant=new))
        return tuple(found)

    def _place(self, signature: loom.BlockSignature, op: Operation) -> Place:
        for number, region in enumerate(signature.regions):
            block = region.first_block
            if block is not None and op.parent is block:
                known = self.places.setdefault(block, {o: n for n, o in enumerate(block.ops)})
                return number, known[op]
        raise AssertionError("the operation is in a body of the signature")

    def _affine(self, row: Row, dims: Sequence[int]) -> Affine:
        coefficients, offset = row.shortened(self.shorter)
        return Affine.of(dict(zip(dims, coefficients, strict=True)), offset)

    def _row(self, comparison: Comparison, rank: int) -> tuple[list[int], int]:
        """A row of a domain anew."""
        up, down = self._sides(comparison)
        difference = up.plus(down, -1)
        terms = dict(difference.terms)
        return [terms.get(dim, 0) for dim in range(rank)], difference.offset

    def _comparison(self, comparison: Comparison) -> tuple[tuple[int, Affine], ...]:
        """Both operands of a comparison anew, nothing when they stay."""
        up, down = self._sides(comparison)
        old = Affine.of({}, -comparison.offset)
        for row, sign in ((comparison.left, -1), (comparison.right, 1)):
            if row is not None:
                terms = {comparison.dims[t.place]: t.coefficient for t in row.terms}
                old = old.plus(Affine.of(terms), sign)
        return () if down.plus(up, -1) == old else ((0, up), (1, down))

    def _sides(self, comparison: Comparison) -> tuple[Affine, Affine]:
        """What a comparison compares, over shorter axes."""
        left, right, dims = comparison.left, comparison.right, comparison.dims
        up = Affine(()) if left is None else self._affine(left, dims)
        down = Affine(()) if right is None else self._affine(right, dims)
        if left is not None and right is not None:
            axes = self.structure.axes
            apart = gap(axes, comparison)
            now = self.shorter.distance(left.target, abs(apart))
            now = now if apart > 0 else -now
            down = down.plus(Affine((), now - apart - comparison.offset))
        else:
            row = left or right
            if row is None:
                return Affine((), comparison.offset), Affine(())
            constant = Affine((), self.shorter.edge(row.target, border(comparison)))
            if left is None:
                up = constant
            else:
                down = constant
        return up, down


def apply_updates(programs: Iterable[ModuleOp], updates: Updates) -> None:
    """Change the programs in place."""
    for kernel, variant in updates.kernels:
        block = kernel.parent
        assert block is not None
        block.insert_op_after(variant, kernel)
    for value, kind in updates.types:
        new = Rewriter.replace_value_with_new_type(value, kind)
        if isinstance(value, BlockArgument) and isinstance(new, BlockArgument):
            new.location = value.location
    for op, properties in updates.properties:
        op.properties.update(properties)
    for op, changes in updates.bodies:
        _change_bodies(op, changes)
    for module in programs:
        for function in module.body.block.ops:
            if isinstance(function, func.FuncOp):
                end = function.body.block.last_op
                assert isinstance(end, func.ReturnOp)
                function.function_type = FunctionType.from_lists(
                    [argument.type for argument in function.args],
                    [value.type for value in end.operands],
                )


def _change_bodies(op: Operation, changes: Iterable[BodyChange]) -> None:
    found = [list(region.block.ops) if region.blocks else [] for region in op.regions]
    for change in changes:
        region, position = change.place
        target = found[region][position]
        for operand, value in change.operands:
            target.operands[operand] = materialize(value, target.operands[operand], target)
        if change.constant is not None:
            assert isinstance(target, arith.ConstantOp)
            target.properties["value"] = change.constant
