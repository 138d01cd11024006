"""Values of a `triton.kernel` as Python: each operation of the dialect is one expression.

    %sum = arith.addf %x, %y : ...        ->        x + y
    %wide = triton.cast %x : ...          ->        x.to(tl.float32)

An expression may lack axes of extent 1 or be a number where the IR has a tile: Triton broadcasts.
`exact` writes what has the shape and type of the IR.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tapestry.algebra.dtypes import is_integer, is_storage_only
from tapestry.codegen.expressions import (
    ATOM,
    Shown,
    binary,
    call,
    dtype,
    dtype_name,
    literal,
    method,
    negation,
    number,
    tensor,
    typed,
    unsigned_dtype,
)
from tapestry.codegen.helpers import HELPERS
from tapestry.codegen.vocabulary import (
    CALLS,
    PRECISE,
    SIGNS,
    UNSIGNED_CALLS,
    UNSIGNED_SIGNS,
    Shared,
)
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, is_approximate, shape_of
from tapestry.locations import location_of


class ValuePrinter:
    """The Python of values, as far as what they are made of has been shown."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._shown: dict[SSAValue, Shown] = {}

    def text(self, value: SSAValue) -> str:
        """The Python of a value."""
        return self._shown[value].text

    def exact(self, value: SSAValue) -> str:
        """The Python of a value with the shape and type that the IR gives it."""
        shown = self._shown[value]
        if shown.shape == shape_of(value):
            return typed(shown, element_of(value)).text
        owner = value.owner
        sizes = ", ".join(map(str, shape_of(value)))
        if isinstance(owner, triton.BroadcastOp) and owner.blocks is not None:
            sizes = ", ".join(block.data for block in owner.blocks)
        if shown.literal:
            return f"tl.full([{sizes}], {shown.text}, {dtype(element_of(value))})"
        return f"tl.broadcast_to({shown.text}, [{sizes}])"

    def expression(self, op: Operation) -> Shown:
        """The Python of an operation with one result and no effect."""
        kind = type(op)
        operands = [self._shown[operand] for operand in op.operands]
        if kind in PRECISE and element_of(op.results[0]) == f32 and not is_approximate(op):
            numbers = all(operand.literal for operand in operands)
            known = self._tensors(op, operands) if numbers else operands
            return self._helper(PRECISE[kind], *known)
        if kind in SIGNS:
            a, b = self._weak(op, operands)
            made, block = binary(SIGNS[kind], a, b), op.attributes.get(triton.MULTIPLE_OF)
            if not isinstance(block, StringAttr):
                return made
            return call("tl.multiple_of", made, more=block.data)
        if kind in CALLS:
            function, more = CALLS[kind]
            if function in HELPERS:
                self._shared.helpers.add(function)
            if function in HELPERS or all(operand.literal for operand in operands):
                return call(function, *self._tensors(op, operands), more=more)
            pairs = zip(operands, op.operands, strict=True)
            known = [typed(shown, element_of(value)) for shown, value in pairs]
            return call(function, *known, more=more)
        if kind in UNSIGNED_SIGNS or kind in UNSIGNED_CALLS:
            element = element_of(op.results[0])
            name = unsigned_dtype(element)
            a, b = (method(x, "to", name) for x in self._tensors(op, operands))
            sign = UNSIGNED_SIGNS.get(kind)
            made = call(UNSIGNED_CALLS[kind], a, b) if sign is None else binary(sign, a, b)
            return method(made, "to", dtype(element))
        match op:
            case triton.PhiloxOp():
                self._shared.helpers.add("philox_word")
                pair = zip(operands, op.operands, strict=True)
                exact = [typed(shown, element_of(value)) for shown, value in pair]
                return call("philox_word", *exact, more=str(op.word.value.data))
            case arith.ConstantOp():
                assert isinstance(op.value, FloatAttr | IntegerAttr)
                return literal(op.value)
            case arith.NegfOp():
                return negation(*self._tensors(op, operands))
            case triton.CompareOp():
                a, b = self._weak(op, operands)
                return binary(op.predicate.data, a, b)
            case triton.WhereOp():
                condition, *sides = operands
                a, b = self._weak_sides(sides, element_of(op.lhs))
                return call("tl.where", condition, a, b)
            case triton.CastOp():
                (source,) = self._tensors(op, operands)
                return self._cast(source, op)
            case triton.BitcastOp():
                (source,) = self._tensors(op, operands)
                return method(source, "to", f"{dtype(element_of(op.result))}, bitcast=True")
            case triton.BroadcastOp():
                return operands[0]
            case triton.DescribeOp():
                return self._describe(op)
            case triton.LoadBlockOp():
                place = f"[{self.text(op.row)}, {self.text(op.column)}]"
                return Shown(f"{self.text(op.descriptor)}.load({place})", ATOM, shape_of(op.result))
            case triton.ExpandDimsOp():
                return _expanded(operands[0], op.axis.value.data)
            case triton.TransposeOp():
                return Shown(f"tl.trans({self.exact(op.source)})", ATOM, shape_of(op.result))
            case triton.DotOp():
                a, b, acc = (self.exact(value) for value in (op.a, op.b, op.acc))
                # Factors of other types have no other precision.
                wide = element_of(op.a) == f32
                if op.is_bf16x6:
                    self._shared.helpers.add("dot_bf16x6")
                    made = Shown(f"dot_bf16x6({a}, {b})", ATOM, shape_of(op.result))
                    start = Shown(acc, ATOM, shape_of(op.acc))
                    return made if _is_zero(op.acc) else binary("+", start, made)
                said = f', input_precision="{op.precision.data}"' if wide else ""
                if (summed := element_of(op.result)) != f32:
                    said = f", out_dtype={dtype(summed)}"  # Triton 3.6 takes it for float32
                start = "" if _is_zero(op.acc) else f", {acc}"
                return Shown(f"tl.dot({a}, {b}{start}{said})", ATOM, shape_of(op.result))
            case _:
                return self._constant_expression(op)

    def _constant_expression(self, op: Operation) -> Shown:
        """The Python of an operation that has no tile operands."""
        match op:
            case triton.ProgramIdOp():
                return Shown(f"tl.program_id({op.axis.value.data})", ATOM, ())
            case triton.CdivOp():
                return Shown(f"tl.cdiv({self.text(op.length)}, {op.block.data})", ATOM, ())
            case triton.BlockSizeOp():
                return Shown(op.block.data, ATOM, ())
            case triton.ArangeOp():
                return Shown(f"tl.arange(0, {op.block.data})", ATOM, shape_of(op.result))
            case triton.FullOp():
                sizes = ", ".join(block.data for block in op.blocks)
                element = dtype(element_of(op.result))
                text = f"tl.full([{sizes}], {number(op.value)}, {element})"
                return Shown(text, ATOM, shape_of(op.result))
            case _:
                raise InvalidProgramError(
                    f"{op.name} has no Python in a triton.kernel", location=location_of(op)
                )

    def _cast(self, source: Shown, op: triton.CastOp) -> Shown:
        before, after = element_of(op.source), element_of(op.result)
        target = dtype(after)
        if op.unsigned is not None:
            integer = before if is_integer(before) else after
            return method(method(source, "to", unsigned_dtype(integer)), "to", target)
        # GPUs differ in the 8-bit floats that they convert, and in how these overflow.
        if is_storage_only(before):
            bits = method(source, "to", "tl.int8, bitcast=True")
            return self._helper(f"from_{dtype_name(before)}", bits)
        if is_storage_only(after):
            bits = self._helper(f"to_{dtype_name(after)}", source)
            return method(bits, "to", f"{target}, bitcast=True")
        if not source.shape and _is_counted(op.source):
            # The interpreter has a loop's counter as a number of Python, without methods.
            return Shown(f"tl.cast({source.text}, {target})", ATOM, ())
        return method(source, "to", target)

    def _helper(self, name: str, *operands: Shown) -> Shown:
        if name in HELPERS:
            self._shared.helpers.add(name)
        return call(name, *operands)

    def _tensors(self, op: Operation, operands: Sequence[Shown]) -> list[Shown]:
        pairs = zip(operands, op.operands, strict=True)
        return [tensor(shown, element_of(value)) for shown, value in pairs]

    def _weak(self, op: Operation, operands: Sequence[Shown]) -> list[Shown]:
        return self._weak_sides(operands, element_of(op.operands[0]))

    def _weak_sides(self, sides: Sequence[Shown], element: Attribute) -> list[Shown]:
        """Operands that agree on a type: a number takes the other's, two numbers need one."""
        a, b = sides
        return [tensor(a, element), b] if a.literal and b.literal else [a, b]

    def address(self, pointer: SSAValue, offsets: SSAValue) -> str:
        text = self.exact(offsets)
        return self.text(pointer) if text == "0" else f"{self.text(pointer)} + {text}"

    def _describe(self, op: triton.DescribeOp) -> Shown:
        shape = f"[{self.text(op.rows)}, {self.text(op.columns)}]"
        blocks = ", ".join(block.data for block in op.blocks)
        items = [
            self.address(op.pointer, op.base),
            f"shape={shape}",
            f"strides=[{op.stride.value.data}, 1]",
            f"block_shape=[{blocks}]",
        ]
        return Shown(f"tl.make_tensor_descriptor({', '.join(items)})", ATOM, ())


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is a new tile of zeros."""
    owner = value.owner
    return isinstance(owner, triton.FullOp) and float(owner.value.value.data) == 0.0


def _is_counted(value: SSAValue) -> bool:
    """Whether a number is an argument, as loops' counters are, or a sum of such and constants."""
    owner = value.owner
    if isinstance(owner, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return all(_is_counted(operand) for operand in owner.operands)
    return isinstance(value, BlockArgument) or isinstance(
        owner, arith.ConstantOp | triton.BlockSizeOp
    )


def _expanded(shown: Shown, axis: int) -> Shown:
    if not shown.shape:
        return shown
    place = "[None, :]" if axis == 0 else "[:, None]"
    shape = (1, *shown.shape) if axis == 0 else (*shown.shape, 1)
    return Shown(f"{shown.within(ATOM)}{place}", ATOM, shape)
