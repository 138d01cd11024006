"""Single nodes that compute cell by cell, in the forms that tests of other frameworks ask for."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import torch
from torch import nn

F = nn.functional


def r(*shape):
    return torch.randn(shape)


def u(*shape):
    return torch.rand(shape)


def i(high, *shape, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape).to(dtype)


def b(*shape):
    return torch.rand(shape) > 0.5


def of(function, low=-3.0, high=3.0):
    """A function of one tensor with cells between two numbers."""
    return lambda: (function, low + (high - low) * u(3, 4, 5))


def two(function, make=r):
    """A function of two tensors, of which one is broadcast: scalars, rows and columns."""
    return lambda: (
        lambda x, y, z, w: (function(x, y), function(x, z), function(z, w), function(y, y)),
        *(make(3, 4, 5), make(5), make(3, 1, 1), make(4, 1)),
    )


def nonzero(*shape):
    return u(*shape) + 0.3


def thresholded(x, alpha=1.0):
    return torch.where(x > alpha, x, 0.0)


def swish(x, alpha=0.9):
    return x * torch.sigmoid(alpha * x)


def quantized(x, scale, zero, low=0, high=255):
    return torch.clamp(torch.round(x / scale) + zero, low, high).to(torch.uint8)


def dynamically_quantized(x):
    low, high = torch.clamp(x.min(), max=0.0), torch.clamp(x.max(), min=0.0)
    scale = (high - low) / 255
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    return quantized(x, scale, zero), scale, zero.to(torch.uint8)


CELLS = {
    "abs": of(torch.abs),
    "acos": of(torch.acos, -1, 1),
    "acosh": of(torch.acosh, 1, 9),
    "asin": of(torch.asin, -1, 1),
    "asinh": of(torch.asinh),
    "atan": of(torch.atan),
    "atanh": of(torch.atanh, -0.99, 0.99),
    "cos, cosh": of(lambda x: (x.cos(), x.cosh())),
    "sin, sinh": of(lambda x: (x.sin(), x.sinh())),
    "tan, tanh": of(lambda x: (x.tan(), x.tanh()), -1.5, 1.5),
    "erf": of(lambda x: (x.erf(), x.erfc(), torch.special.erfinv(x / 4))),
    "exp, log": of(lambda x: (x.exp(), x.log(), x.log2(), x.log10(), x.log1p()), 0.1, 9),
    "reciprocal, sqrt": of(lambda x: (x.reciprocal(), x.sqrt(), x.rsqrt()), 0.1, 9),
    "floor, ceil, round": of(lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.frac())),
    "sign, neg": of(lambda x: (x.sign(), x.neg(), x.signbit())),
    "celu": of(lambda x: F.celu(x, 2.0)),
    "elu": of(lambda x: (F.elu(x), F.elu(x, 2.0))),
    "selu": of(F.selu),
    "gelu": of(lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"))),
    "leaky relu": of(lambda x: (F.leaky_relu(x), F.leaky_relu(x, 0.1))),
    "prelu": lambda: (lambda x, a, c: (F.prelu(x, a), F.prelu(x, c)), r(3, 4, 5), r(1), r(4)),
    "prelu broadcast": lambda: (lambda x, a: torch.where(x < 0, a * x, x), r(3, 4, 5), r(5)),
    "relu": of(F.relu),
    "hard sigmoid": of(
        lambda x: torch.clamp(
            torch.tensor([0.2, 0.5]).to(x.dtype)[:, None, None, None] * x + 0.5, 0, 1
        )
    ),
    "hard swish": of(F.hardswish, -5, 5),
    "mish": of(F.mish),
    "shrink": of(lambda x: (F.hardshrink(x, 1.5), F.softshrink(x, 0.5), F.tanhshrink(x))),
    "shrink with bias": of(
        lambda x: torch.where(x < -1.5, x + 1.5, torch.where(x > 1.5, x - 1.5, 0.0))
    ),
    "sigmoid": of(lambda x: (x.sigmoid(), F.logsigmoid(x), x.sigmoid().logit(1e-6)), -9, 9),
    "softplus": of(lambda x: (F.softplus(x), F.softplus(x, 2, 1)), -30, 30),
    "softsign": of(F.softsign),
    "swish": of(swish),
    "thresholded relu": of(lambda x: (thresholded(x, 2.0), F.threshold(x, 0.1, 20))),
    "swiglu": of(lambda x: F.silu(x[..., :2]) * x[..., 2:4]),
    "clip": of(lambda x: (x.clamp(-1, 1), x.clamp(min=0), x.clamp(max=0), x.clamp(2, 1))),
    "clip by tensors": lambda: (torch.clamp, r(3, 4), r(3, 1) - 1, r(4) + 1),
    "clip integers": lambda: (
        lambda x: (x.clamp(-1, 1), x.clamp(min=0), x.clamp(max=3)),
        i(9, 4, 5, low=-9, dtype=torch.int8),
    ),
    "add, sub, mul": two(lambda x, y: (x + y, x - y, x * y)),
    "div": two(torch.div, nonzero),
    "add of bytes": two(
        lambda x, y: (x + y, x - y, x * y), lambda *s: i(200, *s, dtype=torch.uint8)
    ),
    "add of words": two(
        lambda x, y: (x + y, x - y, x * y), lambda *s: i(30000, *s, dtype=torch.int16)
    ),
    "div of integers": two(
        lambda x, y: (torch.div(x, y, rounding_mode="trunc"), x // y, x / y),
        lambda *s: i(9, *s, low=1, dtype=torch.int32),
    ),
    "pow": two(torch.pow, nonzero),
    "pow of types": lambda: (
        lambda x, y, k: (x**2, x**-1, x**0.5, x**k, k**2, k**k, 2**k, torch.pow(y, k)),
        *(u(3, 4) + 0.1, r(3, 4), i(4, 3, 4)),
    ),
    "max, min, mean of several": lambda: (
        lambda x, y, z: (
            torch.maximum(torch.maximum(x, y), z),
            torch.minimum(x, y),
            (x + y + z) / 3,
            torch.stack((x, y, z)).amax(0),
        ),
        *(r(3, 4), r(3, 4), r(3, 4)),
    ),
    "max, min of integers": lambda: (
        lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)),
        *(i(9, 3, low=-9, dtype=torch.int8), i(9, 3, low=-9, dtype=torch.int8)),
    ),
    "mod": lambda: (
        lambda x, y: (torch.remainder(x, y), torch.fmod(x, y)),
        *(i(20, 3, 4, low=-20), i(7, 4, low=1)),
    ),
    "mod of floats": lambda: (
        lambda x, y: (torch.remainder(x, y), torch.fmod(x, y)),
        *(20 * r(3, 4), 7 * u(4) + 0.5),
    ),
    "mod by negative": lambda: (
        lambda x, y: (torch.remainder(x, -y), torch.fmod(x, -y)),
        *(i(20, 3, 4, low=-20, dtype=torch.int32), i(7, 4, low=1, dtype=torch.int32)),
    ),
    "mod of bytes": lambda: (
        lambda x, y: (torch.remainder(x, y), torch.fmod(x, y)),
        *(i(200, 3, 4, dtype=torch.uint8), i(7, 4, low=1, dtype=torch.uint8)),
    ),
    "bit shift": lambda: (
        lambda x, k: (x << k, x >> k),
        *(i(200, 3, 4, dtype=torch.uint8), i(7, 3, 4, dtype=torch.uint8)),
    ),
    "bit shift of words": lambda: (
        lambda x, k: (x << k, x >> k),
        *(i(200, 3, 4, low=-99, dtype=torch.int16), i(7, 4, dtype=torch.int16)),
    ),
    "bitwise": lambda: (
        lambda x, y: (x & y, x | y, x ^ y, ~x),
        *(i(99, 3, 4, low=-99, dtype=torch.int32), i(99, 4, dtype=torch.int32)),
    ),
    "logic": lambda: (
        lambda x, y: (x & y, x | y, torch.logical_xor(x, y), ~x, torch.logical_and(x, y)),
        *(b(3, 4), b(4)),
    ),
    "comparisons": two(lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y)),
    "comparisons of bytes": two(
        lambda x, y: (x == y, x < y, x <= y, x > y, x >= y),
        lambda *s: i(4, *s, dtype=torch.uint8),
    ),
    "equal truths": two(lambda x, y: (x == y, x != y), b),
    "where": lambda: (torch.where, b(3, 1, 4), r(5, 4), r(3, 1, 1)),
    "where of integers": lambda: (torch.where, b(3, 4), i(9, 3, 4), i(9, 4)),
    "is inf, is nan": lambda: (
        lambda x: (x.isinf(), x.isnan(), x.isposinf(), x.isneginf(), x.isfinite(), x.nan_to_num()),
        torch.tensor([1.0, torch.nan, torch.inf, -torch.inf, 0.0]),
    ),
    "casts": of(
        lambda x: (
            *(x.half(), x.bfloat16(), x.double(), x.int(), x.long(), x.bool(), x.to(torch.int8)),
            *(x.half().float(), x.bfloat16().float(), x.abs().to(torch.uint8)),
        )
    ),
    "casts to float8": of(
        lambda x: (x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float())
    ),
    "casts of integers": lambda: (
        lambda x: (x.float(), x.to(torch.uint8), x.to(torch.int16), x.bool(), x.half(), x.int()),
        i(300, 3, 4, low=-300),
    ),
    "cast like": lambda: (lambda x, y: x.type_as(y), r(3, 4), i(3, 4)),
    "expand": lambda: (
        lambda x: (x.expand(2, 3, 6), x + torch.ones(2, 1, 6), x.expand(-1, 6)),
        r(3, 1),
    ),
    "xor of rows": lambda: (torch.logical_xor, b(3, 4, 5), b(5)),
    "quantize linear": lambda: (
        lambda x, s: (quantized(x, 2.0, 128), quantized(x, s, 84)),
        *(300 * r(2, 3, 4), nonzero(3, 1)),
    ),
    "dequantize linear": lambda: (
        lambda x, s, z: ((x.float() - 128) * 2.0, (x.float() - z.float()) * s),
        *(i(255, 2, 3, 4, dtype=torch.uint8), nonzero(3, 1), i(9, 3, 1, dtype=torch.uint8)),
    ),
    "dynamically quantized": lambda: (dynamically_quantized, r(3, 4)),
    "fake quantized": lambda: (
        lambda x, s, z: (
            torch.fake_quantize_per_tensor_affine(x.float(), 0.1, 0, -128, 127),
            torch.fake_quantize_per_channel_affine(x.float(), s.detach().float(), z, 1, 0, 255),
        ),
        *(r(2, 3, 4), nonzero(3), i(9, 3, dtype=torch.int32)),
    ),
    "fused multiply add": lambda: (
        lambda x, y, z: (torch.addcmul(x, y, z, value=0.5), torch.addcdiv(x, y, z.abs() + 1)),
        *(r(3, 4), r(3, 4), r(4)),
    ),
    "lerp": lambda: (
        lambda x, y, w: (torch.lerp(x, y, 0.3), torch.lerp(x, y, w)),
        *(r(3, 4), r(3, 4), u(4)),
    ),
    "angles": lambda: (
        lambda x, y: (torch.atan2(x, y), torch.hypot(x, y), torch.copysign(x, y), x.deg2rad()),
        *(r(3, 4), r(4)),
    ),
    "more functions": of(
        lambda x: (x.expm1(), x.exp2(), x.square(), torch.sinc(x), torch.xlogy(x.abs(), x.abs()))
    ),
    "gammas": of(lambda x: (torch.lgamma(x), torch.digamma(x)), 0.5, 5),
    "bessel": of(lambda x: (torch.special.i0(x), torch.special.i1(x), torch.special.i0e(x))),
    "entropy": of(lambda x: (torch.special.entr(x), torch.special.ndtr(x)), 0.1, 1),
    "float powers": lambda: (
        lambda x: (torch.float_power(x, 2), torch.ldexp(x, torch.tensor(3))),
        r(3, 4),
    ),
    "logaddexp": two(torch.logaddexp),
    "gcd": lambda: (
        lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)),
        *(i(60, 3, 4, low=1), i(60, 4, low=1)),
    ),
    "heaviside": lambda: (
        lambda x, y: torch.heaviside(x.detach(), y.detach()),
        torch.tensor([-1.0, 0.0, 2.0]),
        r(3),
    ),
    "bernoulli of certain": lambda: (torch.bernoulli, b(3, 4).float()),
    "frexp": of(torch.frexp),
    "in a set": lambda: (torch.isin, i(9, 3, 4), torch.tensor([1, 4, 7])),
    "close": two(torch.isclose),
    "complex": lambda: (
        lambda x, y: (z := torch.complex(x, y), z.abs(), z.angle(), (z * z.conj()).real, z.exp()),
        *(r(3, 4), r(3, 4)),
    ),
}
