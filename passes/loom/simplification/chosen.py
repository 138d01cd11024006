"""Inputs of which a coordinate chooses one, read from an assembly of them.

    ins(%q : (s, i) -> (i), %k : (s, i) -> (i))        %t = loom.assemble %q, %k at (d0) -> (d0 + 8)
    wrap (%a: f32, %b: f32) {                          ins(%t : (s, i) -> (8 * s + i))
      %s = loom.index 0                       becomes  wrap (%x: f32) {
      %first = arith.cmpi eq, %s, %zero
      %x = arith.select %first, %a, %b                   ...

The gradient of a tensor of which slices were taken is a sum of tensors that are zero but for their
slice. Whoever reads it would read all of them at each point; what computes the slices can write
them side by side instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.algebra.one_hot import number_of
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes.loom.rebuilding.bodies import drop_unused, in_group
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.passes.loom.rebuilding.outputs import drop_unread
from tapestry.zspace import AffineMap, Projection, Range

_MANY = 8
"""The most inputs that are put side by side."""

_ZERO = 0.0
_EQUAL, _DIFFERENT = 0, 1
"""The predicates of `arith.cmpi eq` and `ne`."""


class ReadChosen(RewritePattern):
    """What is one input or another by a coordinate is read from an assembly of these.

    Legal where at each coordinate the value is the cell of an input, widened on the way at most, or
    that and zeros; a float -0.0 that was added to zero is -0.0. The inputs are alike, read at the
    same places cell by cell, wherever the coordinate is. Operations of the program compute them,
    each at one coordinate: these can write the parts of the assembly where they stand.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if in_group(op) or op.partition is not None or len(op.ins) < 2:
            return
        body = op.wrap_block
        coordinates = {one.dimension for one in body.ops if isinstance(one, loom.IndexOp)}
        for dim in sorted(coordinates):
            if not 2 <= op.index.shape[dim] <= _MANY:
                continue
            for one in reversed(list(body.ops)):
                if isinstance(one, arith.SelectOp | arith.AddfOp | arith.TruncFOp):
                    value = one.results[0]
                    arguments = _arguments(value, dim, op.index)
                    if arguments is not None and _are_alike(op, arguments, dim):
                        _read(op, value, dim, arguments, rewriter)
                        return


def _arguments(value: SSAValue, dim: int, index: Range) -> list[BlockArgument] | None:
    """The argument that a value is at each coordinate along a dimension, each another one."""
    found: list[BlockArgument] = []
    for coordinate in range(index.start[dim], index.start[dim] + index.shape[dim]):
        at = _Place(dim, coordinate).of(value)
        if not isinstance(at, BlockArgument) or at.type != value.type:
            return None
        found.append(at)
    return found if len(set(found)) == len(found) else None


@dataclass(frozen=True)
class _Place:
    """A coordinate along a dimension, at which values of a body are looked at."""

    dim: int
    coordinate: int

    def of(self, value: SSAValue) -> BlockArgument | float | None:
        """The argument that a value is, zero, or None for all else."""
        if isinstance(value, BlockArgument):
            return value
        match value.owner:
            case arith.ConstantOp():
                return _ZERO if number_of(value) == 0 else None
            case arith.SelectOp() as one:
                taken = self.holds(one.cond)
                return None if taken is None else self.of(one.lhs if taken else one.rhs)
            case arith.AddfOp() as one:
                left, right = self.of(one.lhs), self.of(one.rhs)
                if left == _ZERO:
                    return right
                return left if right == _ZERO else None
            case arith.ExtFOp() as one:
                return self.of(one.input)
            case arith.TruncFOp() as one:
                inner = self.of(one.input)
                # What was widened before is what it was.
                exact = inner == _ZERO or (
                    isinstance(inner, BlockArgument) and inner.type == one.result.type
                )
                return inner if exact else None
            case _:
                return None

    def holds(self, condition: SSAValue) -> bool | None:
        """Whether a comparison with the coordinate holds; None where that is not what it is."""
        match condition.owner:
            case arith.CmpiOp() as one:
                for side, other in ((one.lhs, one.rhs), (one.rhs, one.lhs)):
                    index, number = side.owner, number_of(other)
                    if isinstance(index, loom.IndexOp) and index.dimension == self.dim:
                        equal = number == self.coordinate
                        known = {_EQUAL: equal, _DIFFERENT: not equal}
                        return None if number is None else known.get(one.predicate.value.data)
                return None
            case _:
                return None


def _are_alike(op: loom.OperationOp, arguments: Sequence[BlockArgument], dim: int) -> bool:
    """Whether inputs are read at the same places, of which a coordinate does not decide."""
    reads = [op.in_reads[one.index] for one in arguments]
    first, kind = reads[0].projection, tensor_type(reads[0].value)
    plain = first.is_unit and kind.box.rank > 0
    return plain and all(
        read.fill is None
        and read.projection == first
        and tensor_type(read.value) == kind
        and isinstance(read.value.owner, loom.OperationOp | loom.FusedOp)
        and not any(row[dim] for row in read.projection.map.matrix)
        for read in reads
    )


def _read(
    op: loom.OperationOp,
    value: SSAValue,
    dim: int,
    arguments: Sequence[BlockArgument],
    rewriter: PatternRewriter,
) -> None:
    """Read a value from the assembly of what some arguments are read from, in order."""
    ins, _ = reads_of(op)
    parts = [ins[one.index].value for one in arguments]
    kind = tensor_type(parts[0])
    (length, *others), start = kind.box.shape, kind.box.start
    whole = TensorType.of(Range.of([length * len(parts), *others]), kind.element_type)
    placed = [
        AffineMap.identity(kind.box.rank).translate(
            [number * length - start[0], *(-at for at in start[1:])]
        )
        for number in range(len(parts))
    ]
    assembly = loom.AssembleOp(parts, whole, placed)
    assembly.result.name_hint = op.label.data
    rewriter.insert(assembly, InsertPoint.before(op))
    body, place = op.wrap_block, min(one.index for one in arguments)
    projection = ins[place].projection.map
    matrix = [list(row) for row in projection.matrix]
    matrix[0][dim] = length
    offset = [at - begin for at, begin in zip(projection.offset, start, strict=True)]
    offset[0] -= length * op.index.start[dim]
    there = Projection.of(matrix, offset, inputs=op.index.rank)
    new = body.insert_arg(value.type, place)
    new.name_hint = value.name_hint
    rewriter.replace_all_uses_with(value, new)
    drop_unused(body, rewriter)
    ins.insert(place, Read(assembly.result, there))
    rebuild(op, rewriter, ins=drop_unread(body, ins, 0))
