"""Kernels of rows compile ahead of time for Hopper, without spills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_module, run_pipeline
from tests.end_to_end.rows import ROWS

CASES = [
    *((name, 4096, 4096, "f16") for name in ROWS if name != "batch_norm"),
    ("batch_norm", 4096, 256, "f32"),
    ("softmax", 4096, 16384, "f32"),
    ("residual_norm", 4096, 16384, "f16"),
    ("layer_norm", 4096, 20000, "f16"),
    ("cross_entropy", 4096, 128256, "f16"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows", "size", "dtype"), CASES)
def test_rows_compile(name: str, rows: int, size: int, dtype: str, tmp_path: Path):
    module = parse_module(ROWS[name](rows, size, dtype))
    run_pipeline(module, "default,loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    for kernel in compile_kernels(path, printed.kernels, targets=(90,)):
        assert kernel.spills == 0
        assert not kernel.warnings
