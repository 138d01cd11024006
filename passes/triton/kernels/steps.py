"""What kernels that fold or scan do on the way: wrap a block of values, unwrap and store a state.

Values are wrapped over a frame of points by one block of the axis along which states merge.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import Block, Operation, Region, SSAValue

from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, element_of
from tapestry.passes.triton.cost.predicting import Choose
from tapestry.passes.triton.indexing.positions import Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Space
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.kernels.writer import KernelWriter, Port
from tapestry.passes.triton.schedules.rungs import Rung, smallest
from tapestry.passes.triton.schedules.schedule import check, default
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.schedules.tiling import Tiling
from tapestry.passes.triton.tiles.bodies import Values, failing_reads, varying
from tapestry.passes.triton.tiles.builder import TileBuilder
from tapestry.passes.triton.tiles.folds import FoldState, State
from tapestry.zspace import Range


@dataclass(frozen=True)
class Options:
    """How kernels are made: tile sizes, and how a dot multiplies float32 (see `triton.DotOp`).

    `rounds` says whether a computed factor is rounded to 16 bits beside one of 16 bits. Whoever
    chooses schedules is told of each task by `seen`. A `chooser` may replace the default ones. What
    did not run is tried again on the rung that `rungs` has for its name.
    """

    tiling: Tiling
    precision: str
    rounds: bool = False
    seen: Callable[[Task], None] | None = None
    chooser: Choose | None = None
    rungs: Mapping[str, Rung] = field(default_factory=dict[str, Rung])
    alike: Hashable = None
    """What kernels depend on besides these options, if that is known: equal ones are the same."""

    def rung(self, name: str) -> Rung:
        """How careful the kernels of an operation or a group are to be."""
        return self.rungs.get(name, Rung.GIVEN)

    def parts(self, fold: MapFold) -> int:
        """How many programs share a fold, by the schedule that is given for it."""
        given = None if self.rung(fold.name) > Rung.GIVEN else fold.schedule
        return 1 if given is None else given.parts

    @property
    def is_strict(self) -> bool:
        """Whether a dot must give what the fold it stands for gives."""
        return self.precision != "tf32"

    @property
    def numerics(self) -> str:
        """The name of the policy that it follows."""
        if not self.is_strict:
            return "fast"
        return "mixed" if self.rounds else "strict"

    def see(self, task: Task) -> None:
        """Tell whoever chooses schedules of a task."""
        if self.seen is not None:
            self.seen(task)

    def schedule(self, task: Task, given: Schedule | None) -> Schedule:
        """The schedule that is given for a task, or the default; ScheduleError if it is illegal."""
        self.see(task)
        rung = self.rung(task.name)
        if rung >= Rung.SMALL:
            return smallest(task)
        if rung == Rung.WAITING:
            return replace(default(task, self.tiling), stages=1)
        if given is None or rung == Rung.DEFAULT:
            return default(task, self.tiling)
        check(task, given)
        return given


def longest(space: Space, axis: str, shards: Sequence[Range]) -> int:
    """The most points that a shard has along a tile axis."""
    dims = space.on(axis)
    constant = prod(dim.extent for dim in dims if not dim.cut)
    cut = [dim for dim in dims if dim.cut]
    if not cut:
        return constant
    lengths = (prod(end - start for start, end in (d.bounds(s) for d in cut)) for s in shards)
    return constant * max(lengths)


def part_names(fold: MapFold, parts: int) -> list[str]:
    """What unwrap calls the parts of a state, where it does."""
    names = ["acc"] if parts == 1 else [f"acc{n}" for n in range(parts)]
    if fold.unwrap is None:
        return names
    return [a.name_hint or name for a, name in zip(fold.unwrap.args, names, strict=False)]


def wrapped_block(writer: KernelWriter, state: FoldState, frame: Frame) -> Callable[[], State]:
    """What writes the wrapped values of one block of K, zero where no points are inside.

    What does not move along K is loaded and computed here, once, before any loop.
    """
    fold, tiles = writer.fold, writer.tiles
    ports: dict[SSAValue, Port] = dict(zip(fold.wrap.args, writer.ins, strict=True))
    moving = [a for a, port in ports.items() if FOLD_AXIS in writer.space.along(port.access)]
    later = varying(fold.wrap, [*moving, *_judged_later(writer)], fold.merged_dims)
    fixed_arguments = [argument for argument in ports if argument not in later]
    fixed = writer.load_all([ports[a] for a in fixed_arguments], fixed_arguments, frame)
    inside: list[Operation] = []
    outside: list[Operation] = []
    for op in fold.wrap.ops:
        (inside if any(result in later for result in op.results) else outside).append(op)
    writer.evaluate(outside, fixed, frame)
    for argument in moving:
        writer.positions.prepare(ports[argument].access, frame)
    for row in writer.space.domain:
        writer.positions.prepare(row, frame)

    def block() -> State:
        values = fixed | writer.load_all([ports[a] for a in moving], moving, frame)
        writer.evaluate(inside, values, frame)
        parts = state.enter(tiles, [values[value] for value in loom.yielded(fold.wrap)])
        mask = writer.positions.frame_mask(frame, (FOLD_AXIS,))
        mask = tiles.both(mask, writer.positions.inside_all(writer.space.domain, frame))
        parts = state.masked(tiles, parts, mask)
        return tuple(tiles.spread(part, writer.blocks(frame)) for part in parts)

    return block


def _judged_later(writer: KernelWriter) -> list[SSAValue]:
    """What reads give that may fail where the domain moves along K: only its points need them."""
    if not any(FOLD_AXIS in writer.space.along(row) for row in writer.space.domain):
        return []
    return [op.results[0] for op in failing_reads(writer.fold.wrap)]


def unwrap(
    writer: KernelWriter,
    frame: Frame,
    state: FoldState,
    parts: State,
    extras: Sequence[Port],
    outs: Sequence[Port],
) -> None:
    """Write what unwrap makes of a state to `outs`, or the state itself."""
    values = state.leave(writer.tiles, parts)
    body = writer.fold.unwrap
    if body is not None:
        known: Values = dict(zip(body.args, values, strict=False))
        known |= writer.load_all(extras, body.args[len(values) :], frame)
        writer.evaluate(body.ops, known, frame)
        values = tuple(known[value] for value in loom.yielded(body))
    for port, value in zip(outs, values, strict=True):
        writer.store(port, frame, value)


def last_states(tiles: TileBuilder, states: State, names: Sequence[str]) -> State:
    """What tiles of P by K that are scanned have in the last lane of K: what all of it folds to.

    Lanes past the end hold zeros, so they change nothing. The lane is found by folding (position,
    state) and keeping the greater position.
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
