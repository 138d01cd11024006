"""`loom-reshard`: what each shard reads of others' results, gathered from the parts that hold it.

    %h = loom.assemble %0, %1 : <[0] : [4]>, <[4] : [8]> -> <[0] : [8]>
    %2 = loom.application @window over <[0] : [4]> (%h <[0] : [5]>) ...
    %3 = loom.application @window over <[4] : [8]> (%h <[3] : [8]>) ...

becomes

    %a = loom.view %1 : (d0) -> (d0) : <[4] : [8]> -> <[4] : [5]>       // a halo of one cell
    %b = loom.assemble %0, %a : <[0] : [4]>, <[4] : [5]> -> <[0] : [5]>
    %2 = loom.application @window over <[0] : [4]> (%b <[0] : [5]>) ...
    ...

and `%h`, which no device would have to hold, is gone unless something reads all of it. A shard that
needs one part alone reads that part. So each transfer is in the program, and what it moves is what
is assembled less its largest part (`tapestry.movement.assembled_bytes`).

Input: any verified loom program, best after `loom-expand-shards`; without assemblies nothing is
done. Output: the same values. Each read is gathered once, so it ends; again, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType, tensor_type
from tapestry.movement import Reader, assembled_from, boxes_read
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.zspace import Projection, Range


@dataclass
class GatherFromParts(RewritePattern):
    """Read an assembly of just the pieces of parts that are needed, or the one part itself.

    Legal because the new tensor has all cells of the old one that are read, each where it stood: a
    read that leaves it left the old one too, since what is gathered is all of the old one that the
    projections reach. So projections, recorded selections and what is clipped stay as they are.
    """

    gathered: dict[tuple[SSAValue, Range], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Range], SSAValue]
    )

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, Reader) or in_group(op):
            return
        for place, box in boxes_read(op).items():
            value = op.operands[place]
            if box.is_empty or box == tensor_type(value).box:
                continue
            found = self._gather(value, box, rewriter)
            if found is value:
                continue
            op.operands[place] = found
            if isinstance(op, loom.FusedOp):
                rewriter.replace_value_with_new_type(op.body.block.args[place], found.type)
            rewriter.notify_op_modified(op)

    def _gather(self, value: SSAValue, box: Range, rewriter: PatternRewriter) -> SSAValue:
        """A tensor that holds `box` of `value`: `value` itself where it is made of no parts."""
        known = self.gathered.get((value, box))
        if known is None:
            known = self._made(value, box, rewriter)
            self.gathered[value, box] = known
        return known

    def _made(self, value: SSAValue, box: Range, rewriter: PatternRewriter) -> SSAValue:
        owner = value.owner
        if isinstance(owner, loom.ViewOp):
            source = self._gather(owner.source, owner.projection.data.apply_range(box), rewriter)
            if source is owner.source:
                return value
            return _placed(_view(source, owner.projection.data, value, box), owner, rewriter)
        pieces = assembled_from(value, box)
        if not pieces or isinstance(owner, Block):
            return value
        if len(pieces) == 1:
            return self._gather(pieces[0][0], box, rewriter)
        parts = [self._exactly(part, piece, owner, rewriter) for part, piece in pieces]
        kind = TensorType.of(box, tensor_type(value).element_type)
        return _placed(loom.AssembleOp(parts, kind), owner, rewriter)

    def _exactly(
        self, part: SSAValue, box: Range, reader: Operation, rewriter: PatternRewriter
    ) -> SSAValue:
        """A tensor of just the cells `box` of a part."""
        held = self._gather(part, box, rewriter)
        if tensor_type(held).box == box:
            return held
        same = Projection.identity(box.rank)
        return _placed(_view(held, same, part, box), reader, rewriter)


def _view(source: SSAValue, projection: Projection, like: SSAValue, box: Range) -> loom.ViewOp:
    return loom.ViewOp(source, projection, TensorType.of(box, tensor_type(like).element_type))


def _placed(
    op: loom.ViewOp | loom.AssembleOp, old: Operation, rewriter: PatternRewriter
) -> SSAValue:
    """The result of an operation, put before the one that it stands in for."""
    op.location = old.location
    op.result.name_hint = old.results[0].name_hint
    rewriter.insert(op, InsertPoint.before(old))
    return op.result


def _drop_unread(ops: Iterable[Operation]) -> None:
    """Remove views and assemblies that nothing reads any more; `ops` in program order."""
    for op in reversed(list(ops)):
        if isinstance(op, loom.AssembleOp | loom.ViewOp) and not op.result.first_use:
            op.detach()
            op.erase()


@dataclass(frozen=True)
class LoomReshard(ModulePass):
    """Gather what each shard reads from the parts that hold it."""

    name = "loom-reshard"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with collection_paused():
            PatternRewriteWalker(GatherFromParts(), apply_recursively=False).rewrite_module(op)
            _drop_unread(op.walk())
