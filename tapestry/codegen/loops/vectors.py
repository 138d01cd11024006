"""LLVM IR as text, over numbers or vectors of numbers.

    write = Writer()
    x = write.load("%p", "float", wide=True)
    write.store(write.binary("fadd", x, write.number(1.0, "float")), "%q")

are a load of `<32 x float>`, an addition of a vector of ones, and a store. A value is one number
for all elements until it meets one that is wide. Vectors are longer than a register: LLVM takes as
many registers as they need, whose computations overlap. Their length does not depend on the
processor, so that what is folded element by element is the same everywhere. Floats of 16 bits are
such in memory alone: once they are read they are `float`, whose values are rounded to those of 16
bits where an operation has them as its result.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

WIDTH = 32
"""Numbers of a vector."""

LONG = WIDTH // 4
"""Numbers from which a vector is of use, though it has room for more."""

LINE = 64
"""Bytes that a cache fetches at once."""

BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "half": 2,
    "bfloat": 2,
    "float": 4,
    "double": 8,
}
"""Types of numbers, and the bytes that one takes in memory."""

_NAMES: dict[np.dtype[Any], str] = {
    np.dtype(np.bool_): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.float16): "half",
    np.dtype(ml_dtypes.bfloat16): "bfloat",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}

_ROUNDED = {kind: dtype for dtype, kind in _NAMES.items() if kind in ("half", "bfloat", "float")}

HALVES = frozenset({"half", "bfloat"})
"""Floats of 16 bits."""

_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}

_HELD = {"i1": "i8", "half": "i16", "bfloat": "i16"}
"""How memory holds what has another type once it is read."""


def whole_lines(size: int) -> int:
    """At multiples of how many bytes vectors of such numbers are whole lines, or a half of one."""
    return min(LINE, WIDTH * size)


def held_as(kind: str) -> str:
    """How memory holds numbers of a type."""
    return _HELD.get(kind, kind)


def kind_of(dtype: np.dtype[Any]) -> str | None:
    """The type of a NumPy dtype's numbers; None for those that no loop takes."""
    return _NAMES.get(dtype)


@dataclass(frozen=True)
class Value:
    """Something that was computed: its name in the text, its type, whether elements differ."""

    name: str
    kind: str
    wide: bool = False
    lanes: int = WIDTH

    @property
    def type(self) -> str:
        """The type as it is written."""
        return f"<{self.lanes} x {self.kind}>" if self.wide else self.kind

    @property
    def is_float(self) -> bool:
        return self.kind in _SUFFIX


