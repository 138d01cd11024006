"""Which tensors hold coordinates, and of which dimensions of which operations.

    %i = loom.operation @iota over <[0] : [600]> [map] outs((d0) -> (d0))
           wrap () { %d = loom.index 0 : i64  loom.yield %d : i64 } : () -> !i
    %y = loom.operation @late ... ins(%i : (d0) -> (d0))
           wrap (%n: i64) { ... arith.cmpi sge, %n, %k : i64 ... }

`%i` holds d0 of @iota, so @late is as sensitive to its extent as if the two were one body. What
follows of coordinates alone holds them, and so do integers that data chose, like those of an
argmax. Floats that data had a part in do not: neither do truth values, or random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.algebra.dtypes import is_integer
from tapestry.dialects import loom
from tapestry.dialects._loom_blocks import element_of
from tapestry.dialects.loom import TensorType

Origin = tuple[Operation, int]
"""A dimension of an operation's index space."""


@dataclass(frozen=True)
class Held:
    """The coordinates that a value is made of, and whether it is made of nothing else."""

    origins: frozenset[Origin] = frozenset()
    closed: bool = True

    def joined(self, *others: Held) -> Held:
        """What is held by a value made of several."""
        every = (self, *others)
        origins = frozenset[Origin]().union(*(held.origins for held in every))
        return Held(origins, all(held.closed for held in every))

    def of_type(self, kind: Attribute) -> Held:
        """What of it a value of some type holds."""
        counts = is_integer(kind) and kind != i1
        return self if counts or (self.closed and kind != i1) else Held(closed=self.closed)


DATA = Held(closed=False)
"""What an argument of a program holds."""


def held_by(module: ModuleOp) -> dict[SSAValue, Held]:
    """What the tensors of a verified program hold."""
    found: dict[SSAValue, Held] = {}
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            for block in function.body.blocks:
                found.update(dict.fromkeys(block.args, DATA))
                for op in block.ops:
                    _operation(op, found)
    return found


def _operation(op: Operation, found: dict[SSAValue, Held]) -> None:
    """Add what an operation's results hold."""
    match op:
        case loom.OperationOp():
            made = written_by(op, op, [found[x] for x in op.ins], [found[x] for x in op.extras])
        case loom.ApplicationOp() | loom.MergeOp():
            made = _dispatched(op, [found[operand] for operand in op.operands])
        case loom.FusedOp():
            inner: dict[SSAValue, Held] = {}
            inner.update(zip(op.body.block.args, (found[x] for x in op.ins), strict=True))
            for member in op.members:
                _operation(member, inner)
            made = [inner[value] for value in op.yielded]
        case _:
            made = [Held().joined(*(found[operand] for operand in op.operands))] * len(op.results)
    for result, held in zip(op.results, made, strict=True):
        kind = result.type
        found[result] = held.of_type(kind.element_type) if isinstance(kind, TensorType) else held


def _dispatched(op: loom.ApplicationOp | loom.MergeOp, given: Sequence[Held]) -> list[Held]:
    kernel = loom.find_kernel(op, op.kernel_name)
    if kernel is None:
        return [DATA] * len(op.results)
    if isinstance(op, loom.ApplicationOp):
        inputs = len(kernel.in_maps)
        if op.is_partial:
            return state_holds(op, kernel, given[:inputs])
        return written_by(op, kernel, given[:inputs], given[inputs:])
    count, states = len(kernel.state_types), len(op.states)
    parts = [Held().joined(*given[part:states:count]) for part in range(count)]
    if op.is_partial or kernel.unwrap_block is None:
        return parts
    return body_holds(op, kernel.unwrap_block, [*parts, *given[states:]])


def written_by(
    op: Operation, signature: loom.BlockSignature, ins: Sequence[Held], extras: Sequence[Held]
) -> list[Held]:
    """What the outputs of a map-fold hold, whose inputs hold something; `op` has its dimensions."""
    state = state_holds(op, signature, ins)
    if signature.unwrap_block is None:
        return state
    return body_holds(op, signature.unwrap_block, [*state, *extras])


def state_holds(op: Operation, signature: loom.BlockSignature, ins: Sequence[Held]) -> list[Held]:
    """What the parts of a state hold (what wrap yields, without a fold)."""
    made = body_holds(op, signature.wrap_block, ins)
    # One part may choose what is kept of another.
    closed = all(held.closed for held in made) or signature.monoid_name is None
    return [replace(held, closed=held.closed and closed) for held in made]


def body_holds(op: Operation, block: Block, given: Sequence[Held]) -> list[Held]:
    """What a body yields holds, whose arguments hold something."""
    known: dict[SSAValue, Held] = dict(zip(block.args, given, strict=True))
    for inner in block.ops:
        held = Held().joined(*(known[value] for value in _made_of(inner)))
        if isinstance(inner, loom.IndexOp):
            held = Held(frozenset({(op, inner.dimension)}))
        elif isinstance(inner, loom.RandomOp):
            held = Held(closed=held.closed)
        for result in inner.results:
            known[result] = held.of_type(element_of(result.type))
    return [known[value] for value in loom.yielded(block)]


def _made_of(op: Operation) -> Iterator[SSAValue]:
    """The operands whose numbers an operation's result is made of."""
    yield from op.operands[1:] if isinstance(op, arith.SelectOp) else op.operands
