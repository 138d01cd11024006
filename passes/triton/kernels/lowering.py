"""One map-fold as Triton kernels.

Four shapes cover every operation, by its projections and bodies alone:

* no fold: one axis P over all map dimensions, or M by N where tensors differ in what lies side by
  side (`indexing.facing`);
* a fold: P by K, K looped over, the monoid's parts carried as a P x K tile and reduced at the end,
  or as a P tile where few points count, which are looked for (`matching.py`);
* a scan: P by K, K looped over, the last state before a block carried (`scans.py`);
* a contraction: M by N with `tl.dot` over K, batches one program each.

A fold whose shards fold apart keeps its state in buffers: each launch merges what it folded into
them, and a last kernel, `..._finish`, unwraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import VISITS, Schedule, element_of
from tapestry.passes.triton.indexing.facing import COLUMNS, OTHERS, ROWS, facing_axes
from tapestry.passes.triton.indexing.orders import dims_apart, product_order, walking_order
from tapestry.passes.triton.indexing.positions import Axis, Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Access, Space
from tapestry.passes.triton.indexing.spans import grows, is_bounded
from tapestry.passes.triton.kernels.contraction import (
    Contraction,
    expression,
    find_contraction,
)
from tapestry.passes.triton.kernels.descriptors import any_described
from tapestry.passes.triton.kernels.mapfold import MapFold, Tensor
from tapestry.passes.triton.kernels.matching import Matching, find_matching, write_matching
from tapestry.passes.triton.kernels.places import with_narrow_places
from tapestry.passes.triton.kernels.products import summed_type
from tapestry.passes.triton.kernels.scans import carry_tensors, scan_kernel
from tapestry.passes.triton.kernels.steps import (
    Options,
    last_states,
    longest,
    part_names,
    unwrap,
    wrapped_block,
)
from tapestry.passes.triton.kernels.writer import Kernel, KernelWriter, Port, space_of
from tapestry.passes.triton.schedules.choosing import best
from tapestry.passes.triton.schedules.rungs import Rung
from tapestry.passes.triton.schedules.task import Task
from tapestry.passes.triton.tiles.builder import number
from tapestry.passes.triton.tiles.folds import FoldState, State
from tapestry.zspace import Projection


@dataclass(frozen=True, eq=False)
class Lowered:
    """The kernels of a map-fold.

    `main` runs once per shard. With `states` (the tensors that hold folded parts) and `finish`, it
    takes them in place of the outputs, and `finish` runs once afterwards. The states of a scan go
    from shard to shard; `main` takes them after the outputs.
    """

    main: Kernel
    states: tuple[Tensor, ...] = ()
    finish: Kernel | None = None


def lower(fold: MapFold, options: Options, origins: Sequence[str]) -> Lowered:
    """The kernels of a map-fold that has points."""

    def build(own: Options, schedule: Schedule | None) -> tuple[Lowered, Kernel]:
        lowered = _lower(replace(fold, schedule=schedule), own, origins)
        return lowered, lowered.main

    if fold.schedule is not None:
        return _lower(fold, options, origins)
    return best(options, fold.shards, build)


def _lower(fold: MapFold, options: Options, origins: Sequence[str]) -> Lowered:
    if fold.monoid is None:
        return Lowered(_map_kernel(fold, options, origins))
    state = FoldState.of(fold.monoid)
    if fold.scan_dim is not None:
        return _scan(fold, state, options, origins)
    contraction = None
    if options.rung(fold.name) < Rung.APART:
        contraction = find_contraction(fold, exact=options.is_strict)

    def kernel(target: MapFold) -> Kernel:
        if contraction is None:
            return _fold_kernel(target, state, options, origins)
        return _contraction_kernel(target, contraction, state, options, origins)

    if not (fold.folds_apart or options.parts(fold) > 1):
        state = with_narrow_places(fold, state)
        return Lowered(kernel(fold))
    buffers = state_tensors(fold, state)
    main = kernel(replace(fold, outs=buffers, extras=(), unwrap=None))
    return Lowered(main, buffers, finish_kernel(fold, buffers, state, options))


def _scan(fold: MapFold, state: FoldState, options: Options, origins: Sequence[str]) -> Lowered:
    """The kernel of a scan, whose state goes from shard to shard where they cut the scan."""
    if fold.scan_dim not in fold.cut:
        return Lowered(scan_kernel(fold, state, (), options, origins))
    carries = carry_tensors(fold, state)
    return Lowered(scan_kernel(fold, state, carries, options, origins), carries)


def state_tensors(fold: MapFold, state: FoldState) -> tuple[Tensor, ...]:
    """A tensor over the map dimensions for each part of a fold's state."""
    box = fold.kept_range(fold.index)
    return tuple(
        Tensor(
            "state" if len(state.elements) == 1 else f"state{n}",
            box,
            element,
            Projection.identity(box.rank),
        )
        for n, element in enumerate(state.elements)
    )


