"""Operations that move cells and compute nothing: views of loom, and assemblies of them.

%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>

    %1 = loom.view %0 : (d0, d1) -> (d1) : ...
"""

from __future__ import annotations

from collections.abc import Sequence

from tapestry.dialects import loom
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.types import integers
from tapestry.importers.stablehlo.values import Value
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
    if x.spec.shape == tuple(shape):
        return x
    return program.apply("reshape", x, parameters={"shape": list(shape)})


def broadcast(program: Program, x: Value, dims: Sequence[int], shape: Sequence[int]) -> Value:
    """`x` with its dimension i at `dims[i]` of `shape`, repeated where it has one cell."""
    matrix = [[0] * len(shape) for _ in dims]
    for row, dim, size in zip(matrix, dims, x.spec.shape, strict=True):
        if size == shape[dim]:
            row[dim] = 1
    return view(program, x, AffineMap.of(matrix, inputs=len(shape)), shape)


def _broadcast_in_dim(program: Program, op: Op) -> Value:
    dims = integers(op.attributes["broadcast_dimensions"])
    return broadcast(program, op.operands[0], dims, op.results[0].shape)


def _reshape(program: Program, op: Op) -> Value:
    return reshape(program, op.operands[0], op.results[0].shape)


def _transpose(program: Program, op: Op) -> Value:
    permutation = integers(op.attributes["permutation"])
    return program.apply("transpose", op.operands[0], parameters={"perm": permutation})


TRANSLATIONS: dict[str, Translation] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
}
