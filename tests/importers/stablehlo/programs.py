"""Functions of jax.numpy, lax and jax.nn, by name, each with inputs to call it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

Row = Callable[[], tuple[Any, ...]]

_draws = np.random.default_rng(0)


def r(*shape: int) -> np.ndarray:
    return _draws.normal(size=shape).astype(np.float32)


def u(*shape: int) -> np.ndarray:
    return _draws.uniform(0.1, 0.9, shape).astype(np.float32)


def i(high: int, *shape: int, low: int = 0) -> np.ndarray:
    return _draws.integers(low, high, shape).astype(np.int32)


def b(*shape: int) -> np.ndarray:
    return _draws.uniform(size=shape) > 0.5


def of(function: Callable[..., Any], make: Callable[..., np.ndarray] = r) -> Row:
    return lambda: (function, make(3, 4, 5))


def two(function: Callable[..., Any], make: Callable[..., np.ndarray] = r) -> Row:
    return lambda: (lambda x, y: (function(x, y), function(y, x[0])), make(3, 4), make(4))


def convolved(kernel: tuple[int, ...], *args: Any, shape: Any = (2, 3, 7, 8), **how: Any) -> Row:
    return lambda: (
        lambda x, w: lax.conv_general_dilated(x, w, *args, **how),
        *(r(*shape), r(*kernel)),
    )


def pooled(start: float, fold: Callable[..., Any], *way: Any, **how: Any) -> Row:
    return lambda: (lambda x: lax.reduce_window(x, start, fold, *way, **how), r(2, 7, 8))


def scattered(name: str, mode: str | None = None) -> Row:
    def run(x: Any, at: Any, rows: Any) -> Any:
        return getattr(x.at[at], name)(rows, mode=mode)

    return lambda: (run, r(6, 3), np.array([0, 4, 4, 7, -1], np.int32), u(5, 3))


def gathered(mode: str) -> Row:
    return lambda: (
        lambda x, at: (jnp.take(x, at, 0, mode=mode), x.at[at].get(mode=mode)),
        *(r(5, 3), np.array([[0, 4, 7], [-1, 2, -9]], np.int32)),
    )


def scanned(x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(0.5 * state + row)
        return state, state.sum()

    return lax.scan(step, jnp.zeros_like(x[0]), x)


def counted(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda k, y: y * 0.5 + jnp.sin(y) * k, x)


def iterated(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5 + 1), (0, x))[1]


def chosen(x: Any, k: Any) -> Any:
    return (
        lax.cond(k > 1, jnp.sin, jnp.cos, x),
        lax.switch(k, [jnp.exp, jnp.tanh, lambda y: y * 2], x),
        lax.select(x > 0, x, -x),
    )


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def random(seed: Any) -> Any:
    key = jax.random.key(seed)
    first, second, third = jax.random.split(key, 3)
    return (
        jax.random.uniform(first, (3, 4)),
        jax.random.normal(second, (7,)),
        jax.random.randint(third, (5,), 0, 9),
        jax.random.bernoulli(jax.random.fold_in(key, 3), 0.3, (6,)),
    )


def random_choices(seed: Any, x: Any) -> Any:
    key = jax.random.key(seed)
    return (
        jax.random.permutation(key, x, independent=False),
        jax.random.categorical(key, x, axis=1),
        jax.random.gumbel(key, (3,)),
        jax.random.exponential(key, (3,)),
        jax.random.truncated_normal(key, -1.0, 1.0, (4,)),
    )


def mapped(x: Any, w: Any, at: Any) -> Any:
    def one(row: Any, place: Any) -> Any:
        return jnp.tanh(row @ w)[place], row.at[place].set(0.0), jnp.sort(row)

    return jax.vmap(one)(x, at), jax.vmap(jax.grad(lambda row: jnp.tanh(row @ w).sum()))(x)


def curved(x: Any, y: Any) -> Any:
    loss = lambda x: jnp.sum(jnp.sin(x) * x**2 + jnp.log1p(jnp.exp(x)))  # noqa: E731
    return (
        jax.hessian(loss)(x),
        jax.jacfwd(jnp.cumsum)(x),
        jax.jvp(loss, (x,), (y,)),
        jax.checkpoint(loss)(x),
    )


def layer(x: Any, w: Any, scale: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return jax.nn.gelu((x - mean) * lax.rsqrt(var + 1e-5) * scale) @ w


dims = lax.ConvDimensionNumbers

PROGRAMS: dict[str, Row] = {
    "trigonometry": of(lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan(x))),
    "inverses": of(lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x), jnp.arcsinh(x)), u),
    "hyperbolic": of(lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.arccosh(x * x + 1.1))),
    "exponentials": of(lambda x: (jnp.exp(x), jnp.exp2(x), jnp.expm1(x), jnp.log1p(x)), u),
    "logarithms": of(lambda x: (jnp.log(x), jnp.log2(x), jnp.log10(x), jnp.sqrt(x)), u),
    "roots": of(lambda x: (jnp.cbrt(x), lax.rsqrt(x), jnp.reciprocal(x), jnp.square(x)), u),
    "rounding": of(lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x))),
    "signs": of(lambda x: (jnp.sign(x), jnp.abs(x), jnp.signbit(x), -x, jnp.positive(x))),
    "error functions": of(lambda x: (lax.erf(x), lax.erfc(x), lax.erf_inv(x / 5))),
    "gammas": of(lambda x: (lax.lgamma(x + 1), lax.digamma(x + 1)), u),
    "bessel": of(lambda x: (lax.bessel_i0e(x), lax.bessel_i1e(x))),
    "sigmoids": of(lambda x: (jax.nn.sigmoid(x), jax.nn.log_sigmoid(x), jax.nn.hard_sigmoid(x))),
    "rectifiers": of(
        lambda x: (jax.nn.relu(x), jax.nn.relu6(x), jax.nn.leaky_relu(x), jax.nn.elu(x))
    ),
    "activations": of(
        lambda x: (jax.nn.selu(x), jax.nn.celu(x), jax.nn.gelu(x), jax.nn.gelu(x, False))
    ),
    "more activations": of(
        lambda x: (jax.nn.silu(x), jax.nn.mish(x), jax.nn.softplus(x), jax.nn.soft_sign(x))
    ),
    "gated": of(lambda x: (jax.nn.glu(x[..., :4]), jax.nn.hard_swish(x), jax.nn.hard_tanh(x))),
    "softmax": of(lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 1), jax.nn.standardize(x))),
    "sums": two(lambda x, y: (x + y, x - y, x * y, jnp.maximum(x, y), jnp.minimum(x, y))),
    "quotients": two(lambda x, y: (x / y, x // y, x % y, jnp.fmod(x, y), jnp.divmod(x, y)), u),
    "powers": two(lambda x, y: (x**y, jnp.float_power(x, y), jnp.hypot(x, y)), u),
    "angles": two(lambda x, y: (jnp.arctan2(x, y), jnp.copysign(x, y), jnp.logaddexp(x, y))),
    "more of two": two(lambda x, y: (jnp.heaviside(x, y), jnp.nextafter(x, y), jnp.ldexp(x, 2))),
    "comparisons": two(lambda x, y: (x < y, x <= y, x == y, x != y, x > y, jnp.isclose(x, y))),
    "integers": two(
        lambda x, y: (x + y, x // y, x % y, lax.rem(x, x), x * y, lax.div(x, x + 1), jnp.gcd(x, y)),
        lambda *s: i(9, *s, low=1),
    ),
    "bits": two(
        lambda x, y: (x & y, x | y, x ^ y, ~x, x << (y % 4), x >> (y % 4)), lambda *s: i(99, *s)
    ),
    "bits counted": of(lambda x: (lax.population_count(x), lax.clz(x)), lambda *s: i(99, *s)),
    "bits as they are": of(lambda x: (lax.bitcast_convert_type(x, jnp.int32), x.view(jnp.uint32))),
    "truths": two(lambda x, y: (x & y, x | y, x ^ y, ~x, jnp.logical_xor(x, y)), b),
    "casts": of(
        lambda x: (
            x.astype(jnp.bfloat16),
            x.astype(jnp.int8),
            x.astype(bool),
            x.astype(jnp.float16),
        )
    ),
    "not finite": of(lambda x: (jnp.isnan(x / 0), jnp.isinf(x / 0), jnp.nan_to_num(x / 0))),
    "where": lambda: (jnp.where, b(3, 4), r(4), r(3, 1)),
    "clip": of(lambda x: (jnp.clip(x, -0.5, 0.5), lax.clamp(-0.5, x, 0.5), jnp.clip(x, min=0))),
    "complex": lambda: (
        lambda x, y: (z := x + 1j * y, jnp.abs(z), jnp.angle(z), jnp.exp(z), (z * z.conj()).real),
        *(r(3), r(3)),
    ),
    "polynomials": lambda: (
        lambda c, x: (jnp.polyval(c, x), jnp.interp(x, c.sort(), c)),
        r(3),
        r(4),
    ),
    "folds": of(
        lambda x: (x.sum(1), x.mean((0, 2)), x.prod(0), x.max(), x.min(1), x.std(1), x.var(0))
    ),
    "folds of truths": of(lambda x: (x.any(1), x.all(0), jnp.count_nonzero(x), x.argmax(1)), b),
    "nan folds": of(lambda x: (jnp.nansum(x, 1), jnp.nanmax(x), jnp.nanmean(x, 0), jnp.nanstd(x))),
    "the largest": of(lambda x: (x.argmax(1), x.argmin(), jnp.nanargmax(x, 2))),
    "norms": of(lambda x: (jnp.linalg.norm(x[0]), jnp.linalg.norm(x, 1, axis=1), jnp.ptp(x, 1))),
    "running": of(
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0))
    ),
    "running backwards": of(lambda x: (lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1))),
    "associative scan": of(lambda x: lax.associative_scan(jnp.multiply, x, axis=1)),
    "median": of(lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3, 0), jnp.percentile(x, 40))),
    "statistics": lambda: (lambda x: (jnp.cov(x), jnp.corrcoef(x), jnp.average(x, 0)), r(3, 7)),
    "sorted": of(lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0), -jnp.sort(-x), lax.top_k(x, 2))),
    "sorted together": lambda: (
        lambda x, y: lax.sort((x, y), dimension=1, num_keys=1),
        *(r(3, 5), r(3, 5)),
    ),
    "sorted by several": lambda: (
        lambda x, y: (lax.sort((x, y), num_keys=2), jnp.lexsort((y[0], x[0]))),
        *(i(3, 3, 5), i(9, 3, 5)),
    ),
    "searched": lambda: (
        lambda x, at: (jnp.searchsorted(x.sort(), at), jnp.digitize(at, x.sort())),
        *(r(7), r(4)),
    ),
    "histograms": lambda: (lambda x: (jnp.bincount(x, length=6), jnp.histogram(x, 4)[0]), i(6, 20)),
    "unique": lambda: (lambda x: jnp.unique(x, size=4, fill_value=0), i(4, 9)),
    "nonzero": lambda: (lambda x: (jnp.nonzero(x, size=4), jnp.flatnonzero(x, size=3)), i(2, 9)),
    "matmul": lambda: (lambda a, c: (a @ c, a[0] @ c, c.T @ a[1].T), r(2, 3, 4), r(4, 5)),
    "vectors": lambda: (
        lambda a, v: (a @ v, jnp.vdot(v, v), jnp.outer(v, v), jnp.kron(v, v)),
        r(3, 4),
        r(4),
    ),
    "einsum": lambda: (
        lambda x, y: (
            jnp.einsum("bij,bjk->bik", x, y),
            jnp.einsum("bij->b", x),
            jnp.einsum("bij,bjk->", x, y),
        ),
        *(r(2, 3, 4), r(2, 4, 5)),
    ),
    "diagonals of einsum": lambda: (
        lambda x: (jnp.einsum("ii->i", x), jnp.einsum("ii", x)),
        r(4, 4),
    ),
    "dot_general": lambda: (
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (2,)))),
        *(r(2, 3, 4), r(5, 4, 2)),
    ),
    "tensordot": lambda: (
        lambda x, y: jnp.tensordot(x, y, ([0, 2], [0, 1])),
        r(2, 3, 4),
        r(2, 4, 5),
    ),
    "products of halves": lambda: (
        lambda x, y: lax.dot(
            lax.stop_gradient(x).astype(jnp.bfloat16),
            lax.stop_gradient(y).astype(jnp.bfloat16),
            preferred_element_type=jnp.float32,
        ),
        *(r(3, 4), r(4, 5)),
    ),
    "matrix power": lambda: (lambda x: (jnp.linalg.matrix_power(x, 3), jnp.trace(x)), r(3, 3)),
    "cross": lambda: (jnp.cross, r(4, 3), r(4, 3)),
    "convolution": convolved((4, 3, 3, 3), (1, 1), "SAME"),
    "convolution, valid": convolved((4, 3, 3, 2), (2, 1), "VALID"),
    "convolution, pads": convolved((4, 3, 3, 3), (2, 2), ((1, 2), (0, 1))),
    "convolution, cut": convolved((4, 3, 3, 3), (1, 1), ((-1, 0), (2, -1))),
    "convolution, dilated": convolved((4, 3, 2, 3), (1, 1), "SAME", rhs_dilation=(2, 2)),
    "convolution, widened": convolved((4, 3, 3, 3), (1, 1), ((2, 2), (1, 1)), lhs_dilation=(2, 3)),
    "convolution, both": convolved(
        (4, 3, 2, 2), (2, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)
    ),
    "convolution, groups": convolved((6, 1, 3, 3), (1, 1), "SAME", feature_group_count=3),
    "convolution, batches": convolved(
        (4, 3, 3, 3), (1, 1), "SAME", shape=(4, 3, 5, 5), batch_group_count=2
    ),
    "convolution, channels last": convolved(
        (3, 3, 3, 4), (1, 1), "SAME", shape=(2, 7, 8, 3), dimension_numbers=("NHWC", "HWIO", "NHWC")
    ),
    "convolution of one": convolved((4, 3, 3), (2,), "SAME", shape=(2, 3, 9)),
    "convolution of three": convolved((4, 3, 2, 2, 2), (1, 1, 1), "SAME", shape=(1, 3, 4, 4, 3)),
    "convolution, transposed": lambda: (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        *(r(2, 5, 4, 3), r(3, 3, 3, 4)),
    ),
    "correlation": lambda: (
        lambda x, y: (jnp.convolve(x, y), jnp.correlate(x, y, "same")),
        r(7),
        r(3),
    ),
    "windows, max": pooled(-np.inf, lax.max, (1, 2, 3), (1, 2, 1), "SAME"),
    "windows, min": pooled(np.inf, lax.min, (1, 3, 2), (1, 1, 2), "VALID"),
    "windows, max of three": pooled(-np.inf, lax.max, (2, 3, 2), (1, 2, 2), "SAME"),
    "windows, sum": pooled(0.0, lax.add, (1, 3, 3), (1, 2, 2), ((0, 0), (1, 2), (0, 1))),
    "windows, product": pooled(1.0, lax.mul, (1, 2, 2), (1, 2, 2), "VALID"),
    "windows, dilated": pooled(
        0.0,
        lax.add,
        (1, 2, 2),
        (1, 1, 1),
        "VALID",
        base_dilation=(1, 2, 1),
        window_dilation=(1, 1, 3),
    ),
    "take, clip": gathered("clip"),
    "take, fill": gathered("fill"),
    "take, wrap": lambda: (
        lambda x, at: jnp.take(x, at, 0, mode="wrap"),
        r(5, 3),
        i(20, 4, low=-20),
    ),
    "take along an axis": lambda: (
        lambda x, at: (jnp.take_along_axis(x, at, 1), jnp.choose(at[0], list(x[:2]), mode="clip")),
        *(r(3, 4), i(2, 3, 4)),
    ),
    "places": lambda: (
        lambda x, a, c: (x[a], x[:, a], x[a, :, c], x[a[:, None], c], x[..., a, 1:3], x[-1, ::2]),
        *(r(4, 4, 4), i(4, 3), i(4, 3)),
    ),
    "a slice at a place": lambda: (
        lambda x, k: (
            lax.dynamic_slice(x, (k, 1), (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :2], (k, k)),
            lax.dynamic_index_in_dim(x, k, 0, keepdims=False),
        ),
        *(r(5, 6), np.int32(4)),
    ),
    **{
        f"scatter by {name}{f', {mode}' if mode else ''}": scattered(name, mode)
        for name in ("set", "add", "mul", "max", "min")
        for mode in (None, "drop", "clip")
        if name != "set" or mode != "clip"
    },
    "scatter of windows": lambda: (
        lambda x, at, y: (x.at[at, 1:3].add(y), x.at[:, at].set(0.0)),
        *(r(5, 4), np.array([0, 3], np.int32), r(2, 2)),
    ),
    "segments": lambda: (
        lambda x, at: (jax.ops.segment_sum(x, at, 4), jax.ops.segment_max(x, at, 4)),
        *(r(6, 2), np.array([0, 0, 1, 3, 3, 3], np.int32)),
    ),
    "shapes": of(
        lambda x: (x.reshape(4, 15), x.T, jnp.moveaxis(x, 0, 2), x.ravel(), jnp.expand_dims(x, 1))
    ),
    "joined": two(lambda x, y: (jnp.stack((x, x)), jnp.concatenate((x, x), 0), jnp.tile(y, 2))),
    "split": of(lambda x: (*jnp.split(x, 2, 1), *jnp.array_split(x, 3, 2), jnp.repeat(x, 2, 1))),
    "flipped": of(lambda x: (jnp.flip(x, 1), jnp.roll(x, 2, 0), jnp.rot90(x), lax.rev(x, (0, 2)))),
    "padded": of(
        lambda x: (
            jnp.pad(x, 1),
            jnp.pad(x, ((0, 1), (2, 0), (1, 1)), "edge"),
            jnp.pad(x, 1, "reflect"),
            jnp.pad(x, 1, "wrap"),
            jnp.pad(x, 1, "symmetric"),
            jnp.pad(x, 1, "linear_ramp"),
            lax.pad(x, 1.0, ((1, 0, 1), (-1, 0, 0), (0, 2, 2))),
        )
    ),
    "triangles": of(lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diagonal(x), jnp.trace(x))),
    "made": of(
        lambda x: (jnp.eye(3), jnp.arange(4.0), jnp.linspace(0, 1, 5), jnp.zeros_like(x) + x)
    ),
    "meshes": lambda: (lambda x, y: (*jnp.meshgrid(x, y), jnp.indices((2, 3))), r(3), r(4)),
    "differences": of(lambda x: (jnp.diff(x, axis=1), jnp.gradient(x, axis=2), jnp.ediff1d(x))),
    "trapezoids": of(lambda x: jnp.trapezoid(x, axis=1)),
    "one hot": lambda: (lambda at: jax.nn.one_hot(at, 5), i(7, 3, 4, low=-1)),
    "scan": lambda: (scanned, r(5, 3)),
    "scan backwards": lambda: (
        lambda x: lax.scan(lambda s, y: (s * 0.9 + y, s), jnp.zeros(3), x, reverse=True),
        r(5, 3),
    ),
    "map": lambda: (lambda x: lax.map(lambda row: jnp.tanh(row) @ row, x), r(4, 3)),
    "a loop of so many": lambda: (counted, r(3)),
    "while": lambda: (iterated, r(3)),
    "cond": lambda: (chosen, r(3), np.int32(1)),
    "random": lambda: (random, np.uint32(7)),
    "random choices": lambda: (random_choices, np.uint32(7), r(4, 5)),
    "mapped": lambda: (mapped, r(3, 4), r(4, 5), i(4, 3)),
    "curvature": lambda: (curved, r(4), r(4)),
    "a layer": lambda: (layer, r(2, 3, 4), r(4, 5), r(4)),
    "attention": lambda: (attention, r(2, 5, 3, 4), r(2, 5, 3, 4), r(2, 5, 3, 4)),
    "resized": lambda: (
        lambda x: tuple(
            jax.image.resize(x, (5, 7, 2), how)
            for how in ("nearest", "linear", "cubic", "lanczos3")
        ),
        r(4, 5, 2),
    ),
    "mapped coordinates": lambda: (
        lambda x, at: jax.scipy.ndimage.map_coordinates(x, [at[0], at[1]], 1, mode="nearest"),
        *(r(5, 6), 4 * u(2, 7)),
    ),
    "vectorized": lambda: (jnp.vectorize(jnp.dot, signature="(n),(n)->()"), r(3, 4), r(4)),
    "losses": lambda: (
        lambda x, at: -jnp.take_along_axis(jax.nn.log_softmax(x), at[:, None], 1).mean(),
        *(r(6, 4), i(4, 6)),
    ),
    "special": of(
        lambda x: (
            jax.scipy.special.logit(x),
            jax.scipy.special.xlogy(x, x),
            jax.scipy.special.entr(x),
            jax.scipy.special.logsumexp(x, 1),
            jax.scipy.stats.norm.logpdf(x),
        ),
        u,
    ),
}
