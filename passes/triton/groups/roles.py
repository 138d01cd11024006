"""What each dimension of a group is for in a kernel: the tile axis that it lies on.

    B   one program each          M   rows: a block per program        K   folded: walked in blocks
    N   columns: resident         C   folded inside of one member      (attention: b h, i, j, d, c)

Columns that no member has together are axes of their own, N, N1, ...: the gradients of keys and
those of values are folded along the same queries, each over columns that the other does not have.
Only projections and bodies decide. K is what the group's last fold folds, and every fold over the
same dimensions is *carried* along it. What other members fold lies on an axis of its own, C. The
other dimensions follow from products: those that only one side of a product moves along are rows
or columns, those that all products have on both sides are batches. Where nothing folds, all
dimensions are rows.

A fold that reads a carried one over K comes after it: it is of a later *phase*. Phase p is the p-th
walk along K, which starts when all folds of the phases before are finished (a softmax is written
in the second walk, after its sums). Members that a walk needs, and that are no folds over K, are
written again in it; with K in one block (no loop) all walks share what was written.

Tiles have two axes. A fold of what varies along two others is that of a product, and a dot; or its
axis is walked point by point, as for a sum of distances `(q[i, c] - k[j, c]) ^ 2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from tapestry.algebra.bodies import Dims, dependences
from tapestry.algebra.parts import closed
from tapestry.dialects import loom
from tapestry.passes.triton.groups.folding import Folding
from tapestry.passes.triton.groups.group import Group, Inner, Member, NotOneKernelError
from tapestry.passes.triton.indexing.positions import Frame
from tapestry.passes.triton.indexing.spaces import FOLD_AXIS
from tapestry.passes.triton.kernels.products import Product, find_product

_BATCH, _ROWS, _COLUMNS = "B", "M", "N"


@dataclass(frozen=True, eq=False)
class Fold:
    """A member that folds: how, what its parts vary along, and which sums are contractions.

    `products` are of parts, with the body whose value is the product.
    """

    member: Member
    folding: Folding
    varying: tuple[Dims, ...]
    products: Mapping[int, Product]
    counts: frozenset[int] = frozenset()
    """The parts to which all points add the same."""

    @property
    def folded(self) -> Dims:
        """The group's dimensions that are folded."""
        return self.member.fold_dims


@dataclass(frozen=True, eq=False)
class Roles:
    """The tile axis of each dimension, the folds by member, and the phase of each member."""

    group: Group
    axes: tuple[str, ...]
    folds: Mapping[int, Fold]
    phases: tuple[int, ...]
    points: frozenset[str] = frozenset()
    """Axes that are walked point by point: tiles do not have them."""
    has_rows: bool = True
    """Whether tiles have rows; else a program has one, and what varies along that alone is a
    number."""

    @property
    def scalar(self) -> frozenset[str]:
        """The axes along which a program is at one point at a time."""
        return self.points | {_BATCH}

    @property
    def carried(self) -> tuple[int, ...]:
        """The members that fold along K."""
        return tuple(n for n, fold in self.folds.items() if self.axis_of(fold) == FOLD_AXIS)

    def axis_of(self, fold: Fold) -> str:
        """The axis that a fold is along."""
        return self.axes[min(fold.folded)]

    def frame(self, dims: Dims, *more: str) -> Frame:
        """The axes of a tile that varies along some dimensions, and along `more` axes, in order."""
        found = ({self.axes[d] for d in self.group.has_extent(dims)} | set(more)) - self.points
        return tuple(axis for axis in self.order if axis in found)

    @property
    def order(self) -> tuple[str, ...]:
        """The axes of tiles, in the order in which tiles have them."""
        inner = sorted({a for a in self.axes if a.startswith("C")})
        return (_ROWS, *inner, FOLD_AXIS, *self.columns)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The axes of columns."""
        return tuple(sorted({a for a in self.axes if a.startswith(_COLUMNS)}))


def varying(
    group: Group, member: Member, body: Block, more: Sequence[Dims]
) -> dict[SSAValue, Dims]:
    """What the values of a body vary along that takes what wrap takes, and `more`."""
    arguments = [*group.argument_dims(member), *more]
    place = dict(enumerate(member.dims))
    found = dependences(body, arguments, place)
    return {value: group.has_extent(dims) for value, dims in found.items()}


def assign(group: Group) -> Roles:
    """The roles of a group's dimensions; NotOneKernelError where tiles of two axes do not do."""
    folds = {n: _fold(group, m) for n, m in enumerate(group.members) if m.fold.monoid is not None}
    if not folds:
        return Roles(group, (_ROWS,) * group.index.rank, {}, (0,) * len(group.members))
    last = folds[max(folds)].folded
    axes: list[str | None] = [None] * group.index.rank
    inner: dict[Dims, str] = {}
    for fold in folds.values():
        if fold.folded == last:
            axis = FOLD_AXIS
        elif fold.folded in inner:
            axis = inner[fold.folded]
        elif not fold.folded.isdisjoint(last) or any(axes[d] is not None for d in fold.folded):
            raise NotOneKernelError(
                f"@{fold.member.fold.name} folds some of the dimensions that another member folds"
            )
        else:
            axis = inner[fold.folded] = f"C{len(inner)}" if inner else "C"
        for dim in fold.folded:
            axes[dim] = axis
    _place_products(folds, axes)
    multiplied = any(fold.products for fold in folds.values())
    own = frozenset[int]() if multiplied else _own_columns(folds, last)
    for dim in own:
        axes[dim] = _COLUMNS
    unplaced = _BATCH if multiplied or own else _ROWS
    done = _columns_apart(group, tuple(axis or unplaced for axis in axes))
    phases = _phases(group, folds, last)
    return _with_points(Roles(group, done, folds, phases, has_rows=not own))


