"""One `triton.kernel` as a `@triton.jit` function.

Values that are used once and are short are written where they are used; the others become
variables, named after the values of the program they come from. Nothing else is decided here: each
operation of the dialect is one expression or statement of Triton's language.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

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
from tapestry.codegen.lines import assignments, statement
from tapestry.codegen.vocabulary import (
    CALLS,
    DEFAULT_NAMES,
    INDENT,
    NUMERICS,
    SIGNS,
    UNSIGNED_CALLS,
    UNSIGNED_SIGNS,
    Shared,
    comment,
    fresh,
    ready_reduction,
    wrapped,
)
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of
from tapestry.locations import location_of

_LONG_LABEL = 12
"""Labels from this length on are left out of variables' names."""

_LONGEST_INLINE = 40
"""Expressions longer than this get a variable."""


class BodyPrinter:
    """Prints the operations of a block as lines of Python.

    `names` are taken, `combiners` names the functions that reductions combine with. Variables that
    start with the kernel's `label` are named by what follows, if that is long.
    """

    def __init__(
        self,
        shared: Shared,
        names: set[str],
        combiners: Mapping[triton.CombineOp, str],
        label: str = "",
    ) -> None:
        self._shared = shared
        self._label = label
        self._names = names
        self._combiners = combiners
        self._shown: dict[SSAValue, Shown] = {}
        self.lines: list[str] = []
        self._depth = 1

    def argument(self, value: SSAValue, fallback: str) -> str:
        """Declare a function argument and return its name."""
        name = fresh(value.name_hint or fallback, self._names)
        self._shown[value] = Shown(name, ATOM, shape_of(value))
        return name

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

    def print_block(self, block: Block) -> None:
        """Print every operation of a block but its terminator."""
        for op in block.ops:
            self._print(op)

    def _line(self, text: str) -> None:
        self.lines += statement(text, self._depth)

    def _print(self, op: Operation) -> None:
        match op:
            case triton.LoadOp():
                self._load(op)
            case triton.StoreOp():
                self._store(op)
            case triton.AssertOp():
                items = [self.text(op.condition), json.dumps(op.message.data)]
                self.lines += wrapped("tl.device_assert(", items, ")", self._depth)
            case scf.ForOp():
                self._loop(op)
            case triton.SwizzleOp():
                self._swizzle(op)
            case triton.StoreBlockOp():
                place = f"[{self.text(op.row)}, {self.text(op.column)}]"
                value = typed(self._shown[op.value], element_of(op.value)).text
                self.lines += wrapped(
                    f"{self.text(op.descriptor)}.store(", [place, value], ")", self._depth
                )
            case triton.ReduceOp() | triton.ScanOp():
                self._combine(op)
            case triton.CoverOp():
                length = op.length.value.data
                self._line(f"tl.static_assert({op.block.data} >= {length})")
            case scf.YieldOp() | triton.YieldOp():
                pass
            case _:
                self._bind(op.results[0], self._expression(op), isinstance(op, _CHEAP))

    def _bind(self, value: SSAValue, shown: Shown, cheap: bool) -> None:
        """Make a variable of a value, unless it is better written where it is used."""
        uses = list(_uses(value))
        if not uses:
            return
        op = value.owner
        once = len(uses) == 1
        if once and isinstance(uses[0], scf.YieldOp | triton.YieldOp):
            cheap = True
        nested = any(use.parent is not value.owner.parent for use in uses)
        short = len(shown.text) <= _LONGEST_INLINE
        if cheap or (once and short and not nested and not isinstance(op, _STATEMENTS)):
            self._shown[value] = shown
            return
        assert isinstance(op, Operation)
        fallback = "mask" if element_of(value) == i1 else "value"
        name = self._fresh(value, DEFAULT_NAMES.get(op.name, fallback))
        self._line(f"{name} = {shown.text}")
        self._shown[value] = Shown(name, ATOM, shown.shape)

    def _fresh(self, value: SSAValue, fallback: str) -> str:
        hint = value.name_hint or fallback
        if len(self._label) < _LONG_LABEL:
            pass
        elif hint == self._label:
            hint = "out"
        elif hint.startswith(f"{self._label}_"):
            hint = hint[len(self._label) + 1 :]
        return fresh(hint, self._names)

    def _address(self, pointer: SSAValue, offsets: SSAValue) -> str:
        text = self.exact(offsets)
        return self.text(pointer) if text == "0" else f"{self.text(pointer)} + {text}"

    def _load(self, op: triton.LoadOp) -> None:
        items = [self._address(op.pointer, op.offsets)]
        if op.mask is not None and op.other is not None:
            items += [f"mask={self.text(op.mask)}", f"other={number(op.other)}"]
        name = self._fresh(op.result, "x")
        self.lines += wrapped(f"{name} = tl.load(", items, ")", self._depth)
        self._shown[op.result] = Shown(name, ATOM, shape_of(op.result))

    def _store(self, op: triton.StoreOp) -> None:
        # Triton broadcasts a stored value and its mask to the shape of the address.
        value = typed(self._shown[op.value], element_of(op.value)).text
        items = [self._address(op.pointer, op.offsets), value]
        if op.mask is not None:
            items.append(f"mask={self.text(op.mask)}")
        self.lines += wrapped("tl.store(", items, ")", self._depth)

    def _loop(self, op: scf.ForOp) -> None:
        index, *carried = op.body.block.args
        names: list[str] = []
        for argument, init, result in zip(carried, op.iter_args, op.res, strict=True):
            if isinstance(init.owner, scf.ForOp) and init.has_one_use():
                # What a loop before this one carried is carried on.
                name = self.text(init)
            else:
                name = self._fresh(argument, "carried")
                self._line(f"{name} = {self.exact(init)}")
            shown = Shown(name, ATOM, shape_of(argument))
            self._shown[argument] = self._shown[result] = shown
            names.append(name)
        counter = self._fresh(index, "start")
        self._shown[index] = Shown(counter, ATOM, ())
        bounds = ", ".join(self.text(value) for value in (op.lb, op.ub, op.step))
        loop = (
            f"tl.range({bounds}, flatten=True)"
            if triton.FLATTEN in op.attributes
            else f"range({bounds})"
        )
        self._line(f"for {counter} in {loop}:")
        self._depth += 1
        self.print_block(op.body.block)
        end = op.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        steps = [self.exact(value) for value in end.operands]
        if names:
            for line in assignments(dict(zip(names, steps, strict=True))):
                self._line(line)
        self._depth -= 1

    def _swizzle(self, op: triton.SwizzleOp) -> None:
        names = [self._fresh(result, "block") for result in op.results]
        for name, result in zip(names, op.results, strict=True):
            self._shown[result] = Shown(name, ATOM, ())
        operands = ", ".join(self.text(value) for value in op.operands)
        self._line(f"{', '.join(names)} = tl.swizzle2d({operands}, {op.group.data})")

    def _describe(self, op: triton.DescribeOp) -> Shown:
        shape = f"[{self.text(op.rows)}, {self.text(op.columns)}]"
        blocks = ", ".join(block.data for block in op.blocks)
        items = [
            self._address(op.pointer, op.base),
            f"shape={shape}",
            f"strides=[{op.stride.value.data}, 1]",
            f"block_shape=[{blocks}]",
        ]
        return Shown(f"tl.make_tensor_descriptor({', '.join(items)})", ATOM, ())

    def _combine(self, op: triton.ReduceOp | triton.ScanOp) -> None:
        names = [self._fresh(out, "folded") for out in op.outs]
        for name, out in zip(names, op.outs, strict=True):
            self._shown[out] = Shown(name, ATOM, shape_of(out))
        long = sum(len(self.exact(tile)) for tile in op.tiles) > _LONGEST_INLINE
        tiles = [self._named(tile) if long else self.exact(tile) for tile in op.tiles]
        axis = op.axis.value.data
        ready = ready_reduction(op)
        function = "tl.reduce" if isinstance(op, triton.ReduceOp) else "tl.associative_scan"
        if ready is not None:
            self._line(f"{names[0]} = {ready}({tiles[0]}, axis={axis})")
            return
        whole = tiles[0] if len(tiles) == 1 else f"({', '.join(tiles)})"
        self._line(f"{', '.join(names)} = {function}({whole}, {axis}, {self._combiners[op]})")

    def _named(self, value: SSAValue) -> str:
        """The exact Python of a value, by way of a variable when it is an expression."""
        text = self.exact(value)
        if text.isidentifier():
            return text
        name = self._fresh(value, "value")
        self._line(f"{name} = {text}")
        return name

    def _expression(self, op: Operation) -> Shown:
        """The Python of an operation with one result and no effect."""
        kind = type(op)
        operands = [self._shown[operand] for operand in op.operands]
        if kind in SIGNS:
            a, b = self._weak(op, operands)
            return binary(SIGNS[kind], a, b)
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
                # Factors of 16 bits have no other precision.
                wide = element_of(op.a) == f32
                precision = f', input_precision="{op.precision.data}"' if wide else ""
                start = "" if _is_zero(op.acc) else f", {acc}"
                return Shown(f"tl.dot({a}, {b}{start}{precision})", ATOM, shape_of(op.result))
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
        if isinstance(op.source, BlockArgument) and not source.shape:
            # A loop's counter: the interpreter has it as a number of Python, without methods.
            return Shown(f"tl.cast({source.text}, {target})", ATOM, ())
        return method(source, "to", target)

    def _helper(self, name: str, *operands: Shown) -> Shown:
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


