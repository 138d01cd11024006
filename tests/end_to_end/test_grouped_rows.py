"""Rows of grouped queries are an axis of two dimensions: walks end where a block's rows do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapestry.dialects import loom
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


@pytest.mark.parametrize(
    ("groups", "rows", "keys", "domain", "seen"),
    [
        (2, 128, 128, "d3 - d0 >= 0", lambda j, g, i: i >= j + 0 * g),
        (3, 100, 64, "d3 - d0 >= 0", lambda j, g, i: i >= j + 0 * g),
        (2, 64, 200, "d3 - d0 >= 0", lambda j, g, i: i >= j + 0 * g),
        (
            3,
            130,
            130,
            "d3 - d0 >= 0, -d3 + d0 + 20 >= 0",
            lambda j, g, i: (i >= j + 0 * g) & (i <= j + 20),
        ),
        (4, 16, 64, "d3 - d0 >= 0", lambda j, g, i: i >= j + 0 * g),
        (64, 16, 16, "-d3 + d0 >= 0", lambda j, g, i: i <= j + 0 * g),
        (2, 128, 128, "-d3 + d0 >= 0", lambda j, g, i: i <= j + 0 * g),
        (2, 128, 128, "-d3 + d0 + d2 >= 0", lambda j, g, i: i <= j + g),
    ],
)
def test_rows_of_groups_are_walked_where_keys_are_seen(
    groups: int, rows: int, keys: int, domain: str, seen: Callable[..., Any]
) -> None:
    """The gradient of keys: rows from the diagonal on, of one group after another."""
    p = f"!loom.tensor<[0, 0, 0] : [{groups}, {rows}, {keys}], f32>"
    q = f"!loom.tensor<[0, 0, 0] : [{groups}, {rows}, 16], f32>"
    out = f"!loom.tensor<[0, 0] : [{keys}, 16], f32>"
    module = parse_text(f"""
    func.func @main(%p: {p}, %q: {q}) -> {out} {{
      %o = loom.operation @keys over <[0, 0, 0, 0] : [{keys}, 16, {groups}, {rows}]>
             [map, map, fold, fold] by @add
             ins(%p : (d0, d1, d2, d3) -> (d2, d3, d0), %q : (d0, d1, d2, d3) -> (d2, d3, d1))
             outs((d0, d1) -> (d0, d1)) domain({domain})
             wrap (%x: f32, %y: f32) {{ %r = arith.mulf %x, %y : f32 loom.yield %r : f32 }}
             {{assumes = ["finite(p)", "finite(q)"]}} : ({p}, {q}) -> {out}
      func.return %o : {out}
    }}""")
    random = np.random.default_rng(0)
    given = {
        "p": random.normal(size=(groups, rows, keys)).astype("f4"),
        "q": random.normal(size=(groups, rows, 16)).astype("f4"),
    }
    (got,) = find_executor("triton").run(module, given, NoWatch()).outputs
    inside = seen(*np.ogrid[:keys, :groups, :rows])
    want = np.einsum("jgi,gij,gid->jd", inside, given["p"], given["q"], dtype="f8")
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("on", ["reference", "numpy", "triton"])
def test_sums_of_sums_are_folded_at_once(on: str) -> None:
    """Products of each head, scaled, and then summed over the heads that share a matrix."""
    x, w = "!loom.tensor<[0, 0, 0] : [6, 40, 24], f32>", "!loom.tensor<[0, 0, 0] : [6, 24, 8], f32>"
    p, out = "!loom.tensor<[0, 0] : [240, 8], f32>", "!loom.tensor<[0, 0, 0] : [2, 40, 8], f32>"
    module = parse_text(f"""
    func.func @main(%x: {x}, %w: {w}) -> {out} {{
      %p = loom.operation @heads over <[0, 0, 0, 0] : [6, 40, 8, 24]> [map, map, map, fold] by @add
             ins(%x : (d0, d1, d2, d3) -> (d0, d1, d3), %w : (d0, d1, d2, d3) -> (d0, d3, d2))
             outs((d0, d1, d2) -> (40 * d0 + d1, d2)) domain(d1 - d3 >= 0)
             wrap (%a: f32, %b: f32) {{ %r = arith.mulf %a, %b : f32 loom.yield %r : f32 }}
             unwrap (%a: f32) {{
               %h = arith.constant 0.25 : f32
               %r = arith.mulf %a, %h : f32
               loom.yield %r : f32 }} : ({x}, {w}) -> {p}
      %o = loom.operation @shared over <[0, 0, 0, 0] : [2, 40, 8, 3]> [map, map, map, fold] by @add
             ins(%p : (d0, d1, d2, d3) -> (120 * d0 + 40 * d3 + d1, d2))
             outs((d0, d1, d2) -> (d0, d1, d2)) wrap (%a: f32) {{ loom.yield %a : f32 }}
             : ({p}) -> {out}
      func.return %o : {out}
    }}""")
    run_pipeline(module, "loom-fuse{cells=1}")
    assert sum(isinstance(op, loom.OperationOp) for op in module.walk()) == 1
    random = np.random.default_rng(0)
    given = {
        "x": random.normal(size=(6, 40, 24)).astype("f4"),
        "w": random.normal(size=(6, 24, 8)).astype("f4"),
    }
    (got,) = find_executor(on).run(module, given, NoWatch()).outputs
    seen = np.arange(40)[:, None] >= np.arange(24)
    each = np.einsum("hij,ij,hjk->hik", given["x"], seen, given["w"], dtype="f8") / 4
    np.testing.assert_allclose(got, each.reshape(2, 3, 40, 8).sum(1), rtol=2e-5, atol=2e-5)
