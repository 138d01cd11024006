"""A scan as a Triton kernel: blocks scanned by `tl.associative_scan`, their last state carried.

    for k in blocks of K:
        states = carried merged with scan(wrap(...))     # P x K
        store unwrap(states)
        carried = the last column of states              # P

Where shards cut the scan, what is carried comes from a buffer and goes back to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Block, Region, SSAValue

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.indexing.positions import Axis
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.steps import Options, longest, part_names, unwrap, wrapped_block
from tapestry.passes.triton.kernels.writer import Kernel, KernelWriter, space_of
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tiles.builder import TileBuilder
from tapestry.passes.triton.tiles.folds import FoldState, State
from tapestry.zspace import Projection


def carry_tensors(fold: MapFold, state: FoldState) -> tuple[Tensor, ...]:
    """A tensor over the map dimensions for each part of the state that goes from shard to shard."""
    others = [d for d in range(fold.index.rank) if d != fold.scan_dim]
    rows = [[int(d == other) for d in range(fold.index.rank)] for other in others]
    across = Projection.of(rows, inputs=fold.index.rank)
    box = fold.index.select(others)
    names = part_names(fold, len(state.elements))
    return tuple(
        Tensor(f"{name}_carried", box, element, across)
        for name, element in zip(names, state.elements, strict=True)
    )


def scan_kernel(
    fold: MapFold,
    state: FoldState,
    carries: Sequence[Tensor],
    options: Options,
    origins: Sequence[str],
) -> Kernel:
    """The kernel of a scan; with `carries`, it takes those tensors after the outputs."""
    fold = replace(fold, outs=(*fold.outs, *carries))
    axes = tuple(FOLD_AXIS if d == fold.scan_dim else "P" for d in range(fold.index.rank))
    space = space_of(fold, axes, ("P", FOLD_AXIS))
    lengths = {axis: longest(space, axis, fold.shards) for axis in ("P", FOLD_AXIS)}
    task = Task(fold.name, "scan", lengths, grid=("P",))
    schedule = options.schedule(task, fold.schedule)
    points = Axis("P", space.on("P"), "BLOCK_P")
    length = Axis(FOLD_AXIS, space.on(FOLD_AXIS), "BLOCK_K")
    writer = KernelWriter(fold, space, [points, length], schedule, ("P",))
    tiles, frame, across = writer.tiles, ("P", FOLD_AXIS), ("P",)
    names = part_names(fold, len(state.elements))
    carried_names = [f"{name}_carried" for name in names]
    first_carry = len(writer.outs) - len(carries)
    outs, kept = writer.outs[:first_carry], writer.outs[first_carry:]

    def write() -> None:
        block = wrapped_block(writer, state, frame)

        def start() -> State:
            if not kept:
                return state.zero(tiles, writer.blocks(across), carried_names)
            loaded = [writer.load(port, across, port.name) for port in kept]
            return tuple(tiles.spread(part, writer.blocks(across)) for part in loaded)

        def step(carried: Sequence[SSAValue] | None) -> State:
            states = state.scan(tiles, block(), 1, names)
            if carried is not None:
                before = [tiles.expand(part, 0, len(frame)) for part in carried]
                merged = state.merge(tiles, before, states)
                states = tuple(tiles.spread(part, writer.blocks(frame)) for part in merged)
            unwrap(writer, frame, state, states, writer.extras, outs)
            return () if carried is None else _last(tiles, states, carried_names)

        ends = writer.walk(length, start, step)
        for port, end in zip(kept, ends, strict=bool(kept)):
            writer.store(port, across, end)

    writer.versions(write)
    return writer.finish(fold.name, origins)


def _last(tiles: TileBuilder, states: State, names: Sequence[str]) -> State:
    """The states in the last lane of K: lanes past the end hold zeros, so they change nothing.

    The lane is found by folding (position, state) and keeping the greater position.
    """
    lanes = tiles.expand(tiles.arange("BLOCK_K", "lanes"), 1, 2)
    lanes = tiles.spread(lanes, ("BLOCK_P", "BLOCK_K"))
    elements = [element_of(lanes), *(element_of(part) for part in states)]
    body = Block(arg_types=elements * 2)
    for number, argument in enumerate(body.args):
        side = "ab"[number // len(elements)]
        argument.name_hint = f"{side}{number % len(elements)}"
    combiner = TileBuilder(body, {}, tiles.index)
    a, b = body.args[: len(elements)], body.args[len(elements) :]
    later = combiner.compare(">", a[0], b[0])
    kept = [combiner.where(later, x, y) for x, y in zip(a, b, strict=True)]
    body.add_op(triton.YieldOp(*kept))
    op = triton.ReduceOp("last", [lanes, *states], 1, Region(body))
    tiles.append(op)
    for out, name in zip(op.outs[1:], names, strict=True):
        out.name_hint = name
    return tuple(op.outs[1:])
