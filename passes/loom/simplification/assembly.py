"""Assemblies folded away: into readers that need one part only, into each other, into views.

    %y = loom.assemble %a, %b : T<[0] : [3]>, T<[3] : [8]> -> T<[0] : [8]>
    %z = loom.operation @f over <[0] : [4]> [map] ins(%y : (d0) -> (d0 + 4)) ...

reads `%b` at `d0 + 4`. An assembly copies every cell, a projection none; so whatever reads the
parts, or the tensors that they are views of, reads them there.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.passes.loom.simplification.clips import ends_together
from tapestry.zspace import AffineMap, Projection, Range


class ReadPartOfAssembly(RewritePattern):
    """Read the one part of an assembly that holds all that is read.

    Legal when the selection lies where that part is placed, and the point of the part that is at
    each cell read is an affine function of the index point: the placement's strides divide the
    read's. A clipped read may leave the part where the part ends with the assembly.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not any(isinstance(value.owner, loom.AssembleOp) for value in op.operands):
            return
        ins, extras = reads_of(op)
        new_ins = [_of_part(read, op.index) for read in ins]
        new_extras = [_of_part(read, op.kept_range(op.index)) for read in extras]
        if new_ins != ins or new_extras != extras:
            rebuild(op, rewriter, ins=new_ins, extras=new_extras)


class ViewPartOfAssembly(RewritePattern):
    """View the one part of an assembly that holds all that is viewed. Legal as for a reader."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        found = _of_part(Read(op.source, op.projection.data), tensor_type(op.result).box)
        if found.value is not op.source:
            view = loom.ViewOp(found.value, found.projection, tensor_type(op.result))
            _replace(op, view, rewriter)


class ApplyToPartOfAssembly(RewritePattern):
    """Apply a kernel to the part of an assembly that holds the selection.

    Legal when the part stands where it is: then it holds the same cells at the same places, and the
    kernel's projections and recorded selections stay as they are.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ApplicationOp, rewriter: PatternRewriter) -> None:
        for place, (value, selection) in enumerate(zip(op.args, op.selections, strict=True)):
            if not isinstance(value.owner, loom.AssembleOp) or value.owner.placements is not None:
                continue
            for part in value.owner.parts:
                if tensor_type(part).box.contains_range(selection.data):
                    op.operands[place] = part
                    rewriter.notify_op_modified(op)
                    break


def _of_part(read: Read, index: Range) -> Read:
    """The same cells, read from the part of an assembly that holds them, if one does."""
    while isinstance(read.value.owner, loom.AssembleOp) and not index.is_empty:
        found = _part_of(read.value.owner, read, index) if read.projection.is_unit else None
        if found is None:
            break
        read = found
    return read


def _part_of(assembly: loom.AssembleOp, read: Read, index: Range) -> Read | None:
    """The part that holds all that is read over `index`, as it is read."""
    whole = tensor_type(assembly.result).box
    selected = read.projection.apply_range(index)
    for part, placement in zip(assembly.parts, assembly.placed, strict=True):
        box = tensor_type(part).box
        if read.fill is None and not placement.image(box).contains_range(selected):
            continue
        points = _points(placement, box, read.projection.map, index)
        if points is None:
            continue
        reached = points.image(index)
        clipped = read.fill is not None and ends_together(placement, box, whole, reached)
        if clipped or box.contains_range(reached):
            return Read(part, Projection.cells(points), read.fill)
    return None