def _map_kernel(fold: MapFold, options: Options, origins: Sequence[str]) -> Kernel:
    space = space_of(fold, ("P",) * fold.index.rank, ("P",))
    facing = facing_axes(fold, space)
    if facing is None:
        writer, frame = _points_writer(fold, space, options), ("P",)
    else:
        writer, frame = _facing_writer(fold, facing, options), (ROWS, COLUMNS)

    def write() -> None:
        values = writer.load_all(writer.ins, fold.wrap.args, frame)
        writer.evaluate(fold.wrap.ops, values, frame)
        for port, value in zip(writer.outs, loom.yielded(fold.wrap), strict=True):
            writer.store(port, frame, values[value])

    writer.versions(write)
    return writer.finish(fold.name, origins)


def finish_kernel(
    fold: MapFold, buffers: Sequence[Tensor], state: FoldState, options: Options
) -> Kernel:
    """The kernel that unwraps a state: an elementwise one over the map dimensions."""
    # The fold dimensions stay, one point each, so that the others keep their numbers.
    points = replace(
        fold,
        index=fold.index.at_start(fold.fold_dims),
        ins=(),
        extras=(*buffers, *fold.extras),
        partition=None,
        inside=None,
        name=f"{fold.name}_finish",
        schedule=None,
    )
    writer = _points_writer(points, space_of(points, ("P",) * points.index.rank, ("P",)), options)
    frame = ("P",)
    parts = [writer.load(port, frame, port.name) for port in writer.extras[: len(buffers)]]
    unwrap(writer, frame, state, tuple(parts), writer.extras[len(buffers) :], writer.outs)
    return writer.finish(points.name, [f"unwraps what {fold.name} folded"])


def _points_writer(fold: MapFold, space: Space, options: Options) -> KernelWriter:
    """A writer whose programs are spread over the points of one axis."""
    points = longest(space, "P", fold.shards)
    task = Task(fold.name, "map", {"P": points}, grid=("P",))
    schedule = options.schedule(task, fold.schedule)
    return KernelWriter(fold, space, [Axis("P", space.on("P"), "BLOCK_P")], schedule, ("P",))


def _facing_writer(fold: MapFold, facing: Sequence[str], options: Options) -> KernelWriter:
    """A writer whose programs are spread over tiles along two axes, one at each further point."""
    space = space_of(fold, facing, (ROWS, COLUMNS))
    others = Axis(OTHERS, space.on(OTHERS), None)
    sides = [Axis(name, space.on(name), f"BLOCK_{name}") for name in (ROWS, COLUMNS)]
    spread = (OTHERS, ROWS, COLUMNS) if others.dims else (ROWS, COLUMNS)
    lengths = {axis.name: longest(space, axis.name, fold.shards) for axis in sides}
    task = Task(fold.name, "map", lengths, grid=spread)
    schedule = options.schedule(task, fold.schedule)
    return KernelWriter(fold, space, [others, *sides], schedule, spread)


