"""One `triton.kernel` as a `@triton.jit` function.

Values that are used once and are short are written where they are used; the others become
variables, named after the values of the program they come from. Nothing else is decided here: each
operation of the dialect is one expression (`value_printer`) or statement of Triton's language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from tapestry.codegen.expressions import (
    ATOM,
    Shown,
    number,
    typed,
)
from tapestry.codegen.lines import assignments, statement
from tapestry.codegen.value_printer import ValuePrinter
from tapestry.codegen.vocabulary import (
    DEFAULT_NAMES,
    INDENT,
    NUMERICS,
    Shared,
    comment,
    fresh,
    ready_reduction,
    wrapped,
)
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of

_LONG_LABEL = 12
"""Labels from this length on are left out of variables' names."""

_NEAR = (1 << 31) - triton.MAX_CELLS
"""An end from which the next step may be beyond 32 bits."""

_LONGEST_INLINE = 40
"""Expressions longer than this get a variable."""


class BodyPrinter(ValuePrinter):
    """Prints the operations of a block as lines of Python.

    `names` are taken, `combiners` names the functions that reductions combine with. Variables that
    start with the kernel's `label` are named by what follows, if that is long. `stages` is how many
    steps of pipelined loops are in flight.
    """

    def __init__(
        self,
        shared: Shared,
        names: set[str],
        combiners: Mapping[triton.CombineOp, str],
        label: str = "",
        stages: int = 1,
    ) -> None:
        super().__init__(shared)
        self._label = label
        self._stages = stages
        self._names = names
        self._combiners = combiners
        self.lines: list[str] = []
        self._depth = 1

    def argument(self, value: SSAValue, fallback: str) -> str:
        """Declare a function argument and return its name."""
        name = fresh(value.name_hint or fallback, self._names)
        self._shown[value] = Shown(name, ATOM, shape_of(value))
        return name

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
            case scf.IfOp():
                self._branch(op)
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
                cheap = isinstance(op, _CHEAP) or _is_stepped_address(op)
                self._bind(op.results[0], self.expression(op), cheap)

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
        return fresh(self._short(value.name_hint or fallback), self._names)

    def _short(self, hint: str) -> str:
        """A name without the kernel's label in front, if that is long."""
        if len(self._label) < _LONG_LABEL:
            return hint
        return "out" if hint == self._label else hint.removeprefix(f"{self._label}_")

    def _load(self, op: triton.LoadOp) -> None:
        items = [self.address(op.pointer, op.offsets)]
        if op.mask is not None and op.other is not None:
            items += [f"mask={self.text(op.mask)}", f"other={number(op.other)}"]
        if op.evict is not None:
            items.append(f'eviction_policy="evict_{op.evict.data}"')
        # A cell is called as the tensor is that it is a cell of, unless more is said of it.
        tensor = re.sub(r"_ptr(_\d+)?$", r"\1", self.text(op.pointer))
        hint = op.result.name_hint or ""
        named = hint if hint.removeprefix(f"{tensor}_") not in ("", hint) else tensor
        name = fresh(self._short(named), self._names)
        self.lines += wrapped(f"{name} = tl.load(", items, ")", self._depth)
        self._shown[op.result] = Shown(name, ATOM, shape_of(op.result))

    def _store(self, op: triton.StoreOp) -> None:
        # Triton broadcasts a stored value and its mask to the shape of the address.
        value = typed(self._shown[op.value], element_of(op.value)).text
        items = [self.address(op.pointer, op.offsets), value]
        if op.mask is not None:
            items.append(f"mask={self.text(op.mask)}")
        if op.evict is not None:
            items.append(f'eviction_policy="evict_{op.evict.data}"')
        function = "tl.store("
        if op.atomic is not None:
            # Whoever reads the cells is launched later.
            items.append('sem="relaxed"')
            function = f"tl.atomic_{op.atomic.data}("
        self.lines += wrapped(function, items, ")", self._depth)

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
        first, end, step = (self.text(value) for value in (op.lb, op.ub, op.step))
        taken = counter
        if triton.BACKWARD in op.attributes:
            taken = fresh(f"{counter}_back", self._names)
        start = f"tl.cast({first}, tl.int64)" if _passes_32_bits(op) else first
        bounds = f"{start}, {end}" if step == "1" else f"{start}, {end}, {step}"
        self._line(f"for {taken} in {self._range(op, bounds)}:")
        self._depth += 1
        if taken != counter:
            length = end if first == "0" else f"{end} - {first}"
            last = f"(tl.cdiv({length}, {step}) - 1) * {step}"
            last = last if first == "0" else f"2 * {first} + {last}"
            self._line(f"{counter} = {last} - {taken}")
        self.print_block(op.body.block)
        stop = op.body.block.last_op
        assert isinstance(stop, scf.YieldOp)
        steps = [self.exact(value) for value in stop.operands]
        if names:
            for line in assignments(dict(zip(names, steps, strict=True))):
                self._line(line)
        self._depth -= 1

    def _range(self, op: scf.ForOp, bounds: str) -> str:
        """What a loop walks, with how it is compiled where that is said."""
        if triton.WRITTEN_OUT in op.attributes:
            return f"tl.static_range({bounds})"
        how: dict[str, bool | int] = {}
        if triton.FLATTEN in op.attributes:
            how["flatten"] = True
        if triton.PIPELINED in op.attributes:
            how["num_stages"] = self._stages
        unroll = op.attributes.get(triton.UNROLL)
        if isinstance(unroll, IntegerAttr):
            how["loop_unroll_factor"] = unroll.value.data
        said = "".join(f", {name}={value}" for name, value in how.items())
        return f"tl.range({bounds}{said})" if how else f"range({bounds})"

    def _branch(self, op: scf.IfOp) -> None:
        names = [self._fresh(result, "chosen") for result in op.results]
        self._line(f"if {self.text(op.cond)}:")
        for word, region in ((None, op.true_region), ("else", op.false_region)):
            if word is not None:
                self._line(f"{word}:")
            self._depth += 1
            self.print_block(region.block)
            end = region.block.last_op
            assert isinstance(end, scf.YieldOp)
            for name, value in zip(names, end.operands, strict=True):
                self._line(f"{name} = {self.exact(value)}")
            self._depth -= 1
        for name, result in zip(names, op.results, strict=True):
            self._shown[result] = Shown(name, ATOM, shape_of(result))

    def _swizzle(self, op: triton.SwizzleOp) -> None:
        names = [self._fresh(result, "block") for result in op.results]
        for name, result in zip(names, op.results, strict=True):
            self._shown[result] = Shown(name, ATOM, ())
        operands = ", ".join(self.text(value) for value in op.operands)
        self._line(f"{', '.join(names)} = tl.swizzle2d({operands}, {op.group.data})")

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


