"""Reductions, windows, running folds and sorts, against JAX."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
I = np.random.default_rng(2).integers(-9, 9, (4, 6)).astype(np.int32)  # noqa: E741
IMAGES = np.random.default_rng(3).normal(size=(2, 8, 8, 3)).astype(np.float32)


def test_reductions(agrees: Any) -> None:
    agrees(lambda x: (x.sum(), x.mean(1), x.prod(0), x.max((0, 1)), x.min(1), x.std(1)), X)
    agrees(lambda x: (jnp.any(x > 0, 1), jnp.all(x > 0), jnp.count_nonzero(x > 0), x.var(0)), X)
    agrees(lambda x: (jax.nn.logsumexp(x, 1), jnp.linalg.norm(x), jnp.ptp(x, 1)), X)
    agrees(lambda x: (x.sum(1), x.max(1), x.min(), jnp.median(x)), I)
    agrees(lambda x: (x.sum(1), x.max(1), x.min(1)), I.astype(np.uint32))


def test_positions(agrees: Any) -> None:
    module = agrees(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)), X)
    assert "by @argmax" in str(module)
    with_nan = X.copy()
    with_nan[1, 2] = with_nan[1, 4] = np.nan
    agrees(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), with_nan)
    agrees(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), I)
    agrees(lambda x: jnp.argmax(x > 0, 1), X)


def test_any_monoid(agrees: Any) -> None:
    agrees(lambda x: lax.reduce(x, np.float32(-np.inf), jnp.logaddexp, (1,)), X)
    agrees(lambda x: (jnp.bitwise_or.reduce(x, 1), jnp.bitwise_xor.reduce(x, 1)), I)
    both = lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1] + 0))  # noqa: E731
    agrees(lambda x, y: lax.reduce((x, y), (np.float32(0), np.float32(-9)), both, (0,)), X, Y)


def test_a_fold_begins_with_its_initial_value(agrees: Any) -> None:
    agrees(lambda x: lax.reduce(x, np.float32(3), lax.add, (1,)), X)
    agrees(lambda x, c: lax.reduce(x, c, lax.max, (0, 1)), X, np.float32(1))
    agrees(lambda x: lax.reduce(x, np.float32(3), lax.add, (0,)), X[:0])


def test_windows(agrees: Any) -> None:
    def pooled(x: Any) -> Any:
        ways = [((1, 2, 2, 1), (1, 2, 2, 1), "VALID"), ((1, 3, 3, 1), (1, 2, 2, 1), "SAME")]
        greatest = [lax.reduce_window(x, -jnp.inf, lax.max, *way) for way in ways]
        least = [lax.reduce_window(x, jnp.inf, lax.min, *way) for way in ways]
        return greatest, least, [lax.reduce_window(x, 0.0, lax.add, *way) for way in ways]

    agrees(pooled, IMAGES)
    agrees(lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 2), ((1, 0), (0, 2))), X)
    way = ((2, 2), (1, 1), "VALID", (2, 1), (1, 2))
    agrees(lambda x: lax.reduce_window(x, 0.0, lax.add, *way), X)
    agrees(lambda x: lax.reduce_window(x, -jnp.inf, jnp.logaddexp, (1, 3), (1, 1), "SAME"), X)


def test_what_folds_one_cell(agrees: Any) -> None:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1), (2, 1), "VALID")

    def both(a: Any, b: Any) -> Any:
        return jnp.maximum(a[0], b[0]), a[1] + b[1]

    agrees(lambda x: lax.cumlogsumexp(x, 1), X[:, :1])
    agrees(lambda x: jax.jvp(pool, (x,), (2 * x,)), X)
    begin = np.float32(0), np.float32(0)
    agrees(lambda x: lax.reduce_window((x, x), begin, both, (1, 1), (1, 2), "VALID"), X)
    agrees(lambda x: lax.reduce((x, x), begin, both, ()), np.abs(X))


@pytest.mark.parametrize("pad", ["SAME", "VALID"])
def test_gradients_of_pooling(agrees: Any, pad: str) -> None:
    def loss(x: Any, by: Any, init: float) -> Any:
        return (lax.reduce_window(x, init, by, (1, 3, 3, 1), (1, 2, 2, 1), pad) ** 2).sum()

    agrees(jax.grad(lambda x: loss(x, lax.max, -jnp.inf)), IMAGES)
    agrees(jax.grad(lambda x: loss(x, lax.add, 0.0)), IMAGES)
    row = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), pad)  # noqa: E731
    agrees(jax.grad(lambda x: (row(x) ** 2).sum()), X)


def test_running_folds(agrees: Any) -> None:
    module = agrees(lambda x: (jnp.cumsum(x, 1), lax.cumprod(x, 0), lax.cumsum(x, 1, True)), X)
    assert str(module).count("scan") >= 3
    agrees(lambda x: (lax.cummax(x, 1), lax.cummin(x, 0, reverse=True)), X)
    agrees(lambda x: lax.cumlogsumexp(x, 1), X)
    agrees(lambda x: lax.associative_scan(jnp.add, x, axis=1), X)


def test_sorts(agrees: Any) -> None:
    agrees(lambda x: (jnp.sort(x), jnp.sort(x, 0), jnp.sort(x, descending=True)), X)
    agrees(lambda x: (jnp.argsort(x), jnp.argsort(x, 0), jnp.argsort(x, descending=True)), X)
    agrees(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.unique(x, size=9)), I)
    agrees(jnp.sort, I.astype(np.uint32))
    agrees(lambda x: (jnp.sort(x), jnp.argsort(x, 0), jnp.sort(x, descending=True)), X > 0)
    agrees(lambda m, x: lax.sort((m, x), num_keys=2), X > 0, Y)
    agrees(lambda x, y: lax.sort((x, y), num_keys=1), X, Y)
    agrees(lambda x, y: lax.sort((x, y), num_keys=2), np.round(X), Y)
    agrees(lambda x: (lax.top_k(x, 2), jnp.median(x, 1), jnp.quantile(x, 0.3, 1)), X)
    special = np.array([0.0, -0.0, np.nan, -np.inf, 3.0, -0.0, np.inf, -np.nan], np.float32)
    agrees(lambda x: (jnp.sort(x), jnp.argsort(x)), special)
    agrees(lambda x: lax.sort(x, is_stable=False), special[::-1].copy())
