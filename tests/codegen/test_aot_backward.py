"""The gradients of attention compile for Hopper: matrix units for all products, and no spills."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tapestry.codegen.aot import MAX_SHARED_BYTES, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.dialects import triton
from tapestry.frontend import run_pipeline
from tapestry.graph import peak_live_bytes

pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from _gradient_blocks import jax_attention, torch_attention


def test_products_of_half_floats_go_to_matrix_units() -> None:
    """Scores and gradients of weights are computed where they are read, in each kernel."""
    module = torch_attention(causal=True, rows=256, width=64)
    run_pipeline(module, "default")
    tensors = 2 * 16 * 256 * 64 * 2
    # Four are taken, three are given; what is between them is a few numbers per row.
    assert peak_live_bytes(module) < 8 * tensors
    run_pipeline(module, "loom-to-triton")
    source = print_module(module).source
    kernels = [op for op in module.walk() if isinstance(op, triton.KernelOp)]
    products = [sum(isinstance(op, triton.DotOp) for op in kernel.walk()) for kernel in kernels]
    assert products == [3, 4, 3]
    assert "input_precision" not in source
    # Each walk ends, or begins, at the diagonal.
    assert len(re.findall(r"for k_start\w* in range\(0, (?:value|tl\.minimum)", source)) == 3
    assert "for k_start in range(offsets" in source
    # What one product folds and another keeps is loaded once.
    assert source.count("tl.trans(") == 3


def test_gradients_of_shared_keys_are_folded_at_once() -> None:
    """Heads of queries are no tensors of their own: rows and heads are folded in one walk."""
    module = torch_attention(causal=True, rows=256, width=64, heads=4)
    run_pipeline(module, "default,loom-to-triton")
    source = print_module(module).source
    kernels = [op for op in module.walk() if isinstance(op, triton.KernelOp)]
    products = [sum(isinstance(op, triton.DotOp) for op in kernel.walk()) for kernel in kernels]
    assert products == [3, 4, 3]
    assert "input_precision" not in source
    assert "for k_start in range(0, k_run * 4, BLOCK_K):" in source


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("origin", ["torch", "jax"])
def test_gradients_compile_as_an_expert_would_write_them(
    tmp_path: Path, origin: str, width: int
) -> None:
    if origin == "jax":
        pytest.importorskip("jax")
    make = torch_attention if origin == "torch" else jax_attention
    module = make(causal=True, width=width)
    run_pipeline(module, "default,loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    kernels = compile_kernels(path, printed.kernels, targets=(90,), workers=2)
    assert len(kernels) == (3 if origin == "torch" else 2)
    for kernel in kernels:
        assert kernel.uses_wgmma
        assert kernel.spills == 0
        assert kernel.shared <= MAX_SHARED_BYTES[kernel.target]
        assert not kernel.warnings
