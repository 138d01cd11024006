"""Functions of jnp and lax cell by cell, against JAX."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
P = np.abs(X) + np.float32(0.1)
I = np.random.default_rng(1).integers(-9, 9, (4, 6)).astype(np.int32)  # noqa: E741
J = np.where(I == 0, 1, I)[::-1].copy()
U = np.random.default_rng(2).integers(0, 2**32, (4, 6), dtype=np.uint32)
B = X > 0
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], np.float32)

ONE = [
    lambda x: (jnp.abs(x), -x, jnp.sign(x), jnp.square(x), x**3, x**-1, jnp.floor(x), jnp.ceil(x)),
    lambda x: (jnp.trunc(x), jnp.round(x * 3), lax.round(x * 3), jnp.rint(x), jnp.isfinite(x)),
    lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sinh(x), jnp.cosh(x), jnp.tanh(x)),
    lambda x: (jnp.arcsin(x / 9), jnp.arccos(x / 9), jnp.arctan(x), jnp.arcsinh(x)),
    lambda x: (jnp.arccosh(jnp.abs(x) + 1), jnp.arctanh(x / 9), jnp.sinc(x), jnp.deg2rad(x)),
    lambda x: (jnp.exp(x), jnp.expm1(x), jnp.exp2(x), jnp.cbrt(x), jax.nn.sigmoid(x)),
    lambda x: (jax.scipy.special.erf(x), lax.erfc(x), lax.erf_inv(x / 9)),
    lambda x: (jax.nn.relu(x), jax.nn.relu6(x), jax.nn.gelu(x), jax.nn.gelu(x, approximate=False)),
    lambda x: (jax.nn.silu(x), jax.nn.softplus(x), jax.nn.elu(x), jax.nn.selu(x), jax.nn.mish(x)),
    lambda x: (jax.nn.leaky_relu(x), jax.nn.hard_tanh(x), jax.nn.glu(x), jax.nn.log_softmax(x)),
    lambda x: (jnp.clip(x, -1, 1), jnp.nan_to_num(x), jnp.maximum(x, 0.5), jnp.minimum(0.5, x)),
    lambda x: (jnp.signbit(x), jnp.isnan(x), jnp.isinf(x), jnp.heaviside(x, 0.5), x > 0, x <= 0),
    lambda x: (x.astype(jnp.int32), x.astype(bool), x.astype(jnp.bfloat16), x.astype(jnp.int8)),
    lambda x: (lax.reduce_precision(x, 8, 7), lax.reduce_precision(x, 5, 10)),
    lambda x: lax.bitcast_convert_type(x, jnp.uint32) >> 3,
]  # fmt: skip


@pytest.mark.parametrize("function", ONE)
def test_functions_of_floats(agrees: Any, function: Any) -> None:
    agrees(function, X)


def test_functions_of_positive_floats(agrees: Any) -> None:
    agrees(lambda x: (jnp.log(x), jnp.log1p(x), jnp.log2(x), jnp.log10(x), jnp.sqrt(x)), P)
    agrees(lambda x: (lax.rsqrt(x), x**2.5, jnp.float_power(x, 1.5), 1 / x), P)
    agrees(lambda x: (lax.lgamma(x), lax.digamma(x)), P)


def test_pairs_of_floats(agrees: Any) -> None:
    agrees(lambda x, y: (x + y, x - y, x * y, x / y, jnp.arctan2(x, y), jnp.hypot(x, y)), X, P)
    agrees(lambda x, y: (jnp.mod(x, y), jnp.fmod(x, y), jnp.floor_divide(x, y)), X, P)
    agrees(lambda x, y: (jnp.logaddexp(x, y), jnp.copysign(x, -y), lax.nextafter(x, y)), X, P)
    agrees(lambda x, y: (x < y, x == y, x != y, jnp.where(x > y, x, y), lax.clamp(-y, x, y)), X, P)


def test_edges(agrees: Any) -> None:
    agrees(lambda x: (jnp.isfinite(x), jnp.sign(x), jnp.maximum(x, 0), x < 0, jnp.exp(x)), EDGES)
    agrees(lambda x: (jnp.tanh(x), jax.nn.sigmoid(x), lax.round(x), x.astype(bool)), EDGES)


def test_the_total_order_of_floats(agrees: Any) -> None:
    pairs = np.stack(np.meshgrid(EDGES, EDGES))
    agrees(lambda p: lax.lt_to_p.bind(p[0], p[1]), pairs)
    agrees(lambda p: lax.le_to_p.bind(p[0], p[1]), pairs.astype(ml_dtypes.bfloat16))


def test_integers(agrees: Any) -> None:
    agrees(lambda x, y: (x // y, x % y, lax.div(x, y), lax.rem(x, y), x**2, jnp.abs(x)), I, J)
    agrees(lambda x, y: (x & y, x | y, x ^ y, ~x, jnp.sign(x), jnp.minimum(x, y), x >= y), I, J)
    agrees(lambda x: (x << 2, x >> 1, lax.shift_right_logical(x, 3), lax.clz(x)), I)
    agrees(lambda x: (lax.population_count(x), x.astype(jnp.uint8), x.astype(jnp.float32)), I)


def test_unsigned_integers(agrees: Any) -> None:
    agrees(lambda x: (x + 5, x * 3, x - x[::-1], x // 7, x % 7, x >> 5, x << 5, x > x[::-1]), U)
    agrees(lambda x: (x.astype(jnp.float32), x.astype(jnp.int32), jnp.maximum(x, x[::-1])), U)
    agrees(lambda x: (x.astype(jnp.uint16), x.astype(jnp.uint8), lax.population_count(x)), U)
    of_bits = jnp.array([0, 1, 127, 128, 200, 255], jnp.uint8)
    agrees(lambda x: (lax.shift_right_arithmetic(x, x[::-1] % 9), x >> 1), of_bits)


def test_truth_values(agrees: Any) -> None:
    agrees(lambda a, b: (a & b, a | b, a ^ b, ~a, a == b, jnp.where(a, b, ~b)), B, ~B[::-1])
    agrees(lambda a: (a.astype(jnp.int32), a.astype(jnp.float32), jnp.maximum(a, ~a), a * a), B)


def test_halves(agrees: Any) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    agrees(lambda x: (x * x + 1, jnp.exp(x), jax.nn.softmax(x)), x, rtol=2e-2, atol=2e-2)
    agrees(lambda x: (x * x, jnp.tanh(x)), X.astype(np.float16), rtol=2e-3, atol=2e-3)


def test_bits(agrees: Any) -> None:
    agrees(lambda x: lax.bitcast_convert_type(x, jnp.int32), X)
    agrees(lambda x: lax.bitcast_convert_type(x, jnp.uint8), X)
    agrees(
        lambda x: lax.bitcast_convert_type(x.reshape(4, 3, 2), jnp.float32), X.astype(np.float16)
    )


def test_8_bit_floats(agrees: Any) -> None:
    agrees(lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), X)
    agrees(lambda x: x.astype(jnp.float8_e5m2).astype(jnp.bfloat16), X)


def test_complex_numbers(agrees: Any) -> None:
    agrees(lambda x, y: (jnp.abs(x + 1j * y), jnp.real((x + 1j * y) * (y - 2j * x))), X, P)
    agrees(lambda x, y: (lax.complex(x, y), jnp.conj(lax.complex(x, y)), jnp.imag(x)), X, P)
    agrees(lambda x, y: (jnp.exp(1j * x), (x + 1j * y) / (y - 1j), (x + 1j * y).sum(1)), X, P)
    agrees(lambda x, y: (x + 1j) @ (y.T - 2j * x.T), X, P)
    agrees(lambda x, y: jnp.where(x > 0, x + 1j * y, 0)[::-1, 1:], X, P)
