"""Functions that Triton's language lacks, printed into a module that needs them.

They use nothing that only a GPU or only the interpreter has (no libdevice), and are exact to a few
units in the last place, near zero and at infinity too.
"""

from __future__ import annotations

from tapestry.codegen._bit_helpers import COUNTS
from tapestry.codegen._float8_helpers import FLOAT8
from tapestry.codegen._float_helpers import ANGLES, HYPERBOLICS

_EXPM1 = '''\
@triton.jit
def expm1(x):
    """exp(x) - 1, exact near zero (W. Kahan)."""
    u = tl.exp(x)
    less = u - 1.0
    near = tl.where(u == 1.0, x, less * (x / tl.log(u)))
    return tl.where((less == -1.0) | (u == float("inf")), less, near)
'''

_LOG1P = '''\
@triton.jit
def log1p(x):
    """log(1 + x), exact near zero (W. Kahan)."""
    u = 1.0 + x
    near = tl.where(u == 1.0, x, tl.log(u) * (x / (u - 1.0)))
    return tl.where((u == 0.0) | (u == float("inf")), tl.log(u), near)
'''

_TANH = '''\
@triton.jit
def tanh(x):
    """The hyperbolic tangent; of float32, a polynomial near zero."""
    if x.dtype == tl.float64:
        e = expm1(-2.0 * tl.abs(x))
        value = copy_sign(-e / (e + 2.0), x)
    else:
        s = x * x
        p = tl.fma(s, -0.005895157810300589, 0.020795971155166626)
        p = tl.fma(s, p, -0.053783830255270004)
        p = tl.fma(s, p, 0.13331924378871918)
        p = tl.fma(s, p, -0.33333298563957214)
        a = tl.abs(x)
        far = 1.0 - 2.0 / (tl.exp(2.0 * a) + 1.0)
        value = copy_sign(tl.where(a < 0.6, tl.fma(p * s, a, a), far), x)
    return value
'''

_ERROR_FUNCTION = '''\
@triton.jit
def error_function(x):
    """erf; of float32, two polynomials: tl.erf branches for every cell, and its branches wait."""
    if x.dtype == tl.float64:
        value = tl.erf(x)
    else:
        s = x * x
        p = tl.fma(s, 7.853860734030604e-05, -0.0008010193705558777)
        p = tl.fma(s, p, 0.005188327748328447)
        p = tl.fma(s, p, -0.026853812858462334)
        p = tl.fma(s, p, 0.1128358542919159)
        p = tl.fma(s, p, -0.3761262595653534)
        p = tl.fma(s, p, 0.12837916612625122)
        # Beyond 4 it is 1; NaN stays.
        a = tl.abs(x)
        t = tl.where(a > 4.0, 4.0, a)
        q = tl.fma(t, 0.00026888842694461346, -0.004252573009580374)
        q = tl.fma(t, q, 0.03150567039847374)
        q = tl.fma(t, q, -0.1487516164779663)
        q = tl.fma(t, q, -0.9206483960151672)
        q = tl.fma(t, q, -1.6260459423065186)
        q = tl.fma(t, q, -0.0004927125410176814)
        value = copy_sign(tl.where(a < 1.0, tl.fma(p, a, a), 1.0 - tl.exp2(q)), x)
    return value
'''

_COMPLEMENTARY_ERROR_FUNCTION = '''\
@triton.jit
def complementary_error_function(x):
    """1 - erf(x) without cancellation; of float32, a power of two, right to a unit of 1."""
    if x.dtype == tl.float64:
        value = 1.0 - tl.erf(x)
    else:
        # Beyond 10 the polynomial goes on falling; NaN stays.
        a = tl.abs(x)
        q = tl.fma(a, -4.535862535703927e-05, 0.00044550784514285624)
        q = tl.fma(a, q, -0.0014894421910867095)
        q = tl.fma(a, q, -0.0007746287155896425)
        q = tl.fma(a, q, 0.02825368009507656)
        q = tl.fma(a, q, -0.1484816074371338)
        q = tl.fma(a, q, -0.9184163808822632)
        q = tl.fma(a, q, -1.6279085874557495)
        e = tl.exp2(a * q)
        value = tl.where(x < 0.0, 2.0 - e, e)
    return value
'''

_POWER = '''\
@triton.jit
def power(x, y):
    """x to the y as in C: NaN for a finite negative x unless y is whole."""
    base = tl.abs(x).to(tl.float64)
    exponent = y.to(tl.float64)
    size = tl.exp2(exponent * tl.log2(base))
    size = tl.where((base == 1.0) & (y == y), 1.0, size)
    whole = tl.floor(exponent) == exponent
    odd = whole & (tl.floor(exponent * 0.5) * 2.0 != exponent)
    negative = (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0))
    signed = tl.where(negative & odd, size * -1.0, size)
    signed = tl.where((x < 0.0) & (base != float("inf")) & (whole ^ True), float("nan"), signed)
    signed = tl.where(y == 1.0, x.to(tl.float64), signed)
    return tl.where((y == 0.0) | (x == 1.0), 1.0, signed).to(x.dtype)
'''

_INVERSE_ROOT = '''\
@triton.jit
def inverse_root(x):
    """1 / sqrt(x), also of numbers so small that a GPU takes them for zero."""
    small = x < 1.1754943508222875e-38
    root = tl.rsqrt(tl.where(small, x * 16777216.0, x))
    return tl.where(small, root * 4096.0, root)
'''

