"""The backward pass of attention, as PyTorch's autograd writes it, stores no scores either."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.frontend import run_pipeline, verify_module
from tapestry.graph import peak_live_bytes
from tapestry.runtime.executor import NoWatch, find_executor

torch = pytest.importorskip("torch")

from tapestry.importers.torch.graphs import program_of  # noqa: E402
from tests.end_to_end.attention_models import gradient_graph  # noqa: E402


def _attention(causal: bool, rows: int) -> tuple[ModuleOp, list[torch.Tensor]]:
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, rows, 4) for _ in range(4)]
    graph = gradient_graph(_forward(causal), inputs[:3], inputs[3])
    return program_of(graph).module, inputs


def _forward(causal: bool):
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return attend


def _groups(module: ModuleOp) -> list[loom.FusedOp]:
    return [op for op in module.walk() if isinstance(op, loom.FusedOp)]


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_groups(on: str, causal: bool) -> None:
    """Sums over keys, the gradients of queries, and those of keys and values."""
    module, (q, k, v, out) = _attention(causal, 32)
    run_pipeline(module, "default")
    verify_module(module)
    assert not any(
        isinstance(op, loom.OperationOp) and not isinstance(op.parent_op(), loom.FusedOp)
        for op in module.walk()
    )
    assert len(_groups(module)) == 3
    # What is masked is not computed, whichever way it is folded.
    members = [member for group in _groups(module) for member in group.members]
    assert all((member.inside is not None) == causal for member in members)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    want = torch.autograd.grad(_forward(causal)(*leaves), leaves, out)
    given = {f"arg{n}_1": x.numpy() for n, x in enumerate((q, k, v, out))}
    got = find_executor(on).run(module, given, NoWatch()).outputs
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=2e-5, atol=2e-6)


def test_what_is_stored_grows_as_the_rows() -> None:
    few, many = (_attention(True, rows)[0] for rows in (64, 128))
    for module in (few, many):
        run_pipeline(module, "default")
    assert peak_live_bytes(many) <= 2 * peak_live_bytes(few)


def test_scores_are_stored_where_that_is_asked_for() -> None:
    stored, again = (_attention(False, 64)[0] for _ in range(2))
    run_pipeline(again, "default")
    run_pipeline(
        stored,
        "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,"
        "loom-group{recompute=false}",
    )
    assert peak_live_bytes(stored) > 2 * peak_live_bytes(again)
