"""Inputs of products that lie badly: copied with another axis last, where that is faster.

    %y = loom.operation @conv ... by @add
           ins(%x : (n, m, i, c, k) -> (n, c, i + k), %w : (n, m, i, c, k) -> (m, c, k)) ...

Neighbours in `%x` are at `i + k`, for each `k` at another place: no lane can load several at
once, and nothing can be copied to shared memory ahead of time. With `c` last, both inputs are read
in whole vectors from aligned places (`loom-relayout`); the copy takes what its bytes take. Which
axis, if any, the cost model says, which counts all kernels. What another product or a map computes
is not copied but written so, where only maps and epilogues read it besides: layers pass on what
lies well.

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tapestry.algebra.dtypes import byte_size
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, tensor_type
from tapestry.passes.loom.rebuilding.bodies import in_group
from tapestry.passes.loom.relayout import Axes, apply_layouts, may_be_last
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

NEAR = 1.15
"""Of what is predicted to take about as long, what is folded comes last: as in other layers."""


@dataclass
class LayoutChooser:
    """Chooses which axes come last in what products read; equal ones are looked at once."""

    predict: Predict
    _known: dict[str, Axes] = field(default_factory=dict[str, Axes])

    def chosen(self, module: ModuleOp) -> dict[loom.OperationOp, Axes]:
        """The operations of which some input is to be copied, with the axes that come last."""
        found: dict[loom.OperationOp, Axes] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and _may_gain(op):
                program = alone(op)
                text = canonical(program)
                if text not in self._known:
                    self._known[text] = self._axes(program)
                if any(axis is not None for axis in self._known[text]):
                    found[op] = self._known[text]
        return found

    def _axes(self, program: ModuleOp) -> Axes:
        """The axes that make an operation clearly faster; None of any where none do."""
        (op,) = (op for op in program.walk() if isinstance(op, loom.OperationOp))
        stay: Axes = [None] * len(op.in_reads)
        choices = [[None, *_axes(op, read)] for read in op.in_reads]
        try:
            whole = seconds(self.predict(program, False))
            tried = {
                axes: self._seconds(program, axes, chosen=False)
                for axes in product(*choices)
                if any(axis is not None for axis in axes)
            }
            near = NEAR * min(tried.values())
            alike = [axes for axes, taken in tried.items() if taken <= near]
            best = max(alike, key=lambda axes: (_folded(op, axes), -tried[axes]))
            if tried[best] * CLEAR <= whole:
                return best
            if tried[best] >= whole:
                return stay
            turned = self._seconds(program, best, chosen=True) * GAIN
            return best if turned <= seconds(self.predict(program, True, turned)) else stay
        except TapestryError:
            return stay  # What it has no kernel for is said where it is lowered.

    def _seconds(self, program: ModuleOp, axes: Axes, *, chosen: bool) -> float:
        own = program.clone()
        (op,) = (op for op in own.walk() if isinstance(op, loom.OperationOp))
        apply_layouts(own, {op: axes})
        return seconds(self.predict(own, chosen))


def written_well(value: SSAValue, readers: Sequence[loom.OperationOp]) -> bool:
    """Whether kernels are as good with what they write or read in the order of a copy.

    Tiles of products and maps lie along any axis, and so do those that a fold is unwrapped in;
    folds walk their points as they read them.
    """
    writer = value.owner
    assert isinstance(writer, loom.OperationOp)
    if SCHEDULE in writer.attributes:
        return False
    if any(reader.fold_dims and value in reader.ins for reader in readers):
        return False
    return not writer.fold_dims or find_contraction(map_fold_of(writer)) is not None


def _may_gain(op: loom.OperationOp) -> bool:
    """Whether a product reads badly what it could read well: known without a kernel."""
    if in_group(op) or SCHEDULE in op.attributes or op.index.is_empty:
        return False
    if not any(any(True for _ in _axes(op, read)) for read in op.in_reads):
        return False
    return find_contraction(map_fold_of(op)) is not None


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
