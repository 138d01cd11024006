"""Strided windows folded class by class give what they gave, on every executor."""

from math import prod

import numpy as np
import pytest

from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch, find_executor

WINDOWS = [
    # cells, window, stride, dilation, padding: two dimensions each
    ((9, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((9, 8), (5, 2), (3, 2), (1, 1), (2, 0)),
    ((9, 9), (3, 3), (2, 3), (2, 1), (0, 1)),
    ((7, 12), (1, 4), (2, 6), (1, 4), (0, 3)),
]
FOLDS = {
    "add": ("i32", "%r = arith.muli %a, %c : i32 loom.yield %r : i32", ["i32"]),
    "max": ("f32", "%r = arith.mulf %a, %c : f32 loom.yield %r : f32", ["f32"]),
    "argmax": (
        "f32",
        (
            "%i = loom.index 2 : i64 %j = loom.index 3 : i64 %k = arith.constant 100 : i64"
            " %m = arith.muli %i, %k : i64 %n = arith.addi %m, %j : i64"
            " loom.yield %a, %n : f32, i64"
        ),
        ["f32", "i64"],
    ),
}


def program(window, fold, domain=""):
    cells, kernel, stride, dilation, padding = window
    dtype, body, state = FOLDS[fold]
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(cells, kernel, stride, dilation, padding, strict=True)
    ]
    rows = ", ".join(
        f"{s} * d{n} + {d} * d{n + 2} - {p}"
        for n, (s, d, p) in enumerate(zip(stride, dilation, padding, strict=True))
    )
    kinds = {
        name: f"!loom.tensor<[0, 0] : {list(box)}, {dtype}>"
        for name, box in (("x", cells), ("w", kernel))
    }
    outs = [f"!loom.tensor<[0, 0] : {out}, {part}>" for part in state]
    zero = "0 : i32" if dtype == "i32" else "0.0 : f32"
    results = ", ".join(f"%y#{n}" for n in range(len(outs))) if len(outs) > 1 else "%y"
    text = f"""
    func.func @main(%x: {kinds["x"]}, %w: {kinds["w"]}) -> ({", ".join(outs)}) {{
      %y{f":{len(outs)}" if len(outs) > 1 else ""} = loom.operation @f
        over <[0, 0, 0, 0] : {[*out, *kernel]}> [map, map, fold, fold] by @{fold}
        ins(%x : (d0, d1, d2, d3) -> ({rows}) clip {zero}, %w : (d0, d1, d2, d3) -> (d2, d3))
        outs({", ".join(["(d0, d1) -> (d0, d1)"] * len(outs))}) {domain}
        wrap (%a: {dtype}, %c: {dtype}) {{ {body} }}
        : ({kinds["x"]}, {kinds["w"]}) -> ({", ".join(outs)})
      func.return {results} : {", ".join(outs)}
    }}"""
    numbers = {
        name: np.arange(prod(box)).reshape(box) * 37 % 23 - 9
        for name, box in (("x", cells), ("w", kernel))
    }
    kind = np.int32 if dtype == "i32" else np.float32
    return text, {name: array.astype(kind) for name, array in numbers.items()}


@pytest.mark.parametrize("executor", ["reference", "numpy", "triton"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("window", WINDOWS)
def test_same_values(window, fold, executor):
    same_values(executor, *program(window, fold))


@pytest.mark.parametrize("executor", ["reference", "numpy"])
@pytest.mark.parametrize("window", WINDOWS)
def test_domains_follow(window, executor):
    domain = "domain(d0 + d1 - 2 * d2 + 1 >= 0, d3 - d0 + 1 >= 0)"
    same_values(executor, *program(window, "add", domain))


def same_values(executor, text, inputs):
    module = parse_text(text)
    verify_module(module)
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    run_pipeline(module, "loom-stride-classes")
    verify_module(module)
    got = find_executor(executor).run(module, inputs, NoWatch()).outputs
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_are_dense(window):
    module = parse_text(program(window, "add")[0])
    run_pipeline(module, "loom-stride-classes")
    for op in module.walk():
        if isinstance(op, loom.OperationOp) and op.fold_dims:
            for read in op.in_reads:
                for row in read.projection.map.matrix:
                    kept = [row[d] for d in op.kept_dims]
                    assert all(abs(c) <= 1 for c in kept), str(read.projection)


def transposed(stride, window):
    """A transposed convolution of a matrix: zeros between its cells, then every window."""
    rows, columns = (2, 3)
    stuffed = [(n - 1) * s + 1 for n, s in zip((rows, columns), stride, strict=True)]
    out = [n + k - 1 for n, k in zip(stuffed, window, strict=True)]
    parts, kinds, placements = [], [], []
    for i in range(stride[0]):
        for j in range(stride[1]):
            shape = [-(-(n - r) // s) for n, r, s in zip(stuffed, (i, j), stride, strict=True)]
            kinds.append(f"!loom.tensor<[0, 0] : {shape}, i32>")
            placements.append(f"(d0, d1) -> ({stride[0]} * d0 + {i}, {stride[1]} * d1 + {j})")
            parts.append("%x" if i == j == 0 else f"%z{i}{j}")
    zeros = [
        f"{part} = loom.constant 0 : {kind}"
        for part, kind in zip(parts[1:], kinds[1:], strict=True)
    ]
    placed = ", ".join(f"{p} at {at}" for p, at in zip(parts, placements, strict=True))
    whole = f"!loom.tensor<[0, 0] : {stuffed}, i32>"
    w = f"!loom.tensor<[0, 0] : {list(window)}, i32>"
    y = f"!loom.tensor<[0, 0] : {out}, i32>"
    return f"""
    func.func @main(%x: {kinds[0]}, %w: {w}) -> {y} {{
      {" ".join(zeros)}
      %s = loom.assemble {placed} : {", ".join(kinds)} -> {whole}
      %y = loom.operation @up over <[0, 0, 0, 0] : {[*out, *window]}> [map, map, fold, fold] by @add
        ins(%s : (d0, d1, d2, d3) -> (d0 - d2, d1 - d3) clip 0 : i32,
            %w : (d0, d1, d2, d3) -> (d2, d3))
        outs((d0, d1) -> (d0, d1))
        wrap (%a: i32, %c: i32) {{ %p = arith.muli %a, %c : i32 loom.yield %p : i32 }}
        : ({whole}, {w}) -> {y}
      func.return %y : {y}
    }}"""


@pytest.mark.parametrize("executor", ["reference", "numpy", "triton"])
@pytest.mark.parametrize(
    ("stride", "window"), [((2, 1), (3, 2)), ((2, 2), (3, 3)), ((1, 3), (2, 4))]
)
def test_transposed(stride, window, executor):
    text = transposed(stride, window)
    inputs = {
        "x": np.arange(1, 7, dtype=np.int32).reshape(2, 3),
        "w": np.arange(1, prod(window) + 1, dtype=np.int32).reshape(window),
    }
    module = parse_text(text)
    verify_module(module)
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs[0]
    scattered = np.zeros_like(want)
    for (i, j), cell in np.ndenumerate(inputs["x"]):
        at = i * stride[0], j * stride[1]
        scattered[at[0] : at[0] + window[0], at[1] : at[1] + window[1]] += cell * inputs["w"]
    np.testing.assert_array_equal(want, scattered)
    run_pipeline(module, "loom-stride-classes,loom-simplify")
    verify_module(module)
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.fold_dims]
    assert all(not isinstance(v.owner, loom.AssembleOp) for op in folds for v in op.ins)
    got = find_executor(executor).run(module, inputs, NoWatch()).outputs[0]
    np.testing.assert_array_equal(got, want)
