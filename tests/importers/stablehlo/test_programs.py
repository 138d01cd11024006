"""Many functions of JAX's, with their gradients: what is imported gives what JAX gives."""

from typing import Any

import pytest

jax = pytest.importorskip("jax")

from jax import numpy as jnp  # noqa: E402

from tests.importers.stablehlo.programs import PROGRAMS  # noqa: E402

SOME = ("convolution, both", "windows, max of three", "scatter by max", "scan", "padded")


FORWARD = frozenset({
    "more of two", "windows, product", "while",
    "scatter by mul", "scatter by mul, drop", "scatter by mul, clip",
})  # fmt: skip
"""What JAX has no gradients of."""


def with_gradients(function: Any) -> Any:
    """What a function gives, and the gradients by its inputs that are floats."""

    def run(*given: Any) -> Any:
        floats = [
            k for k, x in enumerate(given) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)
        ]

        def made(*some: Any) -> Any:
            return function(
                *[some[floats.index(k)] if k in floats else x for k, x in enumerate(given)]
            )

        def loss(*some: Any) -> Any:
            sums = [_sum(x) for x in jax.tree.leaves(made(*some))]
            return sum(sums, jnp.float32(0))

        own = [given[k] for k in floats]
        slopes = jax.grad(loss, tuple(range(len(own))))(*own) if own else ()
        return function(*given), slopes

    return run


def _sum(x: Any) -> Any:
    """A number on which every cell bears in its own way."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.float32(0)
    x = (x.real + x.imag if jnp.iscomplexobj(x) else x).astype(jnp.float32)
    return (x * jnp.linspace(0.5, 1.5, x.size, dtype=jnp.float32).reshape(x.shape)).sum()


@pytest.mark.parametrize(
    "name", [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_a_program(name: str, agrees: Any) -> None:
    function, *given = PROGRAMS[name]()
    run = function if name in FORWARD else with_gradients(function)
    agrees(run, *given, pipeline="default", rtol=1e-4, atol=1e-4)
