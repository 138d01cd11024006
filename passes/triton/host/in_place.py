"""Parts of an assembly, written where they stand in it.

    %a = loom.operation ...      %b = loom.operation ...
    %y = loom.assemble %a, %b at ...

What alone reads `%a` and `%b` is the assembly: their kernels write cells of `%y`'s buffer, through
the placements, and nothing is copied. So are the halves of a rotation put side by side, and the
gradients of queries, keys and values that one projection made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom, triton
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.simplification.reshape import mixed_radix_digit
from tapestry.passes.triton.host.buffers import allocate, buffer_of
from tapestry.passes.triton.indexing.spaces import row_major
from tapestry.passes.triton.kernels.mapfold import Tensor
from tapestry.zspace import AffineMap, Projection, Range

Writer = loom.OperationOp | loom.FusedOp
"""What becomes kernels that can write somewhere else."""


@dataclass
class InPlace:
    """The buffers of assemblies whose parts are written into them."""

    buffers: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])

    def outs(self, rewriter: PatternRewriter, op: Writer) -> list[SSAValue]:
        """A buffer for each result: an assembly's, or a new one."""
        found: list[SSAValue] = []
        for result in op.results:
            assembly = assembly_of(result)
            found.append(
                allocate(rewriter, [result])[0]
                if assembly is None
                else self._joint(rewriter, assembly)
            )
        return found

    def _joint(self, rewriter: PatternRewriter, assembly: loom.AssembleOp) -> SSAValue:
        """The buffer of an assembly, made in front of all that writes into it."""
        if assembly not in self.buffers:
            made = triton.AllocateOp(buffer_of(tensor_type(assembly.result)))
            made.result.name_hint = assembly.result.name_hint
            parts = {part.owner for part in assembly.parts}
            assert assembly.parent is not None
            first = next(op for op in assembly.parent.ops if op in parts)
            rewriter.insert(made, InsertPoint.before(first))
            self.buffers[assembly] = made.result
        return self.buffers[assembly]

    def holds(self, assembly: loom.AssembleOp, part: SSAValue) -> bool:
        """Whether a part, as it was lowered, was written into the buffer of its assembly."""
        owner = part.owner
        buffer = self.buffers.get(assembly)
        return isinstance(owner, UnrealizedConversionCastOp) and owner.inputs[0] is buffer


def assembly_of(value: SSAValue) -> loom.AssembleOp | None:
    """The assembly that alone reads what an operation writes, which shards do not cut."""
    writer = value.owner
    if not isinstance(writer, Writer) or writer.partition is not None:
        return None
    uses = list(value.uses)
    reader = uses[0].operation if len(uses) == 1 else None
    return reader if isinstance(reader, loom.AssembleOp) else None


def places_of(values: Sequence[SSAValue]) -> Mapping[int, tuple[Range, AffineMap]]:
    """For results that are written into assemblies, these tensors and where in them, by number."""
    found: dict[int, tuple[Range, AffineMap]] = {}
    for number, value in enumerate(values):
        assembly = assembly_of(value)
        if assembly is not None:
            place = assembly.placed[list(assembly.parts).index(value)]
            found[number] = tensor_type(assembly.result).box, place
    return found


def standing(tensor: Tensor, place: tuple[Range, AffineMap] | None) -> Tensor:
    """An output as it is written into another tensor."""
    if place is None:
        return tensor
    box, cells = place
    projection = Projection.cells(cells.compose(tensor.projection.map))
    return replace(tensor, box=box, projection=projection)


class AssembleUnreshaped(RewritePattern):
    """An assembly places what a part is a reshape of.

    Legal when each coordinate of the reshaped tensor is affine in those of its source, as where
    dimensions are merged: the cells and where they stand are the same. Done where the source is
    written for this alone, and so can be written in place.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        parts, placed = list(op.parts), list(op.placed)
        unread: list[loom.ReshapeOp] = []
        for number, part in enumerate(op.parts):
            reshape = part.owner
            if not isinstance(reshape, loom.ReshapeOp) or not part.has_one_use():
                continue
            cells = _merged(tensor_type(reshape.source).box, tensor_type(part).box)
            alone = isinstance(reshape.source.owner, Writer) and reshape.source.has_one_use()
            if cells is not None and alone:
                parts[number], placed[number] = reshape.source, placed[number].compose(cells)
                unread.append(reshape)
        if unread:
            new = loom.AssembleOp(parts, tensor_type(op.result), placed)
            new.location = op.location
            new.result.name_hint = op.result.name_hint
            rewriter.replace(op, new)
            for reshape in unread:
                rewriter.erase(reshape)


def _merged(have: Range, want: Range) -> AffineMap | None:
    """Where the cells of a tensor are in a reshape of it, if that is affine."""
    steps = row_major(have.shape)
    shift = -sum(step * low for step, low in zip(steps, have.start, strict=True))
    rows: list[tuple[int, ...]] = []
    offset: list[int] = []
    for weight, extent, start in zip(row_major(want.shape), want.shape, want.start, strict=True):
        digit = mixed_radix_digit(steps, shift, have, weight, extent)
        if digit is None:
            return None
        rows.append(digit[0])
        offset.append(digit[1] + start)
    return AffineMap.of(rows, offset, inputs=have.rank)