def _end(writer: KernelWriter, frame: Frame, state: FoldState, parts: State) -> None:
    """Unwrap and store a folded state, or merge it into the state buffers."""
    if writer.part is not None:
        (port,), (value,) = writer.outs, parts
        writer.store(port, frame, value, state.atomic)
        return
    if not writer.fold.folds_apart:
        unwrap(writer, frame, state, parts, writer.extras, writer.outs)
        return
    before = [writer.load(port, frame, f"{port.name}_before") for port in writer.outs]
    for port, value in zip(writer.outs, state.merge(writer.tiles, before, parts), strict=True):
        writer.store(port, frame, value)


def _fold_kernel(
    fold: MapFold, state: FoldState, options: Options, origins: Sequence[str]
) -> Kernel:
    order = walking_order(fold)
    apart = dims_apart(fold) if order is None else frozenset[int]()
    axes = tuple(
        "K" if kind == "fold" else "B" if d in apart else "P" for d, kind in enumerate(fold.kinds)
    )
    space = space_of(fold, axes, ("P", "K"), order)
    matching = find_matching(fold, state)
    spread = ("B", "P") if apart else ("P",)
    task = Task(
        fold.name,
        "fold",
        {axis: longest(space, axis, fold.shards) for axis in ("P", "K")},
        grid=spread,
        atomic=state.atomic is not None,
        bounded=is_bounded(space),
        across=space.lies_along("P", "K"),
        matches=matching is not None,
    )
    points, depth = (Axis(name, space.on(name), f"BLOCK_{name}") for name in ("P", "K"))
    used = [Axis("B", space.on("B"), None), points, depth]
    schedule = options.schedule(task, fold.schedule)
    writer = KernelWriter(fold, space, used[not apart :], schedule, spread)
    frame = ("P", "K")
    names = part_names(fold, len(state.elements))

    def write_matching_points(found: Matching) -> None:
        def zero() -> State:
            return state.zero(writer.tiles, writer.blocks(("P",)), names)

        block = wrapped_block(writer, state, ("P",))
        visit = write_matching(writer, found, state, block, depth)
        folded = writer.walk(
            depth,
            zero,
            lambda carried: visit(zero() if carried is None else carried),
            everywhere=False,
        )
        _end(writer, ("P",), state, folded)

    def write_in_order() -> None:
        block = wrapped_block(writer, state, frame)

        def step(carried: Sequence[SSAValue] | None) -> State:
            # Folding a tile may take its lanes in any order; scanning it keeps to theirs.
            ends = last_states(writer.tiles, state.scan(writer.tiles, block(), 1, names), names)
            return ends if carried is None else state.merge(writer.tiles, carried, ends)

        folded = writer.walk(
            depth,
            lambda: state.zero(writer.tiles, writer.blocks(("P",)), names),
            step,
            everywhere=False,
        )
        _end(writer, ("P",), state, folded)

    def write() -> None:
        if matching is not None and schedule.visits != VISITS[0]:
            write_matching_points(matching)
            return
        if not state.monoid.commutative and schedule.tile["K"] > 1:
            write_in_order()
            return
        block = wrapped_block(writer, state, frame)

        def step(carried: Sequence[SSAValue] | None) -> State:
            folded = block()
            return folded if carried is None else state.merge(writer.tiles, carried, folded)

        folded = writer.walk(
            depth,
            lambda: state.zero(writer.tiles, writer.blocks(frame), names),
            step,
            everywhere=False,
        )
        _end(writer, ("P",), state, state.reduce(writer.tiles, folded, 1, names))

    writer.versions(write)
    return writer.finish(fold.name, origins)


