"""Loops, branches, calls and random numbers, against JAX."""

from typing import Any

import numpy as np
import pytest

from tapestry.dialects import loom

jax = pytest.importorskip("jax")
jnp, lax, random = jax.numpy, jax.lax, jax.random

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
KEY = np.array([3, 7], np.uint32)


def test_loops(agrees: Any) -> None:
    agrees(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), X)
    agrees(lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(6), x), X)
    agrees(lambda x: lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(6), x, reverse=True), X)
    agrees(lambda x: lax.map(lambda a: a.sum() * a, x), X)
    agrees(jax.grad(lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c), x[0], x)[0].sum()), X)


def test_what_a_loop_writes_row_by_row_is_assembled_once(agrees: Any) -> None:
    module = agrees(
        lambda x: lax.scan(lambda c, a: (c, a * 2), 0.0, x)[1], X, pipeline="weft-apply"
    )
    assert str(module).count("loom.assemble") == 1


def test_branches(agrees: Any) -> None:
    agrees(lambda x: lax.cond(x[0, 0] > 0, lambda a: a + 1, lambda a: a * 2, x), X)
    ways = [lambda a: a + 1, lambda a: a * 2, lambda a: a - 7]
    for number in (-1, 1, 5):
        agrees(lambda x, i: lax.switch(i, ways, x), X, np.int32(number))
    module = agrees(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.switch(i, ways, c), x), X)
    assert "select" not in str(module)


def test_random_numbers_are_those_of_jax(agrees: Any) -> None:
    agrees(lambda k: (random.bits(k, (7,)), random.split(k, 3), random.fold_in(k, 5)), KEY)
    agrees(lambda k: (random.uniform(k, (5, 3)), random.randint(k, (9,), 0, 100)), KEY)
    agrees(lambda k: random.normal(k, (5, 3)), KEY)
    agrees(lambda k: (random.bernoulli(k, 0.3, (20,)), random.permutation(k, 8)), KEY)
    agrees(lambda k, x: random.categorical(k, x, shape=(5, 4)), KEY, X)
    agrees(lambda s: random.normal(random.PRNGKey(s), (4,)), np.int32(1))


def test_a_function_of_cells_is_one_operation(agrees: Any) -> None:
    module = agrees(lambda k: random.bits(k, (7,)), KEY, pipeline="weft-apply,loom-simplify")
    labels = [op.label.data for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert "threefry2x32" in labels
    assert len(labels) < 6


def test_a_function_of_cells_and_of_some_numbers(agrees: Any) -> None:
    table = jnp.array([0.5, -0.0, 2, -3, 1e-3, jnp.nan, 4, 0.25, -1, 7, 2, 2])
    agrees(lambda x: jnp.polyval(jnp.arange(12.0), x), X)
    agrees(lambda x: jnp.polyval(table[6:], x * 2) + jnp.polyval(table[:5:-1].repeat(2), x), X)

    def looked_up(x: Any) -> Any:
        for place in range(12):
            x = jnp.copysign(x * 0.9 + jnp.nan_to_num(table[place]), table[place])
        return x

    agrees(lambda x: jax.jit(looked_up)(x) * 2, X)
    agrees(jax.scipy.special.ndtri, abs(X) / 10)


def test_a_long_function_of_more_than_cells_is_inlined(agrees: Any) -> None:
    def long(x: Any) -> Any:
        for _ in range(40):
            x = jnp.sin(x) + 1
        return x - x.mean()

    agrees(lambda x: jax.jit(long)(x) * 2, X)


def test_bits_of_xla_are_those_of_xla(agrees: Any) -> None:
    state = np.array([11, 12, 2**32 - 1, 4], np.uint32)
    philox = lax.RandomAlgorithm.RNG_PHILOX
    agrees(lambda k: lax.rng_bit_generator(k, (3, 3), algorithm=philox), state)
    agrees(lambda k: lax.rng_bit_generator(k, (6,), dtype=jnp.uint8), state)
    key = random.key(0, impl="rbg")
    agrees(lambda k: random.normal(random.wrap_key_data(k, impl="rbg"), (5,)), random.key_data(key))
    agrees(lambda: random.normal(random.key(3, impl="unsafe_rbg"), (4,)))
    agrees(lambda: random.key_data(random.split(random.key(3, impl="unsafe_rbg"), 2)))


def test_dropout(agrees: Any) -> None:
    agrees(lambda k, x: jnp.where(random.bernoulli(k, 0.8, x.shape), x / 0.8, 0), KEY, X)
