"""Functions of the bits of 64-bit integers, printed into a module that needs them."""

from __future__ import annotations

_COUNT_ONES = '''\
@triton.jit
def count_ones(x):
    """How many bits of a 64-bit integer are set."""
    bits = x.to(tl.uint64)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56).to(tl.int64)
'''

_LEADING_ZEROS = '''\
@triton.jit
def leading_zeros(x):
    """How many high bits of a 64-bit integer are zero."""
    bits = x.to(tl.uint64)
    bits = bits | (bits >> 1)
    bits = bits | (bits >> 2)
    bits = bits | (bits >> 4)
    bits = bits | (bits >> 8)
    bits = bits | (bits >> 16)
    bits = bits | (bits >> 32)
    return 64 - count_ones(bits)
'''

_TRAILING_ZEROS = '''\
@triton.jit
def trailing_zeros(x):
    """How many low bits of a 64-bit integer are zero."""
    return count_ones((x ^ -1) & (x - 1))
'''

COUNTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "count_ones": (_COUNT_ONES, ()),
    "leading_zeros": (_LEADING_ZEROS, ("count_ones",)),
    "trailing_zeros": (_TRAILING_ZEROS, ("count_ones",)),
}
"""For each helper, its source and the helpers that it calls."""
