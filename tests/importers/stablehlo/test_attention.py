"""Attention as JAX writes it becomes one kernel: no tensor of scores is stored."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tests.importers.stablehlo import models as m

jax = pytest.importorskip("jax")
jnp = jax.numpy
LONG = 64
"""Longer than heads are wide, so that a tensor of scores would be the largest."""


def stored(module: ModuleOp) -> list[loom.TensorType]:
    """The tensors that operations of @main make, those inside groups apart."""
    (main,) = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    return [loom.tensor_type(value) for op in main.body.block.ops for value in op.results]


def heads(count: int) -> Any:
    rng = np.random.default_rng(count)
    return rng.normal(size=(2, LONG, count, 4)).astype(np.float32)


def plain(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.5
    return jax.nn.softmax(scores, -1) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    return m.attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)))


def library(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v)


def causal_library(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("function", [plain, causal, library, causal_library])
def test_attention_stores_no_scores(agrees: Any, function: Any, groups: int) -> None:
    if groups > 1 and function in (plain, causal):
        repeated = function
        function = lambda q, k, v: repeated(q, *(jnp.repeat(x, groups, 2) for x in (k, v)))  # noqa: E731
    q, k, v = heads(4), heads(4 // groups), heads(4 // groups)
    module = agrees(function, q, k, v, pipeline="default")
    groups_made = [op for op in module.walk() if isinstance(op, loom.FusedOp)]
    assert len(groups_made) == 1
    largest = max(kind.box.size for kind in stored(module))
    assert largest <= q.size
