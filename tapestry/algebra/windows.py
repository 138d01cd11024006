"""Contractions that read one factor through windows that slide: convolutions and correlations.

    out[n, m, i] = FOLD(add) over c, k of x(n, c, 2 * i + k - 1) * w(m, c, k)

`x` is the signal: along its last axis it is read at an affine combination of a kept dimension and a
folded one. `w`, the kernel, varies along the folded one alone. That, the strides, the dilation and
the padding follow from projections: gradients and transposed convolutions are such sums too, with
other factors as signal and kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from tapestry.algebra.contraction import Contraction, find_contractions
from tapestry.algebra.literals import number_in
from tapestry.algebra.monoids import Monoid
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.zspace import Projection


@dataclass(frozen=True)
class Window:
    """An axis of the signal, which is read at `step * kept + reach * folded` and an offset."""

    axis: int
    kept: int
    folded: int
    step: int
    reach: int


@dataclass(frozen=True)
class Windowed:
    """A sum of products over windows; `signal` and `kernel` are numbers of inputs.

    `batch` dimensions are in both factors and the result, `rows` only in the signal, `columns` only
    in the kernel, `inner` ones are folded; those of windows are in none of them.
    """

    signal: int
    kernel: int
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]
    windows: tuple[Window, ...]

    @property
    def result(self) -> tuple[int, ...]:
        """The kept dimensions that the result varies along, those that windows slide along last."""
        return (*self.batch, *self.rows, *self.columns, *(one.kept for one in self.windows))


def find_windowed(op: loom.OperationOp, monoid: Monoid | None) -> Windowed | None:
    """The sum of products over windows that an operation is, or None.

    It is that when it is one contraction of two inputs as they are read, at all points; when some
    axes of one, the signal, are read along a kept dimension that is the signal's own, with a
    positive step, and a folded one, neither of which moves another of its axes; and when what is
    read outside of the signal along these is zero, and nothing else is read outside.
    """
    products = find_contractions(op, monoid)
    counts = op.inside is None or op.inside.covers(op.index)
    if products is None or len(products) != 1 or not counts:
        return None
    (one,) = products
    left, right = _input(op, one.left), _input(op, one.right)
    if left is None or right is None or left == right:
        return None
    found = _windows(op.in_maps[left], one.rows, one.inner)
    if found:
        windowed = _windowed(one, left, right, one.rows, one.columns, found)
    elif found := _windows(op.in_maps[right], one.columns, one.inner):
        windowed = _windowed(one, right, left, one.columns, one.rows, found)
    else:
        return None
    return windowed if _zero_outside(op, windowed) else None


def _input(op: loom.OperationOp, value: SSAValue) -> int | None:
    """The number of the input that a factor is as it is read."""
    if not isinstance(value, BlockArgument) or value.block is not op.wrap_block:
        return None
    return value.index if op.in_maps[value.index].is_unit else None


def _windows(
    projection: Projection, own: Sequence[int], inner: Sequence[int]
) -> tuple[Window, ...]:
    """The windows that slide along the signal's own dimensions."""
    found: list[Window] = []
    for axis, row in enumerate(projection.map.terms):
        kept = [(factor, dim) for factor, dim in row if dim in own]
        folded = [(factor, dim) for factor, dim in row if dim in inner]
        if len(row) != 2 or len(kept) != 1 or len(folded) != 1 or kept[0][0] < 0:
            continue
        dims = {kept[0][1], folded[0][1]}
        elsewhere = (terms for other, terms in enumerate(projection.map.terms) if other != axis)
        if all(dims.isdisjoint(dim for _, dim in terms) for terms in elsewhere):
            found.append(Window(axis, kept[0][1], folded[0][1], kept[0][0], folded[0][0]))
    return tuple(found)


def _windowed(
    product: Contraction,
    signal: int,
    kernel: int,
    rows: Sequence[int],
    columns: tuple[int, ...],
    windows: tuple[Window, ...],
) -> Windowed:
    used = {dim for window in windows for dim in (window.kept, window.folded)}
    rest = (tuple(dim for dim in dims if dim not in used) for dims in (rows, product.inner))
    own, inner = rest
    return Windowed(signal, kernel, product.batch, own, columns, inner, windows)


def _zero_outside(op: loom.OperationOp, found: Windowed) -> bool:
    """Whether what is read outside of the factors is zeros, along windows."""
    if _outside(op, found.kernel):
        return False
    outside, fill = _outside(op, found.signal), op.in_fills[found.signal]
    zero = fill is not None and number_in(fill) == 0
    return outside <= {window.axis for window in found.windows} and (zero or not outside)


def _outside(op: loom.OperationOp, number: int) -> set[int]:
    """The axes of an input along which some points read outside."""
    box, read = tensor_type(op.ins[number]).box, op.in_maps[number].apply_range(op.index)
    ends = zip(box.start, read.start, read.end, box.end, strict=True)
    return {
        axis for axis, (low, first, last, high) in enumerate(ends) if first < low or last > high
    }
