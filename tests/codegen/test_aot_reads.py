"""Kernels that read past edges, at computed places, or inside a domain compile ahead of time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline, verify_module

_CLIP = """
!x = !loom.tensor<[0] : [5000], f32>
!w = !loom.tensor<[0] : [3], f32>
func.func @main(%x: !x, %w: !w) -> !x {
  %y = loom.operation @window over <[0, 0] : [5000, 3]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0 + d1 - 1) clip 0.0 : f32, %w : (d0, d1) -> (d1))
         outs((d0) -> (d0))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }
         : (!x, !w) -> !x
  func.return %y : !x
}
"""

_READ = """
!i = !loom.tensor<[0] : [300], i64>
!t = !loom.tensor<[0, 0] : [1000, 64], f16>
!y = !loom.tensor<[0, 0] : [300, 64], f16>
func.func @main(%i: !i, %t: !t) -> !y {
  %y = loom.operation @gather over <[0, 0] : [300, 64]> [map, map]
         ins(%i : (d0, d1) -> (d0), %t : (d0, d1) -> (0, d1) :> [1000, 1])
         outs((d0, d1) -> (d0, d1))
         wrap (%n: i64, %b: !loom.block<[1000, 1], f16>) {
           %zero = arith.constant 0 : i64
           %fill = arith.constant 0.0 : f16
           %v = loom.read %b[%n, %zero]ELSE : f16
           loom.yield %v : f16
         } : (!i, !t) -> !y
  func.return %y : !y
}
"""

_PRODUCT = """
!a = !loom.tensor<[0, 0] : [256, 256], bf16>
!y = !loom.tensor<[0, 0] : [256, 256], f32>
func.func @main(%a: !a, %b: !a) -> !y {
  %y = loom.operation @product over <[0, 0, 0] : [256, 256, 256]> [map, map, fold] by @add
         ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, d1)) domain(d0 >= d2)
         wrap (%p: bf16, %q: bf16) {
           %u = arith.extf %p : bf16 to f32
           %v = arith.extf %q : bf16 to f32
           %r = arith.mulf %u, %v : f32
           loom.yield %r : f32
         } : (!a, !a) -> !y
  func.return %y : !y
}
"""

_BYTES = """
!x = !loom.tensor<[0] : [3000], ui8>
!n = !loom.tensor<[0] : [3000], index>
func.func @main(%x: !x, %n: !n) -> (!x, !n) {
  %y, %m = loom.operation @bytes over <[0] : [3000]> [map]
         ins(%x : (d0) -> (d0 + 7) clip -1 : i8, %n : (d0) -> (d0), %x : (d0) -> (0) :> [3000])
         outs((d0) -> (d0), (d0) -> (d0))
         wrap (%a: i8, %i: index, %b: !loom.block<[3000], i8>) {
           %at = arith.index_cast %i : index to i64
           %v = loom.read %b[%at] else %a : i8
           %h = arith.divui %a, %v : i8
           %s = arith.addi %i, %i : index
           loom.yield %h, %s : i8, index
         } : (!x, !n, !x) -> (!x, !n)
  func.return %y, %m : !x, !n
}
"""


@pytest.mark.parametrize(
    ("text", "options", "matrix"),
    [
        (_CLIP, "", False),
        (_READ.replace("ELSE", ""), "", False),
        (_READ.replace("ELSE", " else %fill"), "", False),
        (_BYTES, "", False),
        (_PRODUCT, "", False),
        (_PRODUCT, "{numerics=fast}", True),
    ],
    ids=["clip", "read", "read-else", "bytes", "domain", "domain-fast"],
)
def test_compiles_for_hopper(text: str, options: str, matrix: bool, tmp_path: Path) -> None:
    module = parse_text(text)
    verify_module(module)
    run_pipeline(module, f"loom-to-triton{options}")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    kernels = compile_kernels(path, printed.kernels, targets=(90,))
    assert len(kernels) == len(printed.kernels) > 0
    for kernel in kernels:
        assert kernel.spills == 0
        assert kernel.uses_wgmma == matrix
