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
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.bodies import Dims, dependences, moving_dims, needed_operations
from tapestry.dialects import loom, triton
from tapestry.passes.triton.indexing.positions import Axis, Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS, Dim
from tapestry.passes.triton.kernels.mapfold import MapFold
from tapestry.passes.triton.kernels.writer import KernelWriter
from tapestry.passes.triton.tiles.bodies import write_body
from tapestry.passes.triton.tiles.builder import constant_value
from tapestry.passes.triton.tiles.folds import FoldState, State, builtin_of
from tapestry.passes.triton.tiles.narrow import shifted


@dataclass(frozen=True)
class Match:
    """A key, of what is read along the fold, and the row that it has to be, by a `condition`.

    The row is an index dimension of the map.
    """

    condition: SSAValue
    key: SSAValue
    dim: int


@dataclass(frozen=True)
class Matching:
    """What has to hold for a point to count: matches, and conditions on the keys besides."""

    matches: tuple[Match, ...]
    conditions: tuple[SSAValue, ...] = ()
    """Of keys and matched rows alone: of a point that matches, they say the same of its key."""


def has_keys(fold: MapFold) -> bool:
    """Whether points of a fold count by their keys, however it is walked."""
    state = None if fold.monoid is None else FoldState.of(fold.monoid)
    return state is not None and find_matching(fold, state) is not None


def find_matching(fold: MapFold, state: FoldState) -> Matching | None:
    """What has to match for a point to count; None where any point may.


    A point counts nothing where every part of what is folded is the monoid's zero.
    """
    if fold.monoid is None or fold.scan_dim is not None or not fold.fold_dims:
        return None
    varies = dependences(fold.wrap, [moving_dims(one.projection) for one in fold.ins])
    folded = frozenset(fold.fold_dims)
    found: list[set[SSAValue]] = []
    for value, zero in zip(loom.yielded(fold.wrap), state.monoid.real_zero, strict=True):
        chosen = value.owner
        if not isinstance(chosen, arith.SelectOp):
            return None
        other = constant_value(chosen.rhs)
        if other is None or other.item() != zero:
            return None
        found.append(set(_conjuncts(chosen.cond)))
    needed = set[SSAValue].intersection(*found) if found else set[SSAValue]()
    ordered = [one for op in fold.wrap.ops for one in op.results if one in needed]

    def is_of_keys(value: SSAValue, dims: Dims) -> bool:
        """Whether a value is of what is read along the fold alone, and some dimensions."""
        ops = needed_operations([value])
        read = {one for op in ops for one in op.operands if one in fold.wrap.args} | {value}
        told = all(varies[one] <= folded for one in read if one in fold.wrap.args)
        return told and varies[value] <= dims and not any(isinstance(o, loom.ReadOp) for o in ops)

    matches: list[Match] = []
    for one in ordered:
        match = _match(one)
        if match is None or match.dim in folded or not varies[match.key]:
            continue
        if is_of_keys(match.key, folded):
            matches.append(match)
    if not matches:
        return None
    rows = folded.union(match.dim for match in matches)
    equal = {match.condition for match in matches}
    others = [one for one in ordered if one not in equal and is_of_keys(one, rows)]
    return Matching(tuple(matches), tuple(others))


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
            return Match(condition, key, row.owner.dimension)
    return None


_EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


def write_matching(
    writer: KernelWriter,
    matching: Matching,
    state: FoldState,
    block: Callable[[], State],
    depth: Axis,
) -> Callable[[Sequence[SSAValue]], State]:
    """What writes the step of a block of K, of carried states: the points of it that match.

    `block` writes what a point of K folds to, over the axis P.
    """
    tiles, positions = writer.tiles, writer.positions
    point = Axis(depth.name, depth.dims, None)
    rows = [_rows(writer, match.dim) for match in matching.matches]
    total, first = _folding(arith.AddiOp, i32), _folding(arith.MinSIOp, tiles.index)

    def step(carried: Sequence[SSAValue]) -> State:
        frame = (FOLD_AXIS,)
        keys, conditions = _of_keys(writer, matching, frame)
        match = positions.frame_mask(frame, frame)
        for key, (start, end) in zip(keys, rows, strict=True):
            match = tiles.both(match, tiles.compare(">=", key, start))
            match = tiles.both(match, tiles.compare("<=", key, end))
        for condition in conditions:
            match = tiles.both(match, condition)
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
        loop.attributes[triton.MATCHES] = _expected(writer, matching.matches)
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
    """As `Positions.reach`, of blocks that end inside runs of rows as well."""
    axis, tiles, positions = writer.axes[dim.axis], writer.tiles, writer.positions
    if axis.block is None or len(axis.dims) == 1:
        return positions.reach(dim, axis)
    start = positions.first(axis)
    size = tiles.once(triton.BlockSizeOp, axis.block, tiles.index)
    ends = [start, tiles.subtract(tiles.add(start, size), tiles.position(1))]
    if inner := axis.dims[axis.dims.index(dim) + 1 :]:
        points = positions.length(replace(axis, dims=inner))
        ends = [tiles.quotient(one, points) for one in ends]
    if dim != axis.dims[0]:
        # Where a block goes on in the next run, it may have any row.
        length = positions.extent(dim)
        single = tiles.compare("==", *(tiles.quotient(one, length) for one in ends))
        rows = [tiles.remainder(one, length) for one in ends]
        any_row = tiles.position(0), tiles.subtract(length, tiles.position(1))
        ends = [tiles.where(single, *pair) for pair in zip(rows, any_row, strict=True)]
    if dim.cut:
        ends = [tiles.add(one, positions.first_of(dim)) for one in ends]
    return [(one, 0) for one in ends]


def _of_keys(
    writer: KernelWriter, matching: Matching, frame: Frame
) -> tuple[list[SSAValue], list[SSAValue]]:
    """Keys over a frame of the axis K alone, and the conditions on them."""
    fold, tiles = writer.fold, writer.tiles
    wanted = [match.key for match in matching.matches]
    needed = needed_operations([*wanted, *matching.conditions])
    used = {operand for op in needed for operand in op.operands} | set(wanted)
    pairs = zip(fold.wrap.args, writer.ins, strict=True)
    ports = {argument: port for argument, port in pairs if argument in used}
    values = writer.load_all(list(ports.values()), list(ports), frame)
    first = needed_operations(wanted)
    writer.evaluate([op for op in fold.wrap.ops if op in first], values, frame)
    keys = [tiles.cast(values[key], i64) for key in wanted]
    # A row that a point matches is its key.
    rows = {match.dim: key for match, key in zip(matching.matches, keys, strict=True)}
    later = [op for op in fold.wrap.ops if op in needed and op not in first]
    write_body(tiles, later, values, rows.__getitem__, writer.reader(frame))
    return keys, [values[one] for one in matching.conditions]


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
            numbers = dim.extent, 0 if alone else inner, int(dim is not dims[0])
            found += [IntegerAttr(number, i64) for number in numbers]
    return ArrayAttr(found)
