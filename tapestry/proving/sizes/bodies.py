"""What the bodies of operations do with coordinates, as rows and ties of axes.

bodies = Bodies(axes)
bodies.add(module)
bodies.read(op, block, given, dims, plan.body)      # pins what has to stay, finds comparisons
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tapestry.algebra.monoids import BUILTIN_MONOIDS, monoid_of
from tapestry.dialects import loom
from tapestry.proving.sizes.axes import Axes, Line
from tapestry.proving.sizes.coordinates import (
    Affine,
    Coordinates,
    Elsewhere,
    Source,
    coordinates_of,
)
from tapestry.proving.sizes.holding import Held, Origin, held_by
from tapestry.proving.sizes.plans import Body, Comparison, Number, Space
from tapestry.proving.sizes.rows import Dimension, Row, tie_row

Dims = dict[int, Dimension]
"""The dimensions of an operation by the numbers that its bodies know them by."""


class Bodies:
    """Bodies over axes, with what tensors hold of the coordinates of operations before."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._coordinates: dict[Hashable, Coordinates] = {}
        self._held: dict[SSAValue, Held] = {}
        self._origins: dict[Origin, Line] = {}
        """Where the dimensions of operations lie whose coordinates tensors hold."""

    def add(self, module: ModuleOp) -> None:
        """What the tensors of a module hold."""
        self._held.update(held_by(module))

    def pin_held(self, value: SSAValue) -> None:
        """Keep the extents whose coordinates a tensor holds, for a reader that is not known."""
        for origin in self.holding(value).origins:
            if origin in self._origins:
                self.axes.pin(self._origins[origin])

    def holding(self, value: SSAValue) -> Held:
        return self._held.get(value, Held())

    def place(self, op: Operation, dims: Dims) -> None:
        """Remember where the dimensions lie whose coordinates an operation's bodies ask for."""
        self._origins.update(((op, dim), d.line) for dim, d in dims.items())

    def _sources(self, op: Operation, held: Held) -> frozenset[Source]:
        """The coordinates that a value in a body of `op` is made of.

        What an operation that keeps its extents put there may be left out.
        """
        own = frozenset[Source](dim for made, dim in held.origins if made is op)
        return own | {
            Elsewhere(self._origins[origin])
            for origin in held.origins
            if origin[0] is not op and origin in self._origins
        }

    def read(
        self,
        op: Operation,
        block: Block,
        given: Sequence[Held],
        dims: Dims,
        body: Body,
    ) -> None:
        extents = {dim: (d.start, d.end - 1) for dim, d in dims.items()}
        made = tuple(self._sources(op, held) for held in given)
        key = block, tuple(extents.values()), made
        found = self._coordinates.get(key)
        if found is None:
            found = self._coordinates[key] = coordinates_of(block, extents, made)
        for source in found.opaque:
            self.axes.pin(source.line if isinstance(source, Elsewhere) else dims[source].line)
        for lhs, rhs in found.comparisons:
            difference = lhs.value.plus(rhs.value, -1)
            if difference.terms:
                body.comparisons.append(self._compared(lhs.op, difference, dims))
        for use in found.numbers:
            if not use.value.is_plain:
                row = self._affine(use.value, dims)
                if row is not None:
                    body.numbers.append(Number(use, tuple(dims), row))
            for dim in use.value.dims:
                self.axes.number(dims[dim].line)
        body.literals += found.literals

    def merged(
        self,
        op: Operation,
        signature: loom.BlockSignature,
        state: Sequence[Held],
        dims: Dims,
    ) -> None:
        """What a monoid of the program's own does with the coordinates in states.

        The built-in ones choose among them, or add them up, alike everywhere.
        """
        monoid = monoid_of(signature)
        if monoid is not None and monoid.name not in BUILTIN_MONOIDS:
            self.read(op, monoid.merge, [*state, *state], dims, Body())

    def domain(
        self, op: Operation, signature: loom.BlockSignature, space: Space
    ) -> tuple[Comparison, ...]:
        """The rows of a domain as comparisons of coordinates with zero."""
        if signature.inside is None:
            return ()
        rows = signature.inside.rows
        dims = dict(enumerate(space))
        return tuple(
            self._compared(op, Affine.of({d: c for c, d in terms}, offset), dims)
            for terms, offset in zip(rows.terms, rows.offset, strict=True)
        )

    def _compared(self, op: Operation, difference: Affine, dims: Dims) -> Comparison:
        """A difference of coordinates against zero: what counts up, and what counts down."""
        up = Affine.of({d: c for d, c in difference.terms if c > 0})
        down = Affine.of({d: -c for d, c in difference.terms if c < 0})
        left, right = self._affine(up, dims), self._affine(down, dims)
        return Comparison(op, tuple(dims), left, right, difference.offset)

    def _affine(self, value: Affine, dims: Dims) -> Row | None:
        """An affine coordinate as a row onto a line of its own."""
        if not value.terms:
            return None
        terms = dict(value.terms)
        coefficients = [terms.get(dim, 0) for dim in dims]
        space = tuple(dims.values())
        return tie_row(self.axes, self.axes.line(), space, coefficients, value.offset)
