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


def program(window, fold):
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
        outs({", ".join(["(d0, d1) -> (d0, d1)"] * len(outs))})
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
    text, inputs = program(window, fold)
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