def _own_columns(folds: Mapping[int, Fold], last: Dims) -> Dims:
    """The dimensions along which only some of the parts vary that are folded along K.

    Were they rows, as the others', what the other parts fold would be folded again for each.
    """
    parts = [
        dims
        for fold in folds.values()
        if fold.folded == last
        for part, dims in enumerate(fold.varying)
        if part not in fold.counts
    ]
    every = frozenset[int]().union(*parts)
    return frozenset(dim for dim in every if any(dim not in dims for dims in parts))


def _with_points(roles: Roles) -> Roles:
    """The roles where tiles have two axes at most: folds that would need three go point by point.

    Carried folds come first; where K is walked so, inner folds have one axis less to hold.
    """
    for number in (*roles.carried, *(n for n in roles.folds if n not in roles.carried)):
        fold = roles.folds[number]
        axis = roles.axis_of(fold)
        products = {
            part: product
            for part, product in fold.products.items()
            if product.is_dot and roles.frame(product.left_dims) and roles.frame(product.right_dims)
        }
        tiles = [roles.frame(dims) for dims in fold.varying]
        wide = [len({*t, axis}) > 2 for part, t in enumerate(tiles) if part not in products]
        if any(wide):
            products = {}
            roles = replace(roles, points=roles.points | {axis})
        folds = {**roles.folds, number: replace(fold, products=products)}
        roles = replace(roles, folds=folds)
    return roles


def _fold(group: Group, member: Member) -> Fold:
    fold = member.fold
    assert fold.monoid is not None
    if fold.scan_dim is not None:
        raise NotOneKernelError(f"@{fold.name} scans")
    if not fold.monoid.commutative:
        raise NotOneKernelError(f"@{fold.name} folds by a monoid that does not commute")
    if not member.fold_dims:
        raise NotOneKernelError(f"@{fold.name} folds no dimension")
    folding = Folding.of(fold.monoid, fold.wrap)
    folded, inside = member.fold_dims, _domain_dims(group, member)
    wraps = varying(group, member, fold.wrap, [])
    found = [wraps[value] | inside for value in loom.yielded(fold.wrap)]
    whole = closed(folding.monoid, found)
    for cluster in folding.clusters:
        # The parts of a cluster are folded as tiles of one shape.
        joint = frozenset[int]().union(*(whole[part] for part in cluster.parts))
        for part in cluster.parts:
            whole[part] = joint
    products: dict[int, Product] = {}
    for part, body, value in _summed(folding, fold.wrap):
        more = [whole[p] | folded for p in folding.plain] + [
            whole[p] - folded for p in folding.plain
        ]
        known = varying(group, member, body, more if body is not fold.wrap else [])
        product = find_product(value, known, folded)
        if product is not None:
            products[part] = product
    kept = tuple(dims - folded for dims in whole)
    counts = frozenset(part for part, dims in enumerate(whole) if not dims)
    return Fold(member, folding, kept, products, counts)


