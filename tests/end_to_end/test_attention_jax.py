"""Attention of JAX is one group: its own function, and the formula written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import run_pipeline, verify_module
from tapestry.graph import peak_live_bytes
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.program import arguments

jax = pytest.importorskip("jax")

from tapestry.importers import stablehlo  # noqa: E402

jnp = jax.numpy
attend = jax.nn.dot_product_attention


def _padded(q: Any, k: Any, v: Any) -> Any:
    """The first tokens are padding, which is known when it runs: rows of theirs see nothing."""
    real = q[:, :1, :1, :1] * 0 + jnp.arange(k.shape[1]) > 2.5
    return attend(q, k, v, is_causal=True, mask=real)


def _biased(q: Any, k: Any, v: Any) -> Any:
    """As padded, by what is added."""
    real = q[:, :1, :1, :1] * 0 + jnp.arange(k.shape[1]) > 2.5
    bias = jnp.where(real, 0.0, jnp.finfo("float32").min)
    return attend(q, k, v, bias, is_causal=True)


def _written_out(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bihd,bjhd->bhij", q, k) / 4.0
    i = jnp.arange(q.shape[1])
    scores = jnp.where(i[:, None] >= i[None, :], scores, -jnp.inf)
    return jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(scores, -1), v)


FORMS: dict[str, Callable[..., Any]] = {
    "plain": attend,
    "causal": lambda q, k, v: attend(q, k, v, is_causal=True),
    "window": lambda q, k, v: attend(q, k, v, is_causal=True, local_window_size=(3, 0)),
    "grouped": lambda q, k, v: attend(q, k[:, :, :2], v[:, :, :2], is_causal=True),
    "padded": _padded,
    "biased": _biased,
    "written out": _written_out,
}


LOWEST = (
    "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,"
    "loom-mask-to-domain{lowest=-1000000000.0},loom-group"
)


def _program(form: str, rows: int, pipeline: str = "default") -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    inputs = [jnp.asarray(random.standard_normal((2, rows, 4, 16)), "float32") for _ in range(3)]
    module = stablehlo.load(jax.jit(FORMS[form]).lower(*inputs).as_text())
    run_pipeline(module, pipeline)
    verify_module(module)
    return module, inputs


@pytest.mark.parametrize("form", FORMS)
def test_attention_is_one_group(form: str) -> None:
    module, inputs = _program(form, 8)
    (group,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    scores, mixed = group.members
    assert "derivation" in mixed.attributes
    # JAX masks with a large negative number: rows that see nothing are means of all values. So it
    # has to be known what they see, not by cells: windows are a table here.
    known = form in ("causal", "grouped", "written out")
    assert (scores.inside is not None) == (mixed.inside is not None) == known
    names = [argument.name for argument in arguments(module)]
    given = dict(zip(names, map(np.asarray, inputs), strict=True))
    (got,) = find_executor("numpy").run(module, given, NoWatch()).outputs
    np.testing.assert_allclose(got, FORMS[form](*inputs), rtol=2e-5, atol=2e-5)


def test_large_negative_numbers_mask_where_that_is_asked_for() -> None:
    module, inputs = _program("causal", 8, LOWEST)
    (group,) = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    assert all(member.inside is not None for member in group.members)
    names = [argument.name for argument in arguments(module)]
    given = dict(zip(names, map(np.asarray, inputs), strict=True))
    (got,) = find_executor("numpy").run(module, given, NoWatch()).outputs
    np.testing.assert_allclose(got, FORMS["causal"](*inputs), rtol=2e-5, atol=2e-5)


def test_gradients_of_grouped_queries_walk_rows_from_the_diagonal_on() -> None:
    """Gradients of keys and values fold all rows of all groups that see them."""
    rows = 96
    random = np.random.default_rng(0)
    shapes = [(1, rows, 4, 16), (1, rows, 2, 16), (1, rows, 2, 16), (1, rows, 4, 16)]
    inputs = [jnp.asarray(random.standard_normal(shape), "float32") for shape in shapes]

    def gradients(q: Any, k: Any, v: Any, out: Any) -> Any:
        def grouped(q: Any, k: Any, v: Any) -> Any:
            split = q.reshape(1, rows, 2, 2, 16)
            scores = jnp.einsum("bihgd,bjhd->bhgij", split, k) / 4.0
            i = jnp.arange(rows)
            scores = jnp.where(i[:, None] >= i[None, :], scores, -jnp.inf)
            weights = jax.nn.softmax(scores, -1)
            return jnp.einsum("bhgij,bjhd->bihgd", weights, v).reshape(q.shape)

        return jax.vjp(grouped, q, k, v)[1](out)

    module = stablehlo.load(jax.jit(gradients).lower(*inputs).as_text())
    run_pipeline(module, "default")
    names = [argument.name for argument in arguments(module)]
    given = dict(zip(names, map(np.asarray, inputs), strict=True))
    got = find_executor("triton").run(module, given, NoWatch()).outputs
    for ours, want in zip(got, gradients(*inputs), strict=True):
        np.testing.assert_allclose(ours, want, rtol=2e-4, atol=2e-5)


def test_what_is_stored_grows_as_the_rows() -> None:
    few, many = (_program("grouped", rows)[0] for rows in (64, 128))
    assert peak_live_bytes(many) <= 2 * peak_live_bytes(few)
