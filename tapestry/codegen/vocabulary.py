"""Triton's words for the dialect's operations, and the names that a printed module uses."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, Operation

from tapestry.dialects import triton
from tapestry.dialects.triton import element_of

LONGEST_LINE = 100

INDENT = "    "

SIGNS: dict[type[Operation], str] = {
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
    arith.ShLIOp: "<<",
    arith.ShRSIOp: ">>",
}

UNSIGNED_SIGNS: dict[type[Operation], str] = {
    arith.DivUIOp: "//",
    arith.RemUIOp: "%",
    arith.ShRUIOp: ">>",
}
"""Signs that mean this on Triton's unsigned types."""

UNSIGNED_CALLS: dict[type[Operation], str] = {
    arith.MaxUIOp: "tl.maximum",
    arith.MinUIOp: "tl.minimum",
}

_PROPAGATE = "propagate_nan=tl.PropagateNan.ALL"

CALLS: dict[type[Operation], tuple[str, str]] = {
    arith.MaximumfOp: ("tl.maximum", _PROPAGATE),
    arith.MinimumfOp: ("tl.minimum", _PROPAGATE),
    arith.MaxnumfOp: ("tl.maximum", ""),
    arith.MinnumfOp: ("tl.minimum", ""),
    arith.MaxSIOp: ("tl.maximum", ""),
    arith.MinSIOp: ("tl.minimum", ""),
    math.AbsFOp: ("tl.abs", ""),
    math.AbsIOp: ("tl.abs", ""),
    math.AcosOp: ("arc_cosine", ""),
    math.AcoshOp: ("area_cosine", ""),
    math.AsinOp: ("arc_sine", ""),
    math.AsinhOp: ("area_sine", ""),
    math.AtanOp: ("arc_tangent", ""),
    math.Atan2Op: ("angle", ""),
    math.AtanhOp: ("area_tangent", ""),
    math.CbrtOp: ("cube_root", ""),
    math.CeilOp: ("ceiling", ""),
    math.CopySignOp: ("copy_sign", ""),
    math.CosOp: ("tl.cos", ""),
    math.CoshOp: ("hyperbolic_cosine", ""),
    math.CountLeadingZerosOp: ("leading_zeros", ""),
    math.CountTrailingZerosOp: ("trailing_zeros", ""),
    math.CtPopOp: ("count_ones", ""),
    math.ErfOp: ("error_function", ""),
    triton.ErfcOp: ("complementary_error_function", ""),
    math.ExpOp: ("tl.exp", ""),
    math.Exp2Op: ("tl.exp2", ""),
    math.ExpM1Op: ("expm1", ""),
    math.FloorOp: ("floor", ""),
    math.FmaOp: ("tl.fma", ""),
    math.LogOp: ("tl.log", ""),
    math.Log1pOp: ("log1p", ""),
    math.Log2Op: ("tl.log2", ""),
    math.PowFOp: ("power", ""),
    math.RoundEvenOp: ("round_even", ""),
    math.RoundOp: ("round_half_away", ""),
    math.RsqrtOp: ("tl.rsqrt", ""),
    math.SinOp: ("tl.sin", ""),
    math.SinhOp: ("hyperbolic_sine", ""),
    math.SqrtOp: ("tl.sqrt", ""),
    math.TanhOp: ("tanh", ""),
    math.TruncOp: ("truncate", ""),
}

PRECISE: dict[type[Operation], str] = {
    arith.DivfOp: "tl.div_rn",
    math.SqrtOp: "tl.sqrt_rn",
    math.RsqrtOp: "inverse_root",
}
"""What float32 needs where the hardware's approximation will not do."""

READY_REDUCTIONS: dict[tuple[type[Operation], Attribute], str] = {
    (arith.AddfOp, f32): "tl.sum",
    (arith.AddfOp, f64): "tl.sum",
    (arith.AddiOp, i32): "tl.sum",
    (arith.AddiOp, i64): "tl.sum",
    (arith.MaxnumfOp, f32): "tl.max",
    (arith.MaxSIOp, i32): "tl.max",
    (arith.MaxSIOp, i64): "tl.max",
    (arith.MinSIOp, i32): "tl.min",
    (arith.MinSIOp, i64): "tl.min",
}
"""Reductions of Triton that mean exactly this; its float maxima drop NaN."""

READY_SCANS: dict[tuple[type[Operation], Attribute], str] = {
    (arith.AddfOp, f32): "tl.cumsum",
    (arith.AddfOp, f64): "tl.cumsum",
    (arith.AddiOp, i32): "tl.cumsum",
    (arith.AddiOp, i64): "tl.cumsum",
}
"""Scans of Triton that mean exactly this."""

NUMERICS = {
    "strict": ("every operation rounds as in the program; sums of 16 bits in float32", ""),
    "mixed": ("float32, up to how functions round", "factors of 16-bit ones may be rounded too"),
    "fast": ("float32, up to how functions round", "products in TF32, or of 16-bit factors"),
}
"""What is said of a policy above a kernel, and above one that multiplies matrices also."""

DEFAULT_NAMES = {
    "triton.arange": "lanes",
    "triton.dot": "acc",
    "triton.where": "chosen",
    "arith.addf": "total",
    "arith.divf": "quotient",
    "arith.mulf": "product",
    "arith.subf": "difference",
    "math.exp": "exp",
    "math.exp2": "exp",
    "math.fma": "exponent",
    "arith.addi": "offsets",
    "arith.muli": "offsets",
}


@dataclass
class Shared:
    """What the kernels of one module share: combiners by their text, and the helpers they call.

    `names` are taken in the module, by `kernels` too: these may have variables of each other's
    names, so that what a kernel looks like does not depend on what others there are.
    """

    names: set[str]
    kernels: set[str] = field(default_factory=set[str])
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
    name = python_name(wanted)
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    taken.add(unique)
    return unique


def python_name(wanted: str) -> str:
    """`wanted` as a Python name: `class` is `class_`, `2x` is `v_2x`."""
    name = re.sub(r"\W", "_", wanted, flags=re.ASCII)
    if not name or name[0].isdigit():
        return f"v_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def wrapped(head: str, items: Sequence[str], tail: str, depth: int = 0) -> list[str]:
    """`head item, item tail` at an indentation, with a line for each item when one is too long."""
    start = INDENT * depth
    line = f"{start}{head}{', '.join(items)}{tail}"
    if len(line) <= LONGEST_LINE:
        return [line]
    return [f"{start}{head}", *(f"{start}{INDENT}{item}," for item in items), f"{start}{tail}"]


def ready_reduction(op: triton.CombineOp) -> str | None:
    """Triton's own reduction or scan that does what the combiner does."""
    body = list(op.combiner.block.ops)
    if len(op.tiles) != 1 or len(body) != 2:
        return None
    single, end = body
    same = tuple(single.operands) == tuple(op.combiner.block.args)
    if not same or tuple(end.operands) != tuple(single.results):
        return None
    ready = READY_REDUCTIONS if isinstance(op, triton.ReduceOp) else READY_SCANS
    return ready.get((type(single), element_of(op.tiles[0])))


def comment(text: str) -> list[str]:
    """Lines of a comment, whatever a label or a file name holds; what goes on is indented more."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    body = shown.lstrip(" ")
    start = "# " + " " * (len(shown) - len(body))
    return textwrap.wrap(
        body,
        LONGEST_LINE,
        initial_indent=start,
        subsequent_indent=f"{start}{INDENT}",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
