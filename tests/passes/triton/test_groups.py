"""A group of operations becomes one kernel, which gives what the definition gives."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton_executor import TritonExecutor

PIPELINE = "default"


def attention(queries, keys, width, element, *, causal=False):
    """Attention of 1 x 2 heads by its plain definition, lowered to a group."""
    q = f"!loom.tensor<[0, 0, 0, 0] : [1, 2, {queries}, {width}], {element}>"
    k = f"!loom.tensor<[0, 0, 0, 0] : [1, 2, {keys}, {width}], {element}>"
    module = parse_text(f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = weft.apply @scaled_dot_product_attention(%q, %k, %v)
             {{causal = {str(causal).lower()}}} : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}""")
    verify_module(module)
    run_pipeline(module, PIPELINE)
    return module


def expected(q, k, v, *, causal=False):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        i, j = np.ogrid[: scores.shape[-2], : scores.shape[-1]]
        scores = np.where(j <= i, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "width", "element", "tolerance"),
    [(17, 33, 8, "f32", 1e-6), (65, 130, 24, "f16", 2e-3), (33, 65, 64, "f16", 2e-3)],
)
def test_attention_is_one_kernel(queries, keys, width, element, tolerance, causal):
    module = attention(queries, keys, width, element, causal=causal)
    rng = np.random.default_rng(0)
    kind = {"f32": np.float32, "f16": np.float16}[element]
    shapes = {"q": queries, "k": keys, "v": keys}
    inputs = {n: rng.normal(size=(1, 2, rows, width)).astype(kind) for n, rows in shapes.items()}
    result = TritonExecutor(tile=256).run(module, inputs, NoWatch())
    assert len(result.records) == 1
    want = expected(**inputs, causal=causal)
    np.testing.assert_allclose(result.outputs[0].astype(np.float64), want, atol=tolerance)


def test_what_is_written_along_a_dimension_that_another_member_folds_is_apart():
    text = """
    !h = !loom.tensor<[0, 0] : [2, 6], f32>
    !w = !loom.tensor<[0, 0] : [6, 24], f32>
    !x = !loom.tensor<[0, 0] : [2, 4], f32>
    !u = !loom.tensor<[0, 0] : [4, 24], f32>
    !y = !loom.tensor<[0, 0] : [2, 24], f32>
    func.func @main(%z: !h, %w: !w, %x: !x, %u: !u) -> (!h, !y) {
      %h = weft.apply @tanh(%z) : (!h) -> !h
      %a = weft.apply @matmul(%h, %w) : (!h, !w) -> !y
      %y = weft.apply @addmm(%a, %x, %u) : (!y, !x, !u) -> !y
      func.return %h, %y : !h, !y
    }"""
    module = parse_text(text)
    run_pipeline(module, "weft-apply,loom-group{ops=h,a,y}")
    rng = np.random.default_rng(0)
    shapes = {"z": (2, 6), "w": (6, 24), "x": (2, 4), "u": (4, 24)}
    inputs = {name: rng.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    h, y = TritonExecutor().run(module, inputs, NoWatch()).outputs
    np.testing.assert_allclose(h, np.tanh(inputs["z"]), rtol=1e-5)
    wanted = np.tanh(inputs["z"]) @ inputs["w"] + inputs["x"] @ inputs["u"]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
