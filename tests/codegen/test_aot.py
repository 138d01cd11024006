"""Kernels compile ahead of time for Hopper and Ampere, without a GPU, into what they should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen import aot_processes
from tapestry.codegen.aot import MAX_SHARED_BYTES, CompileError, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.specs import KernelSpec
from tapestry.frontend import load_module, parse_text, run_pipeline, verify_module

ROOT = Path(__file__).parents[2]


def compiled(module, pipeline, tmp_path, targets=(90, 80)):
    verify_module(module)
    run_pipeline(module, pipeline)
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    kernels = compile_kernels(path, printed.kernels, targets=targets)
    assert len(kernels) == len(printed.kernels) * len(targets)
    return kernels


def check_fits(kernels):
    for kernel in kernels:
        assert kernel.spills == 0, kernel.name
        assert kernel.shared <= MAX_SHARED_BYTES[kernel.target], kernel.name
        assert not kernel.warnings, kernel.warnings


def matmul(kind, m=512, n=512, k=512):
    x, w, y = (f"!loom.tensor<[0, 0] : [{a}, {b}], {kind}>" for a, b in ((m, k), (k, n), (m, n)))
    return parse_text(f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = loom.operation @product over <[0, 0, 0] : [{m}, {n}, {k}]> [map, map, fold] by @add
    ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1)) outs((d0, d1) -> (d0, d1))
    wrap (%a: {kind}, %b: {kind}) {{
      %aw = arith.extf %a : {kind} to f32
      %bw = arith.extf %b : {kind} to f32
      %p = arith.mulf %aw, %bw : f32
      loom.yield %p : f32
    }}
    unwrap (%acc: f32) {{ %r = arith.truncf %acc : f32 to {kind} loom.yield %r : {kind} }}
    : ({x}, {w}) -> {y}
  func.return %y : {y}
}}
""")


@pytest.mark.parametrize(("step", "wide"), [(1, True), (3, False)])
def test_neighbouring_cells_are_moved_16_bytes_at_once(step, wide, tmp_path):
    x = f"!loom.tensor<[0] : [{8192 * step}], f32>"
    y = "!loom.tensor<[0] : [8192], f32>"
    module = parse_text(f"""
func.func @main(%x: {x}) -> {y} {{
  %y = loom.operation @some over <[0] : [8192]> [map]
    ins(%x : (d0) -> ({step} * d0)) outs((d0) -> (d0))
    wrap (%a: f32) {{ %b = arith.negf %a : f32 loom.yield %b : f32 }} : ({x}) -> {y}
  func.return %y : {y}
}}
""")
    for kernel in compiled(module, "loom-to-triton", tmp_path):
        assert kernel.reads_wide == wide
        assert kernel.writes_wide


def test_tiles_of_products_are_moved_16_bytes_at_once(tmp_path):
    tile = "M = 128, N = 128, K = 64, warps = 8, stages = 3"
    for loads in ("pointer", "descriptor"):
        schedule = f"product: {tile}, loads = {loads}"
        pipeline = f'loom-to-triton{{schedules="{schedule}"}}'
        (kernel,) = compiled(matmul("f16"), pipeline, tmp_path, targets=(90,))
        assert ("cp.async.bulk" in kernel.ptx) == (loads == "descriptor")
        assert kernel.reads_wide
        assert kernel.writes_wide


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_16_bit_matmuls_use_wgmma_on_hopper(kind, tmp_path):
    hopper, ampere = compiled(matmul(kind), "loom-to-triton", tmp_path)
    assert hopper.uses_wgmma
    assert not ampere.uses_wgmma
    assert "mma.sync" in ampere.ptx
    check_fits([hopper, ampere])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_so_does_the_matmul_of_the_library(kind, tmp_path):
    x, w, y = (
        f"!loom.tensor<[0, 0] : [{a}, {b}], {kind}>"
        for a, b in ((256, 512), (512, 384), (256, 384))
    )
    module = parse_text(f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = weft.apply @matmul(%x, %w) : ({x}, {w}) -> {y}
  func.return %y : {y}
}}
""")
    pipeline = "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=2},loom-to-triton"
    (hopper,) = compiled(module, pipeline, tmp_path, targets=(90,))
    assert hopper.uses_wgmma
    check_fits([hopper])


def test_every_kernel_of_the_example(tmp_path):
    module = load_module(ROOT / "examples" / "digits" / "model.mlir")
    pipeline = "weft-apply,loom-simplify,loom-fuse,loom-shard{shards=4},loom-to-triton"
    check_fits(compiled(module, pipeline, tmp_path))


OPERATIONS = [
    "arith.negf %a",
    "math.absf %a",
    "math.ceil %a",
    "math.cos %a",
    "math.erf %a",
    "math.exp %a",
    "math.exp2 %a",
    "math.expm1 %a",
    "math.floor %a",
    "math.log %a",
    "math.log10 %a",
    "math.log1p %a",
    "math.log2 %a",
    "math.round %a",
    "math.roundeven %a",
    "math.rsqrt %a",
    "math.sin %a",
    "math.sqrt %a",
    "math.tan %a",
    "math.tanh %a",
    "math.trunc %a",
    "math.acos %a",
    "math.acosh %a",
    "math.asinh %a",
    "math.atanh %a",
    "math.cbrt %a",
    "math.cosh %a",
    "math.sinh %a",
    "math.atan2 %a, %b",
    "math.fma %a, %b, %a",
    "arith.divf %a, %b",
    "arith.maximumf %a, %b",
    "arith.minimumf %a, %b",
    "arith.maxnumf %a, %b",
    "math.copysign %a, %b",
    "math.powf %a, %b",
]

INTEGER_OPERATIONS = [
    "arith.muli",
    "arith.xori",
    "arith.maxsi",
    "arith.divsi",
    "arith.remsi",
    "arith.floordivsi",
    "arith.ceildivsi",
    "arith.divui",
    "arith.remui",
    "arith.maxui",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
]
COUNTS = ["math.ctlz", "math.cttz", "math.ctpop", "math.absi"]


def elementwise(kind, lines, value):
    t = f"!loom.tensor<[0] : [1000], {kind}>"
    return parse_text(f"""
