"""8-bit floats from and to float32 by their bits, printed into a module that needs them.

Not every GPU converts them, and those that do saturate; here they round to nearest even, f8E4M3FN
overflows to NaN and f8E5M2 to infinity, as in PyTorch.
"""

from __future__ import annotations

_FROM_E4M3 = '''\
@triton.jit
def from_float8_e4m3fn(bits):
    """The float32 that the bits of a float8_e4m3fn, as an int8, are."""
    size = bits.to(tl.int32) & 0x7F
    normal = ((size << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    number = tl.where(size < 8, size.to(tl.float32) * 0.001953125, normal)
    number = tl.where(size == 0x7F, float("nan"), number)
    return tl.where(bits < 0, number * -1.0, number)
'''

_TO_E4M3 = '''\
@triton.jit
def to_float8_e4m3fn(x):
    """The bits of a float32 rounded to float8_e4m3fn, as an int8."""
    size = tl.abs(x)
    bits = size.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    small = (size + 16384.0).to(tl.int32, bitcast=True) & 0xFF
    rounded = tl.where(size < 0.015625, small, normal)
    rounded = tl.where(size <= 464.0, rounded, 0x7F)
    return (rounded | ((x.to(tl.int32, bitcast=True) >> 24) & 0x80)).to(tl.int8)
'''

_FROM_E5M2 = '''\
@triton.jit
def from_float8_e5m2(bits):
    """The float32 that the bits of a float8_e5m2, as an int8, are."""
    return (bits.to(tl.int16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
'''

_TO_E5M2 = '''\
@triton.jit
def to_float8_e5m2(x):
    """The bits of a float32 rounded to float8_e5m2, as an int8."""
    size = tl.abs(x)
    bits = size.to(tl.int32, bitcast=True)
    normal = ((bits + 0xFFFFF + ((bits >> 21) & 1)) >> 21) - (112 << 2)
    small = (size + 128.0).to(tl.int32, bitcast=True) & 0xFF
    rounded = tl.where(size < 0.00006103515625, small, normal)
    rounded = tl.where(size < 61440.0, rounded, 0x7C)
    rounded = tl.where(x != x, 0x7E, rounded)
    return (rounded | ((x.to(tl.int32, bitcast=True) >> 24) & 0x80)).to(tl.int8)
'''

FLOAT8: dict[str, tuple[str, tuple[str, ...]]] = {
    "from_float8_e4m3fn": (_FROM_E4M3, ()),
    "to_float8_e4m3fn": (_TO_E4M3, ()),
    "from_float8_e5m2": (_FROM_E5M2, ()),
    "to_float8_e5m2": (_TO_E5M2, ()),
}
"""For each helper, its source and the helpers that it calls."""