def _uses(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a value, seen through those that only shape it."""
    for use in value.uses:
        if isinstance(use.operation, triton.BroadcastOp | triton.ExpandDimsOp):
            yield from _uses(use.operation.results[0])
        else:
            yield use.operation


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is a new tile of zeros."""
    owner = value.owner
    return isinstance(owner, triton.FullOp) and float(owner.value.value.data) == 0.0


def _expanded(shown: Shown, axis: int) -> Shown:
    if not shown.shape:
        return shown
    place = "[None, :]" if axis == 0 else "[:, None]"
    shape = (1, *shown.shape) if axis == 0 else (*shown.shape, 1)
    return Shown(f"{shown.within(ATOM)}{place}", ATOM, shape)


_CHEAP = (
    arith.ConstantOp,
    triton.BlockSizeOp,
    triton.BroadcastOp,
    triton.ExpandDimsOp,
    triton.FullOp,
)
"""Written wherever they are used."""

_STATEMENTS = (triton.DescribeOp, triton.LoadBlockOp, triton.DotOp)
"""Always a line of their own."""


@dataclass(frozen=True)
class PrintedKernel:
    """A kernel as a Python function: its name, its arguments that are not blocks, its source."""

    name: str
    arguments: tuple[str, ...]
    text: str


def print_kernel(kernel: triton.KernelOp, name: str, shared: Shared) -> PrintedKernel:
    """The `@triton.jit` function of a kernel, under a comment that says what it computes."""
    blocks = kernel.constants
    reductions = [op for op in kernel.body.walk() if isinstance(op, triton.CombineOp)]
    # Combiners come first, so that no variable takes the name of one.
    combiners = {op: _combiner(op, shared) for op in reductions if ready_reduction(op) is None}
    printer = BodyPrinter(shared, {*shared.names, *blocks}, combiners, name)
    arguments = [printer.argument(a, f"arg{n}") for n, a in enumerate(kernel.body.block.args)]
    parameters = [*arguments, *(f"{block}: tl.constexpr" for block in blocks)]
    printer.print_block(kernel.body.block)
    signature = wrapped(f"def {name}(", parameters, "):")
    comments = [comment(origin.data) for origin in kernel.origins]
    comments.append(comment(f"  schedule: {kernel.schedule.data}"))
    if kernel.numerics is not None:
        comments.append(
            comment(f"  numerics: {NUMERICS.get(kernel.numerics.data, kernel.numerics.data)}")
        )
    lines = [*comments, "@triton.jit", *signature, *printer.lines]
    return PrintedKernel(name, tuple(arguments), "\n".join(lines) + "\n")


def _combiner(op: triton.CombineOp, shared: Shared) -> str:
    """The name of the function that combines two states."""
    block = op.combiner.block
    printer = BodyPrinter(shared, set(shared.names), {})
    parameters = [printer.argument(a, "state") for a in block.args]
    printer.print_block(block)
    end = block.last_op
    assert isinstance(end, triton.YieldOp)
    merged = ", ".join(printer.exact(value) for value in end.values)
    lines = [*printer.lines, f"{INDENT}return {merged}"]
    return shared.combiner(op.label.data, ", ".join(parameters), lines)
