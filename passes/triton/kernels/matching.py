"""Folds of which few points count: those whose key is one of a program's rows.

    chosen = where(ids[k] == row, gradient[k, column], 0)       summed along k

becomes, where a schedule says `visits = matching`,

    for k_start in range(0, 8192, BLOCK_K):
        k = k_start + tl.arange(0, BLOCK_K)
        ids = tl.load(ids_ptr + k)
        match = (ids >= row_first) & (ids <= row_last)
        k_2 = -1
        for match_number in range(0, tl.sum(match)):
            k_2 = tl.min(tl.where(match & (k > k_2), k, 8192))
            ...                                     # the point k_2, as any other

A program looks at each key once for all of its rows, and visits what it finds in order: the time is
that of the keys for each block of rows, and of the points that count. Where rows are few, most
points count, and a walk of all of them is faster; the cost model says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.bodies import dependences, moving_dims, needed_operations
from tapestry.dialects import loom, triton
from tapestry.passes.triton.indexing.positions import Axis, Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Dim
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.kernels.writer import KernelWriter
from tapestry.passes.triton.tiles.builder import constant_value
from tapestry.passes.triton.tiles.folds import FoldState, State, builtin_of
from tapestry.passes.triton.tiles.narrow import shifted


@dataclass(frozen=True)
class Match:
    """A key, a value of the wrap's body that varies along the fold, and the row that it has to be:
    an index dimension of the map.
    """

    key: SSAValue
    dim: int


def find_matches(fold: MapFold, state: FoldState) -> tuple[Match, ...]:
    """What has to match for a point to count; empty where any point may.

    A point counts nothing where every part of what is folded is the monoid's zero.
    """
    if fold.monoid is None or fold.scan_dim is not None or not fold.fold_dims:
        return ()
    varies = dependences(fold.wrap, [moving_dims(one.projection) for one in fold.ins])
    folded = frozenset(fold.fold_dims)
    found: list[set[Match]] = []
    for value, zero in zip(loom.yielded(fold.wrap), state.monoid.real_zero, strict=True):
        chosen = value.owner
        if not isinstance(chosen, arith.SelectOp):
            return ()
        other = constant_value(chosen.rhs)
        if other is None or other.item() != zero:
            return ()
        own = set[Match]()
        for one in _conjuncts(chosen.cond):
            match = _match(one)
            if match is None or match.dim in folded or not varies[match.key] <= folded:
                continue
            if varies[match.key] and not _reads(match.key):
                own.add(match)
        found.append(own)
    both = set[Match].intersection(*found) if found else set[Match]()
    return tuple(sorted(both, key=lambda one: one.dim))


def _conjuncts(condition: SSAValue) -> Iterator[SSAValue]:
    owner = condition.owner
    if isinstance(owner, arith.AndIOp) and condition.type == i1:
        yield from _conjuncts(owner.lhs)
        yield from _conjuncts(owner.rhs)
    else:
        yield condition


def _match(condition: SSAValue) -> Match | None:
    """The comparison of a key with a row that a condition is."""
    op = condition.owner
    if not isinstance(op, arith.CmpiOp) or op.predicate.value.data != _EQUAL:
        return None
    for key, row in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if isinstance(row.owner, loom.IndexOp) and not isinstance(key.owner, loom.IndexOp):
            return Match(key, row.owner.dimension)
    return None


_EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


def _reads(key: SSAValue) -> bool:
    """Whether a key is computed of cells that are read where other cells say."""
    return any(isinstance(op, loom.ReadOp) for op in needed_operations([key]))


def write_matching(
    writer: KernelWriter,
    matches: Sequence[Match],
    state: FoldState,
    block: Callable[[], State],
    depth: Axis,
) -> Callable[[Sequence[SSAValue]], State]:
    """What writes the step of a block of K, of carried states: the points of it that match.

    `block` writes what a point of K folds to, over the axis P.
    """
    tiles, positions = writer.tiles, writer.positions
    point = Axis(depth.name, depth.dims, None)
    bounds = [(match.key, *_rows(writer, match.dim)) for match in matches]
    total, first = _folding(arith.AddiOp, i32), _folding(arith.MinSIOp, tiles.index)

    def step(carried: Sequence[SSAValue]) -> State:
        frame = (FOLD_AXIS,)
        values = _keys(writer, [key for key, _, _ in bounds], frame)
        match = positions.frame_mask(frame, frame)
        for key, start, end in bounds:
            at = tiles.cast(values[key], i64)
            match = tiles.both(match, tiles.compare(">=", at, start))
            match = tiles.both(match, tiles.compare("<=", at, end))
        assert match is not None
        match = tiles.spread(match, writer.blocks(frame))
        match.name_hint = "match"
        lanes, beyond = positions.at(depth), positions.span(depth)[1]
        (count,) = total.reduce(tiles, (tiles.cast(match, i32),), 0, ("matches",))
        before = tiles.position(-1)
        body = Block(arg_types=[tiles.index, before.type, *(one.type for one in carried)])
        number, last, *inner = body.args
        number.name_hint = "match_number"
        last.name_hint = f"{depth.hint}_before"
        for argument, value in zip(inner, carried, strict=True):
            argument.name_hint = value.name_hint
        with tiles.inside(body):
            later = tiles.both(match, tiles.compare(">", lanes, last))
            assert later is not None
            places = tiles.where(later, lanes, beyond)
            (found,) = first.reduce(tiles, (places,), 0, (f"{depth.hint}_found",))
            positions.place(point, found)
            made = state.merge(tiles, inner, block())
            tiles.append(scf.YieldOp(found, *made))
        start, one = tiles.position(0), tiles.position(1)
        loop = scf.ForOp(start, tiles.cast(count, tiles.index), one, (before, *carried), body)
        loop.attributes[triton.MATCHES] = _expected(writer, matches)
        tiles.append(loop)
        for result, argument in zip(loop.res[1:], inner, strict=True):
            result.name_hint = argument.name_hint
        return tuple(loop.res[1:])

    return step


def _folding(primitive: type[Operation], element: Attribute) -> FoldState:
    """The fold of numbers by one operation."""
    monoid = builtin_of(primitive, element)
    assert monoid is not None
    return FoldState(monoid, monoid.state)


def _rows(writer: KernelWriter, index_dim: int) -> tuple[SSAValue, SSAValue]:
    """The least and the greatest row of a program along an index dimension."""
    tiles, dim = writer.tiles, writer.space.dim_of(index_dim)
    if dim is None:
        only = tiles.constant(writer.space.constants[index_dim], i64)
        return only, only
    ends: list[SSAValue] = []
    for name, (value, less) in zip(("row_first", "row_last"), _reach(writer, dim), strict=True):
        at = value if not less else tiles.subtract(value, tiles.position(less))
        at = shifted(tiles, tiles.cast(at, i64), dim.origin)
        at.name_hint = at.name_hint or name
        ends.append(at)
    return ends[0], ends[1]


def _reach(writer: KernelWriter, dim: Dim) -> Sequence[tuple[SSAValue, int]]:
    """As `Positions.reach`; of an axis's first dimension, the rows that a block has parts of."""
    axis, tiles = writer.axes[dim.axis], writer.tiles
    if axis.block is None or axis.length is None or len(axis.dims) == 1 or dim != axis.dims[0]:
        return writer.positions.reach(dim, axis)
    inner = tiles.position(axis.length // dim.extent)
    start = writer.positions.first(axis)
    size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
    end = tiles.subtract(tiles.add(start, size), tiles.position(1))
    return [(tiles.quotient(one, inner), 0) for one in (start, end)]


def _keys(writer: KernelWriter, keys: Sequence[SSAValue], frame: Frame) -> dict[SSAValue, SSAValue]:
    """Keys over a frame of the axis K alone."""
    fold, needed = writer.fold, needed_operations(keys)
    used = {operand for op in needed for operand in op.operands} | set(keys)
    pairs = zip(fold.wrap.args, writer.ins, strict=True)
    ports = {argument: port for argument, port in pairs if argument in used}
    values = writer.load_all(list(ports.values()), list(ports), frame)
    inside: list[Operation] = [op for op in fold.wrap.ops if op in needed]
    writer.evaluate(inside, values, frame)
    return values


def _expected(writer: KernelWriter, matches: Sequence[Match]) -> ArrayAttr[IntegerAttr]:
    """Per match what says how many points match a program: see `MATCHES`."""
    found: list[IntegerAttr] = []
    for match in matches:
        dim = writer.space.dim_of(match.dim)
        if dim is not None:
            dims = writer.space.on(dim.axis)
            inner = prod(one.extent for one in dims[dims.index(dim) + 1 :])
            # Without a block, a program is at one row.
            alone = writer.axes[dim.axis].block is None
            found += [IntegerAttr(dim.extent, i64), IntegerAttr(0 if alone else inner, i64)]
    return ArrayAttr(found)
