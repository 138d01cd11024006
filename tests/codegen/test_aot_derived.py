"""Derived folds compile ahead of time for Hopper: states of several parts, integers among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen.aot import MAX_SHARED_BYTES, compile_kernels
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tests.end_to_end import derivable

_PROGRAMS = {
    "softmax": derivable.SOFTMAX,
    "entropy": derivable.ENTROPY,
    "moments": derivable.MOMENTS,
    "attention": derivable.attention("causal"),
    "attention, guarded": derivable.attention("bias", guarded=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("label", _PROGRAMS)
def test_derived_folds_compile(label: str, tmp_path: Path) -> None:
    module = parse_text(_PROGRAMS[label])
    verify_module(module)
    run_pipeline(module, "loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse")
    assert "derivation" in str(module)
    run_pipeline(module, "loom-to-triton")
    printed = print_module(module)
    path = tmp_path / "kernels.py"
    path.write_text(printed.source)
    for kernel in compile_kernels(path, printed.kernels, targets=(90,)):
        assert kernel.spills == 0
        assert kernel.shared <= MAX_SHARED_BYTES[kernel.target]
        assert not kernel.warnings
