"""One map-fold as Triton kernels.

Three shapes cover every operation, by its projections and bodies alone:

* no fold: one axis P over all map dimensions;
* a fold: P by K, K looped over, the monoid's parts carried as a P x K tile and reduced at the end;
* a contraction: M by N with `tl.dot` over K, batches one program each.

A fold whose shards fold apart keeps its state in buffers: each launch merges what it folded into
them, and a last kernel, `..._finish`, unwraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from tapestry.dialects import loom, triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.bodies import Values, varying, yielded
from tapestry.passes.triton.contraction import (
    Contraction,
    expression,
    find_contraction,
    operand_source,
)
from tapestry.passes.triton.folds import FoldState, State
from tapestry.passes.triton.mapfold import MapFold, Tensor
from tapestry.passes.triton.positions import Axis, Frame
from tapestry.passes.triton.schedule import Blocks, Schedule
from tapestry.passes.triton.scalars import is_half
from tapestry.passes.triton.spaces import Space
from tapestry.passes.triton.writer import Kernel, KernelWriter, Port, space_of
from tapestry.zspace import Projection, Range


@dataclass(frozen=True)
class Options:
    """How kernels are made: tile sizes, and what float32 factors of a dot may be rounded to."""

    schedule: Schedule
    precision: str


@dataclass(frozen=True, eq=False)
class Lowered:
    """The kernels of a map-fold.

    `main` runs once per shard. With `states` (the tensors that hold folded parts, and the zero each
    starts with), it takes them in place of the outputs, and `finish` runs once afterwards.
    """

    main: Kernel
    states: tuple[tuple[Tensor, int | float], ...] = ()
    finish: Kernel | None = None


def lower(fold: MapFold, options: Options, origins: Sequence[str]) -> Lowered:
    """The kernels of a map-fold that has points."""
    if fold.monoid is None:
        return Lowered(_map_kernel(fold, options, origins))
    state = FoldState.of(fold.monoid)
    contraction = find_contraction(fold)

    def kernel(target: MapFold) -> Kernel:
        if contraction is None:
            return _fold_kernel(target, state, options, origins)
        return _contraction_kernel(target, contraction, state, options, origins)

    if not fold.folds_apart:
        return Lowered(kernel(fold))
    buffers = _state_tensors(fold, state)
    main = kernel(replace(fold, outs=buffers, extras=(), unwrap=None))
    finish = _finish_kernel(fold, buffers, state, options, origins)
    return Lowered(main, tuple(zip(buffers, state.monoid.zero, strict=True)), finish)


def _state_tensors(fold: MapFold, state: FoldState) -> tuple[Tensor, ...]:
    """A tensor over the map dimensions for each part of a fold's state."""
    box = fold.map_range(fold.index)
    return tuple(
        Tensor(
            "state" if len(state.elements) == 1 else f"state{n}",
            box,
            element,
            Projection.identity(box.rank),
        )
        for n, element in enumerate(state.elements)
    )


def _longest(space: Space, axis: str, shards: Sequence[Range]) -> int:
    """The most points that a shard has along a tile axis."""
    dims = space.on(axis)
    constant = prod(dim.extent for dim in dims if not dim.cut)
    cut = [dim for dim in dims if dim.cut]
    if not cut:
        return constant
    lengths = (prod(end - start for start, end in (d.bounds(s) for d in cut)) for s in shards)
    return constant * max(lengths)


def _map_kernel(fold: MapFold, options: Options, origins: Sequence[str]) -> Kernel:
    space = space_of(fold, ("P",) * fold.index.rank or ())
    points = _longest(space, "P", fold.shards)
    blocks = Blocks(options.schedule.map_blocks(points), num_warps=4, num_stages=1)
    writer = KernelWriter(fold, space, [Axis("P", space.on("P"), "BLOCK_P")], blocks, ("P",))
    values = _loaded(writer, writer.ins, fold.wrap.args, ("P",))
    writer.evaluate(fold.wrap.ops, values, ("P",))
    _store(writer, ("P",), [values[value] for value in yielded(fold.wrap)])
    return writer.finish(fold.name, origins)


def _finish_kernel(
    fold: MapFold,
    buffers: Sequence[Tensor],
    state: FoldState,
    options: Options,
    origins: Sequence[str],
) -> Kernel:
    """The kernel that unwraps a state: an elementwise one over the map dimensions."""
    box = fold.map_range(fold.index)
    whole = replace(
        fold,
        index=box,
        kinds=("map",) * box.rank,
        ins=(*buffers, *fold.extras),
        extras=(),
        partition=None,
        wrap=fold.wrap,
        unwrap=None,
    )
    raise NotImplementedError
