"""Attention, however PyTorch writes it, is one group: one pass over keys, no scores stored."""

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
from tests.end_to_end.attention_models import (  # noqa: E402
    arrays_of,
    attention,
    forms,
    graph_of,
)

MASKED = {"causal": 1, "grouped": 1, "window": 2, "alibi": 1, "softcap": 1, "gpt": 1, "llama": 1}
"""How many rows the domain of the keys has, where the mask is known from coordinates."""


def _default(name: str, rows: int) -> tuple[ModuleOp, dict[str, np.ndarray], np.ndarray]:
    module, inputs = attention(name, rows)
    graph = graph_of(module, inputs)
    program = program_of(graph.graph_module).module
    run_pipeline(program, "default")
    verify_module(program)
    return program, arrays_of(graph, inputs), module(*inputs).detach().numpy()


def _attending(program: ModuleOp) -> list[loom.OperationOp]:
    """Folds whose state was derived of a maximum, a sum and a product."""
    folds = [op for op in program.walk() if isinstance(op, loom.OperationOp)]
    return [op for op in folds if "derivation" in op.attributes and len(op.state_types) >= 3]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", forms())
def test_attention_is_one_group(name: str) -> None:
    program, inputs, want = _default(name, 8)
    (attend,) = _attending(program)
    group = attend.parent_op()
    assert isinstance(group, loom.FusedOp)
    scores = group.members[0]
    assert scores is not attend
    rows = 0 if attend.inside is None else attend.inside.rows.outputs
    assert rows == MASKED.get(name, 0)
    # What is masked is not computed in the first place.
    assert (scores.inside is None) == (attend.inside is None)
    (got,) = find_executor("numpy").run(program, inputs, NoWatch()).outputs
    rough = 2e-3 if want.dtype == np.float16 else 2e-5
    np.testing.assert_allclose(got, want, rtol=rough, atol=rough)


@pytest.mark.parametrize("name", ["plain", "grouped", "window", "multihead", "gpt", "llama"])
def test_what_is_stored_grows_as_the_rows(name: str) -> None:
    """Twice as many rows take at most twice as much: no scores are stored, of any head."""
    few, _, _ = _default(name, 64)
    many, _, _ = _default(name, 128)
    assert peak_live_bytes(many) <= 2 * peak_live_bytes(few)