def _points(placement: AffineMap, box: Range, read: AffineMap, index: Range) -> AffineMap | None:
    """The affine map from `index` towards `box` that `placement` takes where `read` leads."""
    matrix: list[list[int]] = []
    offset: list[int] = []
    for dim in range(box.rank):
        row = next((r for r, terms in enumerate(placement.terms) if _alone(terms, dim)), None)
        if row is None:
            if box.shape[dim] != 1:
                return None
            matrix.append([0] * index.rank)
            offset.append(box.start[dim])
            continue
        stride = placement.matrix[row][dim]
        shift = read.offset[row] - placement.offset[row]
        coefficients = list(read.matrix[row])
        if abs(stride) != 1:
            # Where the index does not move, what it adds is a constant.
            for d, extent in enumerate(index.shape):
                if extent == 1:
                    shift += coefficients[d] * index.start[d]
                    coefficients[d] = 0
        if any(c % stride for c in (*coefficients, shift)):
            return None
        matrix.append([c // stride for c in coefficients])
        offset.append(shift // stride)
    points = AffineMap.of(matrix, offset, inputs=index.rank)
    return points if same_on(placement.compose(points), read, index) else None


def _alone(terms: tuple[tuple[int, int], ...], dim: int) -> bool:
    return len(terms) == 1 and terms[0][1] == dim


def same_on(one: AffineMap, two: AffineMap, index: Range) -> bool:
    """Whether two maps agree on every point of a range."""
    if index.is_empty:
        return True
    if one.apply(index.start) != two.apply(index.start):
        return False
    moving = [d for d, extent in enumerate(index.shape) if extent > 1]
    pairs = zip(one.matrix, two.matrix, strict=True)
    return all(a[d] == b[d] for a, b in pairs for d in moving)


class FlattenAssembly(RewritePattern):
    """An assembly of assemblies is one assembly: placements compose.

    Always legal: the inner parts tile the inner assembly, which is placed cell by cell. Parts
    without cells go, as long as one part is left.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        parts: list[SSAValue] = []
        placements: list[AffineMap] = []
        for part, placement in zip(op.parts, op.placed, strict=True):
            if isinstance(part.owner, loom.AssembleOp):
                parts += part.owner.parts
                placements += [placement.compose(inner) for inner in part.owner.placed]
            else:
                parts.append(part)
                placements.append(placement)
        full = [n for n, part in enumerate(parts) if not tensor_type(part).box.is_empty] or [0]
        if full != list(range(len(op.parts))) or len(parts) != len(op.parts):
            kept = [parts[n] for n in full], [placements[n] for n in full]
            _replace(op, loom.AssembleOp(kept[0], tensor_type(op.result), kept[1]), rewriter)


class PlaceSourceOfView(RewritePattern):
    """A part that is a view of all cells of a tensor is that tensor, placed otherwise.

    Legal when the view is invertible over its cells and as large as its source: then each cell of
    the source has one place, where the placement puts its image under the inverse.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        parts, placements = list(op.parts), list(op.placed)
        changed = False
        for place, (part, placement) in enumerate(zip(op.parts, op.placed, strict=True)):
            inverse = bijection_of(part)
            if inverse is not None and isinstance(part.owner, loom.ViewOp):
                parts[place] = part.owner.source
                placements[place] = placement.compose(inverse)
                changed = True
        if changed:
            _replace(op, loom.AssembleOp(parts, tensor_type(op.result), placements), rewriter)


def bijection_of(value: SSAValue) -> AffineMap | None:
    """From cells of a view's source to those of the view, when each is one of the other."""
    if not isinstance(value.owner, loom.ViewOp):
        return None
    source, box = tensor_type(value.owner.source).box, tensor_type(value).box
    if source.size != box.size or source.is_empty or not value.owner.projection.data.is_unit:
        return None
    # As many cells, and an inverse: all of the source is viewed.
    return value.owner.projection.data.map.inverse_on(box)


class ViewOfAssembledViews(RewritePattern):
    """An assembly of views of one tensor is one view of it, where the views agree.

    Legal when one affine map leads from the result to the tensor such that each part, at every
    cell, reads where that map leads from the cell's place. The slices of a tensor, back where they
    were, are the tensor.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        reads: list[tuple[AffineMap, AffineMap, Range]] = []
        source: SSAValue | None = None
        for part, placement in zip(op.parts, op.placed, strict=True):
            value, read = part, AffineMap.identity(tensor_type(part).box.rank)
            if isinstance(part.owner, loom.ViewOp) and part.owner.projection.data.is_unit:
                value, read = part.owner.source, part.owner.projection.data.map
            if source is not None and value is not source:
                return
            source = value
            reads.append((placement, read, tensor_type(part).box))
        if source is None:
            return
        result = tensor_type(op.result)
        for candidate in _candidates(reads, tensor_type(source).box, result.box):
            if all(same_on(candidate.compose(p), read, box) for p, read, box in reads):
                _replace(op, loom.ViewOp(source, Projection.cells(candidate), result), rewriter)
                return


def _candidates(
    reads: list[tuple[AffineMap, AffineMap, Range]], source: Range, result: Range
) -> list[AffineMap]:
    """Maps that may lead from an assembly's result to the tensor that its parts view."""
    found = [AffineMap.identity(result.rank)] if source.rank == result.rank else []
    for placement, read, box in reads:
        inverse = placement.inverse_on(box)
        if inverse is not None:
            found.append(read.compose(inverse))
    return list(dict.fromkeys(found))


class ViewOfAssemblyIsAssembly(RewritePattern):
    """A view across parts of an assembly is an assembly of views of the parts it touches.

    Legal when every row of the view moves with one dimension at most and the parts stand where they
    are: then what is viewed of each part is a box. Not done for operations that read the view: they
    read the assembly, or its parts, themselves. Nor where the view repeats cells, which would be
    stored as often.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        assembly = op.source.owner
        if not isinstance(assembly, loom.AssembleOp) or assembly.placements is not None:
            return
        mapping, result = op.projection.data.map, tensor_type(op.result)
        separate = all(len(terms) <= 1 for terms in mapping.terms)
        read = any(isinstance(use.operation, loom.OperationOp) for use in op.result.uses)
        if read or not separate or not op.projection.data.is_unit or result.box.is_empty:
            return
        moving = {dim for terms in mapping.terms for _, dim in terms}
        if any(n > 1 and dim not in moving for dim, n in enumerate(result.box.shape)):
            return
        views: list[loom.ViewOp] = []
        for part in assembly.parts:
            box = mapping.preimage(tensor_type(part).box, result.box)
            if not box.is_empty:
                kind = TensorType.of(box, result.element_type)
                views.append(loom.ViewOp(part, op.projection.data, kind))
                views[-1].location = op.location
        whole = loom.AssembleOp([view.result for view in views], result)
        whole.location = op.location
        rewriter.replace(op, [*views, whole])


def _replace(
    op: loom.ViewOp | loom.AssembleOp,
    new: loom.ViewOp | loom.AssembleOp,
    rewriter: PatternRewriter,
) -> None:
    new.location = op.location
    rewriter.replace(op, new)


ASSEMBLY_PATTERNS: tuple[RewritePattern, ...] = (
    FlattenAssembly(),
    PlaceSourceOfView(),
    ViewOfAssembledViews(),
    ViewPartOfAssembly(),
    ReadPartOfAssembly(),
    ApplyToPartOfAssembly(),
    ViewOfAssemblyIsAssembly(),
)
"""All of them, each legal by itself."""
