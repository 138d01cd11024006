"""A group of operations becomes one kernel, which gives what the definition gives."""

from __future__ import annotations

import numpy as np
import pytest

from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.pipelines import DEFAULT_PIPELINE
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

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


def test_a_group_that_is_no_kernel_is_cut_where_most_is_spared():
    """Scores of heads, their product with values, and a product that folds heads and columns."""
    q = "!loom.tensor<[0, 0, 0] : [2, 17, 8], f32>"
    k = "!loom.tensor<[0, 0, 0] : [2, 8, 17], f32>"
    s = "!loom.tensor<[0, 0, 0] : [2, 17, 17], f32>"
    w = "!loom.tensor<[0, 0, 0] : [2, 8, 4], f32>"
    y = "!loom.tensor<[0, 0] : [17, 4], f32>"
    text = f"""
    func.func @main(%q: {q}, %k: {k}, %v: {q}, %w: {w}) -> {y} {{
      %s = weft.apply @matmul(%q, %k) : ({q}, {k}) -> {s}
      %o = weft.apply @matmul(%s, %v) : ({s}, {q}) -> {q}
      %y = loom.operation @y over <[0, 0, 0, 0] : [17, 4, 2, 8]> [map, map, fold, fold] by @add
             ins(%o : (i, e, h, d) -> (h, i, d), %w : (i, e, h, d) -> (h, d, e))
             outs((i, e) -> (i, e))
             wrap (%a: f32, %b: f32) {{
               %p = arith.mulf %a, %b : f32
               loom.yield %p : f32 }} : ({q}, {w}) -> {y}
      func.return %y : {y}
    }}"""
    rng = np.random.default_rng(3)
    shapes = {"q": (2, 17, 8), "k": (2, 8, 17), "v": (2, 17, 8), "w": (2, 8, 4)}
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    result = _run(text, inputs, "weft-apply,loom-group{ops=s,o,y}")
    assert [record.name for record in result.records] == ["o", "y"]
    want = np.einsum("hic,hcj,hjd,hde->ie", *inputs.values(), optimize=True)
    np.testing.assert_allclose(result.outputs[0], want, rtol=1e-4, atol=1e-4)


def test_a_residual_is_read_apart_from_what_a_long_float32_product_folds():
    """Its columns are held whole; the same tensor's, as they are folded, are walked."""
    x = "!loom.tensor<[0, 0] : [16, 128], f32>"
    u = "!loom.tensor<[0, 0] : [128, 64], f32>"
    d = "!loom.tensor<[0, 0] : [64, 128], f32>"
    h = "!loom.tensor<[0, 0] : [16, 64], f32>"
    text = f"""
    func.func @main(%x: {x}, %u: {u}, %d: {d}) -> {x} {{
      %h = weft.apply @matmul(%x, %u) : ({x}, {u}) -> {h}
      %r = weft.apply @relu(%h) : ({h}) -> {h}
      %y = weft.apply @matmul(%r, %d) : ({h}, {d}) -> {x}
      %z = weft.apply @add(%x, %y) : ({x}, {x}) -> {x}
      func.return %z : {x}
    }}"""
    rng = np.random.default_rng(4)
    shapes = {"x": (16, 128), "u": (128, 64), "d": (64, 128)}
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    result = _run(text, inputs, "default,loom-group{programs=1}", tile=2048)
    assert len(result.records) == 1
    x, u, d = inputs.values()
    want = x + np.maximum(x @ u, 0) @ d
    np.testing.assert_allclose(result.outputs[0], want, rtol=1e-4, atol=1e-3)


