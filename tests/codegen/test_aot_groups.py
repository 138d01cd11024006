"""A group's kernel compiles ahead of time for Hopper as an expert's would: attention."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen.aot import MAX_SHARED_BYTES, CompiledKernel, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline, verify_module


def _compiled(
    tmp_path: Path, element: str, width: int, *, causal: bool
) -> tuple[str, CompiledKernel]:
    """The one kernel of attention over 4 x 16 heads of 2048 rows, and its source."""
    x = f"!loom.tensor<[0, 0, 0, 0] : [4, 16, 2048, {width}], {element}>"
    module = parse_text(f"""
    func.func @main(%q: {x}, %k: {x}, %v: {x}) -> {x} {{
      %o = weft.apply @scaled_dot_product_attention(%q, %k, %v)
             {{causal = {str(causal).lower()}}} : ({x}, {x}, {x}) -> {x}
      func.return %o : {x}
    }}""")
    verify_module(module)
    run_pipeline(module, "default,loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    (kernel,) = compile_kernels(path, printed.kernels, targets=(90,))
    return printed.source, kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("element", "width", "causal"),
    [("f16", 64, True), ("bf16", 128, True), ("bf16", 128, False), ("f16", 256, False)],
)
def test_attention_uses_matrix_units(
    tmp_path: Path, element: str, width: int, causal: bool
) -> None:
    source, kernel = _compiled(tmp_path, element, width, causal=causal)
    assert source.count("tl.dot(") == 2
    assert ("tl.minimum(2048, " in source) == causal
    assert kernel.uses_wgmma
    assert kernel.spills == 0
    assert kernel.shared <= MAX_SHARED_BYTES[kernel.target]
    assert not kernel.warnings


@pytest.mark.slow
def test_attention_of_float32_is_exact(tmp_path: Path) -> None:
    source, kernel = _compiled(tmp_path, "f32", 64, causal=True)
    assert source.count('input_precision="ieee"') == 2
    assert kernel.spills == 0
    assert kernel.shared <= MAX_SHARED_BYTES[kernel.target]


@pytest.mark.slow
def test_decoding_with_split_keys_spills_nothing(tmp_path: Path) -> None:
    q = "!loom.tensor<[0, 0, 0, 0] : [16, 32, 1, 128], bf16>"
    k = "!loom.tensor<[0, 0, 0, 0] : [16, 8, 8192, 128], bf16>"
    module = parse_text(f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = weft.apply @grouped_query_attention(%q, %k, %v) : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}""")
    run_pipeline(module, "default,loom-split-fold{parts=16},loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    assert "tl.dot(exp_2.to(tl.bfloat16), v," in printed.source
    kernels = compile_kernels(path, printed.kernels, targets=(90,))
    assert len(kernels) == 2
    assert all(kernel.spills == 0 and not kernel.warnings for kernel in kernels)
