"""Expressions over the cells that a point reads, with the maps between them written out.

    %e = loom.operation @scale over <[0, 0] : [4, 6]> [map, map] ins(%x ...) wrap {mulf %c, %k}
    ... wrap (%s: f32, %m: f32) { %d = arith.subf %s, %m ... }      // reads %e and a fold's result

makes `subf(mulf(cell of %x, constant), result)`. Equal expressions are one object, so that a cell
which two folds compute alike is seen to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.bodies import Dims, moving_dims
from tapestry.dialects import loom
from tapestry.dialects.loom import Read, argument_type, tensor_type
from tapestry.passes.loom.rebuilding.bodies import coordinate_ops
from tapestry.zspace import AffineMap, Projection, Range
from tapestry.zspace.origins import origin, settle


@dataclass(eq=False)
class Term:
    """A value at each point: a cell, the raw result of a fold, or an operation on others.

    `moving` are the index dimensions that it varies along; `running` says that it depends on the
    result of a fold along them. `stored` is a tensor that holds it, where there is one.
    """

    kind: Attribute
    moving: Dims
    running: bool = False
    read: Read | None = None
    result: str | None = None
    op: Operation | None = None
    args: tuple[Term, ...] = ()
    stored: Read | None = None

    def below(self) -> set[Term]:
        """The term with all that it is computed of."""
        stack: list[Term] = [self]
        seen: set[Term] = {self}
        while stack:
            new = set(stack.pop().args) - seen
            seen |= new
            stack.extend(new)
        return seen

    def leaves(self) -> set[Read]:
        """What it reads."""
        return {term.read for term in self.below() if term.read is not None}

    def results(self) -> set[str]:
        """The folds whose results it is computed of."""
        return {term.result for term in self.below() if term.result is not None}


@dataclass
class Terms:
    """Makes terms over one index space, equal ones once."""

    index: Range
    made: dict[Hashable, Term] = field(default_factory=dict[Hashable, Term])

    def cell(self, read: Read) -> Term:
        """What a read selects."""
        mapping = settle(read.projection.map, self.index)
        read = read._replace(projection=Projection(mapping, read.projection.shape))
        if read not in self.made:
            element = tensor_type(read.value).element_type
            kind = argument_type(read.projection, element)
            self.made[read] = Term(kind, moving_dims(read.projection), read=read, stored=read)
        return self.made[read]

    def result(self, name: str, kind: Attribute) -> Term:
        """What a fold along the running dimensions folds to, before its unwrap."""
        key = ("result", name)
        if key not in self.made:
            self.made[key] = Term(kind, frozenset(), running=True, result=name)
        return self.made[key]

    def reads(self) -> set[Read]:
        """All tensors that hold a term, or that one is a cell of."""
        return {term.stored for term in self.made.values() if term.stored is not None}

    def apply(self, op: Operation, args: Sequence[Term]) -> Term:
        """An operation of a body on terms."""
        key = (op.name, frozenset(op.properties.items()), op.results[0].type, tuple(args))
        if key not in self.made:
            own: Dims = frozenset((op.dimension,)) if isinstance(op, loom.IndexOp) else frozenset()
            moving = own.union(*(term.moving for term in args))
            running = any(term.running for term in args)
            self.made[key] = Term(op.results[0].type, moving, running, op=op, args=tuple(args))
        return self.made[key]

    def body(
        self, block: Block, args: Sequence[Term], coordinates: AffineMap | None = None
    ) -> list[Term]:
        """What a body yields; row `d` of `coordinates` is its coordinate `d` in this space."""
        values: dict[SSAValue, Term] = dict(zip(block.args, args, strict=True))
        *body, end = block.ops
        for op in body:
            if isinstance(op, loom.IndexOp) and coordinates is not None:
                new = coordinate_ops(coordinates, op.dimension, range(coordinates.inputs))
                for step in new:
                    inner = [values[operand] for operand in step.operands]
                    values[step.results[0]] = self.apply(step, inner)
                values[op.result] = values[new[-1].results[0]]
            else:
                operands = [values[operand] for operand in op.operands]
                values[op.results[0]] = self.apply(op, operands)
        return [values[value] for value in end.operands]


Stop = Callable[[loom.OperationOp, int, Read], "Term | None"]
"""What a read of a fold's output is, None for a cell like any other."""


_DEPTH = 12
"""Through how many maps, one after another, a read is looked: enough for any one formula."""


class Inliner:
    """Reads as terms: maps are written out, up to what `fold_result` takes."""

    def __init__(self, terms: Terms, fold_result: Stop) -> None:
        self._terms = terms
        self._fold_result = fold_result
        self._known: dict[Read, Term] = {}
        self._depth = 0

    def __call__(self, read: Read) -> Term:
        """What a read selects, in terms of what no map of the same block computes."""
        if read not in self._known:
            self._depth += 1
            found = self._written_out(read) if self._depth <= _DEPTH else None
            self._known[read] = self._terms.cell(read) if found is None else found
            self._depth -= 1
        return self._known[read]

    def _written_out(self, read: Read) -> Term | None:
        """A read of what a map or a fold computes; None when it is a cell like any other."""
        producer = read.value.owner
        if not isinstance(producer, loom.OperationOp) or not read.is_plain:
            return None
        place = producer.outs.index(read.value)
        if producer.monoid_name is not None:
            return self._fold_result(producer, place, read)
        written = producer.out_maps[place].map
        points = origin(written, producer.index, read.projection.map, self._terms.index)
        if points is None:
            return None
        args = [self(inner.compose(points)) for inner in producer.in_reads]
        term = self._terms.body(producer.wrap_block, args, points)[place]
        if term.stored is None and not term.running:
            term.stored = read
        return term