def _run(text, inputs, pipeline=PIPELINE, tile=256):
    module = parse_text(text)
    verify_module(module)
    run_pipeline(module, pipeline)
    return TritonExecutor(tile=tile).run(module, inputs, NoWatch())


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_scores_that_are_no_products_are_folded_point_by_point(element):
    q = f"!loom.tensor<[0, 0, 0] : [2, 17, 6], {element}>"
    k = f"!loom.tensor<[0, 0, 0] : [2, 33, 6], {element}>"
    s = f"!loom.tensor<[0, 0, 0] : [2, 17, 33], {element}>"
    text = f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %s = loom.operation @apart over <[0, 0, 0, 0] : [2, 17, 33, 6]> [map, map, map, fold] by @add
             ins(%q : (h, i, j, c) -> (h, i, c), %k : (h, i, j, c) -> (h, j, c))
             outs((h, i, j) -> (h, i, j))
             wrap (%a: {element}, %b: {element}) {{
               %d = arith.subf %a, %b : {element}
               %p = arith.mulf %d, %d : {element}
               loom.yield %p : {element} }}
             unwrap (%a: {element}) {{
               %n = arith.negf %a : {element}
               loom.yield %n : {element} }} : ({q}, {k}) -> {s}
      %p = weft.apply @softmax(%s) : ({s}) -> {s}
      %o = weft.apply @matmul(%p, %v) : ({s}, {k}) -> {q}
      func.return %o : {q}
    }}"""
    rng = np.random.default_rng(1)
    kind = {"f32": np.float32, "f64": np.float64}[element]
    shapes = {"q": 17, "k": 33, "v": 33}
    inputs = {n: rng.normal(size=(2, rows, 6)).astype(kind) for n, rows in shapes.items()}
    result = _run(text, inputs)
    assert len(result.records) == 1
    wide = {name: cells.astype(np.float64) for name, cells in inputs.items()}
    apart = wide["q"][:, :, None] - wide["k"][:, None]
    scores = -(apart**2).sum(-1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ wide["v"]
    np.testing.assert_allclose(result.outputs[0], want, atol=1e-5 if element == "f32" else 1e-12)


def test_heads_that_share_keys_are_rows_of_one_tile():
    q = "!loom.tensor<[0, 0, 0, 0] : [1, 8, 1, 16], f16>"
    k = "!loom.tensor<[0, 0, 0, 0] : [1, 2, 64, 16], f16>"
    text = f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = weft.apply @grouped_query_attention(%q, %k, %v) : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}"""
    rng = np.random.default_rng(2)
    shapes = {"q": (1, 8, 1, 16), "k": (1, 2, 64, 16), "v": (1, 2, 64, 16)}
    inputs = {name: rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    want = expected(inputs["q"], *(inputs[name].repeat(4, axis=1) for name in "kv"))
    split = ",loom-split-fold{parts=4 least=16}"
    for pipeline, kernels in ((PIPELINE, 1), (PIPELINE + split, 2)):
        result = _run(text, inputs, pipeline)
        assert len(result.records) == kernels
        np.testing.assert_allclose(result.outputs[0].astype(np.float64), want, atol=2e-3)


def test_long_columns_are_spread_and_long_inner_folds_walked():
    q = "!loom.tensor<[0, 0] : [32, 300], f32>"
    v = "!loom.tensor<[0, 0] : [64, 300], f32>"
    k = "!loom.tensor<[0, 0] : [300, 64], f32>"
    s = "!loom.tensor<[0, 0] : [32, 64], f32>"
    text = f"""
    func.func @main(%q: {q}, %k: {k}, %v: {v}) -> {q} {{
      %s = weft.apply @matmul(%q, %k) : ({q}, {k}) -> {s}
      %p = weft.apply @softmax(%s) : ({s}) -> {s}
      %o = weft.apply @matmul(%p, %v) : ({s}, {v}) -> {q}
      func.return %o : {q}
    }}"""
    rng = np.random.default_rng(3)
    shapes = {"q": (32, 300), "k": (300, 64), "v": (64, 300)}
    inputs = {n: rng.normal(size=shape).astype(np.float32) / 4 for n, shape in shapes.items()}
    result = _run(text, inputs, PIPELINE.replace("default", _grouped(resident=512)))
    assert len(result.records) == 1
    want = expected(inputs["q"] * np.sqrt(300), inputs["k"].T, inputs["v"])
    np.testing.assert_allclose(result.outputs[0], want, atol=2e-5)


def _grouped(resident):
    """The default pipeline, with groups that may hold more."""
    return ",".join([*DEFAULT_PIPELINE.split(",")[:-1], f"loom-group{{resident={resident}}}"])


_WEIGH = """
loom.monoid @scaled commutative zero [0xFF800000 : f32, 0.0 : f32]
  merge (%m0: f32, %o0: f32, %m1: f32, %o1: f32) {
    %m = arith.maximumf %m0, %m1 : f32
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %ref = arith.select %none, %zero, %m : f32
    %d0 = arith.subf %m0, %ref : f32
    %a0 = math.exp %d0 : f32
    %d1 = arith.subf %m1, %ref : f32
    %a1 = math.exp %d1 : f32
    %x0 = arith.mulf %o0, %a0 : f32
    %x1 = arith.mulf %o1, %a1 : f32
    %o = arith.addf %x0, %x1 : f32
    loom.yield %m, %o : f32, f32
  }
!s = !loom.tensor<[0, 0] : [20, 40], f32>
!v = !loom.tensor<[0, 0] : [40, 300], f32>
!o = !loom.tensor<[0, 0] : [20, 300], f32>
!e = !loom.tensor<[0] : [20], f32>
func.func @main(%s: !s, %v: !v) -> (!o, !e) {
  %o, %e = loom.operation @weigh over <[0, 0, 0] : [20, 40, 300]> [map, fold, map] by @scaled
         ins(%s : (i, j, d) -> (i, j), %v : (i, j, d) -> (j, d))
         outs((i, d) -> (i, d), (i, d) -> (i))
         wrap (%x: f32, %y: f32) { loom.yield %x, %y : f32, f32 }
         unwrap (%m: f32, %t: f32) { loom.yield %t, %m : f32, f32 } : (!s, !v) -> (!o, !e)
  func.return %o, %e : !o, !e
}"""


@pytest.mark.parametrize("pipeline", ["loom-simplify", "loom-shard{grid=2,3,1}"])
def test_an_output_without_columns_is_written_once_where_they_are_spread(pipeline):
    rng = np.random.default_rng(4)
    inputs = {"s": rng.normal(size=(20, 40)), "v": rng.normal(size=(40, 300))}
    inputs = {name: cells.astype(np.float32) for name, cells in inputs.items()}
    result = _run(_WEIGH, inputs, pipeline)
    greatest = inputs["s"].max(1, keepdims=True)
    want = np.exp(inputs["s"] - greatest) @ inputs["v"]
    np.testing.assert_allclose(result.outputs[0], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(result.outputs[1], greatest[:, 0])
    module = parse_text(_WEIGH)
    run_pipeline(module, "loom-to-triton")
    assert "mask=mask & (n[None, :] < 1)" in print_module(module).source


def test_a_product_side_that_is_folded_later_keeps_its_other_dimensions_apart():
    text = """
    !a = !loom.tensor<[0, 0, 0] : [5, 6, 6], f32>
    !w = !loom.tensor<[0, 0] : [6, 3], f32>
    !b = !loom.tensor<[0] : [3], f32>
    !c = !loom.tensor<[0, 0, 0] : [5, 6, 3], f32>
    func.func @main(%a: !a, %w: !w, %b: !b) -> !w {
      %p = weft.apply @linear(%a, %w, %b) : (!a, !w, !b) -> !c
      %s = weft.apply @sum(%p) {axis = 0} : (!c) -> !w
      func.return %s : !w
    }"""
    rng = np.random.default_rng(5)
    shapes = {"a": (5, 6, 6), "w": (6, 3), "b": (3,)}
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    want = (inputs["a"] @ inputs["w"] + inputs["b"]).sum(0)
    for shards in ("", ",loom-shard{shards=3}"):
        pipeline = f"weft-apply,loom-simplify,loom-fuse,loom-group{{programs=1}}{shards}"
        result = _run(text, inputs, pipeline)
        assert len(result.records) == 1
        np.testing.assert_allclose(result.outputs[0], want, rtol=1e-4, atol=1e-5)


def test_what_another_member_folds_for_itself_is_not_read_along_it():
    text = """
    !a = !loom.tensor<[0, 0, 0, 0] : [2, 3, 17, 8], f32>
    !t = !loom.tensor<[0, 0, 0, 0] : [2, 3, 8, 17], f32>
    !m = !loom.tensor<[0, 0, 0] : [2, 3, 17], f32>
    !v = !loom.tensor<[0, 0, 0] : [2, 17, 20], f32>
    !o = !loom.tensor<[0, 0, 0] : [2, 3, 20], f32>
    func.func @main(%a: !a, %v: !v) -> !o {
      %t = weft.apply @transpose(%a) {perm = [0, 1, 3, 2]} : (!a) -> !t
      %n = weft.apply @layer_norm(%t) : (!t) -> !t
      %m = weft.apply @max(%n) {axis = -2} : (!t) -> !m
      %p = weft.apply @softmax(%m) : (!m) -> !m
      %o = weft.apply @matmul(%p, %v) : (!m, !v) -> !o
      func.return %o : !o
    }"""
    rng = np.random.default_rng(6)
    inputs = {"a": rng.normal(size=(2, 3, 17, 8)), "v": rng.normal(size=(2, 17, 20))}
    inputs = {name: cells.astype(np.float32) for name, cells in inputs.items()}
    result = _run(text, inputs, _grouped(resident=4096))
    turned = inputs["a"].swapaxes(-1, -2)
    apart = turned - turned.mean(-1, keepdims=True)
    greatest = (apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5)).max(-2)
    weights = np.exp(greatest - greatest.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ inputs["v"]
    np.testing.assert_allclose(result.outputs[0], want, rtol=1e-4, atol=1e-4)
