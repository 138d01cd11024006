"""One `triton.kernel` as a `@triton.jit` function.

Values that are used once and are short are written where they are used; the others become variables,
named after the values of the program they come from. Nothing else is decided here: each operation of
the dialect is one expression or statement of Triton's language.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tapestry.codegen.expressions import (
    ATOM,
    Shown,
    binary,
    call,
    dtype,
    literal,
    method,
    negation,
    number,
    typed,
)
from tapestry.codegen.helpers import HELPERS
from tapestry.dialects import triton
from tapestry.dialects.triton import element_of, shape_of

_LONGEST_INLINE = 44
"""Expressions longer than this get a variable."""

_INDENT = "    "

_SIGNS: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.AddiOp: "+",
    arith.SubfOp: "-",
    arith.SubiOp: "-",
    arith.MulfOp: "*",
    arith.MuliOp: "*",
    arith.DivfOp: "/",
    arith.DivSIOp: "//",
    arith.RemSIOp: "%",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
}

_PROPAGATE = "propagate_nan=tl.PropagateNan.ALL"

_CALLS: dict[type[Operation], tuple[str, str]] = {
    arith.MaximumfOp: ("tl.maximum", _PROPAGATE),
    arith.MinimumfOp: ("tl.minimum", _PROPAGATE),
    arith.MaxnumfOp: ("tl.maximum", ""),
    arith.MinnumfOp: ("tl.minimum", ""),
    arith.MaxSIOp: ("tl.maximum", ""),
    arith.MinSIOp: ("tl.minimum", ""),
    math.AbsFOp: ("tl.abs", ""),
    math.AbsIOp: ("tl.abs", ""),
    math.CeilOp: ("tl.ceil", ""),
    math.CosOp: ("tl.cos", ""),
    math.ErfOp: ("tl.erf", ""),
    math.ExpOp: ("tl.exp", ""),
    math.Exp2Op: ("tl.exp2", ""),
    math.ExpM1Op: ("expm1", ""),
    math.FloorOp: ("tl.floor", ""),
    math.LogOp: ("tl.log", ""),
    math.Log1pOp: ("log1p", ""),
    math.Log2Op: ("tl.log2", ""),
    math.PowFOp: ("power", ""),
    math.RoundEvenOp: ("round_even", ""),
    math.RsqrtOp: ("tl.rsqrt", ""),
    math.SinOp: ("tl.sin", ""),
    math.SqrtOp: ("tl.sqrt", ""),
    math.TanhOp: ("tanh", ""),
}

_READY_REDUCTIONS: dict[tuple[type[Operation], Attribute], str] = {
    (arith.AddfOp, f32): "tl.sum",
    (arith.AddfOp, f64): "tl.sum",
    (arith.AddiOp, i32): "tl.sum",
    (arith.AddiOp, i64): "tl.sum",
    (arith.MaxSIOp, i32): "tl.max",
    (arith.MaxSIOp, i64): "tl.max",
    (arith.MinSIOp, i32): "tl.min",
    (arith.MinSIOp, i64): "tl.min",
}
"""Reductions of Triton that mean exactly this; its float maxima would drop NaN."""

_DEFAULT_NAMES = {
    "triton.load": "x",
    "triton.compare": "mask",
    "triton.reduce": "folded",
    "triton.dot": "acc",
    "arith.andi": "mask",
    "arith.addi": "offsets",
    "arith.muli": "offsets",
}


@dataclass
class Shared:
    """What the kernels of one module share: combiners by their text, and the helpers they call."""

    names: set[str]
    combiners: dict[str, str] = field(default_factory=dict[str, str])
    helpers: set[str] = field(default_factory=set[str])

    def combiner(self, label: str, parameters: str, body: Sequence[str]) -> str:
        """The name of the `@triton.jit` function with this text, made when there is none."""
        text = "\n".join([f"({parameters}):", *body])
        if text not in self.combiners:
            self.combiners[text] = fresh(f"combine_{label}", self.names)
        return self.combiners[text]


def fresh(wanted: str, taken: set[str]) -> str:
    """`wanted` as a Python name that is not in `taken`, which it is added to."""
    name = re.sub(r"\W", "_", wanted, flags=re.ASCII)
    if not name or name[0].isdigit() or keyword.iskeyword(name):
        name = f"v_{name}"
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    taken.add(unique)
    return unique


class BodyPrinter:
    """Prints the operations of a block as lines of Python."""

    def __init__(self, shared: Shared, names: set[str]) -> None:
        self._shared = shared
        self._names = names
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
        self.lines.append(_INDENT * self._depth + text)

    def _print(self, op: Operation) -> None:
        match op:
            case triton.StoreOp():
                self._store(op)
            case scf.ForOp():
                self._loop(op)
            case triton.ReduceOp():
                self._reduce(op)
            case triton.CoverOp():
                length = op.length.value.data
                self._line(f"tl.static_assert({op.block.data} >= {length})")
            case scf.YieldOp() | triton.YieldOp():
                pass
            case _:
                self._bind(op.results[0], self._expression(op), _is_cheap(op))

    def _bind(self, value: SSAValue, shown: Shown, cheap: bool) -> None:
        """Make a variable of a value, unless it is better written where it is used."""
        uses = [use.operation for use in value.uses]
        if not uses:
            return
        nested = any(use.parent is not value.owner.parent for use in uses if _has_parent(value))
        short = len(shown.text) <= _LONGEST_INLINE
        if cheap or (len(uses) == 1 and short and not nested and not _is_memory(value)):
            self._shown[value] = shown
            return
        name = fresh(value.name_hint or _DEFAULT_NAMES.get(_owner_name(value), "value"), self._names)
        self._line(f"{name} = {shown.text}")
        self._shown[value] = Shown(name, ATOM, shown.shape)
