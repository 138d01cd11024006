"""Rows of grouped queries are an axis of two dimensions: walks end where a block's rows do."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor


@pytest.mark.parametrize(("heads", "rows"), [(2, 64), (4, 128), (4, 16), (3, 32)])
def test_grouped_queries_see_earlier_keys(heads: int, rows: int) -> None:
    q = f"!loom.tensor<[0, 0, 0, 0] : [1, {heads}, {rows}, 8], f32>"
    k = f"!loom.tensor<[0, 0, 0, 0] : [1, 1, {rows}, 8], f32>"
    module = parse_text(f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = weft.apply @grouped_query_attention(%q, %k, %v) {{causal = true}}
             : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}""")
    random = np.random.default_rng(0)
    shapes = {"q": (1, heads, rows, 8), "k": (1, 1, rows, 8), "v": (1, 1, rows, 8)}
    given = {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    run_pipeline(module, "default")
    (got,) = find_executor("triton").run(module, given, NoWatch()).outputs
    q, k, v = (x.astype("f8") for x in given.values())
    scores = q @ k.swapaxes(2, 3) / np.sqrt(8)
    scores = np.where(np.tri(rows, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(3, keepdims=True))
    want = weights @ v / weights.sum(3, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
