"""Blocks: inputs of which a point selects a box, and what a body reads of it.

    inputs:
      ids: {shape: "[$n]", dtype: int, ipf: "[@n]"}
      table: {shape: "[$vocab, $dim]", ipf: "[0, @dim] :> [$vocab, 1]"}
    wrap: "read(table, ids)"

An index is given for each dimension of the box that is not written as 1, and counts from the box's
first cell. Outside the box `read(table, ids, else=0)` is 0; without `else` it is an error when run.

A box of one cell is a cell, which is read whatever the index is. Where an index comes from data and
must be inside, such a box is `parted`: made two cells long, of which the second is never read,
because indices count twice.

    >>> Block((50, 1), indexed=(0,)).read("table", "f32", [Cell("ids", "i64")], None).indices
    (Cell(name='ids', dtype='i64'), Constant(value=0, dtype='i64'))
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tapestry.metakernels.constants import Known, coerce
from tapestry.metakernels.dtypes import is_integer
from tapestry.metakernels.errors import BoxError, DtypeMismatchError, nearest
from tapestry.metakernels.evaluation import Scope, evaluate_elements
from tapestry.metakernels.scalars import Cell, Constant, Operation, Read, Scalar
from tapestry.metakernels.syntax import (
    Call,
    Item,
    Name,
    Number,
    ProjectionExpr,
    Tree,
    children,
    walk,
)
from tapestry.zspace import Projection

READ = "read"
"""What bodies call the reading of a cell of a block."""

PARTED = 2
"""How long a box is made that would be a cell, and how far apart its indices are then."""


@dataclass(frozen=True, slots=True)
class Block:
    """A box by its shape, and the dimensions along which it is indexed."""

    shape: tuple[int, ...]
    indexed: tuple[int, ...]
    step: int = 1
    """What an index is times: 2 in a box that is parted."""

    def read(
        self, name: str, dtype: str, indices: Sequence[Scalar | Known], otherwise: Scalar | None
    ) -> Scalar:
        """The cell of the input `name`, of which this is the block, at `indices`."""
        if len(indices) != len(self.indexed):
            raise BoxError(
                f"{READ}({name}, ...) has {len(indices)} indices, and the box of {name} has "
                f"{len(self.indexed)} dimensions to index",
                hint="an index for each dimension that the box does not write as 1",
            )
        counted = (_times(_index(index), self.step) for index in indices)
        places = dict(zip(self.indexed, counted, strict=True))
        if any(extent != 1 for extent in self.shape):
            full = tuple(places.get(dim, Constant(0, "i64")) for dim in range(len(self.shape)))
            return Read(name, full, otherwise, dtype)
        return Cell(name, dtype) if otherwise is None else _single(name, places, otherwise)


def _single(name: str, places: Mapping[int, Scalar], otherwise: Scalar) -> Scalar:
    """The only cell of a box, unless an index is another than 0."""
    value: Scalar = Cell(name, otherwise.dtype)
    for place in places.values():
        here = Operation("eq", (place, Constant(0, "i64")), "i1")
        value = Operation("select", (here, value, otherwise), value.dtype)
    return value


def block_of(expr: ProjectionExpr, projection: Projection, scope: Scope) -> Block | None:
    """What a point selects by the projection that `expr` makes; None when it is a single cell."""
    if expr.box is None:
        return None
    elements = evaluate_elements(expr.box, scope, projection.outputs)
    indexed = (d for d, (_, element) in enumerate(elements) if element.value != Number(1))
    whole = projection.shape == tuple(size for size, _ in elements)
    return Block(projection.shape, tuple(indexed), 1 if whole else PARTED)


def parted(expr: ProjectionExpr, projection: Projection, scope: Scope) -> Projection | None:
    """A box of one cell made longer along the dimensions that are indexed; None for other boxes."""
    block = block_of(expr, projection, scope)
    if block is None or not block.indexed or not projection.is_unit:
        return None
    shape = tuple(PARTED if d in block.indexed else 1 for d in range(projection.outputs))
    return replace(projection, shape=shape)


def looks_up(body: Tree, name: str, data: Collection[str]) -> bool:
    """Whether a body reads a block without `else`, at an index that is made of some names."""
    return any(
        isinstance(node, Call)
        and node.function == READ
        and node.otherwise is None
        and _is_named(node.arguments[0], name)
        and any(
            isinstance(part, Name) and part.name in data
            for index in node.arguments[1:]
            for part in walk(index)
        )
        for node in walk(body)
    )


def _is_named(tree: Tree, name: str) -> bool:
    return isinstance(tree, Name | Item) and any(part == Name(name) for part in walk(tree))


def _times(index: Scalar, step: int) -> Scalar:
    return index if step == 1 else Operation("mul", (index, Constant(step, "i64")), "i64")


def _index(term: Scalar | Known) -> Scalar:
    if not isinstance(term, Known) and not is_integer(term.dtype):
        raise DtypeMismatchError(
            f"an index is an integer, not {term.dtype}", hint="cast(..., i64) truncates"
        )
    return coerce(term, "i64")


def check_reads(tree: Tree, inputs: Collection[str], boxed: Collection[str]) -> None:
    """Raise unless `tree` reads inputs with a box by `read`, and no others."""
    for node in _unread(tree):
        if isinstance(node, Name) and node.name in boxed:
            raise BoxError(
                f"{node.name} is a block: a point selects a box of cells",
                hint=f"{READ}({node.name}, ...) reads one of them",
            )
        if isinstance(node, Call) and node.function == READ:
            block = node.arguments[0] if node.arguments else None
            name = block.name if isinstance(block, Name) else None
            if name is None or name not in boxed:
                why = "has no box" if name in inputs else "is no input"
                raise BoxError(
                    f"{READ} takes an input with a box first"
                    + ("" if name is None else f", and {name} {why}"),
                    hint="the projection gives it one: `[...] :> [$n]`"
                    if name in inputs
                    else nearest(name or "", boxed),
                )
        elif isinstance(node, Call) and node.otherwise is not None:
            raise BoxError(f"`else=` belongs to {READ}, not to {node.function}")


def _unread(tree: Tree) -> Iterator[Tree]:
    """The trees of a body without the blocks that `read` names."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        inside = list(children(node))
        named = isinstance(node, Call) and node.function == READ and inside[:1]
        pending.extend(inside[1:] if named and isinstance(inside[0], Name) else inside)
