"""A fold of which one point counts, made what the body is at that point.

wrap (%id: i64, %t: f32, %m: f32) {                  wrap (%id: i64, %row: block, %m: f32) {
  %k = loom.index 1                                    %t = loom.read %row[%id] else %zero
  %here = arith.cmpi eq, %id, %k                       %d = arith.subf %t, %m
  %d = arith.subf %t, %m                  becomes      %in = 0 <= %id and %id < 50
  %v = arith.select %here, %d, %zero ... }             %v = arith.select %in, %d, %zero ... }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from tapestry.algebra.bodies import needed_operations
from tapestry.algebra.literals import float_attr
from tapestry.algebra.monoids import Monoid, monoid_of
from tapestry.algebra.one_hot import OneHot, find_one_hot
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.passes.loom.derivation.emission import REFUSED
from tapestry.passes.loom.rebuilding.bodies import drop_unused, graft, in_group, reindex
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.zspace import AffineMap, Projection, Range


class FoldToRead(RewritePattern):
    """A one-hot fold reads the cells at the point that its index names from blocks of them.

    Legal when `find_one_hot` sees one: of the merged values all but one are the monoid's zero. Fold
    dimensions that remain keep their order; where one lies inside a dimension that goes, the monoid
    must commute. The operation is whole, in no group, and has no domain, and what goes has more
    than one point.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        monoid = monoid_of(op)
        found = find_one_hot(op, monoid)
        if monoid is None or found is None or not is_plain(op) or op.index.is_empty:
            return
        rest = [d for d in op.fold_dims if d not in found.places]
        inner = bool(rest) and max(rest) > min(found.places)
        if (inner and not monoid.commutative) or all(op.index.shape[d] == 1 for d in found.places):
            return
        _read_instead(op, found, monoid, rest, rewriter)


def is_plain(op: loom.OperationOp) -> bool:
    """Whether nothing but itself names its dimensions: no shards, no domain, no group it is in."""
    return op.partition is None and op.inside is None and op.scan_dim is None and not in_group(op)