def _summed(folding: Folding, wrap: Block) -> Iterator[tuple[int, Block, SSAValue]]:
    """The parts that are sums, with a body and its value that is what a point adds."""
    for cluster in folding.clusters:
        monoid = cluster.state.monoid
        if monoid.primitive is arith.AddfOp and monoid.zero == (0.0,):
            (part,) = cluster.parts
            yield part, wrap, loom.yielded(wrap)[part]
    for addend in folding.addends:
        yield addend.part, addend.body, addend.value


def _domain_dims(group: Group, member: Member) -> Dims:
    """The dimensions along which it differs which points a member folds."""
    rows = group.rows[group.members.index(member)]
    return group.has_extent(
        frozenset(dim for terms, _ in rows for dim, factor in enumerate(terms) if factor)
    )


def _place_products(folds: Mapping[int, Fold], axes: list[str | None]) -> None:
    """Lay the dimensions that products tell apart on rows and columns.

    The last folds say first; what is on K already makes the other side of a product rows.
    """
    common: Dims | None = None
    for fold in folds.values():
        if {axes[d] for d in fold.folded} == {FOLD_AXIS}:
            for dims in fold.varying:
                common = dims if common is None else common & dims
    assert common is not None
    for fold in sorted(folds.values(), key=lambda f: {axes[d] for d in f.folded} != {FOLD_AXIS}):
        for product in fold.products.values():
            # What an earlier product has on both sides is one program each, here as well.
            left, right = product.left_dims, product.right_dims
            sides = [{d for d in side if axes[d] != _BATCH} for side in (left, right)]
            known = [{axis for d in side if (axis := axes[d]) is not None} for side in sides]
            if not known[0] and not known[1]:
                # What every part varies along are rows.
                turned = sides[1] <= common and not sides[0] <= common
                known = [{_COLUMNS}, {_ROWS}] if turned else [{_ROWS}, {_COLUMNS}]
            for own, other in ((0, 1), (1, 0)):
                if not known[own]:
                    # A tile that is folded along K or C has rows on its other axis.
                    known[own] = {_COLUMNS} if known[other] == {_ROWS} else {_ROWS}
            for side, axis in zip(sides, known, strict=True):
                if len(axis) != 1:
                    raise NotOneKernelError(
                        f"one side of a product of @{fold.member.fold.name} moves along both "
                        + " and ".join(sorted(axis))
                    )
                (name,) = axis
                # Only what is folded lies on an axis that is; what a side has beside it, programs.
                mapped = name if name in (_ROWS, _COLUMNS) else _BATCH
                for dim in side:
                    axes[dim] = axes[dim] or mapped
            for dim in product.batch:
                axes[dim] = axes[dim] or _BATCH


def _columns_apart(group: Group, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The axes, where columns that no member has together lie on axes of their own."""
    columns = group.has_extent(frozenset(d for d, axis in enumerate(axes) if axis == _COLUMNS))
    classes: list[Dims] = []
    for member in group.members:
        joined = columns & frozenset(member.dims)
        for other in [one for one in classes if not one.isdisjoint(joined)]:
            classes.remove(other)
            joined |= other
        if joined:
            classes.append(joined)
    placed = list(axes)
    for number, dims in enumerate(sorted(classes, key=min)):
        for dim in dims:
            placed[dim] = f"{_COLUMNS}{number}" if number else _COLUMNS
    return tuple(placed)


def _phases(group: Group, folds: Mapping[int, Fold], last: Dims) -> tuple[int, ...]:
    """Per member, how many walks along K are finished before it can be folded, or written.

    What finishes a fold is needed after its own walk: it may come from the same one.
    """
    phases: list[int] = []
    ready: list[int] = []
    for number, member in enumerate(group.members):
        wrapped = len(member.fold.ins)
        first, then = (
            max((ready[s.member] for s in sources if isinstance(s, Inner)), default=0)
            for sources in (member.sources[:wrapped], member.sources[wrapped:])
        )
        carried = number in folds and folds[number].folded == last
        phases.append(first)
        ready.append(max(first + carried, then))
    return tuple(phases)
