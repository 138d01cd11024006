"""A map that computes the same along a dimension, computed once.

    %s = loom.operation @s over <[0, 0, 0] : [2, 4, 8]> [map, map, map]
           ins(%k : (h, g, i) -> (h, i)) outs((h, g, i) -> (4 * h + g, i)) ...
    %y = ... ins(%s : (h, g, i, j) -> (4 * h + g, j), ...)

becomes a map over <[0, 0] : [2, 8]>, which `%y` reads by `(h, g, i, j) -> (h, j)`. Heads of keys
that serve several heads of queries are scaled so.
"""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group, reindex
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild
from tapestry.zspace import AffineMap, Projection, Range
from tapestry.zspace.origins import origin


class ComputeRepeatedOnce(RewritePattern):
    """A map is computed without the dimensions along which nothing that it reads moves.

    Legal when its body asks for no coordinate of them, and which point of it computes a cell is an
    affine function of the point that reads it, for all that read it: operations, which then read
    what one of the equal points made. Nothing of it has shards or a domain.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is not None or len(op.outs) != 1 or not _is_whole(op):
            return
        asked = {one.dimension for one in op.wrap_block.ops if isinstance(one, loom.IndexOp)}
        moving = {d for read in op.in_maps for terms in read.map.terms for _, d in terms}
        kept = [d for d, n in enumerate(op.index.shape) if n == 1 or d in asked | moving]
        if len(kept) == op.index.rank or op.index.is_empty:
            return
        if all(op.index.shape[d] == 1 for d in kept):
            return
        (out,) = op.outs
        found: list[tuple[loom.OperationOp, list[Read], list[Read]]] = []
        for reader in dict.fromkeys(use.operation for use in out.uses):
            if not isinstance(reader, loom.OperationOp) or not _is_whole(reader):
                return
            ins, extras = reads_of(reader)
            new_ins = [_of_once(op, kept, read, reader.index) for read in ins]
            over = reader.kept_range(reader.index)
            new_extras = [_of_once(op, kept, read, over) for read in extras]
            if None in new_ins or None in new_extras:
                return
            found.append((reader, _known(new_ins), _known(new_extras)))
        if not found:
            return
        matrix = [[int(d == old) for d in kept] for old in range(op.index.rank)]
        offset = [0 if d in kept else op.index.start[d] for d in range(op.index.rank)]
        points = AffineMap.of(matrix, offset, inputs=len(kept))
        index = op.index.select(kept)
        reindex(op.wrap_block, points, range(len(kept)), rewriter)
        kinds: list[loom.Iterator] = ["map"] * len(kept)
        once = rebuild(
            op,
            rewriter,
            index=index,
            kinds=kinds,
            ins=[read.compose(points) for read in op.in_reads],
            outs=[(Projection.identity(len(kept)), TensorType.of(index, _element(op)))],
        )
        for reader, *sides in found:
            (made,) = once.outs
            # One reader may read another, which is a new operation by now: values are as they are.
            ins, extras = (
                [
                    (new if now.value is made else now)._replace(value=now.value)
                    for now, new in zip(present, side, strict=True)
                ]
                for present, side in zip(reads_of(reader), sides, strict=True)
            )
            rebuild(reader, rewriter, ins=ins, extras=extras)


def _of_once(op: loom.OperationOp, kept: list[int], read: Read, over: Range) -> Read | None:
    """A read as it is of a map over its `kept` dimensions alone; None where it is no affine one."""
    if read.value is not op.outs[0]:
        return read
    if not read.is_plain:
        return None
    points = origin(op.out_maps[0].map, op.index, read.projection.map, over)
    if points is None:
        return None
    return read._replace(projection=Projection.cells(points.select_outputs(kept)))


def _known(reads: list[Read | None]) -> list[Read]:
    return [read for read in reads if read is not None]


def _is_whole(op: loom.OperationOp) -> bool:
    return not in_group(op) and op.partition is None and op.inside is None


def _element(op: loom.OperationOp) -> Attribute:
    return tensor_type(op.outs[0]).element_type
