"""Models as one writes them in JAX, with parameters and inputs, which the tests import."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

_numbers = np.random.default_rng(0)
LENGTH, WIDTH, HEADS = 8, 16, 2
LAYOUT = ("NHWC", "HWIO", "NHWC")


def numbers(*shape: int) -> Any:
    return (_numbers.normal(size=shape) * 0.3).astype(np.float32)


def mlp(layers: Any, x: Any) -> Any:
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


MLP = [(numbers(8, 16), numbers(16)), (numbers(16, 5), numbers(5))]
FEATURES, LABELS = numbers(4, 8), np.array([0, 3, 1, 4], np.int32)


def cross_entropy(layers: Any, x: Any, labels: Any) -> Any:
    return -jax.nn.log_softmax(mlp(layers, x))[jnp.arange(4), labels].mean()


def adam_step(layers: Any, moments: Any, x: Any, labels: Any) -> Any:
    slopes = jax.grad(cross_entropy)(layers, x, labels)
    moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, slopes)
    step = jax.tree.map(lambda p, m: p - 0.01 * m / (jnp.abs(m) + 1e-8), layers, moments)
    return step, moments


def convolutional(p: Any, x: Any) -> Any:
    x = lax.conv_general_dilated(x, p["k1"], (1, 1), "SAME", dimension_numbers=LAYOUT)
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(x, p["k2"], (2, 2), "SAME", dimension_numbers=LAYOUT)
    x = (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5)
    return jax.nn.relu(x).mean((1, 2)) @ p["w"]


CONVOLUTIONAL = {"k1": numbers(3, 3, 1, 4), "k2": numbers(3, 3, 4, 8), "w": numbers(8, 3)}
IMAGES = numbers(2, 8, 8, 1)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def rms_norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


QUERIES = numbers(2, HEADS, LENGTH, 4)


def _heads(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _merged(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def transformer(p: Any, x: Any) -> Any:
    h = layer_norm(x, p["g1"], p["b1"])
    q, k, v = (_heads(part, HEADS) for part in jnp.split(h @ p["wqkv"], 3, -1))
    x = x + _merged(attention(q, k, v)) @ p["wo"]
    h = layer_norm(x, p["g2"], p["b2"])
    return x + jax.nn.gelu(h @ p["w1"]) @ p["w2"]


TRANSFORMER = {
    "g1": numbers(WIDTH), "b1": numbers(WIDTH), "g2": numbers(WIDTH), "b2": numbers(WIDTH),
    "wqkv": numbers(WIDTH, 3 * WIDTH), "wo": numbers(WIDTH, WIDTH),
    "w1": numbers(WIDTH, 4 * WIDTH), "w2": numbers(4 * WIDTH, WIDTH),
}  # fmt: skip
TOKENS = numbers(2, LENGTH, WIDTH)


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[-2])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)


def llama(p: Any, x: Any) -> Any:
    h = rms_norm(x, p["g1"])
    q, k, v = _heads(h @ p["wq"], 4), _heads(h @ p["wk"], 2), _heads(h @ p["wv"], 2)
    k, v = jnp.repeat(rotated(k), 2, 1), jnp.repeat(v, 2, 1)
    x = x + _merged(attention(rotated(q), k, v)) @ p["wo"]
    h = rms_norm(x, p["g2"])
    return x + (jax.nn.silu(h @ p["wg"]) * (h @ p["wu"])) @ p["wd"]


LLAMA = {
    "g1": numbers(WIDTH), "g2": numbers(WIDTH), "wq": numbers(WIDTH, 16), "wk": numbers(WIDTH, 8),
    "wv": numbers(WIDTH, 8), "wo": numbers(16, WIDTH), "wg": numbers(WIDTH, 24),
    "wu": numbers(WIDTH, 24), "wd": numbers(24, WIDTH),
}  # fmt: skip


def lstm(p: Any, x: Any) -> Any:
    def step(state: Any, cell: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(cell @ p["wx"] + h @ p["wh"] + p["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros((2, 6)), jnp.zeros((2, 6))), x)[1]


LSTM = {"wx": numbers(4, 24), "wh": numbers(6, 24), "b": numbers(24)}
SEQUENCE = numbers(5, 2, 4)


def diffusion(layers: Any, x: Any, key: Any) -> Any:
    """Two steps of denoising: noise is predicted, taken away, and less of it added again."""
    kept = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 10))

    def step(number: Any, x: Any) -> Any:
        time = 9 - number
        when = jnp.full((x.shape[0], 1), time / 10.0)
        noise = mlp(layers, jnp.concatenate([x, when], 1))
        clean = (x - jnp.sqrt(1 - kept[time]) * noise) / jnp.sqrt(kept[time])
        drawn = jax.random.normal(jax.random.fold_in(key, time), x.shape)
        return jnp.sqrt(kept[time]) * clean + 0.1 * drawn

    return lax.fori_loop(0, 2, step, x)


DENOISER = [(numbers(8, 16), numbers(16)), (numbers(16, 7), numbers(7))]
NOISE, KEY = numbers(3, 7), np.array([1, 2], np.uint32)


def language(p: Any, ids: Any) -> Any:
    x = p["words"][ids] + p["places"][: ids.shape[1]]
    return jax.nn.softmax(x @ p["words"].T)


LANGUAGE = {"words": numbers(20, 8), "places": numbers(10, 8)}
IDS = np.array([[1, 5, 19], [0, 0, 3]], np.int32)


def squared(model: Any) -> Any:
    """A loss of a model whose gradient is worth comparing."""
    return lambda parameters, x: (model(parameters, x) ** 2).mean()