def _passes_32_bits(loop: scf.ForOp) -> bool:
    """Whether a loop's counter of 64 bits ends beyond 32, though the loop's end is not.

    Triton gives a counter the type of its bounds, and numbers that fit have 32 bits.
    """
    end = loop.ub.owner
    if loop.lb.type != i64 or not isinstance(end, arith.ConstantOp):
        return False
    number = end.value
    return isinstance(number, IntegerAttr) and _NEAR <= number.value.data < 1 << 31


def _uses(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a value, seen through those that only shape it."""
    for use in value.uses:
        if isinstance(use.operation, triton.BroadcastOp | triton.ExpandDimsOp):
            yield from _uses(use.operation.results[0])
        else:
            yield use.operation


def _is_stepped_address(op: Operation) -> bool:
    """Whether an operation adds what a loop that is written out steps along to an address.

    Added to the pointer last, by itself, it is a number in the instruction that loads.
    """
    loop = op.parent_op()
    if not isinstance(op, arith.AddiOp) or not isinstance(loop, scf.ForOp):
        return False
    return triton.WRITTEN_OUT in loop.attributes and all(
        isinstance(use, triton.LoadOp | triton.StoreOp) and use.mask is not op.result
        for use in _uses(op.result)
    )


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
    names = {*(shared.names - shared.kernels), name, *blocks}
    printer = BodyPrinter(shared, names, combiners, name, kernel.stages)
    arguments = [printer.argument(a, f"arg{n}") for n, a in enumerate(kernel.body.block.args)]
    parameters = [*arguments, *(f"{block}: tl.constexpr" for block in blocks)]
    printer.print_block(kernel.body.block)
    signature = wrapped(f"def {name}(", parameters, "):")
    said = [origin.data for origin in kernel.origins]
    said.append(f"  schedule: {kernel.schedule.data}")
    parts = kernel.schedule.data.parts
    if parts > 1:
        said.append(f"  {parts} programs merge what each folded, in any order")
    products = [op for op in kernel.body.walk() if isinstance(op, triton.DotOp)]
    if kernel.numerics is not None:
        policy = kernel.numerics.data
        always, of_products = NUMERICS.get(policy, ("", ""))
        rounding = (policy, always + (f"; {of_products}" if products and of_products else ""))
        said.append(f"  numerics: {': '.join(filter(None, rounding))}")
    if any(op.is_bf16x6 for op in products):
        said.append("  float32 products: as six of bfloat16, within 2^-20 of each")
    comments = [line for text in said for line in comment(text)]
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
