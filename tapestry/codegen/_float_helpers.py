"""Angles and hyperbolic functions, printed into a module that needs them.

They compute in float64 and round once: exact to a unit in the last place of float32, and to a few
of float64.
"""

from __future__ import annotations

_ANGLE = '''\
@triton.jit
def angle(y, x):
    """The angle of the point (x, y) (atan2); the polynomials are those of Cephes."""
    a, b = tl.abs(y).to(tl.float64), tl.abs(x).to(tl.float64)
    low, high = tl.where(a < b, a, b), tl.where(a < b, b, a)
    t = tl.where(low == high, 1.0, low / high)
    t = tl.where(high == 0.0, 0.0, t)
    far = t > 0.41421356237309503
    z = tl.where(far, (t - 1.0) / (t + 1.0), t)
    s = z * z
    p = -0.8750608600031904 * s - 16.157537187333652
    p = (p * s - 75.00855792314705) * s - 122.88666844901361
    p = p * s - 64.85021904942025
    q = (s + 24.858464901423062) * s + 165.02700983169885
    q = ((q * s + 432.88106049129027) * s + 485.3903996359137) * s + 194.5506571482614
    turn = z + z * (s * p / q)
    turn = tl.where(far, 0.7853981633974483 + (turn + 3.061616997868383e-17), turn)
    turn = tl.where(a > b, (1.5707963267948966 - turn) + 6.123233995736766e-17, turn)
    left = copy_sign(s * 0.0 + 1.0, x.to(tl.float64)) < 0.0
    turn = tl.where(left, (3.141592653589793 - turn) + 1.2246467991473532e-16, turn)
    turn = tl.where((a != a) | (b != b), float("nan"), turn)
    return copy_sign(turn, y.to(tl.float64)).to(x.dtype)
'''

_ARC_TANGENT = '''\
@triton.jit
def arc_tangent(x):
    """The angle whose tangent is x."""
    wide = x.to(tl.float64)
    return angle(wide, tl.full([], 1.0, tl.float64)).to(x.dtype)
'''

_ARC_SINE = '''\
@triton.jit
def arc_sine(x):
    """The angle whose sine is x."""
    wide = x.to(tl.float64)
    return angle(wide, tl.sqrt((1.0 - wide) * (1.0 + wide))).to(x.dtype)
'''

_ARC_COSINE = '''\
@triton.jit
def arc_cosine(x):
    """The angle whose cosine is x."""
    wide = x.to(tl.float64)
    return angle(tl.sqrt((1.0 - wide) * (1.0 + wide)), wide).to(x.dtype)
'''

ANGLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "angle": (_ANGLE, ("copy_sign",)),
    "arc_tangent": (_ARC_TANGENT, ("angle",)),
    "arc_sine": (_ARC_SINE, ("angle",)),
    "arc_cosine": (_ARC_COSINE, ("angle",)),
}
"""For each helper, its source and the helpers that it calls."""

_HYPERBOLIC_SINE = '''\
@triton.jit
def hyperbolic_sine(x):
    """(exp(x) - exp(-x)) / 2."""
    size = tl.abs(x).to(tl.float64)
    e = expm1(size)
    half = tl.exp(size * 0.5)
    sine = tl.where(size < 20.0, (e + e / (e + 1.0)) * 0.5, (half * 0.5) * half)
    return copy_sign(sine, x.to(tl.float64)).to(x.dtype)
'''

_HYPERBOLIC_COSINE = '''\
@triton.jit
def hyperbolic_cosine(x):
    """(exp(x) + exp(-x)) / 2."""
    size = tl.abs(x).to(tl.float64)
    e = tl.exp(size)
    half = tl.exp(size * 0.5)
    return tl.where(size < 20.0, (e + 1.0 / e) * 0.5, (half * 0.5) * half).to(x.dtype)
'''

_AREA_SINE = '''\
@triton.jit
def area_sine(x):
    """The number whose hyperbolic sine is x."""
    size = tl.abs(x).to(tl.float64)
    square = size * size
    near = log1p(size + square / (1.0 + tl.sqrt(1.0 + square)))
    area = tl.where(size < 268435456.0, near, tl.log(size) + 0.6931471805599453)
    return copy_sign(area, x.to(tl.float64)).to(x.dtype)
'''

_AREA_COSINE = '''\
@triton.jit
def area_cosine(x):
    """The number, not negative, whose hyperbolic cosine is x."""
    wide = x.to(tl.float64)
    t = wide - 1.0
    near = log1p(t + tl.sqrt(2.0 * t + t * t))
    area = tl.where(wide < 268435456.0, near, tl.log(wide) + 0.6931471805599453)
    return tl.where(wide < 1.0, float("nan"), area).to(x.dtype)
'''

_AREA_TANGENT = '''\
@triton.jit
def area_tangent(x):
    """The number whose hyperbolic tangent is x."""
    size = tl.abs(x).to(tl.float64)
    area = log1p(2.0 * size / (1.0 - size)) * 0.5
    return copy_sign(area, x.to(tl.float64)).to(x.dtype)
'''

_CUBE_ROOT = '''\
@triton.jit
def cube_root(x):
    """The number whose cube is x: by logarithms, then a step of Newton's."""
    size = tl.abs(x).to(tl.float64)
    small = size < 1e-200
    scaled = tl.where(small, size * 2.037035976334486e90, size)
    root = tl.exp2(tl.log2(scaled) / 3.0)
    root = root - (root - scaled / (root * root)) / 3.0
    root = tl.where(small, root * 7.888609052210118e-31, root)
    root = tl.where((size == 0.0) | (size == float("inf")), size, root)
    return copy_sign(root, x.to(tl.float64)).to(x.dtype)
'''

HYPERBOLICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "hyperbolic_sine": (_HYPERBOLIC_SINE, ("copy_sign", "expm1")),
    "hyperbolic_cosine": (_HYPERBOLIC_COSINE, ()),
    "area_sine": (_AREA_SINE, ("copy_sign", "log1p")),
    "area_cosine": (_AREA_COSINE, ("log1p",)),
    "area_tangent": (_AREA_TANGENT, ("copy_sign", "log1p")),
    "cube_root": (_CUBE_ROOT, ("copy_sign",)),
}
"""For each helper, its source and the helpers that it calls."""