func.func @main(%x: {t}, %y: {t}) -> {t} {{
  %r = loom.operation @all over <[0] : [1000]> [map]
    ins(%x : (d0) -> (d0), %y : (d0) -> (d0)) outs((d0) -> (d0))
    wrap (%a: {kind}, %b: {kind}) {{ {lines} loom.yield {value} : {kind} }}
    : ({t}, {t}) -> {t}
  func.return %r : {t}
}}
""")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_every_float_operation(kind, tmp_path):
    lines, value = [], "%a"
    for number, operation in enumerate(OPERATIONS):
        lines.append(f"%v{number} = {operation} : {kind}")
        lines.append(f"%s{number} = arith.addf {value}, %v{number} : {kind}")
        value = f"%s{number}"
    compiled(elementwise(kind, "\n".join(lines), value), "loom-to-triton", tmp_path)


def test_random_numbers(tmp_path):
    module = parse_text("""
func.func @main(%seed: !loom.tensor<[] : [], i64>) -> !loom.tensor<[0] : [5000], f32> {
  %z = weft.apply @normal(%seed) {shape = [5000]}
         : (!loom.tensor<[] : [], i64>) -> !loom.tensor<[0] : [5000], f32>
  func.return %z : !loom.tensor<[0] : [5000], f32>
}
""")
    check_fits(compiled(module, "weft-apply,loom-to-triton", tmp_path))


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_every_integer_operation(kind, tmp_path):
    lines, value = [], "%a"
    for number, operation in enumerate(INTEGER_OPERATIONS):
        lines.append(f"%v{number} = {operation} {value}, %b : {kind}")
        value = f"%v{number}"
    for operation in COUNTS:
        name = operation.replace(".", "_")
        lines.append(f"%{name} = {operation} {value} : {kind}")
        value = f"%{name}"
    compiled(elementwise(kind, "\n".join(lines), value), "loom-to-triton", tmp_path)


def test_conversions_and_constants(tmp_path):
    lines = """
      %least = arith.constant -128 : i8
      %zero = arith.constant -0.0 : f32
      %i = arith.fptosi %a : f32 to i8
      %j = arith.addi %i, %least : i8
      %u = arith.fptoui %a : f32 to i64
      %x = arith.uitofp %u : i64 to f32
      %y = arith.sitofp %j : i8 to bf16
      %z = arith.extf %y : bf16 to f32
      %c = arith.cmpf uno, %z, %zero : f32
      %d = arith.sitofp %c : i1 to f32
      %s = arith.addf %x, %d : f32
      %p = math.powf %s, %zero : f32
      %b0 = arith.bitcast %p : f32 to i32
      %v = arith.bitcast %b0 : i32 to f32
    """
    compiled(elementwise("f32", lines, "%v"), "loom-to-triton", tmp_path, targets=(90,))


@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2"])
def test_8_bit_floats(kind, tmp_path):
    lines = f"""
      %x = arith.extf %a : {kind} to f32
      %y = arith.extf %b : {kind} to f32
      %z = arith.mulf %x, %y : f32
      %v = arith.truncf %z : f32 to {kind}
    """
    # Triton has f8E4M3FN from sm_89 on.
    targets = (90,) if kind == "f8E4M3FN" else (90, 80)
    compiled(elementwise(kind, lines, "%v"), "loom-to-triton", tmp_path, targets=targets)


def fold(kind, monoid, shards="", rows=100, depth=300):
    x = f"!loom.tensor<[0, 0] : [{rows}, {depth}], {kind}>"
    y = f"!loom.tensor<[0] : [{rows}], {kind}>"
    return parse_text(f"""
