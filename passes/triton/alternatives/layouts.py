"""Inputs of products that lie badly: copied with another axis last, where that is faster.

    %y = loom.operation @conv ... by @add
           ins(%x : (n, m, i, c, k) -> (n, c, i + k), %w : (n, m, i, c, k) -> (m, c, k)) ...

Neighbours in `%x` are at `i + k`, for each `k` at another place: no lane can load several at
once, and nothing can be copied to shared memory ahead of time. With `c` last, both inputs are read
in whole vectors from aligned places (`loom-relayout`); the copy takes what its bytes take. Which
axis, if any, the cost model says, which counts all kernels. What another product or a map computes
is not copied but written so, where those that read it besides are maps and epilogues, or products
that read it as well then: layers pass on what lies well. So do folds of windows between them, which
read whole vectors then. That costs nothing, so it is not counted.

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, NameLoc, StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tapestry.algebra.dtypes import byte_size
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.relayout import (
    Axes,
    Reader,
    apply_layouts,
    axes_along,
    may_be_last,
    order_of_copy,
    readers_of,
)
from tapestry.passes.triton.alternatives.alone import alone, canonical
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.cost.neighbours import VECTOR
from tapestry.passes.triton.kernels.contraction import find_contraction
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.15
"""How many times as fast an operation has to be predicted to be, its copies counted."""

CLEAR = 1.5
"""How many times as fast it is with default schedules where others need not be looked at."""

_MANY = 16
"""In how many ways inputs are turned, all of which are looked at."""

Free: TypeAlias = "frozenset[tuple[int, int]]"
"""The numbers of inputs of a program, with axes that may come last without a copy."""

NEAR = 1.15
"""Of what is predicted to take about as long, what is folded comes last: as in other layers."""


@dataclass
class LayoutChooser:
    """Chooses which axes come last in what products read; equal ones are looked at once."""

    predict: Predict
    _known: dict[tuple[str, Free], Axes] = field(default_factory=dict["tuple[str, Free]", Axes])

    def chosen(
        self, module: ModuleOp, written: Collection[tuple[SSAValue, int]] = ()
    ) -> dict[loom.OperationOp, Axes]:
        """The operations of which some input is to be copied, with the axes that come last.

        What others of the module may write so need not be copied, nor what is `written` with an
        axis last if that is wanted.
        """
        found: dict[loom.OperationOp, Axes] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and may_gain(op):
                program = alone(op)
                given = {pair for pair in written if pair[0] in op.operands}
                free = free_inputs(op, given, without=op)
                key = canonical(program), free
                if key not in self._known:
                    self._known[key] = self._axes(program, free)
                if any(axis is not None for axis in self._known[key]):
                    found[op] = self._known[key]
        return found

    def _axes(self, program: ModuleOp, free: Free) -> Axes:
        """The axes that make an operation clearly faster; None of any where none do."""
        (op,) = (op for op in program.walk() if isinstance(op, loom.OperationOp))
        stay: Axes = [None] * len(op.in_reads)
        choices = [[None, *_axes(op, read)] for read in op.in_reads]
        try:
            whole = seconds(self.predict(program, False))
            tried = self._tried(program, choices, free, whole)
            near = NEAR * min(tried.values())
            alike = [axes for axes, taken in tried.items() if taken <= near]
            best = max(alike, key=lambda axes: (_folded(op, axes), -tried[axes]))
            if tried[best] * CLEAR <= whole:
                return best
            if tried[best] >= whole:
                return stay
            turned = self._seconds(program, best, free, chosen=True) * GAIN
            return best if turned <= seconds(self.predict(program, True, turned)) else stay
        except TapestryError:
            return stay  # What it has no kernel for is said where it is lowered.

    def _tried(
        self, program: ModuleOp, choices: Sequence[Sequence[int | None]], free: Free, whole: float
    ) -> dict[tuple[int | None, ...], float]:
        """What an operation takes with its inputs turned: all ways, or of many one after another.

        Then each input is turned as is best beside those before it, or stays. As they are, it takes
        the `whole`.
        """
        every = [axes for axes in product(*choices) if any(axis is not None for axis in axes)]
        if prod(map(len, choices)) <= _MANY:
            return {axes: self._seconds(program, axes, free, chosen=False) for axes in every}
        best: tuple[int | None, ...] = (None,) * len(choices)
        tried: dict[tuple[int | None, ...], float] = {best: whole}
        for place, axes in enumerate(choices):
            turned = [(*best[:place], axis, *best[place + 1 :]) for axis in axes[1:]]
            tried |= {one: self._seconds(program, one, free, chosen=False) for one in turned}
            best = min((best, *turned), key=tried.__getitem__)
        del tried[(None,) * len(choices)]
        return tried

    def _seconds(self, program: ModuleOp, axes: Axes, free: Free, *, chosen: bool) -> float:
        own = program.clone()
        (op,) = (op for op in own.walk() if isinstance(op, loom.OperationOp))
        apply_layouts(own, {op: axes})
        give_as_wanted(own, free)
        return seconds(self.predict(own, chosen))


def free_inputs(
    op: loom.OperationOp | loom.FusedOp,
    written: Collection[tuple[SSAValue, int]] = (),
    without: loom.OperationOp | None = None,
) -> Free:
    """Which inputs of what `alone` makes of an operation may lie otherwise without a copy.

    Those are inputs that are `written` so, or may be: for all readers, but the one that they are
    `without`. A group is seen as what it is cut into.
    """
    cut = op if isinstance(op, loom.FusedOp) else None
    found: set[tuple[int, int]] = set()
    for number, value in enumerate(dict.fromkeys(op.operands)):
        readers = readers_of(value, cut)
        others = None if readers is None else [one for one in readers if one[0] is not without]
        for axis in range(tensor_type(value).box.rank - 1):
            may_be = others is not None and written_well(value, others, axis)
            if may_be or (value, axis) in written:
                found.add((number, axis))
    return frozenset(found)


def give_as_wanted(program: ModuleOp, free: Free) -> None:
    """Make what is copied of inputs that may lie so without a copy inputs themselves."""
    (main,) = (op for op in program.body.block.ops if isinstance(op, func.FuncOp))
    block = main.body.block
    wanted = {(block.args[number], axis) for number, axis in free}
    for op in list(block.ops):
        order = order_of_copy(op) if isinstance(op, loom.OperationOp) else None
        if order is not None and (op.operands[0], order[-1]) in wanted:
            given = block.insert_arg(op.results[0].type, len(block.args))
            given.location = NameLoc(StringAttr(f"given{given.index}"), UNKNOWN_LOC)
            given.name_hint = op.results[0].name_hint
            Rewriter.replace_op(op, [], [given])
    main.update_function_type()


def written_well(value: SSAValue, readers: Sequence[Reader], last: int) -> bool:
    """Whether kernels are as good with what they write or read with another axis last.

    Tiles of products and maps lie along any axis, and so do those that a fold is unwrapped in;
    scans walk their points as they read them, and so do folds, which may write another axis last
    where what they read is written so too. Products read what lies along `last` as well where that
    is in whole vectors.
    """
    writer = value.owner
    assert isinstance(writer, loom.OperationOp)
    if SCHEDULE in writer.attributes:
        return False
    if not all(_reads_well(reader, read, last) for reader, read in readers):
        return False
    return not walks_points(writer) or _follows_well(writer, last)


def walks_points(op: loom.OperationOp) -> bool:
    """Whether an operation walks its points as it reads them: maps and products do not."""
    return set(op.kinds) != {"map"} and find_contraction(map_fold_of(op)) is None


def _follows_well(op: loom.OperationOp, last: int) -> bool:
    """Whether a fold of windows may read whole vectors along the axis that it is to write last.

    What it reads is written so by others then, for all readers: nothing is copied for it.
    """
    if len(op.outs) != 1 or op.scan_dim is not None or op.partition is not None:
        return False
    axes = axes_along(op, 0, last)
    return axes is not None and all(
        axis is None or _may_read(op, read, axis)
        for read, axis in zip(op.in_reads, axes, strict=True)
    )


def _may_read(op: loom.OperationOp, read: Read, axis: int) -> bool:
    """Whether an operation may read whole vectors of what another one writes with an axis last."""
    readers = readers_of(read.value)
    if readers is None or not read.projection.is_unit or not _in_vectors(op, read, axis):
        return False
    return written_well(read.value, [one for one in readers if one[0] is not op], axis)


def _reads_well(op: loom.OperationOp, value: SSAValue, last: int) -> bool:
    """Whether a reader of a tensor is as good where an axis of that comes last."""
    if set(op.kinds) == {"map"} or value not in op.ins:
        return True
    if SCHEDULE in op.attributes or find_contraction(map_fold_of(op)) is None:
        return False
    reads = [read for read in op.in_reads if read.value is value]
    return all(may_be_last(read, last) and _in_vectors(op, read, last) for read in reads)


def may_gain(op: loom.OperationOp) -> bool:
    """Whether a product reads badly what it could read well: known without a kernel."""
    if in_group(op) or SCHEDULE in op.attributes or not reads_badly(op):
        return False
    return find_contraction(map_fold_of(op)) is not None


def reads_badly(op: loom.OperationOp) -> bool:
    """Whether an operation reads along no axis in vectors what it could read so along another.

    Of a member of a group that counts which comes from outside.
    """
    reads = [
        read
        for read in op.in_reads
        if not in_group(op) or not isinstance(read.value.owner, loom.OperationOp)
    ]
    return not op.index.is_empty and any(any(True for _ in _axes(op, read)) for read in reads)


def _axes(op: loom.OperationOp, read: Read) -> Iterator[int]:
    """The axes of an input that would be read in vectors if they came last, and the last is not."""
    last = tensor_type(read.value).box.rank - 1
    if last > 0 and not _in_vectors(op, read, last):
        for axis in range(last):
            if may_be_last(read, axis) and _in_vectors(op, read, axis):
                yield axis


def _folded(op: loom.OperationOp, axes: Axes) -> int:
    """How many inputs are read along what is folded."""
    pairs = zip(op.in_reads, axes, strict=True)
    rows = [read.projection.map.matrix[axis] for read, axis in pairs if axis is not None]
    return sum(any(row[d] == 1 and op.index.shape[d] > 1 for d in op.fold_dims) for row in rows)


def _in_vectors(op: loom.OperationOp, read: Read, axis: int) -> bool:
    """Whether neighbours along an axis are neighbours of one dimension, from aligned places on."""
    kind = tensor_type(read.value)
    vector = max(1, VECTOR // byte_size(kind.element_type))
    row, first = read.projection.map.matrix[axis], read.projection.map.offset[axis]
    shape = op.index.shape
    moving = [d for d, step in enumerate(row) if step and shape[d] > 1]
    along = [d for d in moving if row[d] == 1]
    if len(along) != 1 or shape[along[0]] < vector:
        return False
    start = first + sum(step * at for step, at in zip(row, op.index.start, strict=True))
    steps = [row[d] for d in moving if d != along[0]]
    places = (start - kind.box.start[axis], kind.box.shape[axis], *steps)
    return all(place % vector == 0 for place in places)
