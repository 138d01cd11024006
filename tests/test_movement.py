"""What moves between shards, against visiting every shard and its boxes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.dialects import loom
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.movement import (
    Edge,
    Reader,
    Splittable,
    assembled_bytes,
    edges,
    merged_bytes,
    moved_bytes,
    part_bytes,
    read_bytes,
    splittables,
    whole,
)
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.zspace import Partition, Point, Range
from tests.amounts import drawn
from tests.end_to_end.operations import random_program

CELL = 4


def split(op: Splittable, random: Random) -> None:
    """A random partition, as a grid or as its list of ranges, where it is legal."""
    counts = [random.randint(1, min(3, n)) if n else 1 for n in op.index.shape]
    partition = Partition.balanced(op.index, counts)
    if random.random() < 0.3:
        partition = Partition.explicit(partition.ranges())
    if not op.sharding_problems(partition):
        op.shards = PartitionAttr(partition)


def written_cells(edge: Edge, part: Range) -> Iterator[Point]:
    """The cells that a part writes; a fold over nothing writes too."""
    op = edge.producer
    if isinstance(op, loom.OperationOp):
        place = list(op.results).index(edge.tensor)  # pyright: ignore[reportArgumentType]
        for point in op.kept_range(part).coords():
            yield from op.out_maps[place].apply_point(point).coords()
    else:
        yield from edge.written.apply_range(part).coords()


def counted(edge: Edge) -> tuple[int, int]:
    """Cells that shards read inside the tensor, and those of them that were written elsewhere."""
    reading = edge.reader.partition or whole(edge.reader)
    writing = edge.producer.partition or whole(edge.producer)
    written = [set(written_cells(edge, part)) for part in writing.ranges()]
    read = moved = 0
    for part in reading.ranges():
        if part.is_empty:
            continue
        cells = {c for c in edge.read.apply_range(part).coords() if edge.box.contains(c)}
        read += len(cells)
        moved += len(cells) - max((len(cells & there) for there in written), default=0)
    return read, moved


@settings(max_examples=drawn(60), deadline=None)
@given(st.integers(0, 10**6))
def test_every_shard_and_cell_is_accounted_for(seed: int) -> None:
    random = Random(seed)
    module = parse_text(random_program(seed).text)
    run_pipeline(module, random.choice(("loom-simplify", "loom-simplify,loom-group")))
    for op in splittables(module):
        split(op, random)
    verify_module(module)
    for op in splittables(module):
        for edge in edges(op):
            assert (read_bytes(edge), moved_bytes(edge)) == tuple(CELL * n for n in counted(edge))


@settings(max_examples=drawn(60), deadline=None)
@given(st.integers(0, 10**6))
def test_what_agrees_moves_nothing(seed: int) -> None:
    random = Random(seed)
    module = parse_text(random_program(seed, steps=6).text)
    run_pipeline(module, "loom-simplify")
    ops = splittables(module)
    split(random.choice(ops), random)
    given_before = {op for op in ops if op.partition is not None}
    run_pipeline(module, "loom-propagate")
    verify_module(module)
    for op in splittables(module):
        if op.partition is None or op in given_before:
            continue
        around = [e for reader in ops for e in edges(reader) if op in (e.reader, e.producer)]
        assert any(
            moved_bytes(edge) == 0
            for edge in around
            if edge.reader.partition is not None and edge.producer.partition is not None
        )


@settings(max_examples=drawn(60), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["", ",loom-reshard"]))
def test_spelled_out_as_much_moves(seed: int, gathered: str) -> None:
    random = Random(seed)
    module = parse_text(random_program(seed).text)
    run_pipeline(module, random.choice(("loom-simplify", "loom-simplify,loom-group")))
    for op in splittables(module):
        split(op, random)
        # One merge finishes what shards of a scan, or irregular ones of a fold, began apart.
        if isinstance(op, loom.OperationOp) and op.partition is not None:
            irregular = op.partition.cuts is None and bool(op.fold_dims)
            if irregular or op.scan_dim is not None:
                op.shards = None
    verify_module(module)
    read = sum(moved_bytes(edge) for op in splittables(module) for edge in edges(op))
    states = sum(map(merged_bytes, splittables(module)))
    run_pipeline(module, f"loom-expand-shards{gathered}")
    readers = [op for op in module.walk() if isinstance(op, Reader) and not in_group(op)]
    merged = sum(merged_bytes(op) for op in readers if isinstance(op, loom.MergeOp))
    left = sum(moved_bytes(edge) for op in splittables(module) for edge in edges(op))
    assert merged <= states
    assert left + sum(map(assembled_bytes, readers)) == read


MATMUL = """
!x = !loom.tensor<[0, 0] : [1099511627776, 1048576], f32>
!w = !loom.tensor<[0, 0] : [1048576, 4096], f32>
!y = !loom.tensor<[0, 0] : [1099511627776, 4096], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %h = loom.operation @half over <[0, 0] : [1099511627776, 1048576]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%c: f32) { %r = arith.addf %c, %c : f32 loom.yield %r : f32 } : (!x) -> !x
  %y = loom.operation @y over <[0, 0, 0] : [1099511627776, 4096, 1048576]> [map, map, fold] by @add
         ins(%h : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }
         : (!x, !w) -> !y
  func.return %y : !y
}
"""


def test_huge_grids_are_counted_without_visiting_shards() -> None:
    module = parse_text(MATMUL)
    run_pipeline(module, "loom-shard{op=half grid=1024,1}")
    run_pipeline(module, "loom-shard{op=y grid=1,1,1024}")
    half, y = splittables(module)
    (edge,) = edges(y)
    rows, inner, columns, parts = 2**40, 2**20, 2**12, 2**10
    # Each shard of @y reads 2^10 columns, of which one shard of @half wrote 2^30 rows.
    assert moved_bytes(edge) == CELL * inner * (rows - 2**30)
    assert merged_bytes(y) == CELL * (parts - 1) * rows * columns
    assert merged_bytes(half) == 0
    assert part_bytes(y, y.index) == CELL * (rows * inner + inner * columns + rows * columns)
    assert isinstance(y, loom.OperationOp)


@pytest.mark.parametrize("budget", [1, 200, 1000, 10**9])
@settings(max_examples=drawn(20), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_parts_keep_a_budget_or_cannot_be_split_further(budget: int, seed: int) -> None:
    module = parse_text(random_program(seed).text)
    run_pipeline(module, f"loom-simplify,loom-shard{{bytes={budget}}}")
    verify_module(module)
    for op in splittables(module):
        assert op.partition is not None
        largest = max(part_bytes(op, part) for part in op.partition.ranges())
        if largest <= budget:
            continue
        counts = op.partition.counts
        for dim, extent in enumerate(op.index.shape):
            more = [n * 2 if place == dim else n for place, n in enumerate(counts)]
            more[dim] = min(more[dim], extent)
            if more[dim] > counts[dim]:
                finer = Partition.balanced(op.index, more)
                smaller = part_bytes(op, finer.part(0)) < largest
                assert not smaller or op.sharding_problems(finer)
