"""Slices, pads, joins and what else moves cells, against JAX."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.arange(24, dtype=np.float32).reshape(4, 6) - 7
Y = X[::-1] * 2


def test_slices(agrees: Any) -> None:
    agrees(lambda x: (x[1:3, ::2], x[::-1], x[:, ::-2], x[2], x[..., -1], x[:, None]), X)
    agrees(lambda x: (jnp.flip(x, 1), jnp.roll(x, 2, 1), jnp.rot90(x), jnp.diff(x)), X)


def test_shapes(agrees: Any) -> None:
    agrees(lambda x: (x.T, x.reshape(3, 8), x.ravel(), x[None], jnp.squeeze(x[None])), X)
    agrees(lambda x: (jnp.moveaxis(x[None], 0, 2), jnp.swapaxes(x, 0, 1)), X)
    agrees(lambda x: (jnp.broadcast_to(x, (2, 4, 6)), jnp.expand_dims(x, (0, 3))), X)


def test_joins(agrees: Any) -> None:
    agrees(lambda x, y: (jnp.concatenate([x, y, x], 1), jnp.stack([x, y], 1)), X, Y)
    agrees(lambda x: (jnp.split(x, 3, 1), jnp.repeat(x, 2, 0), jnp.tile(x, (2, 1))), X)
    agrees(lambda x: (jnp.kron(x, x), jnp.block([[x, x], [x, x]])), X)


def test_pads(agrees: Any) -> None:
    agrees(lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=2.0), X)
    agrees(lambda x: lax.pad(x, 1.5, ((1, -1, 1), (-2, 3, 2))), X)
    agrees(lambda x: lax.pad(x, np.float32(0), ((0, 0, 2), (-1, -2, 0))), X)
    agrees(lambda x, c: lax.pad(x, c, ((1, 0, 1), (0, 2, 0))), X, np.float32(9))
    agrees(lambda x: (jnp.pad(x, 2, "edge"), jnp.pad(x, 2, "reflect")), X)


def test_pads_that_cut_more_than_there_is(agrees: Any) -> None:
    agrees(lambda x: lax.pad(x, 1.5, ((-6, 4, 0), (0, 1, 0))), X)
    agrees(lambda x, c: lax.pad(x, c, ((3, -5, 0), (-7, 9, 1))), X, np.float32(9))
    agrees(lambda x: lax.pad(x[:0], 1.5, ((-1, 2, 0), (0, 0, 0))), X)


def test_coordinates(agrees: Any) -> None:
    agrees(lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.eye(4, 6) * x, jnp.diag(x[0])), X)
    agrees(lambda: [lax.iota(kind, 700) for kind in (np.float32, jnp.bfloat16, np.float16)])
    agrees(lambda: lax.broadcasted_iota(np.float32, (2, 300), 1) / 3)
    agrees(lambda: jnp.meshgrid(jnp.arange(3), jnp.linspace(0, 1, 4)))
    agrees(lambda x: (jax.nn.one_hot(jnp.arange(4), 6) + x, jnp.trace(x), jnp.diagonal(x)), X)
    agrees(lambda x: jnp.where(jnp.arange(6) > jnp.arange(4)[:, None], x, -jnp.inf), X)


def test_what_is_written_over_and_over_is_read_as_it_is_last(agrees: Any) -> None:
    def boxes(x: Any) -> Any:
        y = x.at[1:3].set(0.0).at[0, 2:4].set(5.0)
        z = y.at[2:4, 1:5].set(y[:2, :4])
        return y, z, z[2:4, 1:5], y.at[:].set(1.0)

    agrees(boxes, X)
