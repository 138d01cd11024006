"""Residue classes of an index dimension, and maps computed class by class and interleaved.

    out[i] = f(z[i])    where z interleaves a and b

is out[2 q] = f(a[q]) and out[2 q + 1] = f(b[q]).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, lcm

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group, reindex
from tapestry.passes.loom.rebuilding.operations import Write, writes_of
from tapestry.zspace import AffineMap, Projection, Range


@dataclass(frozen=True)
class ResidueClass:
    """The coordinates `start + modulus * q + residue` of one index dimension, counted by q."""

    dim: int
    modulus: int
    residue: int

    def range(self, index: Range) -> Range:
        """The index space of the class."""
        d = self.dim
        count = max(0, -(-(index.shape[d] - self.residue) // self.modulus))
        return index.with_sides({d: (0, count)})

    def map(self, index: Range) -> AffineMap:
        """The coordinates of the whole index space."""
        factors = [self.modulus if d == self.dim else 1 for d in range(index.rank)]
        first = index.start[self.dim] + self.residue
        moved = [first if d == self.dim else 0 for d in range(index.rank)]
        return AffineMap.diagonal(*factors).translate(moved)


class MapByClasses(RewritePattern):
    """An operation that reads an interleaved tensor is one per residue class, results interleaved.

    Legal when each output moves with the dimension by one row of its own, so that the classes write
    residue classes of its cells, and nothing is scanned. An operation that has a partition is left
    alone: it would lose it.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not may_change(op):
            return
        found = next(((d, n) for d, n in interleaved_dims(op) if _writes_apart(op, d)), None)
        if found is None:
            return
        dim, modulus = found
        classes = [ResidueClass(dim, modulus, r) for r in range(min(modulus, op.index.shape[dim]))]
        parts: list[list[SSAValue]] = [[] for _ in op.outs]
        places: list[list[AffineMap]] = [[] for _ in op.outs]
        made: list[loom.OperationOp] = []
        for part in classes:
            of_class, placements = _of_class(op, part, rewriter)
            made.append(of_class)
            for number, placement in enumerate(placements):
                parts[number].append(of_class.outs[number])
                places[number].append(placement)
        whole = [
            loom.AssembleOp(values, tensor_type(out), placements)
            for out, values, placements in zip(op.outs, parts, places, strict=True)
        ]
        for new in (*made, *whole):
            new.location = op.location
        for out, new in zip(op.outs, whole, strict=True):
            new.result.name_hint = out.name_hint
        rewriter.replace(op, [*made, *whole], [assembly.result for assembly in whole])


def may_change(op: loom.OperationOp) -> bool:
    """Whether an operation may be computed class by class: not scanned, sharded, or in a group."""
    return op.partition is None and op.scan_dim is None and not in_group(op)


def interleaved_dims(op: loom.OperationOp) -> Iterator[tuple[int, int]]:
    """Index dimensions that step from part to part of an interleaved input, and over how many."""
    for read in op.in_reads:
        assembly = read.value.owner
        if not isinstance(assembly, loom.AssembleOp) or not read.projection.is_unit:
            continue
        for number, row in enumerate(read.projection.map.matrix):
            strides = [gcd(*placement.matrix[number]) for placement in assembly.placed]
            stride = lcm(*(n for n in strides if n))
            for dim, coefficient in enumerate(row):
                modulus = stride // gcd(stride, coefficient)
                if coefficient and modulus > 1 and op.index.shape[dim] > 1:
                    yield dim, modulus


def _writes_apart(op: loom.OperationOp, dim: int) -> bool:
    """Whether each output moves with a kept dimension by one row, which no other moves."""
    if dim not in op.kept_dims:
        return False
    column = op.kept_dims.index(dim)
    for projection in op.out_maps:
        rows = [terms for terms in projection.map.terms if any(d == column for _, d in terms)]
        if len(rows) != 1 or len(rows[0]) != 1:
            return False
    return True


def _of_class(
    op: loom.OperationOp, part: ResidueClass, rewriter: PatternRewriter
) -> tuple[loom.OperationOp, list[AffineMap]]:
    """The operation over one class, and where in the whole outputs its outputs are."""
    coordinates = part.map(op.index)
    index = part.range(op.index)
    wrap, unwrap = op.wrap.clone(), op.unwrap.clone()
    dims = range(op.index.rank)
    for block in (*wrap.blocks, *unwrap.blocks):
        reindex(block, coordinates, dims, rewriter)
    kept = coordinates.select_outputs(op.kept_dims).select_inputs(op.kept_dims)
    column = op.kept_dims.index(part.dim)
    outs: list[Write] = []
    placements: list[AffineMap] = []
    for projection, kind in writes_of(op):
        write, placement = _dense(projection.map.compose(kept), column)
        (row,) = [r for r, terms in enumerate(write.terms) if terms == ((1, column),)]
        box = kind.box.with_sides({row: (0, index.shape[part.dim])})
        outs.append((Projection.cells(write), TensorType.of(box, kind.element_type)))
        placements.append(placement)
    of_class = loom.OperationOp(
        f"{op.label.data}_{part.residue}",
        index,
        op.kinds,
        op.monoid_name,
        [read.compose(coordinates) for read in op.in_reads],
        outs,
        wrap,
        extras=[read.compose(kept) for read in op.extra_reads],
        unwrap=unwrap,
        inside=None if op.inside is None else op.inside.compose(coordinates),
        attributes=op.attributes,
    )
    return of_class, placements


def _dense(written: AffineMap, column: int) -> tuple[AffineMap, AffineMap]:
    """A map of steps of one along a dimension, and the placement that makes `written` of it."""
    rows = list(zip(written.matrix, written.offset, strict=True))
    unit = tuple(int(d == column) for d in range(written.inputs))
    matrix = [unit if row[column] else row for row, _ in rows]
    write = AffineMap.of(matrix, [0 if row[column] else at for row, at in rows], written.inputs)
    factors = [row[column] or 1 for row, _ in rows]
    return write, AffineMap.diagonal(*factors).translate(
        [at if row[column] else 0 for row, at in rows]
    )
