"""Angles less whole quarters of a turn, in LLVM IR.

    turn = turned(write, x)        # |x| = quarters pi/2 + rest, and |rest| is about pi/4 at most

Below 2^30 the quarters are those of a rounded quotient, which are taken off with pi/2 as three
numbers (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980): with fused
multiplications the first of these leaves an exact number. Further away, a number is multiplied by
as many bits of 2/pi as matter, of more than a thousand (M. H. Payne and R. N. Hanek, "Radian
reduction for trigonometric functions", 1983), by a function that is called if there are any such.
A rest is as exact as a float64 near it, however near a number is to whole quarters.
"""

from __future__ import annotations

from dataclasses import dataclass

from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import Value

_FAR = 2.0**30
"""From here on, bits of 2/pi are multiplied."""

_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi/2 as numbers whose sum is within 2^-162 of it."""

_PER_QUARTER = 0.6366197723675814
_MAGIC = 1.5 * 2.0**52
"""Beside so large a number there is room for a whole one only."""


@dataclass(frozen=True)
class Turn:
    """An angle's size: numbers whose last two bits are those of quarters of a turn, and a float64
    for the rest.
    """

    quarters: Value
    rest: Value


def turned(write: Function, size: Value) -> Turn:
    """Of a float64 that is not negative; the rest is NaN where that is infinite or NaN."""
    kind = "double"
    magic = write.number(_MAGIC, kind)
    shifted = write.fused(size, write.number(_PER_QUARTER, kind), magic)
    n, rest = write.binary("fsub", shifted, magic), size
    for part in _PARTS:
        rest = write.fused(n, write.number(-part, kind), rest)
    quarters = write.cast("bitcast", shifted, "i64")
    far = write.compared("oge", size, write.number(_FAR, kind))
    write.declared[_REDUCED] = _DEFINITION
    places = [write.place(value.type) for value in (rest, quarters)]
    for value, place in zip((rest, quarters), places, strict=True):
        write.line(f"store {value.type} {value.name}, ptr {place}")
    count = size.lanes if size.wide else 1
    bits = write.made(f"bitcast {far.type} {far.name} to i{count}", "i1", wide=False).name
    with write.when(f"icmp ne i{count} {bits}, 0"):
        # Memory of their own: places that are only read and written here are registers.
        rooms = [write.place(value.type) for value in (size, rest, quarters)]
        for value, room in zip((size, rest, quarters), rooms, strict=True):
            write.line(f"store {value.type} {value.name}, ptr {room}")
        given = ", ".join(f"ptr {room}" for room in rooms)
        write.line(f"call void {_REDUCED}({given}, i64 {count})")
        for value, room, place in zip((rest, quarters), rooms[1:], places, strict=True):
            found = write.made(f"load {value.type}, ptr {room}", value.kind, wide=value.wide)
            write.line(f"store {found.type} {found.name}, ptr {place}")
    rest, quarters = (
        write.made(f"load {value.type}, ptr {place}", value.kind, wide=value.wide)
        for value, place in zip((rest, quarters), places, strict=True)
    )
    return Turn(quarters, rest)


def _two_over_pi(bits: int) -> int:
    """2/pi in units of 2^-bits, rounded down; by J. Machin's formula for pi (1706)."""
    one = 1 << (bits + 64)

    def arctangent(inverse: int) -> int:
        term, found, n = one // inverse, 0, 1
        while term:
            found += term // n if n % 4 == 1 else -(term // n)
            term //= inverse * inverse
            n += 2
        return found

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * one << bits) // pi


_BITS = 1216
"""Bits of 2/pi: the largest float64 is an integer times 2^971, and 190 more are kept of a turn."""

_KEPT = 190

_BEYOND = 128
"""Bits after those of 2/pi, which are read with the last of them, and not used."""

_REDUCED = "@reduced"

_DEFINITION = f"""\
@turns = internal constant i{_BITS + _BEYOND} {_two_over_pi(_BITS)}
declare i192 @llvm.ctlz.i192(i192, i1 immarg)
define internal void {_REDUCED}(ptr %sizes, ptr %rests, ptr %quarters, i64 %count) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i_next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %end
look:
  %i_next = add i64 %i, 1
  %size_at = getelementptr double, ptr %sizes, i64 %i
  %size = load double, ptr %size_at
  %far = fcmp oge double %size, {_FAR:.1f}
  %finite = fcmp olt double %size, 0x7FF0000000000000
  %is_far = and i1 %far, %finite
  br i1 %is_far, label %reduce, label %next
reduce:
  ; size = number 2^(exponent - 1075); the bits that count of 2/pi are from `away` on.
  %word = bitcast double %size to i64
  %exponent = lshr i64 %word, 52
  %fraction = and i64 %word, {2**52 - 1}
  %number = or i64 %fraction, {2**52}
  %away = sub i64 {_BITS + 1075 - _KEPT}, %exponent
  %byte = lshr i64 %away, 3
  %bit = and i64 %away, 7
  %from = getelementptr i8, ptr @turns, i64 %byte
  %bytes = load i256, ptr %from, align 1
  %bit_wide = zext i64 %bit to i256
  %lowered = lshr i256 %bytes, %bit_wide
  %bits = trunc i256 %lowered to i192
  ; Quarters in units of 2^-{_KEPT}, but for multiples of four.
  %number_wide = zext i64 %number to i192
  %turn = mul i192 %bits, %number_wide
  %near = add i192 %turn, {1 << (_KEPT - 1)}
  %whole_wide = lshr i192 %near, {_KEPT}
  %whole = trunc i192 %whole_wide to i64
  ; What is left of the nearest, in units of 2^-192: its sign, and 64 bits of its size.
  %left = shl i192 %turn, {192 - _KEPT}
  %is_less = icmp slt i192 %left, 0
  %opposite = sub i192 0, %left
  %amount = select i1 %is_less, i192 %opposite, i192 %left
  %zeros = call i192 @llvm.ctlz.i192(i192 %amount, i1 false)
  %scaled = shl i192 %amount, %zeros
  %high = lshr i192 %scaled, 128
  %digits = trunc i192 %high to i64
  %float = uitofp i64 %digits to double
  %lower = trunc i192 %zeros to i64
  %power = sub i64 {1023 - 64}, %lower
  %power_word = shl i64 %power, 52
  %scale = bitcast i64 %power_word to double
  %part = fmul double %float, %scale
  %opposite_part = fneg double %part
  %signed = select i1 %is_less, double %opposite_part, double %part
  %rest = fmul double %signed, 0x3FF921FB54442D18
  %rest_at = getelementptr double, ptr %rests, i64 %i
  store double %rest, ptr %rest_at
  %quarter_at = getelementptr i64, ptr %quarters, i64 %i
  store i64 %whole, ptr %quarter_at
  br label %next
next:
  br label %head
end:
  ret void
}}"""
"""A function that reduces those of so many numbers that are far away and finite."""
