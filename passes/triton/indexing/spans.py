"""How far a loop has to go: the blocks of an axis that may hold points inside the domain.

A causal row `d0 - d1 >= 0` over P (d0) and K (d1) ends the loop over K at the last point of P's
block, and a window's row `d1 - d0 + 2 >= 0` starts it there:

    first = max(0, p_first - 2) // BLOCK_K * BLOCK_K
    for k in range(first, min(length, p_first + BLOCK_P), BLOCK_K)

It is interval arithmetic, row by row, for rows with coefficient 1 or -1 on the dimension that is
walked. What else is outside is masked.

Where several dimensions lie on an axis, its last one is cut to its span at each point of the
others, a *run*. Of grouped queries, whose gradients fold groups (d0) and rows (d1), a loop walks
the rows from the diagonal on, one group after another:

    for k in range(0, groups * run, BLOCK_K):
        d0, d1 = k // run, first + k % run
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tapestry.dialects import triton
from tapestry.passes.triton.indexing.positions import Axis, Positions
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Access, Dim, Space
from tapestry.passes.triton.tiles.builder import TileBuilder

Span = tuple[SSAValue, SSAValue]
"""Where positions start and end."""


def span_inside(
    positions: Positions, axes: Mapping[str, Axis], axis: Axis, span: Span, rows: Sequence[Access]
) -> Span:
    """The part of an axis's span, in whole blocks, outside which every point fails some row."""
    if len(axis.dims) != 1 or axis.block is None:
        return span
    return _last_inside(positions, axes, axis, span, rows)


def _last_inside(
    positions: Positions, axes: Mapping[str, Axis], axis: Axis, span: Span, rows: Sequence[Access]
) -> Span:
    """`span_inside` of a span of an axis's last dimension, at any point of the others."""
    assert axis.block is not None
    tiles, (start, end) = positions.tiles, span
    lowest, highest = start, end
    walked = axis.dims[-1]
    for form, factor in _bounding(positions.space, axis, rows):
        # `rest - k >= 0` holds up to the greatest that rest is, `rest + k >= 0` from its negative.
        if factor == -1:
            after = _bound(positions, axes, form, walked, sign=1, shift=1)
            highest = chosen(tiles, arith.MinSIOp, min, highest, after)
        elif factor == 1:
            first = _bound(positions, axes, form, walked, sign=-1, shift=0)
            lowest = chosen(tiles, arith.MaxSIOp, max, lowest, first)
    if lowest != start:
        size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
        from_zero = start == tiles.position(0)
        skipped = lowest if from_zero else tiles.subtract(lowest, start)
        skipped = tiles.times(tiles.quotient(skipped, size), size)
        lowest = skipped if from_zero else tiles.add(start, skipped)
    return lowest, highest


def run_inside(
    positions: Positions, axes: Mapping[str, Axis], axis: Axis, rows: Sequence[Access]
) -> Span | None:
    """The span that an axis's last dimension has at each point of the others, in whole blocks.

    None where no row bounds it, or a block is longer than it is: then its points are walked as one.
    """
    *outer, walked = axis.dims
    if axis.block is None or not outer or any(dim.cut for dim in axis.dims):
        return None
    block = axis.block
    if positions.tiles.holds(lambda sizes: walked.extent < sizes[block]):
        return None
    if not any(True for _ in _bounding(positions.space, axis, rows)):
        return None
    tiles = positions.tiles
    every = tiles.position(0), tiles.position(walked.extent)
    start, end = _last_inside(positions, axes, axis, every, rows)
    size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
    length = end if start == tiles.position(0) else tiles.subtract(end, start)
    up = tiles.subtract(tiles.add(length, size), tiles.position(1))
    length = tiles.times(tiles.quotient(up, size), size)
    length.name_hint = f"{axis.hint}_run"
    if start != tiles.position(0):
        start.name_hint = f"{axis.hint}_first"
    return start, length


def _bounding(space: Space, axis: Axis, rows: Sequence[Access]) -> Iterator[tuple[Access, int]]:
    """The forms of rows that bound an axis's last dimension alike at all points of the others.

    With each, its factor of that dimension, 1 or -1.
    """
    *outer, walked = (space.dims.index(dim) for dim in axis.dims)
    for row in rows:
        (form,) = (guard.form for guard in row.guards)
        factor = form.coefficients[walked]
        if abs(factor) == 1 and not any(form.coefficients[dim] for dim in outer):
            yield form, factor


