"""`loom-unfuse`: maps taken out of the operations that they were joined with; groups taken apart.

    %y = loom.operation @linear_relu over ... [map, map, fold] by @add ... wrap {mul} unwrap {max 0}

becomes

    %h = loom.operation @linear_relu over ... [map, map, fold] by @add ... wrap {mul}
    %y = loom.operation @linear_relu_unwrap over ... [map, map] ins(%h ...) wrap {max 0}

It is what `loom-fuse` undoes, so that a search can go both ways: a prologue that is computed for
each tile may be better stored. Options: `kinds=epilogue,prologue,groups` says what is taken apart,
`op` names one operation or group by label.

Input: any verified loom program. Output: the same values, bit for bit. Each rewrite empties an
unwrap, moves scalar operations of a fold into a map, or takes a group away, so it terminates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from tapestry.algebra.bodies import Dims, dependences, moving_dims, needed_operations
from tapestry.algebra.parts import repeated_axes, varying_axes
from tapestry.diagnostics import UsageError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, TensorType
from tapestry.passes._collection import collection_paused
from tapestry.passes.loom.rebuilding.bodies import drop_unused, in_group
from tapestry.passes.loom.rebuilding.operations import reads_of, rebuild, writes_of
from tapestry.passes.loom.rebuilding.outputs import drop_unread
from tapestry.passes.loom.ungroup import Ungroup
from tapestry.zspace import Partition, Projection

KINDS: Final = ("epilogue", "prologue", "groups")
"""What can be taken apart."""


@dataclass(frozen=True)
class UnfuseEpilogue(RewritePattern):
    """The unwrap of a fold becomes a map over the kept dimensions, which reads the stored state.

    Always legal: unwrap is a function of the state, of extra inputs and of coordinates. The map is
    split where the kept dimensions are cut on a grid. Members of a group stay as they are.
    """

    op: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        unwrap = op.unwrap_block
        if unwrap is None or in_group(op) or self.op not in (None, op.label.data):
            return
        kept, dims = op.kept_range(op.index), op.kept_dims
        stored = _stored_over(op)
        ins, extras = reads_of(op)
        writes = writes_of(op)
        wrap, last = [op.detach_region(region) for region in op.regions]
        fold = loom.OperationOp(
            op.label.data,
            op.index,
            op.kinds,
            op.monoid_name,
            ins,
            [(p, TensorType.of(p.apply_range(kept), kind)) for p, kind in stored],
            wrap,
            partition=op.partition,
            inside=op.inside,
            attributes=op.attributes,
        )
        renumber(last.block, dims, rewriter)
        after = loom.OperationOp(
            f"{op.label.data}_unwrap",
            kept,
            ("map",) * kept.rank,
            None,
            [*(Read(out, p) for out, (p, _) in zip(fold.outs, stored, strict=True)), *extras],
            writes,
            last,
            partition=_cuts(op.partition, dims),
        )
        fold.location = after.location = op.location
        for old, result in zip(op.outs, after.outs, strict=True):
            result.name_hint = old.name_hint
        rewriter.replace(op, [fold, after], after.outs)


@dataclass(frozen=True)
class UnfusePrologue(RewritePattern):
    """What a fold computes of what it reads becomes a map before it.

    Legal for a value of wrap that a map over the dimensions along which it varies computes alike:
    what it reads is read through those dimensions, and coordinates are among them. Done for each
    outermost value that needs no more cells than a tensor which it is computed of: a product of two
    matrices' cells stays. With a domain, what reads a block at computed indices stays: they may be
    wrong at points that do not count. The map is split where its dimensions are cut on a grid.
    """

    op: str | None = None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loom.OperationOp, rewriter: PatternRewriter) -> None:
        if op.monoid_name is None or in_group(op) or self.op not in (None, op.label.data):
            return
        reads, _ = reads_of(op)
        moving = [moving_dims(read.projection) for read in reads]
        values = list(_outermost(op, dependences(op.wrap_block, moving), moving))
        if not values:
            return
        store_values(op, values, rewriter)


def store_values(
    op: loom.OperationOp,
    values: Sequence[tuple[SSAValue, tuple[int, ...]]],
    rewriter: PatternRewriter,
    name: str = "wrap",
) -> loom.OperationOp:
    """Values of a wrap become maps over the dimensions given with each, which the wrap then reads.

    Legal where each is a function of what is read through these dimensions, and of coordinates
    among them. The maps are labelled by a name behind the label; gives the operation that is left.
    """
    reads, _ = reads_of(op)
    labels = [f"{op.label.data}_{name}"]
    if len(values) > 1:
        labels = [f"{labels[0]}{n}" for n in range(len(values))]
    maps = [_map_of(op, v, d, n, rewriter) for n, (v, d) in zip(labels, values, strict=True)]
    for before, (value, dims) in zip(maps, values, strict=True):
        rewriter.insert(before)
        before.outs[0].name_hint = before.label.data
        argument = op.wrap_block.insert_arg(value.type, len(op.wrap_block.args))
        argument.name_hint = value.name_hint
        value.replace_all_uses_with(argument)
        chosen = Projection.identity(op.index.rank).select_outputs(dims)
        reads.append(Read(before.outs[0], chosen))
    drop_unused(op.wrap_block, rewriter)
    return rebuild(op, rewriter, ins=drop_unread(op.wrap_block, reads, 0))


def _outermost(
    op: loom.OperationOp, varies: dict[SSAValue, Dims], moving: Sequence[Dims]
) -> list[tuple[SSAValue, tuple[int, ...]]]:
    """Values of wrap that a map of their own may compute, which no other such value needs."""
    shape, body = op.index.shape, op.wrap_block
    found: list[tuple[SSAValue, tuple[int, ...]]] = []
    waiting, seen = list(loom.yielded(body)), set[SSAValue]()
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if value in seen or not isinstance(owner, Operation):
            continue
        seen.add(value)
        needed = needed_operations([value])
        used = {operand for inner in needed for operand in inner.operands}
        cells = [
            prod(shape[dim] for dim in dims)
            for argument, dims in zip(body.args, moving, strict=True)
            if argument in used
        ]
        dims = tuple(sorted(varies[value]))
        fits = bool(cells) and prod(shape[dim] for dim in dims) <= max(cells)
        risky = op.inside is not None and any(isinstance(n, loom.ReadOp) for n in needed)
        if fits and not risky and not isinstance(owner, arith.ConstantOp | loom.IndexOp):
            found.append((value, dims))
        else:
            waiting += owner.operands
    return found


def _map_of(
    op: loom.OperationOp,
    value: SSAValue,
    dims: tuple[int, ...],
    label: str,
    rewriter: PatternRewriter,
) -> loom.OperationOp:
    """The map over some dimensions of an operation that computes a value of its wrap."""
    box = op.index.select(dims)
    ins, _ = reads_of(op)
    body = Block(arg_types=[argument.type for argument in op.wrap_block.args])
    values: dict[SSAValue, SSAValue] = dict(zip(op.wrap_block.args, body.args, strict=True))
    for old, argument in values.items():
        argument.name_hint = old.name_hint
    needed = needed_operations([value])
    for inner in op.wrap_block.ops:
        if inner in needed:
            body.add_op(inner.clone(values))
    body.add_op(loom.YieldOp(values[value]))
    renumber(body, dims, rewriter)
    reads = drop_unread(body, ins, 0)
    new = loom.OperationOp(
        label,
        box,
        ("map",) * box.rank,
        None,
        [read._replace(projection=read.projection.select_inputs(dims)) for read in reads],
        [(Projection.identity(box.rank), TensorType.of(box, value.type))],
        Region(body),
        partition=_cuts(op.partition, dims),
    )
    new.location = op.location
    return new


def _stored_over(op: loom.OperationOp) -> list[tuple[Projection, Attribute]]:
    """Per part of the state, where it is stored and its type.

    That is over all kept dimensions but those that some output leaves out and it does not need:
    what an output is made of must not vary along what it leaves out.
    """
    rank = len(op.kept_dims)
    left_out = {axis for projection in op.out_maps for axis in repeated_axes(projection)}
    whole = Projection.identity(rank)
    return [
        (whole.select_outputs([d for d in range(rank) if d in axes or d not in left_out]), kind)
        for axes, kind in zip(varying_axes(op), op.state_types, strict=True)
    ]


def renumber(body: Block, dims: Sequence[int], rewriter: PatternRewriter) -> None:
    """Count coordinates among `dims`, which they are of."""
    for op in list(body.ops):
        if isinstance(op, loom.IndexOp):
            rewriter.replace(op, loom.IndexOp(list(dims).index(op.dimension)))


def _cuts(partition: Partition | None, dims: Sequence[int]) -> Partition | None:
    """The cuts of a grid along some dimensions; None without any."""
    if partition is None or partition.cuts is None:
        return None
    cuts = [partition.cuts[dim] for dim in dims]
    return Partition.grid(cuts) if any(len(along) > 2 for along in cuts) else None


@dataclass(frozen=True)
class LoomUnfuse(ModulePass):
    """Take operations and groups apart."""

    name = "loom-unfuse"

    kinds: tuple[str, ...] = KINDS
    op: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                known = ", ".join(KINDS)
                raise UsageError(f"loom-unfuse: there is no kind {kind!r}; there are {known}")
        table: dict[str, RewritePattern] = {
            "groups": Ungroup(self.op),
            "epilogue": UnfuseEpilogue(self.op),
            "prologue": UnfusePrologue(self.op),
        }
        with collection_paused():
            for kind, pattern in table.items():
                if kind in self.kinds:
                    applier = GreedyRewritePatternApplier([pattern])
                    PatternRewriteWalker(applier, apply_recursively=False).rewrite_module(op)
