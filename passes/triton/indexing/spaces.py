"""The index space of an operation as a kernel walks it: dimensions, axes, linear accesses.

A kernel sees buffers as row-major memory, so a projection becomes a linear form: reading
`(d0, d1) -> (d1, d0)` of a 10 x 4 tensor is the offset `1 * d0 + 4 * d1`. Here the forms are made
and the space is made small, with plain integers:

* A dimension that no shard cuts is counted from zero; one of extent 1 disappears.
* Two neighbours that every access reads as one run (`c0 == c1 * extent1`) become one dimension:
  an elementwise operation on a 64 x 32 tensor walks 2048 cells.

A dimension that shards cut keeps its coordinates: its bounds are arguments of the kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tapestry.zspace import Domain, Projection, Range

INT32_LIMIT = 1 << 31

FOLD_AXIS = "K"
"""The tile axis of the fold dimensions."""


@dataclass(frozen=True)
class Dim:
    """A dimension that a kernel walks: index dimension `sources[0]`, then any merged into it.

    Its coordinate runs over [0, extent), or where `cut`, over the bounds that a launch gives.
    `origin` is what to add to the coordinate for the index dimension's own. `axis` names the tile
    axis that it belongs to.
    """

    sources: tuple[int, ...]
    axis: str
    origin: int
    extent: int
    cut: bool
    inner: int = 1

    @property
    def name(self) -> str:
        """`d0`, or `d0_1` when dimension 1 was merged into it."""
        return "d" + "_".join(map(str, self.sources))

    def bounds(self, shard: Range) -> tuple[int, int]:
        """Where the coordinate starts and ends on a shard of the whole index space."""
        outer = self.sources[0]
        return shard.start[outer] * self.inner, shard.end[outer] * self.inner


@dataclass(frozen=True)
class Access:
    """The offset `sum(coefficients * coordinates) + constant` into a buffer, a factor per `Dim`.

    Where a guard does not hold there is no such cell. Where a point selects a box, the offset is of
    its first cell, and the last one lies `reach` further.
    """

    coefficients: tuple[int, ...]
    constant: int
    guards: tuple[Guard, ...] = ()
    reach: int = 0

    @property
    def forms(self) -> tuple[Access, ...]:
        """The linear forms that it is made of: the offset's, then its guards'."""
        return (self, *(guard.form for guard in self.guards))


@dataclass(frozen=True)
class Guard:
    """Where `lower <= form < upper`, of dimension or domain row `row`; None never fails."""

    row: int
    form: Access
    lower: int | None
    upper: int | None

    @property
    def fails(self) -> bool:
        """Whether it holds nowhere, because its form is a constant outside."""
        at = self.form.constant
        below = self.lower is not None and at < self.lower
        above = self.upper is not None and at >= self.upper
        return not any(self.form.coefficients) and (below or above)


@dataclass(frozen=True)
class Space:
    """Dimensions, the accesses over them, and the coordinates of dimensions that disappeared."""

    dims: tuple[Dim, ...]
    ins: tuple[Access, ...]
    extras: tuple[Access, ...]
    outs: tuple[Access, ...]
    constants: Mapping[int, int]
    domain: tuple[Access, ...] = ()
    """Per row of the operation's domain, an access that is guarded by it, and has no offset."""

    def on(self, axis: str) -> tuple[Dim, ...]:
        """The dimensions of a tile axis, outermost first."""
        return tuple(dim for dim in self.dims if dim.axis == axis)

    @property
    def cut_dims(self) -> tuple[Dim, ...]:
        """The dimensions whose bounds a launch gives."""
        return tuple(dim for dim in self.dims if dim.cut)

    def along(self, access: Access) -> frozenset[str]:
        """The tile axes that an access moves along."""
        return frozenset(
            dim.axis
            for form in access.forms
            for dim, coefficient in zip(self.dims, form.coefficients, strict=True)
            if coefficient
        )

    def lies_along(self, axis: str, other: str) -> bool:
        """Whether neighbours in memory are neighbours along `axis` rather than along another one.

        Asked of what moves along both: whose smallest steps are along `axis`, for most tensors.
        """
        votes = 0
        for access in (*self.ins, *self.extras, *self.outs):
            steps = [
                min(
                    (
                        abs(c)
                        for c, d in zip(access.coefficients, self.dims, strict=True)
                        if c and d.axis == name
                    ),
                    default=0,
                )
                for name in (axis, other)
            ]
            if 0 not in steps:
                votes += 1 if steps[0] < steps[1] else -1
        return votes > 0

    def dim_of(self, index_dim: int) -> Dim | None:
        """The dimension that walks an index dimension on its own; None when it disappeared."""
        return next((dim for dim in self.dims if dim.sources == (index_dim,)), None)


def linear_access(projection: Projection, box: Range, dims: Sequence[int], rank: int) -> Access:
    """The offset a projection makes into the row-major array that stores `box`.

    `dims` says which of `rank` index dimensions each input of the projection is.
    """
    factors = [0] * rank
    constant = 0
    reach = 0
    for row, step in enumerate(row_major(box.shape)):
        reach += max(projection.shape[row] - 1, 0) * step
        constant += (projection.map.offset[row] - box.start[row]) * step
        for position, coefficient in enumerate(projection.map.matrix[row]):
            factors[dims[position]] += coefficient * step
    return Access(tuple(factors), constant, reach=reach)


