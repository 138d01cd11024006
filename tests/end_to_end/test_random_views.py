"""Random chains of views, reshapes, assemblies, operations: rewritten and sharded, the same bits.

Cells are integers, so a fold gives the same bits in any order, and whatever differs is an error of
geometry: a cell read, or a coordinate computed, in the wrong place.
"""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from tapestry.dialects import loom, views
from tapestry.dialects.loom import Read, TensorType, tensor_type
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.zspace import AffineMap, Partition, Projection, Range
from tests.amounts import drawn

_MAX_CELLS = 200
_EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8])


def _box(value: SSAValue) -> Range:
    return tensor_type(value).box


def _slice(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    start, shape, step = [], [], []
    for low, n in zip(_box(x).start, _box(x).shape, strict=True):
        stride = draw(st.sampled_from([1, 1, 2, -1, -2]))
        skipped = draw(st.integers(0, n // 2))
        start.append(low + skipped if stride > 0 else low + n - 1 - skipped)
        shape.append(-(-(n - skipped) // abs(stride)) - draw(st.integers(0, int(n > 4))))
        step.append(stride)
    return views.sliced(builder, x, start, shape, step)


def _transpose(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    return views.transposed(
        builder, values[-1], draw(st.permutations(range(_box(values[-1]).rank)))
    )


def _reshape(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    left, shape = _box(x).size, []
    while left > 1 and len(shape) < 3:
        factor = draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]))
        shape.append(factor)
        left //= factor
    shape += [left] if left > 1 or _box(x).is_empty else []
    start = draw(st.lists(st.integers(-2, 3), min_size=len(shape), max_size=len(shape)))
    box = Range.of(shape).translate(start)
    return builder.insert(loom.ReshapeOp(x, TensorType.of(box, i32))).result


def _around(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    mode = draw(st.sampled_from(["constant", "reflect", "replicate", "circular"]))
    widths = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(_box(x).rank)]
    if _box(x).is_empty:
        return x
    return views.padded(builder, x, widths, mode, 7)


def _join(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    if _box(x).rank == 0:
        return x
    dim = draw(st.integers(0, _box(x).rank - 1))
    others = [v for v in values if _box(v).shape == _box(x).shape]
    parts = [x, draw(st.sampled_from(others))]
    make = draw(st.sampled_from([views.concatenated, views.interleaved, views.stacked]))
    return make(builder, parts, dim)


def _repeat(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    lead = draw(st.lists(st.integers(1, 2), max_size=1))
    return views.broadcast(builder, x, Range.of((*lead, *_box(x).shape)))


def _diagonal(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    x = values[-1]
    if _box(x).rank < 2:
        return x
    return views.diagonal(builder, x, *draw(st.permutations(range(_box(x).rank)))[:2])


def _operation(draw: st.DrawFn, builder: Builder, values: list[SSAValue]) -> SSAValue:
    """A map or a sum over all of one tensor, and another of its shape, with coordinates.

    Sometimes it reads every other cell too, from before the first or past the last, clipped.
    """
    x = values[-1]
    index = _box(x)
    folds = [d for d in range(index.rank) if draw(st.integers(0, 3)) == 0]
    kept = [d for d in range(index.rank) if d not in folds]
    reads = [Read(x, Projection.identity(index.rank))]
    other = draw(st.sampled_from([v for v in values if _box(v).shape == index.shape]))
    moved = [b - a for a, b in zip(index.start, _box(other).start, strict=True)]
    reads.append(Read(other, Projection.identity(index.rank).translate(moved)))
    if index.rank and draw(st.booleans()):
        factors = [draw(st.sampled_from([1, 2, -1])) for _ in range(index.rank)]
        first = [
            a + draw(st.integers(-2, 1)) - c * a for a, c in zip(index.start, factors, strict=True)
        ]
        clipped = Projection.cells(AffineMap.diagonal(*factors).translate(first))
        reads.append(Read(x, clipped, IntegerAttr(-50, i32)))
    body = Block(arg_types=[i32] * len(reads))
    inside = Builder(InsertPoint.at_end(body))
    total = inside.insert(arith.SubiOp(*body.args[:2])).result
    for more in body.args[2:]:
        total = inside.insert(arith.XOrIOp(total, more)).result
    for d in range(index.rank):
        coordinate = inside.insert(arith.TruncIOp(inside.insert(loom.IndexOp(d)).result, i32))
        three = inside.insert(arith.ConstantOp.from_int_and_width(3 + d, i32))
        scaled = inside.insert(arith.MuliOp(coordinate.result, three.result))
        total = inside.insert(arith.AddiOp(total, scaled.result)).result
    inside.insert(loom.YieldOp(total))
    kinds: list[loom.Iterator] = ["fold" if d in folds else "map" for d in range(index.rank)]
    out = (Projection.identity(len(kept)), TensorType.of(index.select(kept), i32))
    monoid = "add" if folds else None
    op = loom.OperationOp("f", index, kinds, monoid, reads, [out], Region(body))
    return builder.insert(op).outs[0]


_STEPS = (
    _slice,
    _transpose,
    _reshape,
    _reshape,
    _around,
    _join,
    _repeat,
    _diagonal,
    _operation,
    _operation,
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a chain; its last tensor, and sometimes one on the way, are returned."""
    shape = draw(st.lists(_EXTENTS, min_size=1, max_size=3).filter(lambda s: prod(s) <= 64))
    starts = draw(st.lists(st.integers(-3, 4), min_size=len(shape), max_size=len(shape)))
    kind = TensorType.of(Range.of(shape).translate(starts), i32)
    block = Block(arg_types=[kind])
    block.args[0].name_hint = "x"
    builder = Builder(InsertPoint.at_end(block))
    values: list[SSAValue] = [block.args[0]]
    for _ in range(draw(st.integers(1, 7))):
        made = draw(st.sampled_from(_STEPS))(draw, builder, values)
        if _box(made).size > _MAX_CELLS or _box(made).rank > 4:
            break
        values.append(made)
    values.append(_operation(draw, builder, values) if draw(st.booleans()) else values[-1])
    returned = [values[-1], *draw(st.lists(st.sampled_from(values), max_size=1))]
    block.add_op(func.ReturnOp(*returned))
    kinds = [value.type for value in returned]
    return str(ModuleOp([func.FuncOp("main", ([kind], kinds), Region(block))]))


_REWRITES = (
    "loom-simplify",
    "loom-simplify{writers=true}",
    "loom-simplify,loom-fuse,loom-simplify",
    "loom-materialize",
    "loom-materialize{all=true},loom-simplify,loom-fuse",
    "loom-simplify,loom-materialize",
    "loom-stride-classes,loom-simplify",
)


def _run(name: str, module: ModuleOp) -> tuple[np.ndarray, ...]:
    verify_module(module)
    block = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp)).body.block
    shape = tensor_type(block.args[0]).box.shape
    x = np.arange(prod(shape), dtype=np.int32).reshape(shape) * 31 % 101
    return find_executor(name).run(module, {"x": x}, NoWatch()).outputs


def _shard(data: st.DataObject, module: ModuleOp) -> None:
    """A grid on every operation that one suits."""
    for op in module.walk():
        if isinstance(op, loom.OperationOp) and not op.index.is_empty:
            counts = [data.draw(st.integers(1, min(n, 3))) for n in op.index.shape]
            partition = Partition.balanced(op.index, counts)
            if not op.sharding_problems(partition):
                op.shards = PartitionAttr(partition)


def _same(got: tuple[np.ndarray, ...], want: tuple[np.ndarray, ...]) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


_SETTINGS = settings(
    deadline=None,
    max_examples=drawn(40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_SETTINGS
@given(programs(), st.sampled_from(_REWRITES), st.booleans(), st.data())
def test_arrays_agree(text: str, rewrites: str, first: bool, data: st.DataObject) -> None:
    want = _run("reference", parse_text(text))
    module = parse_text(text)
    if first:
        _shard(data, module)
    run_pipeline(module, rewrites)
    _same(_run("reference", module), want)
    if not first:
        _shard(data, module)
    _same(_run("numpy", module), want)
    run_pipeline(module, "loom-expand-shards,loom-simplify")
    _same(_run("numpy", module), want)


@settings(_SETTINGS, max_examples=6)
@given(programs(), st.sampled_from(_REWRITES), st.data())
def test_kernels_agree(text: str, rewrites: str, data: st.DataObject) -> None:
    want = _run("reference", parse_text(text))
    module = parse_text(text)
    run_pipeline(module, rewrites)
    _shard(data, module)
    _same(_run("triton", module), want)
