"""A sum of products as `tl.dot`: its sides, what of them is masked, and in which type they are.

    acc = tl.dot(p.to(tl.float16), v, acc)

Points that are not folded must add zero: one side is zero there, and the other finite. A side is
zero by itself where a factor of it vanishes (`exp(s - m)` where `s` is masked to -inf), or where it
is loaded and nothing is there.

16-bit cells that the body only widens stay as they are: their products are exact in the float32
that a matrix unit accumulates in. Beside such a side, `numerics=mixed` rounds a computed one to its
type, where the sum ends in 16 bits. One that is not known to fit float16 is written in units of its
own (see `units.py`), or, where there can be none (`FoldWriter`), rounded to TF32, which has as many
digits and the range of float32. Otherwise both are float32, or float64 where that is multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, f16, f32
from xdsl.ir import Block, BlockArgument, SSAValue

from tapestry.algebra.bodies import Dims, needed_operations
from tapestry.algebra.dtypes import is_half
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import element_of
from tapestry.passes.triton.groups.folding import greatest_weight, vanishes
from tapestry.passes.triton.groups.group import Group, Inner, NotOneKernelError
from tapestry.passes.triton.groups.members import Given, Members
from tapestry.passes.triton.groups.units import in_units
from tapestry.passes.triton.indexing.positions import Frame
from tapestry.passes.triton.kernels.assumptions import is_finite, keeps_finite
from tapestry.passes.triton.kernels.products import Product, summed_type, unwidened
from tapestry.passes.triton.tiles.builder import number

_GREATEST = 2.0**15
"""A size that float16 has, also rounded."""

Side = tuple[Sequence[SSAValue], Frame]
"""Factors, and the axes of the tile that their product is."""


@dataclass(frozen=True, eq=False)
class Dot:
    """Writes contractions of one fold of a group along an axis.

    `given` is what the body's arguments are, `zeros` what some are where points are masked, and
    `maxima` is as in `greatest_weight`.
    """

    members: Members
    member: int
    axis: str
    body: Block
    given: Given
    zeros: Mapping[SSAValue, float]
    maxima: Mapping[SSAValue, SSAValue]

    def write(
        self, product: Product, frame: Frame, part: int, acc: SSAValue, name: str
    ) -> SSAValue:
        """`acc` plus the sum of a product, over a frame of rows and columns."""
        options, tiles = self.members.options, self.members.tiles
        sides = self._sides(product, frame)
        a, b = self._both(sides)
        kinds, precision = [element_of(a), element_of(b)], options.precision
        if kinds[0] != kinds[1]:
            half = kinds[0] if is_half(kinds[0]) else kinds[1]
            computed = sides[kinds[0] == half][0]
            bounded = isinstance(half, BFloat16Type) or _fits(computed, self.maxima)
            stored = ends_in_half(self.members.group, self.member, part)
            kind = half if options.rounds and bounded and stored else f32
            if options.rounds and stored and not bounded:
                precision = "tf32"
            a, b = tiles.cast(a, kind), tiles.cast(b, kind)
        return self._summed(sides, a, b, acc, precision, name)

    def write_in_units(
        self, product: Product, frame: Frame, acc: SSAValue, unit: SSAValue | None, name: str
    ) -> tuple[SSAValue, SSAValue]:
        """As `write`, of sums in units: the new sum, and its units; None are those of no points.

        Legal where one side is float32 and the other float16, and nothing reads the sum before it
        is finished and multiplied by its units.
        """
        tiles, sides = self.members.tiles, self._sides(product, frame)
        pair = [*self._both(sides)]
        computed = [element_of(side) for side in pair].index(f32)
        assert element_of(pair[1 - computed]) == f16
        folded = sides[computed][1].index(self.axis)
        pair[computed], after, moved = in_units(tiles, pair[computed], folded, unit, name)
        if moved is not None:
            by = tiles.expand(moved, computed, len(frame))
            acc = tiles.once(arith.MulfOp, *tiles.pair(acc, by))
        a, b = pair
        return self._summed(sides, a, b, acc, self.members.options.precision, name), after

    def _sides(self, product: Product, frame: Frame) -> tuple[Side, Side]:
        """The sides of a product: of a tile of rows, and of one of columns."""
        roles = self.members.roles
        if roles.frame(product.left_dims) != frame[:1]:
            product = product.turned()
        sides: tuple[Side, Side] = (
            (product.left, (*roles.frame(product.left_dims), self.axis)),
            (product.right, (self.axis, *roles.frame(product.right_dims))),
        )
        placed = all(
            len(axes) == 2 and roles.frame(frozenset(), *axes) == axes for _, axes in sides
        )
        if len(frame) != 2 or not placed:
            raise NotOneKernelError(f"a product of {self._label} is no product of two tiles")
        return sides

    @property
    def _label(self) -> str:
        return f"@{self.members.group.members[self.member].fold.name}"

    def _both(self, sides: tuple[Side, Side]) -> tuple[SSAValue, SSAValue]:
        """Both sides as tiles, of which one is zero where points are not folded."""
        dead = [any(vanishes(factor, self.zeros) for factor in factors) for factors, _ in sides]
        for zero in {dead.index(True)} if any(dead) else self._masked(sides):
            self._require_finite(sides[1 - zero][0])
        a, b = (self._side(side, dead[n], masks_all=not any(dead)) for n, side in enumerate(sides))
        return a, b

    def _summed(
        self,
        sides: tuple[Side, Side],
        a: SSAValue,
        b: SSAValue,
        acc: SSAValue,
        precision: str,
        name: str,
    ) -> SSAValue:
        """`acc` plus the sum of the products of two tiles."""
        blocks, tiles = self.members.writer.blocks, self.members.tiles
        a, b = tiles.spread(a, blocks(sides[0][1])), tiles.spread(b, blocks(sides[1][1]))
        summed = tiles.cast(acc, summed_type(element_of(a)))
        return tiles.value(triton.DotOp(a, b, summed, precision), name)

    def _side(self, side: Side, dead: bool, *, masks_all: bool) -> SSAValue:
        """One side as a tile, zero where there are no points along the folded axis.

        With `masks_all` it is zero wherever points are not folded.
        """
        factors, axes = side
        members, tiles = self.members, self.members.tiles
        wanted = [unwidened(factors[0])] if len(factors) == 1 else list(factors)
        made = members.evaluate(self.member, self.body, wanted, self.given)
        values = [placed.over(tiles, axes) for placed in made]
        value = values[0]
        for factor in values[1:]:
            value = tiles.once(arith.MulfOp, *tiles.pair(value, factor))
        if dead:
            return value
        mask = members.writer.positions.frame_mask(axes, (self.axis,))
        if mask is not None and len(wanted) == 1 and self._is_loaded(wanted[0]):
            mask = None
        within = {*(axes if masks_all else [self.axis]), *members.roles.scalar}
        space = members.writer.space
        rows = [row for row in members.domain(self.member) if space.along(row) <= within]
        mask = tiles.both(mask, members.writer.positions.inside_all(rows, axes))
        if mask is None:
            return value
        return tiles.where(mask, value, tiles.constant(0.0, element_of(value)))

    def _is_loaded(self, value: SSAValue) -> bool:
        """Whether a value is a cell, and zero where there is none along the folded axis."""
        member = self.members.group.members[self.member]
        if not isinstance(value, BlockArgument) or value.index >= len(member.fold.ins):
            return False
        source = member.sources[value.index]
        if isinstance(source, Inner):
            return False
        port = self.members.writer.ins[source]
        moves = self.axis in self.members.writer.space.along(port.access)
        return moves and port.fill == number(0, port.element)

    def _masked(self, sides: tuple[Side, Side]) -> set[int]:
        """The sides that are masked where points are not folded: each row along the axes of one."""
        axes = [{*frame, *self.members.roles.scalar} for _, frame in sides]
        found: set[int] = set()
        for along in self._partly():
            covering = [side for side in range(2) if along <= axes[side]]
            if not covering:
                raise NotOneKernelError(f"{self._label} folds what no side of its product tells")
            found.update(covering)
        return found

    def _partly(self) -> list[frozenset[str]]:
        """The axes of the domain's rows that leave out points of some rows of a tile alone."""
        every = (self.members.writer.space.along(row) for row in self.members.domain(self.member))
        alone = {self.axis, *self.members.roles.scalar}
        return [along for along in every if self.axis in along and not along <= alone]

    def _require_finite(self, factors: Sequence[SSAValue]) -> None:
        """Factors outside the domain are multiplied by zero: their cells have to be finite."""
        fold = self.members.group.members[self.member].fold
        needed = needed_operations(factors)
        used = {operand for op in needed for operand in op.operands} | set(factors)
        cells = zip(self.body.args, fold.ins, strict=False)
        tensors = [tensor for argument, tensor in cells if argument in used]
        finite = keeps_finite(needed) and all(
            tensor.name in fold.finite and is_finite(tensor.fill) for tensor in tensors
        )
        if self._partly() and self.members.options.is_strict and not finite:
            raise NotOneKernelError(
                f"{self._label} folds part of its points, and a product of zero with the cells of "
                "others is zero only if these are finite (numerics=fast takes them to be)"
            )


