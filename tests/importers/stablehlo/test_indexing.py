"""Gathers and scatters of x[i] and x.at[i], against JAX."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
I = np.array([1, 2, 0], np.int32)  # noqa: E741
TWICE = np.array([1, 1, 0], np.int32)
K = np.int32(3)


def test_rows_and_columns(agrees: Any) -> None:
    agrees(lambda x, i: (x[i], x[:, i], x[i, i], jnp.take(x, i, axis=1)), X, I)
    agrees(lambda x, i: (x[i], x[:, i], x[i[0]]), X, np.array([[0, 1], [3, 2]], np.int32))
    agrees(lambda x, i: x[i], X, np.array([-1, 2, -3], np.int32))
    agrees(lambda x, i: jnp.take(x, i, axis=0, mode="clip"), X, np.array([9, -9], np.int32))
    agrees(lambda x, i: x.at[i].get(mode="fill", fill_value=7), X, np.array([9, 1], np.int32))


def test_one_of_each_row(agrees: Any) -> None:
    i = np.array([0, 5, 2, 2], np.int32)
    module = agrees(lambda x, i: x[jnp.arange(4), i], X, i)
    assert "loom.block<[1, 6]" in str(module)  # of each row only itself
    agrees(lambda x, i: jnp.take_along_axis(x, i[:, None], 1), X, i)
    agrees(lambda x, i: x.at[jnp.arange(4), i].add(1.0), X, i)


def test_places_that_are_computed(agrees: Any) -> None:
    agrees(lambda x, k: (x[k], x[k, k], lax.dynamic_slice(x, (k, 1), (2, 3))), X, K)
    agrees(lambda x, k: lax.dynamic_index_in_dim(x, k, 1), X, K)
    agrees(lambda x, k, u: lax.dynamic_update_slice(x, u, (k, 1)), X, K, X[:2, :3])
    agrees(lambda x, k: (x.at[k].set(1.0), x.at[:, k].add(2.0)), X, K)


def test_updates(agrees: Any) -> None:
    agrees(lambda x, i: (x.at[i].set(1.0), x.at[i].add(2.0), x.at[:, i].set(3.0)), X, I)
    agrees(lambda x, i: (x.at[i, 2].add(1.0), x.at[i, i].multiply(2.0)), X, I)
    agrees(lambda x, i: (x.at[i].max(0.0), x.at[i].min(0.0)), X, I)
    agrees(lambda x, i, u: (x.at[i].add(u), x.at[i, jnp.arange(3)].set(7.0)), X, TWICE, X[:3])
    agrees(lambda x, u: (x.at[1:3, ::2].set(u), x.at[::-1].add(x)), X, X[:2, :3])
    agrees(lambda x, i: x.at[i].apply(jnp.sin, unique_indices=True), X, I)
    agrees(lambda x, i: x.at[i].set(5.0, mode="drop"), X, np.array([9, 1], np.int32))


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.int8])
def test_the_greatest_and_the_least_of_updates(agrees: Any, kind: type) -> None:
    x = np.array([0, 3, 200, 255, 7]).astype(kind)
    agrees(lambda x, i: (x.at[i].max(kind(5)), x.at[i].min(kind(5))), x, TWICE)
    agrees(lambda x, i: jax.ops.segment_max(x, i, 4), x, np.array([1, 2, 2, 0, 9], np.int32))
    agrees(lambda x, i: jax.ops.segment_min(x, i, 4), x, np.array([1, 2, 2, 0, 9], np.int32))


def test_functions_of_cells(agrees: Any) -> None:
    agrees(lambda x, i: x.at[i].apply(lambda cell: cell * 2 + 1), X, I)
    agrees(lambda x, i: x.at[i].apply(jnp.sin), X, TWICE)  # twice where a cell is named twice
    agrees(lambda x, i: x.at[:, i].apply(jax.nn.gelu), X, np.array([9, 1], np.int32))
    agrees(lambda m, i: m.at[i].apply(jnp.logical_not), X > 0, TWICE)


def test_folds_by_segments(agrees: Any) -> None:
    agrees(lambda x, i: jax.ops.segment_sum(x, i, 3), X, np.array([0, 1, 1, 2], np.int32))
    agrees(lambda x, i: jax.ops.segment_max(x, i, 3), X, np.array([0, 1, 1, 2], np.int32))
    agrees(lambda i: jnp.bincount(i, length=5), np.array([0, 1, 1, 4], np.int32))


def test_gradients_of_lookups(agrees: Any) -> None:
    agrees(jax.grad(lambda t, i: (t[i] ** 2).sum()), X, TWICE)
    agrees(jax.grad(lambda t, i: (t[jnp.arange(4), i] ** 2).sum()), X, np.arange(4, dtype=np.int32))
    agrees(jax.grad(lambda x: (x[1:3, ::2] ** 2).sum() + x[0].sum()), X)
    agrees(jax.grad(lambda t, k: (lax.dynamic_slice(t, (k, 1), (2, 3)) ** 2).sum()), X, K)
