"""Two programs at smaller sizes: one map of extents, applied to both, that keeps what can go wrong.

    a:  linear over [512, 768, 768], shards of 128 rows          a:  linear over [12, 5, 5]
    b:  the same work as one application per shard          ->   b:  the same, 3 rows per shard

`reduce_sizes` ties the dimensions of both programs (through operands and results, equal positions
of arguments and results, rows of projections, reshapes), takes cells out of the middle of tiles,
and rewrites types, ranges, partitions, projections and the borders that bodies compare coordinates
with. Ends of ranges, cuts, halos, windows, strides and partial tiles stay: see `lengths`.

It is a way to test, not a proof: what holds at these sizes need not hold at others. What cannot be
made smaller soundly stays as it is, and `Reduced.reason` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from tapestry.dialects.loom import TensorType
from tapestry.proving.sizes.axes import UnplacedError
from tapestry.proving.sizes.literals import pin_literals
from tapestry.proving.sizes.plans import Space
from tapestry.proving.sizes.rewriting import apply_updates, plan_updates
from tapestry.proving.sizes.shortening import shorten
from tapestry.proving.sizes.structure import Structure
from tapestry.runtime.program import arguments, main_function
from tapestry.zspace import ZSpaceError

_ATTEMPTS = 12
"""How often an axis that turned out not to fit is kept whole before all are."""

Literals = Literal["scale", "pin"]


@dataclass(frozen=True)
class Size:
    """An argument of the programs: its shape before and after."""

    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {list(self.before)} -> {list(self.after)}"


@dataclass(frozen=True)
class Reduced:
    """Copies of both programs at smaller sizes; or the programs, and the reason why not."""

    a: ModuleOp
    b: ModuleOp
    sizes: tuple[Size, ...]
    reason: str | None = None

    @property
    def is_smaller(self) -> bool:
        """Whether any extent of an argument or result is smaller."""
        return any(size.before != size.after for size in self.sizes)


def reduce_sizes(
    a: ModuleOp, b: ModuleOp, *, seed: int = 0, literals: Literals = "scale"
) -> Reduced:
    """Copies of two verified programs over the same arguments, at smaller sizes.

    `seed` picks one of several maps of extents. A literal that is the extent of what its own
    operation folds (the n of a mean) is scaled with it; with `literals="pin"` any literal that
    could stand for an extent (n, 1 / n, their roots, n + 1, n - 1) keeps that extent instead:
    slower, and right where literals were computed with.
    """
    mismatch = _signatures_differ(a, b)
    if mismatch is not None:
        return Reduced(a, b, _sizes(a, a), mismatch)
    kept: set[tuple[int, int]] = set()
    for _ in range(_ATTEMPTS):
        copies = (a.clone(), b.clone())
        structure = _structure(copies, kept)
        if literals == "pin":
            pin_literals(structure)
        structure.settle()
        updates = None
        while updates is None:
            try:
                updates = plan_updates(structure, shorten(structure.axes, seed))
            except UnplacedError as error:
                structure.axes.pin(error.line)
        apply_updates(copies, updates)
        failed = _first_failure(copies)
        if failed is None:
            return Reduced(*copies, _sizes(a, copies[0]))
        if failed in kept:
            break
        kept.add(failed)
    return Reduced(a, b, _sizes(a, a), "no smaller sizes were found that verify")


def _signatures_differ(a: ModuleOp, b: ModuleOp) -> str | None:
    """Why the programs cannot be compared at all; None when they can."""
    one, other = main_function(a).function_type, main_function(b).function_type
    for what, left, right in (
        ("arguments", one.inputs, other.inputs),
        ("results", one.outputs, other.outputs),
    ):
        if [_shape(x) for x in left] != [_shape(x) for x in right]:
            return f"the programs have different {what}"
    return None


def _shape(kind: object) -> tuple[object, ...]:
    assert isinstance(kind, TensorType)
    return (*kind.box.shape, kind.element_type)


def _structure(copies: Sequence[ModuleOp], kept: set[tuple[int, int]]) -> Structure:
    """The axes of both programs; operations in `kept` (program, position) keep their extents."""
    structure = Structure()
    ends: list[tuple[Sequence[Space], Sequence[Space]]] = []
    for number, module in enumerate(copies):
        structure.add(module)
        for position, op in enumerate(module.walk()):
            if (number, position) in kept:
                structure.keep(op)
        main = main_function(module)
        returned = main.body.block.last_op
        assert isinstance(returned, func.ReturnOp)
        ends.append(
            (
                [structure.values[argument] for argument in main.args],
                [structure.values[value] for value in returned.operands],
            )
        )
    for group, others in zip(*ends, strict=True):
        for space, other in zip(group, others, strict=True):
            structure.tie_spaces(space, other)
    return structure


def _first_failure(copies: Sequence[ModuleOp]) -> tuple[int, int] | None:
    """The first operation that does not verify, as (program, position)."""
    for number, module in enumerate(copies):
        for position, op in enumerate(module.walk()):
            try:
                op.verify(verify_nested_ops=False)
            except (DiagnosticException, ZSpaceError):
                return number, position
    return None


def _sizes(before: ModuleOp, after: ModuleOp) -> tuple[Size, ...]:
    pairs = zip(arguments(before), arguments(after), strict=True)
    return tuple(Size(old.name, old.type.box.shape, new.type.box.shape) for old, new in pairs)