def is_bounded(space: Space) -> bool:
    """Whether a row of the domain ends or starts walks along K."""
    walked = space.on(FOLD_AXIS)
    if len(walked) != 1:
        return False
    place = space.dims.index(walked[0])
    forms = [guard.form for row in space.domain for guard in row.guards]
    return any(abs(form.coefficients[place]) == 1 for form in forms)


def grows(space: Space) -> bool:
    """Whether walks along K end later for later rows, by some row of the domain."""
    walked = space.on(FOLD_AXIS)
    if len(walked) != 1:
        return False
    place = space.dims.index(walked[0])
    later = [n for n, dim in enumerate(space.dims) if dim.axis == "M"]
    forms = [guard.form.coefficients for row in space.domain for guard in row.guards]
    return any(form[place] == -1 and any(form[n] > 0 for n in later) for form in forms)


def segments(
    positions: Positions, axes: Mapping[str, Axis], axis: Axis, span: Span, rows: Sequence[Access]
) -> tuple[list[tuple[Span, bool]], list[Access]]:
    """A span cut where blocks are full: (part, whether it is), and the rows that hold in that part.

    In the full part, all points of a block are, and hold in each of those rows. In front of it is
    what is on the boundary of a row that holds from somewhere on, after it what ends.
    """
    tiles, (start, end) = positions.tiles, span
    if len(axis.dims) != 1 or axis.block is None:
        return [(span, False)], []
    walked = axis.dims[0]
    first, last, held = start, positions.span(axis)[1], list[Access]()
    for row in rows:
        (form,) = (guard.form for guard in row.guards)
        factor = form.coefficients[positions.space.dims.index(walked)]
        if factor == -1:
            bound = _bound(positions, axes, form, walked, sign=1, shift=1, greatest=False)
            last = chosen(tiles, arith.MinSIOp, min, last, bound)
        elif factor == 1:
            bound = _bound(positions, axes, form, walked, sign=-1, shift=0, greatest=False)
            first = chosen(tiles, arith.MaxSIOp, max, first, bound)
        else:
            continue
        held.append(row)
    size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
    parts: list[tuple[Span, bool]] = []
    if first != start:
        up = tiles.subtract(tiles.add(first, size), tiles.position(1))
        first = tiles.add(start, _whole_blocks(tiles, up, start, size))
        first = chosen(tiles, arith.MinSIOp, min, first, end)
        parts.append(((start, first), False))
    full = _whole_blocks(tiles, last, first, size)
    full = full if first == tiles.position(0) else tiles.add(first, full)
    if first != tiles.position(0) or _known(last) is None:
        full = chosen(tiles, arith.MaxSIOp, max, full, first)
    full.name_hint = f"{axis.hint}_full"
    return [*parts, ((first, full), True), ((full, end), False)], held


def _whole_blocks(tiles: TileBuilder, to: SSAValue, start: SSAValue, size: SSAValue) -> SSAValue:
    """The points of the whole blocks from a start to somewhere not in front of it."""
    length = to if start == tiles.position(0) else tiles.subtract(to, start)
    return tiles.times(tiles.quotient(length, size), size)


def chosen(
    tiles: TileBuilder,
    op: type[arith.MinSIOp | arith.MaxSIOp],
    choose: Callable[[int, int], int],
    a: SSAValue,
    b: SSAValue,
) -> SSAValue:
    """The smaller or the greater of two positions, now if both are known."""
    numbers = [_known(value) for value in (a, b)]
    if numbers[0] is not None and numbers[1] is not None:
        return tiles.position(choose(numbers[0], numbers[1]))
    return tiles.value(op(a, b))


def _known(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _bound(
    positions: Positions,
    axes: Mapping[str, Axis],
    form: Access,
    walked: Dim,
    *,
    sign: int,
    shift: int,
    greatest: bool = True,
) -> SSAValue:
    """`sign` times the greatest that a form, without its walked term, is in this program; shifted.

    Each term is greatest at one end of its dimension, and least at the other one.
    """
    tiles = positions.tiles
    total: SSAValue | None = None
    constant = sign * form.constant + shift
    for dim, coefficient in zip(positions.space.dims, form.coefficients, strict=True):
        if dim == walked or coefficient == 0:
            continue
        at, beyond = positions.reach(dim, axes[dim.axis])[(coefficient > 0) == greatest]
        factor = sign * coefficient
        constant -= factor * beyond
        if total is not None and factor < 0:
            total = tiles.subtract(total, tiles.times(at, -factor))
        else:
            term = tiles.times(at, factor)
            total = term if total is None else tiles.add(total, term)
    if total is None:
        return tiles.position(constant)
    if constant < 0:
        return tiles.subtract(total, tiles.position(-constant))
    return tiles.add(total, tiles.position(constant)) if constant else total