def _read_instead(
    op: loom.OperationOp,
    found: OneHot,
    monoid: Monoid,
    rest: Sequence[int],
    rewriter: PatternRewriter,
) -> None:
    left = [d for d in range(op.index.rank) if d not in found.places]
    # Old coordinates from new ones; a dimension that goes stands at its start.
    points = AffineMap.of(
        [[int(d == old) for d in left] for old in range(op.index.rank)],
        [op.index.start[d] if d in found.places else 0 for d in range(op.index.rank)],
        inputs=len(left),
    )
    ins, extras = reads_of(op)
    picks = {n: _picked(op, n, found, rewriter) for n in found.reads if _passes(ins[n])}
    boxes = {
        n: _box(ins[n].projection, op.index, found.places) for n in found.reads if n not in picks
    }
    ins = [read.compose(points) for read in ins]
    for n, pick in picks.items():
        ins[n] = Read(pick, Projection.identity(len(left)))
    for n, box in boxes.items():
        ins[n] = ins[n]._replace(projection=Projection(ins[n].projection.map, box))
    kinds = [a.type for a in op.wrap_block.args]
    for n, box in boxes.items():
        kinds[n] = loom.BlockType.of(box, kinds[n])
    body = Block(arg_types=kinds)
    for old, new in zip(op.wrap_block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    known: dict[SSAValue, SSAValue] = {
        old: new
        for n, (old, new) in enumerate(zip(op.wrap_block.args, body.args, strict=True))
        if n not in boxes
    }
    _Settled(op, found, body, known, {equal.result for equal in found.equal}).write(monoid)
    drop_unused(body, rewriter)
    unwrap = op.unwrap_block
    if unwrap is not None:
        kept = [n for n, d in enumerate(left) if op.kinds[d] != "fold"]
        reindex(unwrap, points.select_inputs(kept), kept, rewriter)
    if not rest:
        if unwrap is not None:
            graft(body, unwrap, 0, 0, rewriter)
        ins, extras = [*ins, *extras], []
    end = op.detach_region(op.unwrap)
    new = loom.OperationOp(
        op.label.data,
        op.index.select(left),
        [op.kinds[d] for d in left],
        op.monoid_name if rest else None,
        ins,
        writes_of(op),
        Region(body),
        extras=extras,
        unwrap=end if rest else None,
        # Why a fold was not derived is nothing to say of what folds no more.
        attributes={k: v for k, v in op.attributes.items() if rest or k != REFUSED},
    )
    replace_operation(op, new, rewriter)


def _passes(read: Read) -> bool:
    """Whether a tensor is folded, and read by operations alone: it need not be stored."""
    writer = read.value.owner
    return (
        isinstance(writer, loom.OperationOp)
        and bool(writer.fold_dims)
        and isa(tensor_type(read.value).element_type, AnyFloat)
        and all(isinstance(use.operation, loom.OperationOp) for use in read.value.uses)
    )


def _picked(op: loom.OperationOp, n: int, found: OneHot, rewriter: PatternRewriter) -> SSAValue:
    """The cells of input `n` at the point that counts, zero where there is none: a fold of them."""
    wrap, reads = op.wrap_block, op.in_reads
    body = Block(arg_types=[argument.type for argument in wrap.args])
    values: dict[SSAValue, SSAValue] = dict(zip(wrap.args, body.args, strict=True))
    for old, new in values.items():
        new.name_hint = old.name_hint
    wanted = [equal.result for equal in found.equal]
    needed = needed_operations(wanted)
    for inner in wrap.ops:
        if inner in needed:
            copy = inner.clone(values)
            body.add_op(copy)
            values.update(zip(inner.results, copy.results, strict=True))
    here = values[wanted[0]]
    for equal in wanted[1:]:
        both = arith.AndIOp(here, values[equal])
        body.add_op(both)
        here = both.result
    cell = body.args[n]
    zero = arith.ConstantOp(float_attr(0.0, cast(AnyFloat, cell.type)))
    chosen = arith.SelectOp(here, cell, zero.result)
    body.add_ops([zero, chosen, loom.YieldOp(chosen.result)])
    used = {operand for inner in body.ops for operand in inner.operands}
    taken = [place for place, argument in enumerate(body.args) if argument in used]
    for place in reversed(range(len(reads))):
        if place not in taken:
            body.erase_arg(body.args[place])
    kinds: list[loom.Iterator] = [
        "fold" if d in found.places else "map" for d in range(op.index.rank)
    ]
    left = op.index.select([d for d in range(op.index.rank) if d not in found.places])
    kind = TensorType.of(left, tensor_type(reads[n].value).element_type)
    pick = loom.OperationOp(
        f"{op.label.data}_picked",
        op.index,
        kinds,
        "add",
        [reads[place] for place in taken],
        [(Projection.identity(left.rank), kind)],
        Region(body),
    )
    pick.location = op.location
    rewriter.insert(pick, InsertPoint.before(op))
    return pick.outs[0]


def replace_operation(
    op: loom.OperationOp, new: loom.OperationOp, rewriter: PatternRewriter
) -> None:
    """Put an operation in the place of another, whose location and names it keeps."""
    new.location = op.location
    for old, result in zip(op.outs, new.outs, strict=True):
        result.name_hint = old.name_hint
    rewriter.replace(op, new)


def _box(projection: Projection, index: Range, dims: dict[int, SSAValue]) -> tuple[int, ...]:
    """The shape of the block: whole dimensions where the fold moved, else one cell."""
    moving = [next((d for _, d in terms if d in dims), None) for terms in projection.map.terms]
    return tuple(1 if d is None else index.shape[d] for d in moving)


@dataclass(frozen=True, eq=False)
class _Settled:
    """Writes wrap as it is at the one point that counts: to `body`, in which `values` are known.

    `true` are the conditions that hold there.
    """

    op: loom.OperationOp
    found: OneHot
    body: Block
    values: dict[SSAValue, SSAValue]
    true: set[SSAValue]

    def write(self, monoid: Monoid) -> None:
        """Write all of it, and the zero of the monoid where the index names no point."""
        wrap, places = self.op.wrap_block, self.found.places
        (wanted,) = cast(Operation, wrap.last_op).operands
        first = needed_operations(places.values())
        self._copy(op for op in wrap.ops if op in first)
        # Reads count from the start of a dimension.
        start = self.op.index.start
        steps = {dim: self._less(self.values[at], start[dim]) for dim, at in places.items()}
        needed = needed_operations([wanted])
        used = {wanted}.union(*(op.operands for op in needed))
        for n in self.found.reads:
            cell = wrap.args[n]
            if cell in used and cell not in self.values:
                self._read(n, steps, monoid.real_zero[0] if cell.type == wanted.type else 0)
        self._copy(op for op in wrap.ops if op in needed and op not in first)
        value = self._value(wanted)
        if isinstance(value.owner, loom.ReadOp):
            value.name_hint = wanted.name_hint
        else:
            value = self._guarded(steps, value, monoid.real_zero[0])
        self.body.add_op(loom.YieldOp(value))

    def _copy(self, ops: Iterable[Operation]) -> None:
        left = [d for d in range(self.op.index.rank) if d not in self.found.places]
        for op in ops:
            result = op.results[0]
            match op:
                case loom.IndexOp() if op.dimension in self.found.places:
                    self.values[result] = self.values[self.found.places[op.dimension]]
                case loom.IndexOp():
                    self.values[result] = self._add(loom.IndexOp(left.index(op.dimension)))
                case arith.SelectOp() if op.cond in self.true:
                    self.values[result] = self._value(op.lhs)
                case arith.AndIOp() if op.lhs in self.true and op.rhs in self.true:
                    self.true.add(result)
                case arith.AndIOp() if op.lhs in self.true or op.rhs in self.true:
                    self.values[result] = self._value(op.rhs if op.lhs in self.true else op.lhs)
                case _ if result in self.true:
                    pass
                case _:
                    for operand in op.operands:
                        self.values[operand] = self._value(operand)
                    copy = op.clone(self.values)
                    self._add(copy)
                    self.values[result] = copy.results[0]

    def _value(self, value: SSAValue) -> SSAValue:
        if value in self.true:
            return self._constant(1, i1)
        return self.values[value]

    def _read(self, n: int, steps: dict[int, SSAValue], zero: float) -> None:
        """What input `n` is: the cell of its block at the point."""
        cell = self.op.wrap_block.args[n]
        indices: list[SSAValue] = []
        for terms in self.op.in_maps[n].map.terms:
            dim = next((d for _, d in terms if d in steps), None)
            indices.append(self._constant(0, i64) if dim is None else steps[dim])
        read = loom.ReadOp(self.body.args[n], indices, self._constant(zero, cell.type))
        read.location = self.op.location
        self.values[cell] = self._add(read)
        read.result.name_hint = cell.name_hint

    def _guarded(self, steps: dict[int, SSAValue], value: SSAValue, zero: float) -> SSAValue:
        """A value where all steps are inside their dimensions, else the zero."""
        inside: SSAValue | None = None
        for dim, step in steps.items():
            for bound, order in ((0, "sge"), (self.op.index.shape[dim], "slt")):
                holds = self._add(arith.CmpiOp(step, self._constant(bound, step.type), order))
                inside = holds if inside is None else self._add(arith.AndIOp(inside, holds))
        assert inside is not None
        return self._add(arith.SelectOp(inside, value, self._constant(zero, value.type)))

    def _less(self, value: SSAValue, number: int) -> SSAValue:
        if not number:
            return value
        return self._add(arith.SubiOp(value, self._constant(number, value.type)))

    def _constant(self, value: float, kind: Attribute) -> SSAValue:
        if isa(kind, AnyFloat):
            return self._add(arith.ConstantOp(float_attr(value, kind)))
        number = IntegerAttr(int(value), cast(IntegerType, kind), truncate_bits=True)
        return self._add(arith.ConstantOp(number))

    def _add(self, op: Operation) -> SSAValue:
        self.body.add_op(op)
        return op.results[0]
