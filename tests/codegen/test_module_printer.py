"""Printed modules stand alone and survive hostile names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.diagnostics import InvalidProgramError
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.executor import TritonExecutor

HOSTILE = [
    "launch",
    "tl",
    "triton",
    "torch",
    "allocate",
    "grid",
    "class",
    "float",
    "range",
    "BLOCK_P",
    "p",
    "k",
    "p_mask",
    "SHARDS",
    "d0_start",
    "combine_max",
    "tanh",
    "1st",
    "a b",
]


def program(name, value):
    """Two operations, one with a combiner, everything in them called `name` or `value`."""
    x, y = "!loom.tensor<[0, 0] : [9, 7], f32>", "!loom.tensor<[0] : [9], f32>"
    return parse_text(f"""
func.func @main(%{value}: {x}) -> {y} {{
  %t = loom.operation @"{name}" over <[0, 0] : [9, 7]> [map, map]
    ins(%{value} : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
    shards <grid [[0, 4, 9], [0, 7]]>
    wrap (%{value}: f32) {{ %e = math.tanh %{value} : f32 loom.yield %e : f32 }}
    : ({x}) -> {x}
  %r = loom.operation @"{name}" over <[0, 0] : [9, 7]> [map, fold] by @max
    ins(%t : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    shards <grid [[0, 4, 9], [0, 3, 7]]>
    wrap (%{value}: f32) {{ loom.yield %{value} : f32 }}
    unwrap (%{value}: f32) {{ %n = arith.negf %{value} : f32 loom.yield %n : f32 }}
    : ({x}) -> {y}
  func.return %r : {y}
}}
""")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_operations_and_values_never_collide(name):
    value = name.replace(" ", "_")
    value = f"v{value}" if value[0].isdigit() else value
    module = program(name, value)
    verify_module(module)
    x = np.random.default_rng(0).standard_normal((9, 7)).astype(np.float32)
    (y,) = TritonExecutor().run(module, {value: x}, NoWatch()).outputs
    np.testing.assert_allclose(y, -np.tanh(x).max(axis=1), rtol=1e-6)


def test_lines_stay_within_100_columns():
    module = program("a_kernel_with_quite_a_long_name", "an_input_with_quite_a_long_name")
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    assert max(len(line) for line in source.splitlines()) <= 100


def test_a_printed_module_needs_only_triton_and_takes_any_allocator(tmp_path):
    """Run it in a process that knows nothing of Tapestry but an allocator and an interpreter.

    (Triton 3.6's own one does not take loop bounds that are arguments, with NumPy 2.4 or newer.)
    """
    module = program("peak", "x")
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    imported = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"triton", "triton.language", "torch"}
    (tmp_path / "kernels.py").write_text(source)
    (tmp_path / "user.py").write_text(
        "import numpy as np\n"
        "from tapestry.runtime.triton.arrays import HostTensor, host_allocate\n"
        "from tapestry.runtime.triton.interpreter import interpreted\n"
        "x = np.linspace(-2, 2, 63, dtype=np.float32).reshape(9, 7)\n"
        "with interpreted():\n"
        "    import kernels\n"
        "    y = kernels.launch(HostTensor(x), allocate=host_allocate)\n"
        "np.testing.assert_allclose(y.array, -np.tanh(x).max(axis=1), rtol=1e-6)\n"
    )
    subprocess.run(
        [sys.executable, "user.py"],
        cwd=tmp_path,
        env={"TRITON_INTERPRET": "1", "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )


def test_a_module_that_is_not_lowered_is_one_clear_error():
    with pytest.raises(InvalidProgramError, match="loom.operation cannot be printed as Triton"):
        print_module(program("peak", "x"))


def test_what_a_kernel_computes_and_where_it_was_written():
    module = parse_text(
        """
func.func @main(%x: !loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32> {
  %y = loom.operation @twice over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: f32) { %s = arith.addf %a, %a : f32 loom.yield %s : f32 }
    : (!loom.tensor<[0] : [4], f32>) -> !loom.tensor<[0] : [4], f32>
  func.return %y : !loom.tensor<[0] : [4], f32>
}
""",
        "model.mlir",
    )
    run_pipeline(module, "loom-to-triton")
    comment, _, function = print_module(module).source.partition("@triton.jit\n")
    lines = comment.splitlines()[-3:]
    assert lines[0] == "# twice, model.mlir:3"
    assert lines[1] == "#   schedule: P = 4, warps = 1, stages = 1"
    assert lines[2].startswith("#   numerics: mixed: float32")
    assert not any("factors" in line for line in lines)
    assert function.startswith("def twice(")


@pytest.mark.parametrize(
    ("numerics", "says"),
    [("strict", "sums of 16 bits"), ("mixed", "factors of 16-bit"), ("fast", "products in TF32")],
)
def test_what_is_said_of_products_is_said_above_them(numerics: str, says: str):
    x, y = (tapestry.input(name, (64, 64), "float16") for name in "xy")
    module = tapestry.compile(x @ y).module.clone()
    run_pipeline(module, f"default,loom-to-triton{{numerics={numerics}}}")
    comment, _, _ = print_module(module).source.partition("@triton.jit\n")
    assert f"#   numerics: {numerics}: " in comment
    assert says in comment


def test_a_loop_that_carries_nothing_can_be_read():
    rows = tapestry.input("x", (4096, 50257), "float16")
    source = tapestry.compile(tapestry.softmax(rows, axis=1)).kernels()
    ast.parse(source)
    assert source.count("    for ") == 2  # a sweep that folds, and one that stores


def test_a_counter_that_ends_beyond_32_bits_has_64():
    text = """
!x = !loom.tensor<[0] : [LENGTH], i8>
!y = !loom.tensor<[] : [], i8>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @total over <[0] : [LENGTH]> [fold] by @add
         ins(%x : (d0) -> (d0)) outs(() -> ())
         wrap (%a: i8) { loom.yield %a : i8 } : (!x) -> !y
  func.return %y : !y
}
"""
    for length, wide in ((2**31 - 1, True), (2**30, False)):
        module = parse_text(text.replace("LENGTH", str(length)))
        run_pipeline(module, "loom-to-triton")
        source = print_module(module).source
        assert (f"range(tl.cast(0, tl.int64), {length}, BLOCK_K)" in source) == wide
