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

from xdsl.ir import SSAValue

from tapestry.passes.triton.indexing.orders import scanning_order
from tapestry.passes.triton.indexing.positions import Axis
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.steps import (
    Options,
    last_states,
    longest,
    part_names,
    unwrap,
    wrapped_block,
)
from tapestry.passes.triton.kernels.writer import Kernel, KernelWriter, space_of
from tapestry.passes.triton.schedules.task import Task
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
    order = scanning_order(fold)
    fold = replace(fold, outs=(*fold.outs, *carries))
    axes = tuple(FOLD_AXIS if d == fold.scan_dim else "P" for d in range(fold.index.rank))
    space = space_of(fold, axes, ("P", FOLD_AXIS), order)
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
            return () if carried is None else last_states(tiles, states, carried_names)

        ends = writer.walk(length, start, step)
        for port, end in zip(kept, ends, strict=bool(kept)):
            writer.store(port, across, end)

    writer.versions(write)
    return writer.finish(fold.name, origins)