def _contraction_kernel(
    fold: MapFold,
    contraction: Contraction,
    state: FoldState,
    options: Options,
    origins: Sequence[str],
) -> Kernel:
    order = product_order(fold, contraction.axes)
    space = space_of(fold, contraction.axes, ("M", "N", "K"), order)
    a, b = contraction.factors()
    lengths = {axis: longest(space, axis, fold.shards) for axis in ("M", "N", "K")}
    axes = [Axis(axis, space.on(axis), f"BLOCK_{axis}") for axis in ("M", "N", "K")]
    batch = Axis("B", space.on("B"), None)
    spread = ("B", "M", "N") if batch.dims else ("M", "N")
    task = Task(
        fold.name,
        "contraction",
        lengths,
        cell=byte_size(a.type),
        split=options.precision == "bf16x6" and a.type == f32,
        grid=spread,
        atomic=state.atomic is not None,
        bounded=is_bounded(space),
        grows=grows(space),
        described=any_described(fold, space, [batch, *axes]),
        extras=bool(fold.extras) and not fold.folds_apart,
    )
    schedule = options.schedule(task, fold.schedule)
    writer = KernelWriter(fold, space, [batch, *axes], schedule, spread)
    tiles = writer.tiles
    masks = _rows_by_frame(writer.space)

    def write() -> None:
        factor_a = _factor(writer, a, ("M", "K"), masks["M", "K"])
        factor_b = _factor(writer, b, ("K", "N"), masks["K", "N"])
        zero = tiles.full(0.0, summed_type(a.type), ("BLOCK_M", "BLOCK_N"), "acc")
        if schedule.extras == "early":
            assert fold.unwrap is not None
            read = fold.unwrap.args[len(fold.unwrap.args) - len(writer.extras) :]
            writer.load_ahead(writer.extras, read, ("M", "N"))

        def step(carried: Sequence[SSAValue] | None) -> State:
            acc = zero if carried is None else carried[0]
            dot = triton.DotOp(factor_a(), factor_b(), acc, options.precision)
            return (tiles.value(dot, "acc"),)

        parts = writer.walk(axes[2], lambda: (zero,), step, everywhere=False, hoist=True)
        outside = writer.positions.inside_all(masks["M", "N"], ("M", "N"))
        _end(writer, ("M", "N"), state, state.masked(tiles, parts, outside))

    writer.versions(write)
    return writer.finish(fold.name, origins)


def _rows_by_frame(space: Space) -> dict[Frame, list[Access]]:
    """The rows of the domain by what they mask: both factors, one of them, or the result."""
    found: dict[Frame, list[Access]] = {("M", "K"): [], ("K", "N"): [], ("M", "N"): []}
    for row in space.domain:
        along = space.along(row)
        if along.isdisjoint({"M", "N"}):
            found["M", "K"].append(row)
            found["K", "N"].append(row)
            continue
        for frame in (("M", "N"), ("M", "K"), ("K", "N")):
            if along.isdisjoint({"M", "N", "K"}.difference(frame)):
                found[frame].append(row)
                break
    return found


def _factor(
    writer: KernelWriter, factor: SSAValue, frame: Frame, rows: Sequence[Access]
) -> Callable[[], SSAValue]:
    """What writes one factor of a product over a block of K, zero where no points are inside."""
    fold, tiles = writer.fold, writer.tiles
    ops = expression(factor)
    needed = {operand for op in ops for operand in op.operands} | {factor}
    ports: dict[SSAValue, Port] = {
        argument: port
        for argument, port in zip(fold.wrap.args, writer.ins, strict=True)
        if argument in needed
    }
    for access in (*(port.access for port in ports.values()), *rows):
        writer.positions.prepare(access, frame)

    def write() -> SSAValue:
        values = writer.load_all(list(ports.values()), list(ports), frame)
        writer.evaluate(ops, values, frame)
        value = values[factor]
        loaded = factor in ports and _is_masked_to_zero(writer, ports[factor])
        # A load with fill 0 is zero where there are no points; the rest has to be made so.
        mask = None if loaded else writer.positions.frame_mask(frame, (FOLD_AXIS,))
        mask = tiles.both(mask, writer.positions.inside_all(rows, frame))
        if mask is not None:
            value = tiles.where(mask, value, tiles.constant(0, element_of(value)))
        return tiles.spread(value, writer.blocks(frame))

    return write


def _is_masked_to_zero(writer: KernelWriter, port: Port) -> bool:
    """Whether a load along K is zero where there are no points."""
    zero = port.fill == number(0, port.element)
    return zero and FOLD_AXIS in writer.space.along(port.access)
