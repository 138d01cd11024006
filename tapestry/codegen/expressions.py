"""Python text of tile values: operators, precedence, and the shapes that Triton infers.

A `Shown` is a piece of Python with how tightly it binds and the shape it evaluates to, which may be
smaller than the value's type says: Triton broadcasts operands by itself. Constants are shown as
bare numbers, which Triton gives the type of the other operand; where there is none, `typed` says
it.

    >>> product = binary("*", Shown("x", ATOM, (64, 1)), Shown("2.0", ATOM, (), literal=True))
    >>> binary("-", Shown("a", ATOM, ()), binary("+", product, Shown("b", ATOM, (1, 32)))).text
    'a - (x * 2.0 + b)'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf, isnan

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, bf16, f32, i1, i32
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import is_storage_only, numpy_dtype

ATOM = 10
"""How tightly names, numbers, calls and subscripts bind."""

UNARY = 9

_BINDING = {
    "*": 8,
    "/": 8,
    "//": 8,
    "%": 8,
    "+": 7,
    "-": 7,
    "<<": 6,
    ">>": 6,
    "&": 5,
    "^": 4,
    "|": 3,
}
_COMPARISON = 2

_LEAST = {str(-(1 << width - 1)) for width in (8, 16, 32, 64)}
"""Integers whose opposites may need a wider type."""

_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8e4nv",
    "f8E5M2": "float8e5",
    "i1": "int1",
    "i8": "int8",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}


@dataclass(frozen=True)
class Shown:
    """Python text, how tightly it binds, and the shape it has; `literal` for a bare number."""

    text: str
    binding: int
    shape: tuple[int, ...]
    literal: bool = False

    def within(self, binding: int) -> str:
        """The text as an operand of something that binds this tightly."""
        return self.text if self.binding >= binding else f"({self.text})"


_MINUS_ONE = Shown("-1.0", UNARY, (), literal=True)


def joint_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """What Triton broadcasts operands of some shapes to."""
    ranked = [shape for shape in shapes if shape]
    if not ranked:
        return ()
    return tuple(max(sizes) for sizes in zip(*ranked, strict=True))


def binary(sign: str, a: Shown, b: Shown) -> Shown:
    """`a sign b`; parentheses only where they change the meaning (or the order of floats)."""
    if sign == "+" and b.literal and b.text.startswith("-") and b.text not in _LEAST:
        # To add what is negative is to take it off.
        sign, b = "-", Shown(b.text[1:], ATOM, b.shape, literal=True)
    binding = _BINDING.get(sign, _COMPARISON)
    if binding == _COMPARISON:
        text = f"{a.within(3)} {sign} {b.within(3)}"
    else:
        text = f"{a.within(binding)} {sign} {b.within(binding + 1)}"
    return Shown(text, binding, joint_shape([a.shape, b.shape]))


def negation(a: Shown) -> Shown:
    """A float with its sign flipped: in Triton `-a` is `0 - a`, which has no -0.0."""
    return binary("*", a, _MINUS_ONE)


def call(function: str, *operands: Shown, more: str = "") -> Shown:
    """`function(operands)`, elementwise."""
    inside = ", ".join([*(operand.text for operand in operands), *([more] if more else [])])
    return Shown(f"{function}({inside})", ATOM, joint_shape([o.shape for o in operands]))


def method(operand: Shown, name: str, arguments: str) -> Shown:
    """`operand.name(arguments)`, elementwise."""
    return Shown(f"{operand.within(ATOM)}.{name}({arguments})", ATOM, operand.shape)


def dtype(element: Attribute) -> str:
    """Triton's name of an element type: `tl.float32`."""
    return f"tl.{_DTYPES[str(element)]}"


def unsigned_dtype(element: Attribute) -> str:
    """Triton's name of the unsigned type with the bits of an integer type: `tl.uint32`."""
    return f"tl.u{_DTYPES[str(element)]}"


def dtype_name(element: Attribute) -> str:
    """The name of an element type for PyTorch: `float32`, `bool`."""
    if element == i1:
        return "bool"
    return {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}.get(
        str(element), _DTYPES[str(element)]
    )


def number(value: FloatAttr | IntegerAttr) -> str:
    """A constant as a Python expression."""
    if isinstance(value, IntegerAttr):
        data = value.value.data
        return str(bool(data)) if value.type == i1 else str(data)
    data = value.value.data
    if isnan(data):
        return 'float("nan")'
    if isinf(data):
        return 'float("inf")' if data > 0 else 'float("-inf")'
    # The shortest text that rounds to the same number in the constant's own type.
    unnamed = is_storage_only(value.type) or value.type == bf16
    exact = numpy_dtype(f32 if unnamed else value.type).type(data)
    return str(exact)


def literal(value: FloatAttr | IntegerAttr) -> Shown:
    """A constant as a bare number."""
    text = number(value)
    if isinstance(value, FloatAttr) and text == "-0.0":
        # Triton makes zeros without a sign; products have one.
        product = binary("*", Shown("tl.full([], 0.0, tl.float32)", ATOM, ()), _MINUS_ONE)
        return product if value.type == f32 else method(product, "to", dtype(value.type))
    return Shown(text, UNARY if text.startswith("-") else ATOM, (), literal=True)


def typed(shown: Shown, element: Attribute) -> Shown:
    """A value that has its own type where Triton would guess it.

    Triton takes a bare float for a float32 and a bare integer for an int32.
    """
    return shown if element in (f32, i32, i1) else tensor(shown, element)


def tensor(shown: Shown, element: Attribute) -> Shown:
    """A value that is Triton's: on bare numbers alone, Python would compute."""
    if not shown.literal:
        return shown
    return Shown(f"tl.full([], {shown.text}, {dtype(element)})", ATOM, ())
