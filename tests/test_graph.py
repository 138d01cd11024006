"""Questions about programs, against counting points, cells and operations one by one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

import tapestry
from tapestry.algebra.monoids import monoid_of
from tapestry.dialects import loom
from tapestry.dialects.zspace import DomainAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.graph import Traffic, live_bytes, shard_count
from tapestry.zspace import Domain, Partition, Range

TEXT = """
!x = !loom.tensor<[0, 0] : [4, 6], f32>
!w = !loom.tensor<[0, 0] : [6, 3], f32>
!b = !loom.tensor<[0] : [3], f32>
!y = !loom.tensor<[0, 0] : [4, 3], f32>
!t = !loom.tensor<[0, 0] : [3, 4], f32>
func.func @main(%x: !x, %w: !w, %b: !b) -> (!t, !y) {
  %y = loom.operation @linear over <[0, 0, 0] : [4, 3, 6]> [map, map, fold] by @add
         ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
         extra(%b : (d0, d1) -> (d1)) outs((d0, d1) -> (d0, d1))
         wrap (%xe: f32, %we: f32) { %p = arith.mulf %xe, %we : f32  loom.yield %p : f32 }
         unwrap (%s: f32, %be: f32) {
           %z = arith.constant 0.0 : f32
           %a = arith.addf %s, %be : f32
           %c = arith.cmpf ogt, %a, %z : f32
           %r = arith.select %c, %a, %z : f32
           loom.yield %r : f32
         } : (!x, !w, !b) -> !y
  %t = loom.view %y : (d0, d1) -> (d1, d0) : !y -> !t
  %e = loom.operation @exp over <[0, 0] : [3, 4]> [map, map]
         ins(%t : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = math.exp %c : f32  loom.yield %r : f32 } : (!t) -> !t
  func.return %e, %y : !t, !y
}
"""


def parsed(pipeline: str | None = None) -> ModuleOp:
    module = parse_text(TEXT)
    verify_module(module)
    if pipeline is not None:
        run_pipeline(module, pipeline)
    return module


def test_what_feeds_what() -> None:
    linear, exp = tapestry.operations(parsed())
    (view,) = tapestry.producers(exp)
    assert isinstance(view, loom.ViewOp)
    assert tapestry.producers(view) == (linear,)
    assert tapestry.producers(linear) == ()
    assert tapestry.consumers(view) == (exp,)
    consumers = tapestry.consumers(linear)
    assert consumers[0] in (view, exp.next_op)
    assert {op.name for op in consumers} == {"loom.view", "func.return"}


def counted(op: loom.OperationOp) -> Counter[str]:
    """Every scalar operation of the naive schedule, with a fold from the zero per shard."""
    counts: Counter[str] = Counter()
    monoid = monoid_of(op)

    def run(body: Block) -> None:
        for inner in body.ops:
            if not isinstance(inner, loom.YieldOp | loom.IndexOp | arith.ConstantOp):
                counts[inner.name] += 1

    boxes = tapestry.shards(op)
    for box in boxes:
        for _ in box.coords():
            run(op.wrap_block)
            if monoid is not None:
                run(monoid.merge)
        if monoid is not None and any(op.fold_range(b) != op.fold_range(op.index) for b in boxes):
            for _ in op.kept_range(box).coords():
                run(monoid.merge)
    if op.unwrap_block is not None:
        for _ in op.kept_range(op.index).coords():
            run(op.unwrap_block)
    return counts


@st.composite
def partitions(draw: st.DrawFn, box: Range) -> Partition:
    grid = Partition.balanced(box, [draw(st.integers(1, n)) for n in box.shape])
    return draw(st.sampled_from((grid, Partition.explicit(grid.ranges()))))


@settings(max_examples=40)
@given(st.data())
def test_counts_and_traffic_are_those_of_every_shard(data: st.DataObject) -> None:
    linear, _ = tapestry.operations(parsed())
    assert isinstance(linear, loom.OperationOp)
    partition = data.draw(partitions(linear.index))
    linear.shards = loom.PartitionAttr(partition)
    assert tapestry.scalar_operations(linear) == counted(linear)
    assert shard_count(linear) == len(tapestry.shards(linear))
    read = sum(
        selection.bytes
        for shard in tapestry.shards(linear)
        for selection in tapestry.selections(linear, shard)
    )
    assert tapestry.traffic(linear).read == read
    assert tapestry.traffic(linear).written == 48


def test_only_arithmetic_on_floats_counts_as_such() -> None:
    linear, exp = tapestry.operations(parsed())
    assert tapestry.flops(linear) == 72 + 72 + 12
    assert tapestry.scalar_operations(linear)["arith.select"] == 12
    assert tapestry.flops(exp) == 12


def test_points_that_a_domain_leaves_out_cost_nothing() -> None:
    module = parsed()
    linear, _ = tapestry.operations(module)
    assert isinstance(linear, loom.OperationOp)
    columns, folded = linear.index.shape[1], linear.index.shape[2]
    linear.domain = DomainAttr(Domain.of([[1, 0, -1]]))
    rows = sum(min(i + 1, folded) for i in range(linear.index.shape[0]))
    assert tapestry.scalar_operations(linear)["arith.mulf"] == rows * columns


@pytest.mark.parametrize("shards", ["grid=2,1,1", "grid=2,1,3"])
def test_spelled_out_shards_cost_the_same(shards: str) -> None:
    module = parsed(f"loom-shard{{op=linear {shards}}}")
    before = tapestry.operations(module)[0]
    counts, read = tapestry.scalar_operations(before), tapestry.traffic(before).read
    run_pipeline(module, "loom-expand-shards")
    main = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    pieces = tapestry.operations(main)[:-1]
    assert sum((tapestry.scalar_operations(op) for op in pieces), Counter[str]()) == counts
    applied = [op for op in pieces if isinstance(op, loom.ApplicationOp)]
    extras = [s for op in pieces for s in tapestry.selections(op) if s.role == "extra"]
    inputs = [s for op in applied for s in tapestry.selections(op) if s.role == "in"]
    states = [s for op in pieces for s in tapestry.selections(op) if s.role == "state"]
    assert bool(states) == (shards == "grid=2,1,3")
    if not states:
        assert sum(s.bytes for s in (*inputs, *extras)) == read


def test_what_is_stored_at_once() -> None:
    module = parsed()
    x, w, b, y = 96, 72, 12, 48
    main = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    stored = [size for _, size in live_bytes(main)]
    # The view shares y's cells, and y is stored until it is returned.
    assert stored == [x + w + b + y, x + w + b + y, x + w + b + 2 * y, x + w + b + 2 * y]
    assert tapestry.peak_live_bytes(module) == max(stored)
    with pytest.raises(tapestry.UsageError, match="no func.func @other"):
        tapestry.peak_live_bytes(module, "other")


def test_a_value_that_is_read_for_the_last_time_is_freed() -> None:
    kind = "!loom.tensor<[0] : [1099511627776], f64>"
    chain = "\n".join(
        f"  %v{n + 1} = loom.operation @f over <[0] : [1099511627776]> [map]"
        f" ins(%v{n} : (d0) -> (d0)) outs((d0) -> (d0))"
        " wrap (%e: f64) { %r = math.exp %e : f64  loom.yield %r : f64 }"
        f" : ({kind}) -> {kind}"
        for n in range(5)
    )
    text = f"func.func @main(%v0: {kind}) -> {kind} {{\n{chain}\n  func.return %v5 : {kind}\n}}"
    assert tapestry.peak_live_bytes(parse_text(text)) == 3 * 2**43


def test_a_tree_of_merges_unwraps_once() -> None:
    module = parsed("loom-shard{op=linear grid=1,1,6},loom-expand-shards{arity=2}")
    merges = [op for op in tapestry.operations(module) if isinstance(op, loom.MergeOp)]
    assert len(merges) > 1
    assert sum(tapestry.scalar_operations(op)["arith.select"] for op in merges) == 12


def test_parts_of_states_take_what_they_are_stored_on() -> None:
    x, w, y = (f"!loom.tensor<[0, 0] : {shape}, f32>" for shape in ([4, 6], [6, 3], [4, 3]))
    module = parse_text(f"""