def clipped_access(projection: Projection, box: Range, dims: Sequence[int], index: Range) -> Access:
    """`linear_access` of a projection that may leave `box` over an index range, guarded there."""
    access = linear_access(projection, box, dims, index.rank)
    reached = projection.apply_range(index.select(dims))
    guards: list[Guard] = []
    for row, (start, end) in enumerate(box.sides):
        # An empty fold still loads what does not move along it.
        lower = 0 if index.is_empty or reached.start[row] < start else None
        upper = end - start if index.is_empty or reached.end[row] > end else None
        if lower is not None or upper is not None:
            line = Range((start,), (end,))
            form = linear_access(projection.select_outputs([row]), line, dims, index.rank)
            guards.append(Guard(row, form, lower, upper))
    return replace(access, guards=tuple(guards))


def domain_accesses(domain: Domain | None) -> list[Access]:
    """For each row of a domain, an access of no cell that the row guards."""
    if domain is None:
        return []
    rows = zip(domain.rows.matrix, domain.rows.offset, strict=True)
    nothing = Access((0,) * domain.rank, 0)
    guards = [Guard(n, Access(row, b), 0, None) for n, (row, b) in enumerate(rows)]
    return [replace(nothing, guards=(guard,)) for guard in guards]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """How many cells apart neighbours along each dimension are."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def make_space(
    index: Range,
    axes: Sequence[str],
    walked: Sequence[str],
    cut: Collection[int],
    ins: Sequence[Access],
    extras: Sequence[Access],
    outs: Sequence[Access],
    named: Collection[int],
    domain: Sequence[Access] = (),
    order: Sequence[int] | None = None,
) -> Space:
    """The space of an index range whose dimension d lies on tile axis `axes[d]`.

    Accesses have a coefficient per index dimension. Dimensions in `named` are asked for by
    `loom.index` and are not merged. Each axis in `walked` gets at least one dimension; it walks
    those it has in the given order, the last one fastest.
    """
    groups = (ins, extras, domain, outs)
    accesses = [form for group in groups for access in group for form in access.forms]
    written = sum(len(access.forms) for access in outs)
    dims: list[Dim] = []
    constants: dict[int, int] = {}
    columns: list[list[int]] = []
    moved = [access.constant for access in accesses]
    for d in range(index.rank) if order is None else order:
        axis = axes[d]
        column = [access.coefficients[d] for access in accesses]
        if d in cut:
            dims.append(Dim((d,), axis, 0, index.shape[d], cut=True))
        else:
            start = index.start[d]
            moved = [m + c * start for m, c in zip(moved, column, strict=True)]
            constants[d] = start
            if index.shape[d] == 1:
                continue
            dims.append(Dim((d,), axis, start, index.shape[d], cut=False))
        columns.append(column)
    for axis in walked:
        if all(dim.axis != axis for dim in dims):
            # Nothing is left to walk: one point, which outputs are written along (not the fold's).
            dims.append(Dim((), axis, 0, 1, cut=False))
            along = 0 if axis == FOLD_AXIS else 1
            columns.append([0] * (len(accesses) - written) + [along] * written)
    dims, columns = _merge_neighbours(dims, columns, named)
    forms = iter(
        Access(tuple(column[n] for column in columns), moved[n]) for n in range(len(accesses))
    )

    def made(group: Sequence[Access]) -> tuple[Access, ...]:
        return tuple(_with_forms(access, forms) for access in group)

    read, more, rows, wrote = map(made, groups)
    return Space(tuple(dims), read, more, wrote, constants, rows)


def _with_forms(access: Access, forms: Iterator[Access]) -> Access:
    """An access made of the next forms."""
    offset = next(forms)
    guards = tuple(replace(guard, form=next(forms)) for guard in access.guards)
    return replace(offset, guards=guards, reach=access.reach)


def _merge_neighbours(
    dims: list[Dim], columns: list[list[int]], named: Collection[int]
) -> tuple[list[Dim], list[list[int]]]:
    """Join each dimension to its outer neighbour on the same axis where all accesses allow it."""
    kept: list[Dim] = []
    factors: list[list[int]] = []
    for dim, column in zip(dims, columns, strict=True):
        place = max((n for n, other in enumerate(kept) if other.axis == dim.axis), default=None)
        if place is not None:
            outer = kept[place]
            run = [c * dim.extent for c in column]
            free = not any(source in named for source in (*outer.sources, *dim.sources))
            if factors[place] == run and not dim.cut and free:
                kept[place] = replace(
                    outer,
                    sources=(*outer.sources, *dim.sources),
                    extent=outer.extent * dim.extent,
                    inner=outer.inner * dim.extent,
                )
                factors[place] = column
                continue
        kept.append(dim)
        factors.append(column)
    return kept, factors


def needs_64_bits(space: Space, index: Range) -> bool:
    """Whether some position or offset does not fit 32 bits."""
    reach = [
        max(abs(end) for d in dim.sources for end in (index.start[d], index.end[d])) * dim.inner
        if dim.cut
        else dim.extent
        for dim in space.dims
    ]
    axes = {dim.axis for dim in space.dims}
    lengths = [prod(dim.extent for dim in space.on(axis)) for axis in axes]
    offsets = [
        sum(abs(c) * r for c, r in zip(form.coefficients, reach, strict=True))
        + abs(form.constant)
        + form.reach
        for access in (*space.ins, *space.extras, *space.outs, *space.domain)
        for form in access.forms
    ]
    # Positions are rounded up to whole blocks, which are far smaller than this margin.
    return max((*reach, *lengths, *offsets), default=0) >= INT32_LIMIT - (1 << 20)