_COPY_SIGN = '''\
@triton.jit
def copy_sign(size, sign):
    """The magnitude of one number with the sign of another, of zeros too."""
    if size.dtype == tl.float64:
        bits = (sign.to(tl.int64, bitcast=True) >> 63) << 63
        signed = (tl.abs(size).to(tl.int64, bitcast=True) | bits).to(tl.float64, bitcast=True)
    else:
        bits = (sign.to(tl.int32, bitcast=True) >> 31) << 31
        signed = (tl.abs(size).to(tl.int32, bitcast=True) | bits).to(tl.float32, bitcast=True)
    return signed
'''

_FLOOR = '''\
@triton.jit
def floor(x):
    """The greatest whole number that is not above x, which may be so small that a GPU drops it."""
    whole = tl.floor(x)
    return tl.where(whole > x, whole - 1.0, whole)
'''

_CEILING = '''\
@triton.jit
def ceiling(x):
    """The least whole number that is not below x, which may be so small that a GPU drops it."""
    whole = tl.ceil(x)
    return tl.where(whole < x, whole + 1.0, whole)
'''

_TRUNCATE = '''\
@triton.jit
def truncate(x):
    """x without its fraction."""
    return copy_sign(tl.floor(tl.abs(x)), x)
'''

_ROUND_HALF_AWAY = '''\
@triton.jit
def round_half_away(x):
    """x rounded to the nearest whole number, halves away from zero."""
    low = tl.floor(tl.abs(x))
    return copy_sign(tl.where(tl.abs(x) - low >= 0.5, low + 1.0, low), x)
'''

_ROUND_EVEN = '''\
@triton.jit
def round_even(x):
    """x rounded to the nearest whole number, halves to the even one."""
    low = tl.floor(tl.abs(x))
    rest = tl.abs(x) - low
    odd = tl.floor(low * 0.5) * 2.0 != low
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return copy_sign(tl.where(up, low + 1.0, low), x)
'''

_PHILOX_WORD = '''\
@triton.jit
def philox_word(seed, counter, word: tl.constexpr):
    """Word `word` of Philox 4x32-10; `seed` is its key, `counter` half of its counter."""
    low = (counter & 0xFFFFFFFF).to(tl.uint32)
    high = ((counter >> 32) & 0xFFFFFFFF).to(tl.uint32)
    none = low * 0
    words = tl.philox(seed, low, high, none, none)
    return words[word].to(tl.int32, bitcast=True)
'''

_LEADING_PART = '''\
@triton.jit
def leading_part(x):
    """The first 8 bits of x, which bfloat16 holds; of an infinity, the greatest such number."""
    part = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
    return tl.minimum(tl.maximum(part, -3.3895313892515355e38), 3.3895313892515355e38)
'''

_DOT_BF16X6 = '''\
@triton.jit
def dot_bf16x6(a, b):
    """a @ b of float32 by tensor cores, less at most 2^-20 of |a| @ |b|.

    Each factor is a sum of three numbers of bfloat16; the least products of these are left out.
    """
    a0, b0 = leading_part(a), leading_part(b)
    a1, b1 = leading_part(a - a0), leading_part(b - b0)
    a2, b2 = (a - a0 - a1).to(tl.bfloat16), (b - b0 - b1).to(tl.bfloat16)
    a0, b0 = a0.to(tl.bfloat16), b0.to(tl.bfloat16)
    a1, b1 = a1.to(tl.bfloat16), b1.to(tl.bfloat16)
    sum = tl.dot(a1, b1)
    sum = tl.dot(a2, b0, sum)
    sum = tl.dot(a0, b2, sum)
    sum = tl.dot(a1, b0, sum)
    sum = tl.dot(a0, b1, sum)
    return tl.dot(a0, b0, sum)
'''

HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "copy_sign": (_COPY_SIGN, ()),
    "expm1": (_EXPM1, ()),
    "log1p": (_LOG1P, ()),
    "tanh": (_TANH, ("copy_sign", "expm1")),
    "error_function": (_ERROR_FUNCTION, ("copy_sign",)),
    "complementary_error_function": (_COMPLEMENTARY_ERROR_FUNCTION, ()),
    "power": (_POWER, ()),
    "inverse_root": (_INVERSE_ROOT, ()),
    "floor": (_FLOOR, ()),
    "ceiling": (_CEILING, ()),
    "truncate": (_TRUNCATE, ("copy_sign",)),
    "round_half_away": (_ROUND_HALF_AWAY, ("copy_sign",)),
    "round_even": (_ROUND_EVEN, ("copy_sign",)),
    "philox_word": (_PHILOX_WORD, ()),
    "leading_part": (_LEADING_PART, ()),
    "dot_bf16x6": (_DOT_BF16X6, ("leading_part",)),
    **ANGLES,
    **HYPERBOLICS,
    **COUNTS,
    **FLOAT8,
}
"""For each helper, its source and the helpers that it calls."""


def sources(wanted: set[str]) -> list[str]:
    """The sources of some helpers and of what they call, callees first."""
    needed: set[str] = set()
    stack = list(wanted)
    while stack:
        name = stack.pop()
        needed.add(name)
        stack.extend(HELPERS[name][1])
    return [source for name, (source, _) in HELPERS.items() if name in needed]
