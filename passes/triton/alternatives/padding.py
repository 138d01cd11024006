"""Products that fold too few neighbours to read them whole: zeros go after them, if that is faster.

    %y = loom.operation @conv ... fold (c, k, l) by @add          three channels, 7 x 7 places
           ins(%x : (n, m, i, j, c, k, l) -> (n, c, 2 * i + k, 2 * j + l), ...) ...

Neighbours in `%x` are at other places for each `l`, so cells of 16 bits are loaded one by one, each
masked on its own, and none is copied to shared memory ahead of time. Channels last, a place begins
at a multiple of three cells. With a fourth channel of zeros (`loom-pad-fold`) it is 8 bytes, which
are copied at once: 196 points are folded rather than 147. So rows of an odd number of cells begin
at multiples of 16 bytes. Whether it pays, the cost model says, which counts the copies.

In and out: loom. What has a schedule is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from tapestry.algebra.dtypes import byte_size
from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.passes.loom.pad_fold import Padding, apply_paddings, padded_axes
from tapestry.passes.triton.alternatives.alone import alone, canonical
from tapestry.passes.triton.alternatives.splitting import Predict, seconds
from tapestry.passes.triton.cost.factors import ASYNCHRONOUS
from tapestry.passes.triton.cost.neighbours import VECTOR
from tapestry.passes.triton.kernels.contraction import find_contraction
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.schedules.task import SCHEDULE

GAIN = 1.15
"""How many times as fast an operation has to be predicted to be, its copies counted."""


@dataclass
class PaddingChooser:
    """Chooses which products fold zeros as well; equal ones are looked at once."""

    predict: Predict
    _known: dict[str, Padding | None] = field(default_factory=dict[str, "Padding | None"])

    def chosen(self, module: ModuleOp) -> dict[loom.OperationOp, Padding]:
        """The operations that are to fold more points: of which dimension, and how many."""
        found: dict[loom.OperationOp, Padding] = {}
        for op in module.walk():
            if isinstance(op, loom.OperationOp) and any(True for _ in paddings(op)):
                program = alone(op)
                text = canonical(program)
                if text not in self._known:
                    self._known[text] = self._padding(program)
                padding = self._known[text]
                if padding is not None:
                    found[op] = padding
        return found

    def _padding(self, program: ModuleOp) -> Padding | None:
        """What makes an operation clearly faster; None if nothing does."""
        op = _operation(program)
        try:
            whole = seconds(self.predict(program, False))
            tried = {one: self._seconds(program, one, chosen=False) for one in paddings(op)}
            best = min(tried, key=tried.__getitem__)
            if tried[best] >= whole:
                return None
            padded = self._seconds(program, best, chosen=True) * GAIN
            return best if padded <= seconds(self.predict(program, True, padded)) else None
        except TapestryError:
            return None  # What it has no kernel for is said where it is lowered.

    def _seconds(self, program: ModuleOp, padding: Padding, *, chosen: bool) -> float:
        own = program.clone()
        apply_paddings(own, {_operation(own): padding})
        return seconds(self.predict(own, chosen))


def paddings(op: loom.OperationOp) -> Iterator[Padding]:
    """The dimensions of a product that may be longer, and how long more is moved at once for it.

    That is the least power of two of cells, or whole vectors where there is more than one. What is
    a multiple of vectors already need not be: how it lies is another question (`layouts.py`).
    """
    if SCHEDULE in op.attributes or not op.fold_dims:
        return
    for dim in op.fold_dims:
        if padded_axes(op, dim) is None:
            continue
        cell = max(byte_size(tensor_type(read.value).element_type) for read in op.in_reads)
        vector, side = max(1, VECTOR // cell), op.index.shape[dim]
        extent = min(1 << (side - 1).bit_length(), -(-side // vector) * vector)
        gains = extent > side > 1 and extent * cell > ASYNCHRONOUS
        if gains and find_contraction(map_fold_of(op)) is not None:
            yield dim, extent


def _operation(program: ModuleOp) -> loom.OperationOp:
    """The operation of a program of one."""
    (op,) = (op for op in program.walk() if isinstance(op, loom.OperationOp))
    return op
