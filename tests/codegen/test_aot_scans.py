"""Scans compile ahead of time for Hopper: every element type, several parts, carried states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen.aot import MAX_SHARED_BYTES, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline, verify_module

_AFFINE = """loom.monoid @affine zero [1.0 : f32, 0.0 : f32]
    merge (%a: f32, %b: f32, %c: f32, %d: f32) {
  %ac = arith.mulf %a, %c : f32
  %cb = arith.mulf %c, %b : f32
  %e = arith.addf %cb, %d : f32
  loom.yield %ac, %e : f32, f32
}
"""

_WRAPS = {
    "add": "wrap (%c: T) { loom.yield %c : T }",
    "max": "wrap (%c: T) { loom.yield %c : T }",
    "or": "wrap (%c: T) { loom.yield %c : T }",
    "argmax": """wrap (%c: T) { %i = loom.index 1 : i64 loom.yield %c, %i : T, i64 }
                 unwrap (%v: T, %i: i64) { loom.yield %v : T }""",
    "logsumexp": """wrap (%c: T) { %one = arith.constant 1.0 : T loom.yield %c, %one : T, T }
                    unwrap (%m: T, %s: T) {
                      %l = math.log %s : T
                      %r = arith.addf %m, %l : T
                      loom.yield %r : T
                    }""",
    "affine": """wrap (%c: T) { %k = arith.constant 0.5 : T loom.yield %k, %c : T, T }
                 unwrap (%a: T, %b: T) { loom.yield %b : T }""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("monoid", "element"),
    [
        ("add", "f32"),
        ("add", "bf16"),
        ("add", "i8"),
        ("max", "f64"),
        ("or", "i1"),
        ("argmax", "f16"),
        ("logsumexp", "f32"),
        ("affine", "f32"),
    ],
)
def test_scans_compile(monoid: str, element: str, tmp_path: Path) -> None:
    x = f"!loom.tensor<[0, 0] : [64, 5000], {element}>"
    module = parse_text(f"""{_AFFINE if monoid == "affine" else ""}
func.func @main(%x: {x}) -> {x} {{
  %y = loom.operation @scan over <[0, 0] : [64, 5000]> [map, scan] by @{monoid}
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
    {_WRAPS[monoid].replace("T", element)} : ({x}) -> {x}
  func.return %y : {x}
}}
""")
    verify_module(module)
    run_pipeline(module, "loom-shard{grid=1,2},loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    for kernel in compile_kernels(path, printed.kernels, targets=(90,)):
        assert kernel.spills == 0
        assert kernel.shared <= MAX_SHARED_BYTES[kernel.target]
        assert not kernel.warnings
