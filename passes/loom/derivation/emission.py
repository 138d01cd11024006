"""A derivation written as one `loom.operation`, and the monoid that it folds by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, StringAttr, f32, f64
from xdsl.ir import Attribute, Block, Region, SSAValue

from tapestry.algebra.derivation.model import Derivation
from tapestry.algebra.derivation.polynomials import symbol
from tapestry.algebra.derivation.writer import Writer
from tapestry.algebra.derivation.writing import Finish, merging, point
from tapestry.algebra.dtypes import byte_size
from tapestry.dialects import loom
from tapestry.dialects.loom import Read
from tapestry.locations import fuse_locations
from tapestry.passes.loom.derivation.algebra import Algebra
from tapestry.passes.loom.derivation.planning import Found
from tapestry.passes.loom.derivation.terms import Term
from tapestry.passes.loom.rebuilding.operations import Write

STEPS = "derivation"
"""The attribute in which a derived operation records how it came."""

REFUSED = "not_derived"
"""The attribute in which a fold records why it, or all that it reads, is not part of one pass."""

_NAME_LENGTH = 48


def joined_name(names: Sequence[str]) -> str:
    """Names put together, or the last alone when that would be unwieldy."""
    joined = "_".join(dict.fromkeys(names)).replace(".", "_")
    return joined if len(joined) <= _NAME_LENGTH else names[-1].replace(".", "_")


@dataclass(frozen=True)
class Output:
    """What one output of the derived operation is, and where it is written."""

    term: Term
    write: Write


def state_kinds(derivation: Derivation, algebra: Algebra) -> dict[str, Attribute]:
    """The type of each part: one float type, wide enough, for all floats."""
    kinds: dict[str, Attribute] = {}
    terms = [*algebra.cells.values(), *algebra.fixed.values()]
    results = [member.outs[0] for member in algebra.chain.members]
    wide = any(term.kind == f64 for term in (*terms, *results))
    computed: AnyFloat = f64 if wide else f32
    for part in derivation.parts:
        cell = next((c for c in algebra.cells if part.point == symbol(c)), None)
        own = None if cell is None else algebra.cells[cell].kind
        kinds[part.name] = computed if own is None or isinstance(own, AnyFloat) else own
    return kinds


class Body:
    """A body under construction: terms become operations, what they read its arguments."""

    def __init__(
        self, block: Block, kind: AnyFloat, first: int, kept: Sequence[int] | None
    ) -> None:
        self.writer = Writer(block, kind)
        self.reads: list[Read] = []
        self.finish: Finish | None = None
        self._first = first
        self._kept = kept
        self._values: dict[Term, SSAValue] = {}

    def value(self, term: Term) -> SSAValue:
        """What a term is, in its own type; tensors that hold it are read."""
        if term not in self._values:
            self._values[term] = self._value(term)
        return self._values[term]

    def _value(self, term: Term) -> SSAValue:
        if term.result is not None:
            assert self.finish is not None
            return self.cast(self.finish(term.result), term.kind)
        if term.stored is not None:
            return self._argument(term.stored, term.kind)
        assert term.op is not None
        args = [self.value(arg) for arg in term.args]
        copy = term.op.clone(dict(zip(term.op.operands, args, strict=True)))
        if copy.operands != tuple(args):
            copy.operands = args
        return self.writer.add(copy)

    def _argument(self, read: Read, kind: Attribute) -> SSAValue:
        if self._kept is not None:
            read = read._replace(projection=read.projection.select_inputs(self._kept))
        block = self.writer.block
        if read not in self.reads:
            block.insert_arg(kind, len(block.args))
            self.reads.append(read)
            block.args[-1].name_hint = read.value.name_hint
        return block.args[self._first + self.reads.index(read)]

    def wide(self, term: Term) -> SSAValue:
        """What a term is, in the type that the derivation computes in."""
        return self.cast(self.value(term), self.writer.kind)

    def cast(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """A float in another type."""
        if value.type == kind or not isinstance(value.type, AnyFloat):
            return value
        assert isinstance(kind, AnyFloat)
        if byte_size(kind) < byte_size(value.type):
            return self.writer.add(arith.TruncFOp(value, kind))
        return self.writer.add(arith.ExtFOp(value, kind))


def written(found: Found, monoid: loom.MonoidOp, outputs: Sequence[Output]) -> loom.OperationOp:
    """The operation that computes a chain in one pass."""
    chain, algebra, derivation = found.chain, found.algebra, found.derivation
    last = chain.last
    kinds = monoid.state_types
    # Without floats nothing is computed but what the chain does itself.
    computed = next((kind for kind in kinds if isinstance(kind, AnyFloat)), f32)
    wrap = Body(Block(), computed, 0, None)
    symbols = algebra.cells | algebra.fixed
    yielded = point(derivation, wrap.writer, lambda name: wrap.wide(symbols[name]))
    wrap.writer.block.add_op(loom.YieldOp(*yielded))

    start = Block(arg_types=kinds)
    for part, argument in zip(derivation.parts, start.args, strict=True):
        argument.name_hint = part.name.replace(".", "_")
    unwrap = Body(start, computed, len(kinds), last.kept_dims)
    known = algebra.fixed | algebra.finished

    def other(name: str) -> SSAValue:
        term = known.get(name.removeprefix("not "))
        assert term is not None
        if not name.startswith("not "):
            return unwrap.wide(term)
        truth = unwrap.value(term)
        true = unwrap.writer.add(arith.ConstantOp.from_int_and_width(1, 1))
        return unwrap.writer.add(arith.XOrIOp(truth, true))

    unwrap.writer.truths = algebra.truths
    unwrap.finish = Finish(
        derivation, unwrap.writer, start.args[: len(kinds)], other, may_be_empty=found.may_be_empty
    )
    start.add_op(loom.YieldOp(*(unwrap.value(output.term) for output in outputs)))
    notes: dict[str, Attribute] = {STEPS: ArrayAttr(map(StringAttr, derivation.steps))}
    if found.left_out is not None:
        notes[REFUSED] = StringAttr(found.left_out)
    new = loom.OperationOp(
        joined_name([member.name for member in chain.members]),
        last.index,
        last.kinds,
        monoid.sym_name.data,
        wrap.reads,
        [output.write for output in outputs],
        Region(wrap.writer.block),
        extras=unwrap.reads,
        unwrap=Region(start),
        inside=last.inside,
        attributes=notes,
    )
    new.location = fuse_locations(*(member.op.location for member in chain.members))
    return new


def derived_monoid(derivation: Derivation, algebra: Algebra, name: str) -> loom.MonoidOp:
    """The monoid of a derivation for a chain of operations."""
    return merging(derivation, name, state_kinds(derivation, algebra))
