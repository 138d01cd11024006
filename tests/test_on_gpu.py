"""Tests on a GPU: kernels that are compiled in a test's process are those of one of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import tapestry as t
from tapestry.codegen import aot
from tapestry.codegen.module_printer import print_module
from tapestry.codegen.module_files import write_module
from tests import on_gpu

module = t.compile(t.softmax(t.input("x", (20, 300)))).lowered.clone()
t.run_pipeline(module, "loom-to-triton")
printed = print_module(module)
path = write_module(printed.source)
(apart,) = aot.compile_kernels(path, printed.kernels)
with on_gpu.kernels_on_gpu():
    (here,) = aot.compile_kernels(path, printed.kernels)
assert here.ptx == apart.ptx
assert here.registers == apart.registers > 0
print("equal")
"""


def test_kernels_compiled_here_are_those_compiled_elsewhere() -> None:
    pytest.importorskip("triton")
    root = Path(__file__).parents[1]
    asked = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=root, check=False)
    assert done.stdout == "equal\n", done.stderr


def test_without_a_gpu_tests_are_skipped_and_say_so(tmp_path: Path) -> None:
    test = str(Path(__file__).parent / "test_files.py")
    given = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", test]
    environment = {"TAPESTRY_TESTS_ON": "gpu", "TRITON_INTERPRET": "1", "HOME": str(tmp_path)}
    done = subprocess.run(given, capture_output=True, text=True, env=environment, check=False)
    assert "asks for a GPU, and there is none" in done.stdout
    assert "passed" not in done.stdout
    assert done.returncode == 0
