"""A fold of one point, which folds nothing.

    %s = loom.operation @sum over <[0, 0] : [4, 1]> [map, fold] by @add
           ins(%x : (d0, d1) -> (d0, d1)) ...

reads `%x` along a dimension of extent 1, and becomes a map over <[0] : [4]> that reads
`(d0) -> (d0, 0)`. Gradients of what is broadcast have such sums.
"""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tapestry.dialects import loom
from tapestry.passes.loom.derivation.emission import REFUSED
from tapestry.passes.loom.rebuilding.bodies import inlined, reindex
from tapestry.passes.loom.rebuilding.operations import reads_of, writes_of
from tapestry.passes.loom.simplification.fold_to_read import is_plain, replace_operation
from tapestry.zspace import AffineMap


class FoldOfOnePoint(RewritePattern):
    """A fold whose folded dimensions have one point each is a map: it wraps, then unwraps.

    Legal because a monoid's zero is its identity: merged with it, the point's state is itself. The
    operation is whole and has no domain, which would leave the zero where the point is outside.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if not op.fold_dims or not is_plain(op):
            return
        if any(op.index.shape[dim] != 1 for dim in op.fold_dims):
            return
        kept = op.kept_dims
        rank, start = op.index.rank, op.index.start
        points = AffineMap.of(
            [[int(dim == old) for dim in kept] for old in range(rank)],
            [0 if dim in kept else start[dim] for dim in range(rank)],
            inputs=len(kept),
        )
        ins, extras = reads_of(op)
        ins = [read.compose(points) for read in ins]
        body = Block(arg_types=[a.type for a in _arguments(op)])
        for old, argument in zip(_arguments(op), body.args, strict=True):
            argument.name_hint = old.name_hint
        values: list[SSAValue] = list(body.args[: len(ins)])
        for block in (op.wrap_block, op.unwrap_block):
            if block is not None:
                reindex(block, points, range(len(kept)), rewriter)
                values += body.args[len(ins) :] if block is op.unwrap_block else ()
                values = inlined(block, values, body)
        body.add_op(loom.YieldOp(*values))
        kinds: list[loom.Iterator] = ["map"] * len(kept)
        new = loom.OperationOp(
            op.label.data,
            op.index.select(kept),
            kinds,
            None,
            [*ins, *extras],
            writes_of(op),
            Region(body),
            attributes={k: v for k, v in op.attributes.items() if k != REFUSED},
        )
        replace_operation(op, new, rewriter)


def _arguments(op: loom.OperationOp) -> list[SSAValue]:
    """What the bodies of an operation take that it reads."""
    unwrap = op.unwrap_block
    extras = () if unwrap is None else unwrap.args[len(unwrap.args) - len(op.extras) :]
    return [*op.wrap_block.args, *extras]
