"""Writing tile operations: a builder that broadcasts, shares and places them.

    tiles = TileBuilder(body, {"BLOCK_P": 64}, i32)
    p = tiles.add(pid_times_block, tiles.arange("BLOCK_P"))    # broadcasts the scalar
    with tiles.inside(loop_block):
        ...                                                     # goes into the loop

Pure operations that were already written where they can be seen are not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, f32, f64, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator, Pure

from tapestry.algebra.dtypes import (
    body_type,
    integer_width,
    is_integer,
    is_narrow,
    is_unsigned,
)
from tapestry.algebra.scalars import Array, constant, exact_value
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of

Shape = tuple[int, ...]
Sizes: TypeAlias = "Mapping[str, int]"
"""The sizes of blocks, by name."""
Question: TypeAlias = "Callable[[Sizes], bool]"
Answers: TypeAlias = "Sequence[tuple[Question, bool]]"
"""What was asked of sizes, and what they answered."""
Bounds = tuple[int, int]
"""The least and the greatest of some integers."""
_Key = tuple[object, ...]


_MOVABLE = (
    triton.LoadOp,
    triton.DescribeOp,
    triton.LoadBlockOp,
    triton.ReduceOp,
    triton.CoverOp,
)
"""What may stand anywhere its operands are known, besides pure operations."""


_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
"""What holds where another comparison does not; beside NaN the first two do, too."""


def passes_through(cast: triton.CastOp, element: Attribute) -> bool:
    """Whether a conversion of a converted value is that of the value before.

    Legal where the type between has all numbers of the first one, and the last is the first one
    again, or the first two are integers, which round once.
    """
    first, between = element_of(cast.source), element_of(cast.result)
    if cast.unsigned is not None or is_unsigned(first) or is_unsigned(between):
        return False
    if is_integer(first) and is_integer(between):
        return integer_width(first) <= integer_width(between)
    return element == first and is_narrow(first) and between in (f32, f64)


def joint_shape(*shapes: Shape) -> Shape:
    """The shape tiles broadcast to; scalars broadcast to anything."""
    ranked = [shape for shape in shapes if shape]
    if not ranked:
        return ()
    return tuple(max(sizes) for sizes in zip(*ranked, strict=True))


def number(value: float, element: Attribute) -> FloatAttr | IntegerAttr:
    """A constant of an element type: the nearest number that it has."""
    if type(value) is int:
        return _whole_number(value, element)
    return _number(value, element)


@lru_cache(maxsize=4096)
def _whole_number(value: int, element: Attribute) -> FloatAttr | IntegerAttr:
    """As `number`, for what is equal only to itself: not so zeros of either sign."""
    return _number(value, element)


def _number(value: float, element: Attribute) -> FloatAttr | IntegerAttr:
    if isinstance(element, AnyFloat):
        return FloatAttr(float(exact_value(value, element)), element)
    if is_unsigned(element):
        bits = (1 << integer_width(element)) - 1
        return IntegerAttr(int(value) & bits, cast(IntegerType, element))
    return IntegerAttr(int(value), cast(IntegerType, element), truncate_bits=True)


def _constant(number: FloatAttr | IntegerAttr) -> arith.ConstantOp:
    """The operation of a constant, as its class makes it, but without asking what it is given."""
    return arith.ConstantOp.create(properties={"value": number}, result_types=[number.type])


def constant_value(value: SSAValue) -> Array | None:
    """The number that a scalar is known to be, or None."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    assert isinstance(owner.value, IntegerAttr | FloatAttr)
    return constant(owner.value.value.data, value.type)


def constant_of_cells(value: SSAValue) -> float | None:
    """The float that all cells of a value are known to be."""
    match value.owner:
        case triton.BroadcastOp(source=source) | triton.ExpandDimsOp(source=source):
            return constant_of_cells(source)
        case (
            arith.ConstantOp(value=FloatAttr() as found) | triton.FullOp(value=FloatAttr() as found)
        ):
            return found.value.data
        case _:
            return None


