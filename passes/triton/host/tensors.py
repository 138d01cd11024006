"""Constants, views, assemblies and external kernels as buffers and what fills them.

%t = loom.view %x : (d0, d1) -> (d1, d0) ...        a new buffer, and a launch that copies
%r = loom.reshape %x : ...                          %x's buffer under another shape
%k = loom.constant 0.5 : ...                        a new buffer of that value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import loom, triton
from tapestry.dialects.loom import tensor_type
from tapestry.passes.triton.host.buffers import allocate, as_buffer, buffer_of, replace_by
from tapestry.passes.triton.host.in_place import InPlace
from tapestry.passes.triton.host.launching import Launcher
from tapestry.passes.triton.kernels.mapfold import (
    Tensor,
    copy_of,
)
from tapestry.passes.triton.tiles.builder import number
from tapestry.zspace import Projection, Range


class LowerConstant(RewritePattern):
    """A constant is a buffer of its cells, filled where they are all equal."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ConstantOp, rewriter: PatternRewriter) -> None:
        kind = tensor_type(op.result)
        buffer, splat = buffer_of(kind), op.splat
        made: triton.AllocateOp | triton.ConstantOp
        if isinstance(op.value, loom.SideFileAttr):
            path, entry = op.value.path.data, op.value.entry.data
            made = triton.ConstantOp(buffer, path=path, entry=entry)
        elif splat is not None and splat.dtype.kind != "c":
            made = triton.AllocateOp(buffer, number(splat.item(), kind.element_type))
        else:
            cells = op.cells
            assert cells is not None
            made = triton.ConstantOp(buffer, data=loom.ConstantOp.of(cells, kind).hexadecimal)
        rewriter.insert(made)
        replace_by(rewriter, op, [made.result])


class LowerExternal(RewritePattern):
    """An external kernel is a call of a function that the host is given, once per shard."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ExternalOp, rewriter: PatternRewriter) -> None:
        ins = [as_buffer(rewriter, value) for value in op.ins]
        made = allocate(rewriter, op.outs)
        maps = (*op.in_maps, *op.out_maps)
        split = op.partition.ranges() if op.partition is not None else (op.index,)
        kinds = [tensor_type(value) for value in (*op.ins, *op.outs)]
        rows: list[list[int]] = []
        moved = [0] * len(kinds)
        for shard in split:
            boxes = [p.apply_range(shard) for p in maps]
            pairs = list(zip(boxes, kinds, strict=True))
            rows.append([n for box, kind in pairs for n in _bounds(box, kind.box)])
            for place, (box, kind) in enumerate(pairs):
                moved[place] += box.size * byte_size(kind.element_type)
        call = triton.ExternalOp(
            op.callee.data,
            ins,
            made,
            rows,
            op.parameters,
            bytes_read=sum(moved[: len(ins)]),
            bytes_written=sum(moved[len(ins) :]),
        )
        call.location = op.location
        rewriter.insert(call)
        replace_by(rewriter, op, made)


def _bounds(box: Range, tensor: Range) -> list[int]:
    """Where a box starts and ends in the buffer of a tensor, dimension by dimension."""
    corners = zip(box.start, box.end, tensor.start, strict=True)
    return [at - first for low, high, first in corners for at in (low, high)]


class LowerReshape(RewritePattern):
    """A reshape is the same buffer under another shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ReshapeOp, rewriter: PatternRewriter) -> None:
        alias = triton.AliasOp(as_buffer(rewriter, op.source), buffer_of(tensor_type(op.result)))
        rewriter.insert(alias)
        replace_by(rewriter, op, [alias.result])


@dataclass(frozen=True)
class LowerView(RewritePattern):
    """A view that nothing folded into its readers is a copy."""

    launcher: Launcher

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.ViewOp, rewriter: PatternRewriter) -> None:
        kind = tensor_type(op.result)
        whole = _tensor(op.result, Projection.identity(kind.box.rank))
        made = _copied(
            self.launcher,
            rewriter,
            op,
            [(op.source, kind.box, _tensor(op.source, op.projection.data), whole)],
        )
        replace_by(rewriter, op, [made])


@dataclass(frozen=True)
class LowerAssemble(RewritePattern):
    """An assembly is a copy of each of its parts that was not written in its place."""

    launcher: Launcher
    in_place: InPlace

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.AssembleOp, rewriter: PatternRewriter) -> None:
        parts: list[tuple[SSAValue, Range, Tensor, Tensor]] = []
        for part, placement in zip(op.parts, op.placed, strict=True):
            if not self.in_place.holds(op, part):
                source = _tensor(part, Projection.identity(placement.inputs))
                target = _tensor(op.result, Projection.cells(placement))
                parts.append((part, tensor_type(part).box, source, target))
        joint = self.in_place.buffers.get(op)
        replace_by(rewriter, op, [_copied(self.launcher, rewriter, op, parts, joint)])


def _tensor(value: SSAValue, projection: Projection) -> Tensor:
    kind = tensor_type(value)
    return Tensor(value.name_hint or "x", kind.box, kind.element_type, projection)


def _copied(
    launcher: Launcher,
    rewriter: PatternRewriter,
    op: Operation,
    parts: Sequence[tuple[SSAValue, Range, Tensor, Tensor]],
    out: SSAValue | None = None,
) -> SSAValue:
    """A buffer for the result of `op`, new unless it is given, with every part copied there."""
    out = allocate(rewriter, op.results)[0] if out is None else out
    for value, over, source, target in parts:
        copy = copy_of("copy", over, source, target)
        buffer = as_buffer(rewriter, value)
        rewriter.insert(launcher.launch(copy, op.location, [buffer], [], [out]))
    return out