def unit_dims(group: Group, member: int, part: int, product: Product) -> Dims | None:
    """The dimensions along which a sum of products is to be in units; None where it needs none.

    It does where the computed side would be float16, beside one that is, but may not fit it.
    """
    sides = (product.left, product.right)
    kinds = [unwidened(side[0]).type if len(side) == 1 else side[0].type for side in sides]
    if set(kinds) != {f16, f32}:
        return None
    computed = kinds.index(f32)
    if _fits(sides[computed], {}) or not ends_in_half(group, member, part):
        return None
    return (product.left_dims, product.right_dims)[computed]


def _fits(factors: Sequence[SSAValue], maxima: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether a product of factors is known to fit float16: a product of weights."""
    sizes = [greatest_weight(factor, maxima) for factor in factors]
    return 0.0 in sizes or prod(sizes) <= _GREATEST


def ends_in_half(group: Group, member: int, part: int) -> bool:
    """Whether all that becomes of a part of a fold's state is stored in 16 bits."""
    fold = group.members[member].fold
    if fold.ends is not None:
        return all(map(is_half, fold.ends))
    outs = range(len(fold.outs))
    if fold.unwrap is not None:
        argument, ends = fold.unwrap.args[part], loom.yielded(fold.unwrap)
        outs = [out for out in outs if _depends(ends[out], argument)]
    elif len(outs) > 1:
        outs = [part]
    return all(_is_stored_half(group, Inner(member, out)) for out in outs)


def _depends(value: SSAValue, on: SSAValue) -> bool:
    needed = needed_operations([value])
    return value is on or any(on in op.operands for op in needed)


def _is_stored_half(group: Group, inner: Inner) -> bool:
    """Whether what a tensor of a group becomes outside is stored in 16 bits."""
    tensor = group.members[inner.member].fold.outs[inner.out]
    if inner in group.outs and not is_half(tensor.element):
        return False
    for number_, reader in enumerate(group.members):
        if inner in reader.sources:
            after = [Inner(number_, out) for out in range(len(reader.fold.outs))]
            if not all(_is_stored_half(group, out) for out in after):
                return False
    return True