func.func @main(%x: {x}) -> {y} {{
  %y = loom.operation @folded over <[0, 0] : [{rows}, {depth}]> [map, fold] by @{monoid}
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) {shards}
    wrap (%a: {kind}) {{ loom.yield %a : {kind} }}
    : ({x}) -> {y}
  func.return %y : {y}
}}
""")


@pytest.mark.parametrize(
    ("kind", "monoid"),
    [
        ("f16", "add"),
        ("bf16", "max"),
        ("f64", "min"),
        ("f32", "mul"),
        ("i8", "add"),
        ("i64", "max"),
        ("i1", "and"),
        ("i1", "or"),
    ],
)
def test_folds(kind, monoid, tmp_path):
    check_fits(compiled(fold(kind, monoid), "loom-to-triton", tmp_path, targets=(90,)))


def test_folds_whose_shards_fold_apart(tmp_path):
    module = fold("f32", "max", "shards <grid [[0, 30, 100], [0, 128, 300]]>")
    kernels = compiled(module, "loom-to-triton", tmp_path, targets=(90,))
    assert [kernel.name for kernel in kernels] == ["folded", "folded_finish"]
    check_fits(kernels)


def test_offsets_past_two_to_the_31_are_64_bits_wide(tmp_path):
    shards = "shards <grid [[0, 40000, 65536], [0, 65536]]>"
    module = fold("f32", "add", shards, rows=1 << 16, depth=1 << 16)
    kernels = compiled(module, "loom-to-triton", tmp_path, targets=(90,))
    check_fits(kernels)
    source = (tmp_path / "kernels.py").read_text()
    assert "tl.program_id(0).to(tl.int64)" in source
    assert "tl.arange(0, BLOCK_P).to(tl.int64)" in source
    assert dict(print_module(module).kernels[0].signature)["d0_start"] == "i64"


def test_a_kernel_that_does_not_compile_is_one_clear_error(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n"
        "@triton.jit\ndef broken(x_ptr, BLOCK: tl.constexpr):\n"
        "    tl.store(x_ptr + tl.arange(0, BLOCK), missing)\n"
    )
    spec = KernelSpec("broken", (("x_ptr", "*fp32"),), (("BLOCK", 16),), 4, 1)
    with pytest.raises(CompileError, match="kernel broken does not compile for sm_90: .*missing"):
        compile_kernels(path, [spec])


def broken(tmp_path: Path, line: str) -> tuple[Path, KernelSpec]:
    path = tmp_path / "kernels.py"
    path.write_text(
        "import os, sys, time\n"
        "import triton\nimport triton.language as tl\n\n\n"
        f"{line}\n\n\n"
        "@triton.jit\ndef plain(x_ptr, BLOCK: tl.constexpr):\n"
        "    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n"
    )
    return path, KernelSpec("plain", (("x_ptr", "*fp32"),), (("BLOCK", 16),), 4, 1)


def test_what_is_written_to_stdout_is_no_answer(tmp_path, monkeypatch):
    """By C code, or by Python as it starts; of which no more than bytes is known."""
    starting = "import os\nprint('hello', flush=True)\nos.write(1, b'no line, \\xff')\n"
    (tmp_path / "sitecustomize.py").write_text(starting)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path, spec = broken(tmp_path, "os.write(1, b'LLVM says so')")
    (made,) = compile_kernels(path, [spec])
    assert made.cubin


def test_an_assembler_that_never_ends_is_ended(tmp_path, monkeypatch):
    assembler = tmp_path / "ptxas"
    version = '[ "$1" = --version ] && echo release 12.9, V12.9.86 && exit 0'
    assembler.write_text(f"#!/bin/sh\n{version}\nwhile :; do :; done\n")
    assembler.chmod(0o755)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        monkeypatch.setenv(name, str(assembler))
    path, spec = broken(tmp_path, "")
    with pytest.raises(CompileError, match="does not compile for sm_90: .*failed with error code"):
        compile_kernels(path, [spec], seconds=1)


def test_a_compiler_that_never_ends_is_ended(tmp_path):
    """In C code, which hears no signal that Python handles."""
    forever = (
        "import re, triton.compiler as c\nc.ASTSource = lambda *_: re.match('(a*)*b', 'a' * 64)"
    )
    path, spec = broken(tmp_path, forever)
    with pytest.raises(CompileError, match="plain does not .*: that takes more than 1 seconds"):
        compile_kernels(path, [spec], seconds=1)


@pytest.mark.parametrize("name", ["TRITON_CACHE_DIR", "TRITON_HOME"])
def test_tritons_own_cache_need_not_be_there(tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "/proc/nowhere")
    path, spec = broken(tmp_path, "")
    (made,) = compile_kernels(path, [spec])
    assert made.cubin


def test_a_folder_that_cannot_be_written_to_is_no_kernels_fault(tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    aot_processes.end_all()
    monkeypatch.setattr(aot_processes.tempfile, "mkdtemp", full)
    path, spec = broken(tmp_path, "")
    with pytest.raises(CompileError, match="compiling plain failed: .*No space left") as found:
        compile_kernels(path, [spec])
    assert not found.value.kernels
