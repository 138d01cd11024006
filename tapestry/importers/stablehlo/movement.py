"""Operations that move cells and compute nothing: views of loom, and assemblies of them.

%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>

    %1 = loom.view %0 : (d0, d1) -> (d1) : ...
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.dialects import loom
from tapestry.importers.stablehlo.affine import iota
from tapestry.importers.stablehlo.attributes import integers, integers_or
from tapestry.importers.stablehlo.boxes import overlap
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Value, Written
from tapestry.zspace import AffineMap, Projection


def view(program: Program, x: Value, mapping: AffineMap, shape: Sequence[int]) -> Value:
    """The tensor of `shape` whose cell at p is the cell of `x` at `mapping(p)`."""
    spec = x.spec.of(shape=tuple(shape))
    if spec == x.spec and mapping == AffineMap.identity(spec.rank):
        return x
    op = loom.ViewOp(program.tensor(x), Projection.cells(mapping), program.kind(spec))
    return program.insert(op)[0]


def reshape(program: Program, x: Value, shape: Sequence[int]) -> Value:
    """The cells of `x` in order, under another shape."""
    spec = x.spec.of(shape=tuple(shape))
    if spec == x.spec:
        return x
    return program.insert(loom.ReshapeOp(program.tensor(x), program.kind(spec)))[0]


def broadcast(program: Program, x: Value, dims: Sequence[int], shape: Sequence[int]) -> Value:
    """`x` with its dimension i at `dims[i]` of `shape`, repeated where it has one cell."""
    matrix = [[0] * len(shape) for _ in dims]
    for row, dim, size in zip(matrix, dims, x.spec.shape, strict=True):
        if size == shape[dim]:
            row[dim] = 1
    return view(program, x, AffineMap.of(matrix, inputs=len(shape)), shape)


def transpose(program: Program, x: Value, permutation: Sequence[int]) -> Value:
    """Dimension i of the result is dimension `permutation[i]` of `x`."""
    rank = len(permutation)
    back = [permutation.index(dim) for dim in range(rank)]
    mapping = AffineMap.identity(rank).select_outputs(back)
    return view(program, x, mapping, [x.spec.shape[dim] for dim in permutation])


def window(
    program: Program,
    x: Value,
    start: Sequence[int],
    shape: Sequence[int],
    steps: Sequence[int] | None = None,
) -> Value:
    """The cells of `x` at `start + steps * p`; the box itself where it was just written."""
    place = (tuple(start), tuple(shape))
    if x.written is not None and steps is None:
        for at, patch in x.written.patches:
            if (at, patch.spec.shape) == place:
                return patch
    factors = [1] * len(shape) if steps is None else steps
    return view(program, x, AffineMap.diagonal(*factors).translate(start), shape)


def write(x: Value, patch: Value, start: Sequence[int], program: Program) -> Value:
    """`x` with the cells of `patch` from `start` on; nothing is moved until it is read."""
    at = tuple(start)
    base, patches = x, list[tuple[tuple[int, ...], Value]]()
    if x.written is not None:
        patches = [one for one in x.written.patches if one[0] != at or one[1].spec != patch.spec]
        base = x.written.base
        mine = (at, patch.spec.shape)
        if any(overlap((place, one.spec.shape), mine) for place, one in patches):
            base, patches = program.value(program.tensor(x)), []
    if not patch.spec.size:
        return x
    return Value(x.spec, written=Written(base, (*patches, (at, patch))))


def concatenate(program: Program, parts: Sequence[Value], dim: int) -> Value:
    """Tensors one after another along `dim`."""
    rank = parts[0].spec.rank
    places: list[AffineMap] = []
    length = 0
    for part in parts:
        places.append(
            AffineMap.identity(rank).translate([length if d == dim else 0 for d in range(rank)])
        )
        length += part.spec.shape[dim]
    shape = list(parts[0].spec.shape)
    shape[dim] = length
    kept = [(program.tensor(p), at) for p, at in zip(parts, places, strict=True) if p.spec.size]
    spec = parts[0].spec.of(shape=tuple(shape))
    if len(kept) == 1:
        return program.value(kept[0][0])
    if not kept:
        return program.known(0, spec)
    kind = program.kind(spec)
    op = loom.AssembleOp([part for part, _ in kept], kind, [at for _, at in kept])
    (made,) = program.insert(op)
    return Value(spec, made.tensor, joined=(dim, tuple(parts)))


def pad(
    program: Program,
    x: Value,
    value: Value,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
) -> Value:
    """`x` with `interior[d]` cells between its own along d, and `low[d]`, `high[d]` around them."""
    for dim, between in enumerate(interior):
        if between and x.spec.shape[dim] > 1:
            x = _spread(program, x, value, dim, between)
    rank = x.spec.rank
    cut = [max(-n, 0) for n in low]
    kept = [
        max(size - before - max(-after, 0), 0)
        for size, before, after in zip(x.spec.shape, cut, high, strict=True)
    ]
    if 0 in kept:  # what is cut may be more than there is, and then some of what is added
        sizes = [sum(size) for size in zip(low, x.spec.shape, high, strict=True)]
        return broadcast(program, value, [], sizes)
    x = window(program, x, cut, kept) if tuple(kept) != x.spec.shape else x
    before, after = ([max(n, 0) for n in some] for some in (low, high))
    if not any((*before, *after)):
        return x
    fill = _number(value)
    if fill is not None:
        parameters = {"before": before, "after": after, "value": fill}
        return program.apply("pad", x, parameters=parameters)
    shape = [sum(sizes) for sizes in zip(before, kept, after, strict=True)]
    around = broadcast(program, value, [], shape) if rank else value
    return write(around, x, before, program)


def _number(value: Value) -> float | None:
    """The number that a value is known to be, where a float holds it."""
    cell = value.splat
    if (
        cell is None
        or value.spec.is_complex
        or (value.spec.is_integer and abs(int(cell)) > 1 << 53)
    ):
        return None
    return float(cell)


def _spread(program: Program, x: Value, value: Value, dim: int, between: int) -> Value:
    """`x` with `between` cells of a value after each but the last along `dim`."""
    rank, step = x.spec.rank, between + 1
    whole = list(x.spec.shape)
    whole[dim] = (whole[dim] - 1) * step + 1
    gap = list(x.spec.shape)
    gap[dim] -= 1
    stretch = AffineMap.diagonal(*(step if d == dim else 1 for d in range(rank)))
    parts, places = [program.tensor(x)], [stretch]
    filler = program.tensor(broadcast(program, value, [], gap))
    for place in range(1, step):
        parts.append(filler)
        places.append(stretch.translate([place if d == dim else 0 for d in range(rank)]))
    kind = program.kind(x.spec.of(shape=tuple(whole)))
    return program.insert(loom.AssembleOp(parts, kind, places))[0]


def flip(program: Program, x: Value, dims: Sequence[int]) -> Value:
    """The cells along `dims` from last to first."""
    shape = x.spec.shape
    factors = [-1 if dim in dims else 1 for dim in range(x.spec.rank)]
    start = [shape[dim] - 1 if dim in dims else 0 for dim in range(x.spec.rank)]
    return view(program, x, AffineMap.diagonal(*factors).translate(start), shape)


def _broadcast_in_dim(program: Program, op: Op) -> Value:
    dims = integers(op.attributes["broadcast_dimensions"])
    return broadcast(program, op.operands[0], dims, op.results[0].shape)


def _reshape(program: Program, op: Op) -> Value:
    return reshape(program, op.operands[0], op.results[0].shape)


def _transpose(program: Program, op: Op) -> Value:
    return transpose(program, op.operands[0], integers(op.attributes["permutation"]))


def _slice(program: Program, op: Op) -> Value:
    start, steps = (integers(op.attributes[name]) for name in ("start_indices", "strides"))
    whole = all(step == 1 for step in steps)
    return window(program, op.operands[0], start, op.results[0].shape, None if whole else steps)


def _reverse(program: Program, op: Op) -> Value:
    return flip(program, op.operands[0], integers(op.attributes["dimensions"]))


def _concatenate(program: Program, op: Op) -> Value:
    return concatenate(program, op.operands, integers(op.attributes["dimension"])[0])


def _pad(program: Program, op: Op) -> Value:
    rank = op.results[0].rank
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (integers_or(op.attributes, name, [0] * rank) for name in names)
    x, value = op.operands
    return pad(program, x, value, low, high, interior)


def _iota(program: Program, op: Op) -> Value:
    """Coordinates that the type of the cells may have to round: counted as integers, then cast."""
    (spec,) = op.results
    if spec.is_complex:
        raise program.error("an iota of complex numbers is not supported")
    counted = Value(spec.of(dtype="i64"), affine=iota(spec, op.source))
    return program.apply("cast", counted, parameters={"dtype": spec.dtype})


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
