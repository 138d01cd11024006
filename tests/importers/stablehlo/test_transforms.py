"""What JAX's transformations make: gradients of all orders, vmap, checkpoints, against JAX."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
V = X[0]
I = np.array([3, 1, 2, 1], np.int32)  # noqa: E741


def test_gradients(agrees: Any) -> None:
    agrees(jax.grad(lambda x: (jnp.cumsum(x, 1) ** 2).sum() + lax.cummax(x, 1).sum()), X)
    agrees(jax.grad(lambda x: lax.top_k(x, 2)[0].sum() + (jnp.sort(x) * X[0]).sum()), X)
    agrees(jax.grad(lambda x: x.max(1).sum() + jnp.linalg.norm(x) + x.prod(1).sum()), X)
    agrees(jax.grad(lambda x: (jnp.pad(x, ((1, 2), (0, 1)), "reflect") ** 2).sum()), X)
    agrees(jax.grad(lambda x: -jax.nn.log_softmax(x)[jnp.arange(4), I].mean()), X)
    agrees(jax.grad(lambda x: jax.scipy.special.erf(x).sum() + jnp.clip(x, -1, 1).sum()), X)


def test_other_derivatives(agrees: Any) -> None:
    agrees(jax.jacrev(lambda x: jnp.tanh(x) * x.sum()), V)
    agrees(jax.jacfwd(lambda x: jnp.tanh(x) * x.sum()), V)
    agrees(jax.hessian(lambda x: (x**3).sum() * x[0]), V)
    agrees(jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()), V)


def test_vmap(agrees: Any) -> None:
    agrees(jax.vmap(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a)), X)
    agrees(jax.vmap(lambda a, i: a[i]), X, I)
    agrees(jax.vmap(lambda a, i: a.at[i].add(1.0)), X, I)
    agrees(jax.vmap(lambda a, i: lax.dynamic_slice(a, (i,), (2,))), X, I)
    agrees(jax.vmap(lambda a, i: lax.dynamic_update_slice(a, a[:2], (i,))), X, I)
    agrees(jax.vmap(lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x)[1]), X)