class Writer:
    """Lines of a function, and the intrinsics that they use; vectors have so many `lanes`."""

    def __init__(self, lanes: int = WIDTH) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.mask: Value | None = None
        """The elements that memory is touched for; all without one."""
        self._count = 0

    def fresh(self) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def made(self, text: str, kind: str, *, wide: bool) -> Value:
        """The value of an instruction."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return Value(name, kind, wide, self.lanes)

    def number(self, value: float, kind: str) -> Value:
        """A constant; one of 16 bits has a value that they have."""
        return Value(literal(value, kind), register(kind))

    def widened(self, value: Value) -> Value:
        """A value for each element."""
        if value.wide:
            return value
        wide = f"<{self.lanes} x {value.kind}>"
        if not value.name.startswith("%"):
            return self._wide(f"splat ({value.kind} {value.name})", value.kind)
        first = self.made(
            f"insertelement {wide} poison, {value.type} {value.name}, i64 0", value.kind, wide=True
        )
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.made(
            f"shufflevector {wide} {first.name}, {wide} poison, {zeros}", value.kind, wide=True
        )

    def alike(self, *values: Value) -> list[Value]:
        """Values that are all wide, or none."""
        if any(value.wide for value in values):
            return [self.widened(value) for value in values]
        return list(values)

    def binary(self, operation: str, left: Value, right: Value) -> Value:
        """An instruction on two values of one type."""
        left, right = self.alike(left, right)
        text = f"{operation} {left.type} {left.name}, {right.name}"
        return self.made(text, left.kind, wide=left.wide)

    def negated(self, value: Value) -> Value:
        """A float with the other sign."""
        return self.made(f"fneg {value.type} {value.name}", value.kind, wide=value.wide)

    def compared(self, how: str, left: Value, right: Value) -> Value:
        """`fcmp` or `icmp` by its predicate."""
        left, right = self.alike(left, right)
        name = "fcmp" if left.is_float else "icmp"
        return self.made(
            f"{name} {how} {left.type} {left.name}, {right.name}", "i1", wide=left.wide
        )

    def chosen(self, condition: Value, yes: Value, no: Value) -> Value:
        """`yes` where the condition holds, else `no`."""
        condition, yes, no = self.alike(condition, yes, no)
        said = f"{condition.type} {condition.name}, {yes.type} {yes.name}, {no.type} {no.name}"
        return self.made(f"select {said}", yes.kind, wide=yes.wide)

    def some(self, value: Value, first: int, lanes: int) -> Value:
        """So many elements of a vector, from one on; a number that all elements have, as it is."""
        return self.picked(value, range(first, first + lanes)) if value.wide else value

    def picked(self, value: Value, elements: Sequence[int]) -> Value:
        """A vector of these elements of one."""
        order = ", ".join(f"i32 {element}" for element in elements)
        text = f"shufflevector {value.type} {value.name}, {value.type} poison"
        with self.of(len(elements)):
            return self.made(f"{text}, <{len(elements)} x i32> <{order}>", value.kind, wide=True)

    def joined(self, left: Value, right: Value) -> Value:
        """The elements of two vectors of one type, one after the other."""
        lanes = left.lanes + right.lanes
        order = ", ".join(f"i32 {element}" for element in range(lanes))
        text = f"shufflevector {left.type} {left.name}, {right.type} {right.name}"
        with self.of(lanes):
            return self.made(f"{text}, <{lanes} x i32> <{order}>", left.kind, wide=True)

    @contextmanager
    def of(self, lanes: int) -> Generator[None]:
        """Instructions inside are on vectors of so many lanes."""
        before, self.lanes = self.lanes, lanes
        yield
        self.lanes = before

    def cast(self, operation: str, value: Value, kind: str) -> Value:
        """A value as one of another type."""
        if kind == value.kind:
            return value
        to = replace(value, kind=kind).type
        return self.made(f"{operation} {value.type} {value.name} to {to}", kind, wide=value.wide)

    def call(self, name: str, *values: Value, flag: bool | None = None) -> Value:
        """An intrinsic of the operands' type; some take a flag last."""
        given = self.alike(*values)
        one = given[0]
        full = f"@llvm.{name}.{_mangled(one)}"
        kinds, said = [g.type for g in given], [f"{g.type} {g.name}" for g in given]
        if flag is not None:
            kinds.append("i1 immarg")
            said.append(f"i1 {str(flag).lower()}")
        self.declared[full] = f"declare {one.type} {full}({', '.join(kinds)})"
        return self.made(f"call {one.type} {full}({', '.join(said)})", one.kind, wide=one.wide)

    def saturated(self, value: Value, kind: str, *, signed: bool) -> Value:
        """A float as the nearest integer towards zero that there is, 0 for NaN.

        LLVM has an intrinsic for it, which becomes jumps for each element of a vector.
        """
        bits = 8 * BYTES[kind]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        # Both are floats: so a number is inside, too large, too small, or none.
        least, most = self.number(float(low), value.kind), self.number(float(high), value.kind)
        above, below = self.compared("oge", value, most), self.compared("olt", value, least)
        fits = self.binary(
            "and", self.compared("oge", value, least), self.compared("olt", value, most)
        )
        safe = self.chosen(fits, value, self.number(0.0, value.kind))
        found = self.cast("fptosi" if signed else "fptoui", safe, kind)
        found = self.chosen(above, self.number(high - 1, kind), found)
        return self.chosen(below, self.number(low, kind), found)

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """`a * b + c`, rounded once."""
        return self.call("fma", a, b, c)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """A polynomial by Horner's rule, the constant coefficient first."""
        found = self.number(coefficients[-1], x.kind)
        for coefficient in reversed(coefficients[:-1]):
            found = self.fused(found, x, self.number(coefficient, x.kind))
        return found

    def load(self, pointer: str, kind: str, *, wide: bool) -> Value:
        """Neighbours in memory; truth values are bytes there. Elements off the mask hold 0."""
        held = held_as(kind)
        to = Value("", held, wide, self.lanes).type
        if wide and self.mask is not None:
            full = f"@llvm.masked.load.{_mangled(self._wide('', held))}.p0"
            masks = self.mask.type
            self.declared[full] = f"declare {to} {full}(ptr, i32 immarg, {masks}, {to})"
            said = f"ptr {pointer}, i32 1, {masks} {self.mask.name}, {to} zeroinitializer"
            found = self.made(f"call {to} {full}({said})", held, wide=wide)
        else:
            found = self.made(f"load {to}, ptr {pointer}, align 1", held, wide=wide)
        return self._opened(found, kind)

    def fetch(self, pointer: str, ahead: str, size: int) -> None:
        """Bring memory some bytes ahead of an address to the cache; nothing waits for it."""
        first = self.made(f"getelementptr i8, ptr {pointer}, i64 {ahead}", "ptr", wide=False).name
        for line in range(0, size, LINE):
            place = self.made(f"getelementptr i8, ptr {first}, i64 {line}", "ptr", wide=False).name
            self.prefetch(place)

    def prefetch(self, pointer: str) -> None:
        """Bring the line of memory at an address to the cache, if there is one."""
        full = "@llvm.prefetch.p0"
        self.declared[full] = f"declare void {full}(ptr, i32 immarg, i32 immarg, i32 immarg)"
        self.line(f"call void {full}(ptr {pointer}, i32 0, i32 3, i32 1)")

    def gathered(self, pointers: str, kind: str) -> Value:
        """Cells anywhere in memory, from a vector of pointers."""
        held = self._wide("", held_as(kind))
        full = f"@llvm.masked.gather.{_mangled(held)}.v{self.lanes}p0"
        places = f"<{self.lanes} x ptr>"
        declared = f"{places}, i32 immarg, <{self.lanes} x i1>, {held.type}"
        self.declared[full] = f"declare {held.type} {full}({declared})"
        said = f"{places} {pointers}, i32 1, {self._chosen()}, {held.type} zeroinitializer"
        found = self.made(f"call {held.type} {full}({said})", held.kind, wide=True)
        return self._opened(found, kind)

    def store(self, value: Value, pointer: str, kind: str, *, passing: bool = False) -> None:
        """Neighbours in memory, of a type there; of the elements of the mask.

        What is `passing` starts where `whole_lines` do, and is no more read soon: memory is not
        read to have it in a cache.
        """
        value = self._closed(value, kind)
        if value.wide and self.mask is not None:
            full = f"@llvm.masked.store.{_mangled(value)}.p0"
            masks = self.mask.type
            self.declared[full] = f"declare void {full}({value.type}, ptr, i32 immarg, {masks})"
            said = f"{value.type} {value.name}, ptr {pointer}, i32 1, {masks} {self.mask.name}"
            self.line(f"call void {full}({said})")
        elif passing:
            said = f"{value.type} {value.name}, ptr {pointer}, align {whole_lines(BYTES[kind])}"
            self.line(f"store {said}, !nontemporal !0")
        else:
            self.line(f"store {value.type} {value.name}, ptr {pointer}, align 1")

    def scattered(self, value: Value, pointers: str, kind: str) -> None:
        """Cells anywhere in memory, of a type there."""
        value = self._closed(value, kind)
        full = f"@llvm.masked.scatter.{_mangled(value)}.v{self.lanes}p0"
        places = f"<{self.lanes} x ptr>"
        declared = f"{value.type}, {places}, i32 immarg, <{self.lanes} x i1>"
        self.declared[full] = f"declare void {full}({declared})"
        said = f"{value.type} {value.name}, {places} {pointers}, i32 1, {self._chosen()}"
        self.line(f"call void {full}({said})")

    def rounded(self, value: Value, kind: str) -> Value:
        """A `float` with the nearest value that a type of 16 bits has; of two, an even one."""
        if kind == "half":
            return self.cast("fpext", self.cast("fptrunc", value, "half"), "float")
        bits = self.cast("bitcast", value, "i32")
        last = self.binary("lshr", bits, self.number(16, "i32"))
        last = self.binary("and", last, self.number(1, "i32"))
        more = self.binary("add", last, self.number(0x7FFF, "i32"))
        bits = self.binary("add", bits, more)  # which carries into the exponent as it should
        bits = self.binary("and", bits, self.number(-0x10000, "i32"))
        near, nan = self.cast("bitcast", bits, "float"), self.number(float("nan"), "float")
        return self.chosen(self.compared("uno", value, value), nan, near)

    def _opened(self, held: Value, kind: str) -> Value:
        """What memory held, as a value of a type."""
        match kind:
            case "i1":
                return self.compared("ne", held, self.number(0, "i8"))
            case "half":
                return self.cast("fpext", self.cast("bitcast", held, "half"), "float")
            case "bfloat":
                bits = self.cast("zext", held, "i32")
                bits = self.binary("shl", bits, self.number(16, "i32"))
                return self.cast("bitcast", bits, "float")
            case _:
                return held

    def _closed(self, value: Value, kind: str) -> Value:
        """A value of a type as memory holds it."""
        match kind:
            case "i1":
                return self.cast("zext", value, "i8")
            case "half":
                return self.cast("bitcast", self.cast("fptrunc", value, "half"), "i16")
            case "bfloat":
                bits = self.cast("bitcast", value, "i32")
                bits = self.binary("lshr", bits, self.number(16, "i32"))
                return self.cast("trunc", bits, "i16")
            case _:
                return value

    def _wide(self, name: str, kind: str) -> Value:
        return Value(name, kind, wide=True, lanes=self.lanes)

    def _chosen(self) -> str:
        mask = self.mask or self.widened(Value("true", "i1"))
        return f"{mask.type} {mask.name}"


def register(kind: str) -> str:
    """The type that values of a type have once they are read."""
    return "float" if kind in HALVES else kind


def number_of(array: NDArray[Any]) -> float:
    """The number of an array that has one."""
    found = array.item()
    return found if isinstance(found, int) else float(found)  # those of ml_dtypes are their own


def literal(value: float, kind: str) -> str:
    """A number as LLVM writes it: floats by the bits of the double that they are."""
    if kind == "i1":
        return "true" if value else "false"
    if register(kind) not in _SUFFIX:
        return str(int(value))
    rounded = _ROUNDED.get(kind)
    number = float(value) if rounded is None else float(rounded.type(value))
    bits = 0x7FF8 << 48 if isnan(number) else struct.unpack("<Q", struct.pack("<d", number))[0]
    return f"0x{bits:016X}"


def _mangled(value: Value) -> str:
    name = _SUFFIX.get(value.kind, value.kind)
    return f"v{value.lanes}{name}" if value.wide else name