loom.monoid @pair commutative zero [0.0 : f32, 0.0 : f32]
  merge (%a: f32, %b: f32, %c: f32, %d: f32) {{
    %p = arith.addf %a, %c : f32
    %r = arith.addf %b, %d : f32
    loom.yield %p, %r : f32, f32
  }}
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = loom.operation @both over <[0, 0, 0] : [4, 6, 3]> [map, fold, map] by @pair
         ins(%x : (i, j, d) -> (i, j), %w : (i, j, d) -> (j, d)) outs((i, d) -> (i, d))
         wrap (%a: f32, %b: f32) {{ loom.yield %a, %b : f32, f32 }}
         unwrap (%a: f32, %b: f32) {{ %r = arith.addf %a, %b : f32  loom.yield %r : f32 }}
         : ({x}, {w}) -> {y}
  func.return %y : {y}
}}""")
    run_pipeline(module, "loom-shard{grid=1,2,1},loom-expand-shards")
    first, _, merge = tapestry.operations(module)
    assert tapestry.traffic(first) == Traffic(4 * (12 + 9), 4 * (4 + 3))
    assert tapestry.traffic(merge) == Traffic(2 * 4 * (4 + 3), 48)
    # Each point of the kept dimensions merges, whatever its parts are stored on.
    assert tapestry.scalar_operations(merge)["arith.addf"] == 2 * (2 * 12) + 12
