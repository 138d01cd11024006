"""An assembly computed cell by cell, by a map that chooses among its parts.

    %n = loom.operation @neg ... ins(%x : (i, d) -> (i, d + 4))        // of the second half
    %h = loom.view %x : (i, d) -> (i, d)                               // the first half
    %y = loom.assemble %n, %h at (i, d) -> (i, d + 4)

becomes one map over all of `%y`, which reads `%x` on either side of its own cell,

    %y = loom.operation @y over <[0, 0] : [8, 8]> [map, map]
           ins(%x : (i, d) -> (i, d + 4) clip 0.0, %x : (i, d) -> (i, d - 4) clip 0.0) ...
           wrap (%a, %b) { %j = loom.index 1 ... select %j < 4, neg %a, %b }

and then joins what reads it, as any map does. The rotation of positions is written so.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import ComplexType, IntegerAttr, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.algebra.dtypes import body_type
from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group, inlined, reindex
from tapestry.zspace import AffineMap, Projection, Range
from tapestry.zspace.origins import origin


@dataclass(frozen=True)
class Part:
    """What a part's cells are at a cell of the assembly: reads, and a body of a map, if any.

    `box` is where it stands in the assembly; `points` are the map's. `made` says that it is not
    stored as it is.
    """

    box: Range
    reads: tuple[Read, ...]
    body: Block | None
    points: AffineMap
    made: bool


@dataclass
class ComputeAssembly(RewritePattern):
    """An assembly of views and maps, which maps alone read, is a map that chooses among them.

    Legal when parts are placed by shifts: a cell of the assembly is in one part, told by
    coordinates. What is read for the others is not chosen, and may be outside their tensors, where
    it is a number. Maps among the parts have no other reader, no domain and no shards, and read no
    blocks. Done where some part is a view or such a map, and no reader repeats cells: otherwise
    what computes the parts can write them where they stand.
    """

    limit: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        kind = tensor_type(op.result)
        readers = [use.operation for use in op.result.uses]
        if not readers or not all(_reads_once(reader, kind.box) for reader in readers):
            return
        if kind.box.is_empty or isinstance(kind.element_type, ComplexType):
            return
        parts: list[Part] = []
        for value, placement in zip(op.parts, op.placed, strict=True):
            if placement.matrix != AffineMap.identity(kind.box.rank).matrix:
                return
            parts.append(_part(value, placement))
        size = sum(len(list(part.body.ops)) for part in parts if part.body is not None)
        if size > self.limit or not any(part.made for part in parts):
            return
        reads = [_bounded(read, kind.box) for part in parts for read in part.reads]
        body = Block(arg_types=[body_type(tensor_type(r.value).element_type) for r in reads])
        arguments: list[SSAValue] = list(body.args)
        for read, argument in zip(reads, body.args, strict=True):
            argument.name_hint = read.value.name_hint
        chosen: SSAValue | None = None
        for part in reversed(parts):
            taken = arguments[len(arguments) - len(part.reads) :]
            del arguments[len(arguments) - len(part.reads) :]
            (value,) = taken if part.body is None else _computed(part, taken, body, rewriter)
            chosen = value if chosen is None else _where(part.box, kind.box, value, chosen, body)
        assert chosen is not None
        body.add_op(loom.YieldOp(chosen))
        kinds: list[loom.Iterator] = ["map"] * kind.box.rank
        new = loom.OperationOp(
            op.result.name_hint or "assembled",
            kind.box,
            kinds,
            None,
            reads,
            [(Projection.identity(kind.box.rank), kind)],
            Region(body),
        )
        new.location = op.location
        new.outs[0].name_hint = op.result.name_hint
        rewriter.replace(op, new)


def _is_map(op: object) -> bool:
    return isinstance(op, loom.OperationOp) and op.monoid_name is None and not in_group(op)


def _reads_once(op: object, box: Range) -> bool:
    """Whether a map has no more points than what it reads: it repeats no cell."""
    return isinstance(op, loom.OperationOp) and _is_map(op) and op.index.size <= box.size


def _part(value: SSAValue, placement: AffineMap) -> Part:
    """What a part is, from the coordinates of the assembly."""
    rank, shift = placement.inputs, placement.offset
    own = AffineMap.of(placement.matrix, [-n for n in shift], inputs=rank)
    box = Projection.cells(placement).apply_range(tensor_type(value).box)
    owner = value.owner
    if isinstance(owner, loom.ViewOp) and owner.projection.data.is_unit:
        read = Read(owner.source, owner.projection.data.compose(own))
        return Part(box, (read,), None, own, made=True)
    if isinstance(owner, loom.OperationOp) and _is_inlined(owner) and value.has_one_use():
        points = origin(owner.out_maps[0].map, owner.index, own, box)
        if points is not None:
            reads = tuple(read.compose(points) for read in owner.in_reads)
            return Part(box, reads, owner.wrap_block, points, made=True)
    return Part(box, (Read(value, Projection.cells(own)),), None, own, made=False)


def _is_inlined(op: loom.OperationOp) -> bool:
    """Whether an operation is a map of cells, whole and all over its index space."""
    cells = all(read.projection.is_unit for read in op.in_reads)
    whole = op.partition is None and op.inside is None
    return _is_map(op) and cells and whole and len(op.outs) == 1


def _bounded(read: Read, over: Range) -> Read:
    """A read with a fill where it leaves its tensor."""
    kind = tensor_type(read.value)
    if read.fill is not None or kind.box.contains_range(read.projection.apply_range(over)):
        return read
    return read._replace(fill=number_attr(0, body_type(kind.element_type)))


def _computed(
    part: Part, arguments: list[SSAValue], body: Block, rewriter: PatternRewriter
) -> list[SSAValue]:
    """What a map makes of what it reads, written to a body over the assembly's coordinates."""
    assert part.body is not None
    copy = Block(arg_types=[argument.type for argument in part.body.args])
    values = inlined(part.body, copy.args, copy)
    copy.add_op(loom.YieldOp(*values))
    reindex(copy, part.points, range(part.points.inputs), rewriter)
    return inlined(copy, arguments, body)


def _where(box: Range, whole: Range, inside: SSAValue, other: SSAValue, body: Block) -> SSAValue:
    """One value where a cell is in a box, another one elsewhere."""
    held: SSAValue | None = None
    for dim in range(whole.rank):
        bounds = (("sge", box.start[dim], whole.start[dim]), ("slt", box.end[dim], whole.end[dim]))
        for sign, bound, limit in bounds:
            if bound == limit:
                continue
            at, number = loom.IndexOp(dim), arith.ConstantOp(IntegerAttr(bound, i64))
            holds = arith.CmpiOp(at.result, number.result, sign)
            body.add_ops([at, number, holds])
            if held is None:
                held = holds.result
            else:
                both = arith.AndIOp(held, holds.result)
                body.add_op(both)
                held = both.result
    if held is None:
        return inside
    choice = arith.SelectOp(held, inside, other)
    body.add_op(choice)
    return choice.result
