"""Views by name: slice, transpose, concatenate, pad and the like, as views and assemblies.

Each function inserts what it needs at a builder and returns the tensor. Nothing is computed: cells
are named by affine maps, so `loom-simplify` folds what is made here into its readers.

    transposed(builder, x, (1, 0))          %y = loom.view %x : (d0, d1) -> (d1, d0) ...
    concatenated(builder, (x, v), 0)        %z = loom.assemble %x, %v at (d0) -> (d0 + 3) ...

Tensors keep their place where that means something: padded cells surround a tensor that stays where
it is, what is concatenated follows the first part. A slice is counted from zero. Dimensions may be
negative, counted from the last; what does not fit is a ZSpaceError or a ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects import loom
from tapestry.dialects._view_padding import Mode, Piece, pieces
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.zspace import AffineMap, Projection, Range, resolve_dim, resolve_permutation


def sliced(
    builder: Builder,
    x: SSAValue,
    start: Sequence[int],
    shape: Sequence[int],
    step: Sequence[int] | None = None,
) -> SSAValue:
    """The cells at `start + step * p` for p in [0, shape); a step may be negative."""
    steps = (1,) * len(shape) if step is None else step
    return _view(builder, x, AffineMap.diagonal(*steps).translate(start), Range.of(shape))


def transposed(builder: Builder, x: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """Dimension i of the result is dimension `permutation[i]` of `x`."""
    order = resolve_permutation(permutation, _box(x).rank)
    back = [order.index(dim) for dim in range(len(order))]
    return _view(
        builder, x, AffineMap.identity(len(order)).select_outputs(back), _box(x).permute(order)
    )


def flipped(builder: Builder, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """The same range with the cells along `dims` from last to first."""
    box = _box(x)
    turned = {resolve_dim(dim, box.rank) for dim in dims}
    factors = [-1 if dim in turned else 1 for dim in range(box.rank)]
    moved = [box.start[d] + box.end[d] - 1 if d in turned else 0 for d in range(box.rank)]
    return _view(builder, x, AffineMap.diagonal(*factors).translate(moved), box)


def broadcast(builder: Builder, x: SSAValue, to: Range) -> SSAValue:
    """`x` over `to`, as in NumPy: aligned at the last dimension, extents of 1 repeated.

    A dimension that is not repeated has the extent of `to`, wherever it starts.
    """
    box = _box(x)
    lead = to.rank - box.rank
    if lead < 0:
        raise ValueError(f"a tensor on {box} does not broadcast to {to}: it has more dimensions")
    matrix = [[0] * to.rank for _ in range(box.rank)]
    offset = list(box.start)
    for dim, extent in enumerate(box.shape):
        if extent == to.shape[lead + dim]:
            matrix[dim][lead + dim] = 1
            offset[dim] -= to.start[lead + dim]
        elif extent != 1:
            raise ValueError(f"a tensor on {box} does not broadcast to {to}: dimension {dim}")
    return _view(builder, x, AffineMap.of(matrix, offset, inputs=to.rank), to)


def expanded(builder: Builder, x: SSAValue, dim: int) -> SSAValue:
    """`x` with a dimension [0 : 1) before dimension `dim` (up to the rank: behind all)."""
    box = _box(x)
    at = resolve_dim(dim, box.rank + 1)
    to = Range.of_sides((*box.sides[:at], (0, 1), *box.sides[at:]))
    return _view(builder, x, AffineMap.identity(box.rank).insert_inputs([at]), to)


def squeezed(builder: Builder, x: SSAValue, dim: int) -> SSAValue:
    """`x` without dimension `dim`, which has one cell."""
    box = _box(x)
    at = resolve_dim(dim, box.rank)
    if box.shape[at] != 1:
        raise ValueError(f"dimension {at} of {box} has {box.shape[at]} cells, not 1")
    kept = [d for d in range(box.rank) if d != at]
    offset = [box.start[at] if d == at else 0 for d in range(box.rank)]
    mapping = AffineMap.identity(box.rank).select_inputs(kept).translate(offset)
    return _view(builder, x, mapping, box.select(kept))


def diagonal(builder: Builder, x: SSAValue, first: int = -2, second: int = -1) -> SSAValue:
    """The cells equally far along two dimensions, along a last one that counts from zero."""
    box = _box(x)
    both = [resolve_dim(first, box.rank), resolve_dim(second, box.rank)]
    kept = [d for d in range(box.rank) if d not in both]
    place = {d: n for n, d in enumerate(kept)} | dict.fromkeys(both, len(kept))
    matrix = [[int(place[d] == n) for n in range(len(kept) + 1)] for d in range(box.rank)]
    offset = [box.start[d] if d in both else 0 for d in range(box.rank)]
    length = min(box.shape[d] for d in both)
    mapping = AffineMap.of(matrix, offset, inputs=len(kept) + 1)
    return _view(builder, x, mapping, box.select(kept).product(Range.of((length,))))


def concatenated(builder: Builder, parts: Sequence[SSAValue], dim: int) -> SSAValue:
    """Tensors one after another along `dim`; the first stays where it is."""
    box = _box(parts[0])
    at = resolve_dim(dim, box.rank)
    end = box.start[at]
    placements: list[AffineMap] = []
    for part in parts:
        start = (*box.start[:at], end, *box.start[at + 1 :])
        placements.append(_moved(_box(part), start))
        end += _box(part).shape[at]
    whole = box.with_sides({at: (box.start[at], end)})
    return _assembly(builder, parts, whole, placements)


def stacked(builder: Builder, parts: Sequence[SSAValue], dim: int) -> SSAValue:
    """Tensors side by side along a new dimension [0 : count) before dimension `dim`."""
    box = _box(parts[0])
    at = resolve_dim(dim, box.rank + 1)
    whole = Range.of_sides((*box.sides[:at], (0, len(parts)), *box.sides[at:]))
    placements: list[AffineMap] = []
    for number, part in enumerate(parts):
        moved = _moved(_box(part), box.start)
        matrix = [*moved.matrix[:at], (0,) * box.rank, *moved.matrix[at:]]
        offset = (*moved.offset[:at], number, *moved.offset[at:])
        placements.append(AffineMap.of(matrix, offset, inputs=box.rank))
    return _assembly(builder, parts, whole, placements)


def interleaved(builder: Builder, parts: Sequence[SSAValue], dim: int) -> SSAValue:
    """The cells of the parts along `dim` in turn: one of each, then the next of each.

    Part i starts at position i; later parts may have one cell less.
    """
    box = _box(parts[0])
    at = resolve_dim(dim, box.rank)
    factors = [len(parts) if d == at else 1 for d in range(box.rank)]
    stretch = AffineMap.diagonal(*factors)
    placements: list[AffineMap] = []
    for number, part in enumerate(parts):
        to_zero = _moved(_box(part), (0,) * box.rank)
        first = tuple(s + (number if d == at else 0) for d, s in enumerate(box.start))
        placements.append(stretch.compose(to_zero).translate(first))
    length = sum(_box(part).shape[at] for part in parts)
    whole = box.with_sides({at: (box.start[at], box.start[at] + length)})
    return _assembly(builder, parts, whole, placements)


def padded(
    builder: Builder,
    x: SSAValue,
    widths: Sequence[tuple[int, int]],
    mode: Mode = "constant",
    value: float = 0,
) -> SSAValue:
    """`x` with `widths[d]` more cells before and after along dimension d; fewer where negative.

    The cells around it are `value` (`constant`), or views of the cells of `x`: mirrored at the edge
    (`reflect`), the edge again (`replicate`), or from the other end (`circular`), over and over
    where the width is more than the tensor.
    """
    kind, box = tensor_type(x), _box(x)
    pairs = zip(box.sides, widths, strict=True)
    whole = Range.of_sides((low - before, high + after) for (low, high), (before, after) in pairs)
    sides = zip(box.sides, whole.sides, strict=True)
    along = [pieces(mode, source, target) for source, target in sides]
    parts = [_piece(builder, x, chosen, whole, kind, value) for chosen in _chosen(along)]
    if not parts:
        return _constant(builder, TensorType.of(whole, kind.element_type), value)
    return _assembly(builder, parts, whole, [AffineMap.identity(whole.rank)] * len(parts))


def _chosen(along: Sequence[Sequence[Piece]]) -> list[list[Piece]]:
    """A piece per dimension, in every combination; from a piece of values on, all of the rest."""
    if not along:
        return [[]]
    rest = _chosen(along[1:])
    found: list[list[Piece]] = []
    for piece in along[0]:
        found += [[piece]] if piece.factor is None else [[piece, *more] for more in rest]
    return found


def _piece(
    builder: Builder,
    x: SSAValue,
    chosen: Sequence[Piece],
    whole: Range,
    kind: TensorType,
    value: float,
) -> SSAValue:
    """The part of a padded tensor where some pieces meet."""
    start = (*(piece.start for piece in chosen), *whole.start[len(chosen) :])
    end = (*(piece.end for piece in chosen), *whole.end[len(chosen) :])
    box = Range(start, end)
    factors = [piece.factor for piece in chosen if piece.factor is not None]
    if len(factors) < len(chosen):
        return _constant(builder, TensorType.of(box, kind.element_type), value)
    mapping = AffineMap.diagonal(*factors).translate([piece.offset for piece in chosen])
    return _view(builder, x, mapping, box)


def _constant(builder: Builder, kind: TensorType, value: float) -> SSAValue:
    cell = np.asarray(value).astype(numpy_dtype(kind.element_type))
    return builder.insert(loom.ConstantOp.of(cell, kind)).result


def _view(builder: Builder, x: SSAValue, mapping: AffineMap, box: Range) -> SSAValue:
    """The view of `x` over a range; `x` itself where that is all of it, in place."""
    kind = TensorType.of(box, tensor_type(x).element_type)
    if kind == x.type and mapping == AffineMap.identity(box.rank):
        return x
    return builder.insert(loom.ViewOp(x, Projection.cells(mapping), kind)).result


def _assembly(
    builder: Builder, parts: Sequence[SSAValue], whole: Range, placements: Sequence[AffineMap]
) -> SSAValue:
    kind = TensorType.of(whole, tensor_type(parts[0]).element_type)
    return builder.insert(loom.AssembleOp(parts, kind, placements)).result


def _moved(box: Range, start: Sequence[int]) -> AffineMap:
    """The translation that makes `box` start at `start`."""
    by = [to - at for to, at in zip(start, box.start, strict=True)]
    return AffineMap.identity(box.rank).translate(by)


def _box(x: SSAValue) -> Range:
    return tensor_type(x).box