def remove_unused(block: Block) -> None:
    """Erase the operations of a block, and those inside of them, that nothing needs."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                remove_unused(inner)
        needed = any(result.uses for result in op.results)
        if op.results and not needed and (op.has_trait(Pure) or isinstance(op, _MOVABLE)):
            op.detach()
            op.erase()


class TileBuilder:
    """Appends operations to a kernel's body, or to a block inside it.

    `blocks` gives the sizes of the named blocks; positions and offsets are of type `index`.
    Sizes decide the types of tiles; what else they decide is asked by `holds`, so that it is known
    which other sizes have the same operations.
    """

    def __init__(self, body: Block, blocks: Mapping[str, int], index: IntegerType) -> None:
        self._sizes = dict(blocks)
        self.index = index
        self.bounds: dict[SSAValue, Bounds] = {}
        """What is known of 32-bit integers, in lanes that are points."""
        self.answers: list[tuple[Question, bool]] = []
        self._block = body
        self._seen: list[dict[_Key, SSAValue]] = [{}]

    def holds(self, question: Question) -> bool:
        """Whether something holds of the sizes of blocks."""
        answer = question(self._sizes)
        self.answers.append((question, answer))
        return answer

    def shape(self, blocks: Sequence[str]) -> Shape:
        """The sizes of named blocks, for the type of a tile."""
        return tuple(self._sizes[block] for block in blocks)

    @contextmanager
    def inside(self, block: Block, *, hoist: bool = False) -> Generator[None]:
        """Append to `block`, which sees everything written so far and hides what it holds.

        With `hoist`, what needs nothing of the block is moved in front of it in the end. Inputs are
        never written by the kernel that reads them, so that loads may move as well.
        """
        outer, self._block = self._block, block
        self._seen.append({})
        try:
            yield
        finally:
            seen = self._seen.pop()
            self._block = outer
        if hoist:
            moved = self._hoisted(block)
            self._seen[-1].update({k: v for k, v in seen.items() if v.owner in moved})

    def _hoisted(self, block: Block) -> set[Operation]:
        """Move the operations of a block that vary with nothing in it to the current block."""
        moved: set[Operation] = set()
        own = set[SSAValue](block.args)
        for op in list(block.ops):
            fixed = isinstance(op, _MOVABLE) or op.has_trait(Pure)
            fixed = fixed and not op.has_trait(IsTerminator)
            if fixed and own.isdisjoint(op.operands):
                op.detach()
                self._block.add_op(op)
                moved.add(op)
            else:
                own.update(op.results)
        return moved

    def append(self, op: Operation) -> Operation:
        """Write an operation that must not be shared."""
        self._block.add_op(op)
        return op

    def value(self, op: Operation, hint: str | None = None) -> SSAValue:
        """The result of a pure operation, written now unless the same one can be seen."""
        key: _Key = (
            op.name,
            tuple(op.operands),
            tuple(sorted(op.properties.items())),
            tuple(op.result_types),
        )
        found = self.recall(key)
        if found is not None:
            op.erase()
            return found
        self._block.add_op(op)
        result = op.results[0]
        self._seen[-1][key] = result
        if hint is not None:
            result.name_hint = hint
        return result

    def remember(self, key: _Key, value: SSAValue) -> None:
        """Let a value be found by a key where it can be seen."""
        self._seen[-1][key] = value

    def recall(self, key: _Key) -> SSAValue | None:
        """What was remembered by a key, if it can be seen."""
        for scope in self._seen:
            if (found := scope.get(key)) is not None:
                return found
        return None

    def once(
        self, make: Callable[..., Operation], *given: Hashable, hint: str | None = None
    ) -> SSAValue:
        """As `value` of what is made of arguments, and not even made where that can be seen.

        Legal as that is, if what is made depends on the arguments alone.
        """
        key = (make, given)
        found = self.recall(key)
        if found is None:
            found = self.value(make(*given), hint)
            self.remember(key, found)
        return found

    def constant(self, value: float, element: Attribute) -> SSAValue:
        """A scalar constant."""
        return self.once(_constant, number(value, element))

    def load(
        self,
        pointer: SSAValue,
        offsets: SSAValue,
        mask: SSAValue | None,
        fill: FloatAttr | IntegerAttr,
    ) -> SSAValue:
        """The cells at offsets, as bodies hold them, and `fill` where `mask` has none."""
        assert isinstance(pointer.type, triton.PointerType)
        stored = pointer.type.element_type
        other = None if mask is None else number(fill.value.data, stored)
        found = self.once(triton.LoadOp, pointer, offsets, mask, other)
        return self.bits(found, body_type(stored))

    def bits(self, value: SSAValue, element: Attribute) -> SSAValue:
        """`value` as an element type of its width, bit by bit."""
        if element_of(value) == element:
            return value
        return self.once(triton.BitcastOp, value, element)

    def position(self, value: int) -> SSAValue:
        """A constant position, offset or length."""
        return self.constant(value, self.index)

    def full(self, value: float, element: Attribute, blocks: Sequence[str], hint: str) -> SSAValue:
        """A new tile of one value, of the sizes of named blocks."""
        kind = triton.tile_type(element, self.shape(blocks))
        made = self.append(triton.FullOp(number(value, element), blocks, kind)).results[0]
        made.name_hint = hint
        return made

    def arange(self, block: str, hint: str | None = None) -> SSAValue:
        """The positions 0, 1, ... in a block."""
        lanes = self.once(triton.ArangeOp, block, self._sizes[block], hint=hint)
        return self.cast(lanes, self.index)

    def program_id(self) -> SSAValue:
        """Which program this is."""
        return self.cast(self.once(triton.ProgramIdOp, 0, hint="pid"), self.index)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """`value` as another element type."""
        if element_of(value) == element:
            return value
        owner = value.owner
        if isinstance(owner, arith.ConstantOp):
            assert isinstance(owner.value, IntegerAttr | FloatAttr)
            # A constant of a narrow type is the nearest that the type has.
            exact = exact_value(owner.value.value.data, owner.result.type)
            return self.constant(exact, element)
        if isinstance(owner, triton.CastOp) and passes_through(owner, element):
            return self.cast(owner.source, element)
        return self.once(triton.CastOp, value, element, hint=value.name_hint)

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value` repeated to a tile of `shape`."""
        if shape_of(value) == shape:
            return value
        return self.once(triton.BroadcastOp, value, shape, hint=value.name_hint)

    def spread(self, value: SSAValue, blocks: Sequence[str]) -> SSAValue:
        """`value` repeated to a tile of the sizes of named blocks."""
        shape = self.shape(blocks)
        if shape_of(value) == shape:
            return value
        return self.once(triton.BroadcastOp, value, shape, tuple(blocks), hint=value.name_hint)

    def expand(self, value: SSAValue, axis: int, rank: int) -> SSAValue:
        """A tile of one dimension as dimension `axis` of a tile of `rank` dimensions."""
        if rank == 1 or not shape_of(value):
            return value
        assert rank == 2
        return self.once(triton.ExpandDimsOp, value, 1 - axis, hint=value.name_hint)

    def join(self, *values: SSAValue) -> list[SSAValue]:
        """The values broadcast to their joint shape."""
        shape = joint_shape(*(shape_of(value) for value in values))
        return [self.broadcast(value, shape) for value in values]

    def pair(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Two values broadcast to their joint shape."""
        one, other = shape_of(a), shape_of(b)
        if one == other:
            return a, b
        shape = joint_shape(one, other)
        return self.broadcast(a, shape), self.broadcast(b, shape)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Where `a predicate b` holds."""
        return self.once(triton.CompareOp, predicate, *self.pair(a, b))

    def where(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a` where the condition holds, else `b`."""
        chosen = self.join(condition, a, b)
        return self.once(triton.WhereOp, chosen[0], chosen[1], chosen[2])

    def add(self, a: SSAValue, b: SSAValue, hint: str | None = None) -> SSAValue:
        """The sum of two positions."""
        result = self.once(arith.AddiOp, *self.pair(a, b))
        if hint is not None:
            result.name_hint = hint
        return result

    def subtract(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The difference of two positions."""
        return self.once(arith.SubiOp, *self.pair(a, b))

    def times(self, a: SSAValue, factor: int | SSAValue) -> SSAValue:
        """A position times a number."""
        if factor == 1:
            return a
        by = self.position(factor) if isinstance(factor, int) else factor
        return self.once(arith.MuliOp, *self.pair(a, by))

    def quotient(self, a: SSAValue, by: SSAValue) -> SSAValue:
        """A position (not negative) divided by a length, rounded down."""
        return self.once(arith.DivSIOp, *self.pair(a, by))

    def remainder(self, a: SSAValue, by: SSAValue) -> SSAValue:
        """What `quotient` leaves."""
        return self.once(arith.RemSIOp, *self.pair(a, by))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """Where two masks hold; None is a mask that always holds."""
        if a is None or b is None:
            return b if a is None else a
        return self.once(arith.AndIOp, *self.pair(a, b))

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Where one of two masks holds."""
        return self.once(arith.OrIOp, *self.pair(a, b))

    def negated(self, mask: SSAValue) -> SSAValue:
        """Where a mask does not hold."""
        owner = mask.owner
        if isinstance(owner, triton.CompareOp):
            predicate = owner.predicate.data
            if predicate in ("==", "!=") or is_integer(element_of(owner.lhs)):
                return self.compare(_OPPOSITES[predicate], owner.lhs, owner.rhs)
        return self.once(arith.XOrIOp, *self.pair(mask, self.constant(1, i1)))
