"""The gradients of attention, as JAX differentiates its definition: two kernels, and no scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import run_pipeline, verify_module
from tapestry.graph import peak_live_bytes
from tapestry.movement import splittables
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.program import arguments

jax = pytest.importorskip("jax")

from tapestry.importers import stablehlo  # noqa: E402

jnp = jax.numpy


def _gradients(q: Any, k: Any, v: Any, out: Any, *, causal: bool) -> tuple[Any, ...]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhid,bhjd->bhij", q, k) * 0.5
        if causal:
            i = jnp.arange(q.shape[2])
            scores = jnp.where(i[:, None] >= i[None, :], scores, -jnp.inf)
        return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, -1), v)

    return jax.vjp(attend, q, k, v)[1](out)


def _program(rows: int, *, causal: bool, dtype: str = "float32") -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    shape = (1, 2, rows, 4)
    inputs = [jnp.asarray(random.standard_normal(shape), dtype) for _ in range(4)]
    lowered = jax.jit(lambda *given: _gradients(*given, causal=causal)).lower(*inputs)
    module = stablehlo.load(lowered.as_text())
    run_pipeline(module, "default")
    verify_module(module)
    return module, inputs


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_two_kernels(on: str, causal: bool) -> None:
    """Sums over keys with the gradients of queries, and the gradients of keys and values."""
    module, inputs = _program(32, causal=causal)
    kernels = splittables(module)
    assert [type(kernel) for kernel in kernels] == [loom.FusedOp] * 2
    members = [member for kernel in kernels for member in kernel.members]
    assert all((member.inside is not None) == causal for member in members)
    names = [argument.name for argument in arguments(module)]
    given = dict(zip(names, map(np.asarray, inputs), strict=True))
    got = find_executor(on).run(module, given, NoWatch()).outputs
    with jax.enable_x64(True):
        exact = [jnp.asarray(np.asarray(x), "float64") for x in inputs]
        want = _gradients(*exact, causal=causal)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_what_is_stored_grows_as_the_rows() -> None:
    few, many = (_program(rows, causal=True)[0] for rows in (64, 128))
    assert peak_live_bytes(many) <= 2 * peak_live_bytes(few)
