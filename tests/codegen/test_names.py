"""Names and forms of what is printed: cells are called as their tensors, sums stay as they are."""

from __future__ import annotations

import numpy as np

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline


def printed(*results):
    lowered = tapestry.compile(list(results), on="triton").lowered.clone()
    run_pipeline(lowered, "loom-to-triton")
    return print_module(lowered).source


def test_cells_are_called_as_the_argument_that_they_are_loaded_from():
    rows, other = (tapestry.input(name, (8, 64), "float32") for name in ("rows", "other"))
    source = printed(rows * 2.0 + other)
    assert "rows = tl.load(rows_ptr + p)" in source
    assert "rows * 2.0 + other" in source


def test_tensors_of_one_name_are_told_apart_as_their_arguments_are():
    kind = "!loom.tensor<[0] : [64], f32>"
    module = parse_text(f"""
    func.func @main(%row_1: {kind}, %row_2: {kind}) -> {kind} {{
      %y = loom.operation @y over <[0] : [64]> [map]
             ins(%row_2 : (i) -> (i), %row_1 : (i) -> (i)) outs((i) -> (i))
             wrap (%a: f32, %b: f32) {{ %r = arith.subf %a, %b : f32  loom.yield %r : f32 }}
             : ({kind}, {kind}) -> {kind}
      func.return %y : {kind}
    }}""")
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    assert "def y(row_ptr, row_ptr_2, y_ptr, " in source
    assert "row_2 = tl.load(row_ptr_2 + " in source
    assert "row - row_2)" in source


def test_running_sums_are_those_of_triton():
    x = tapestry.input("x", (8, 64), "float32")
    assert "tl.cumsum(x, axis=1)" in printed(tapestry.cumsum(x, axis=1))
    cells = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    cells[3, 5], cells[4, 6] = np.nan, np.inf
    found = tapestry.run(tapestry.cumsum(x, axis=1), x=cells, on="triton")
    np.testing.assert_allclose(found, np.cumsum(cells, 1), 1e-5, 1e-5)
