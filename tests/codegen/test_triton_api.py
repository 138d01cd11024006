"""What Tapestry calls of Triton: the same from 3.6 on. Another Triton fails here, saying what."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tapestry.runtime.triton.interpreter import interpreted

if find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

WHY = f"in Triton {version('triton')}, and Tapestry relies on it (codegen/aot_worker.py)"


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    """Other tests interpret kernels, which Triton decides once, when it is imported."""
    with interpreted():
        yield


def _parameters(name: str) -> list[str]:
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute, None)
    assert found is not None, f"there is no {name} {WHY}"
    return list(inspect.signature(found).parameters)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("triton.compile", ["src", "target", "options"]),
        ("triton.compiler.ASTSource", ["fn", "signature", "constexprs", "attrs"]),
        ("triton.backends.compiler.GPUTarget", ["backend", "arch", "warp_size"]),
    ],
)
def test_calls_take_what_they_are_given(name: str, wanted: list[str]) -> None:
    have = _parameters(name)
    assert have[: len(wanted)] == wanted, f"{name}({', '.join(have)}) {WHY}"


def test_options_are_known() -> None:
    options = import_module("triton.backends.nvidia.compiler").CUDAOptions
    known = {field.name for field in fields(options)}
    asked = {"num_warps", "num_stages", "enable_fp_fusion", "debug", "sanitize_overflow"}
    assert asked <= known, f"CUDAOptions has no {asked - known} {WHY}"


def test_the_key_of_its_own_cache_can_be_given() -> None:
    """By whoever has no use for that cache: to make it takes as long as to compile a kernel."""
    cache = import_module("triton.runtime.cache")
    assert callable(getattr(cache, "triton_key", None)), f"there is no triton_key {WHY}"
    assert "triton_key()" in inspect.getsource(cache.get_cache_key), f"it is not called {WHY}"


def test_the_environment_is_read() -> None:
    knobs = Path(import_module("triton.knobs").__file__).read_text()
    for name in ("TRITON_ALWAYS_COMPILE", "TRITON_DUMP_PTXAS_LOG"):
        assert name in knobs, f"{name} is not read {WHY}"


def test_a_compiled_kernel_says_what_a_launch_needs() -> None:
    """Its text, its binary, its shared memory and its scratch memory."""
    source = inspect.getsource(import_module("triton.compiler.compiler").CompiledKernel)
    assert "asm" in source
    backend = inspect.getsource(import_module("triton.backends.nvidia.compiler"))
    for name in ("shared", "global_scratch_size"):
        assert f'metadata["{name}"]' in backend, f"there is no {name} {WHY}"


def test_scratch_comes_after_operands() -> None:
    """A kernel takes its operands, global scratch, then memory for profiling."""
    driver = Path(import_module("triton.backends.nvidia.driver").__file__)
    text = driver.read_text() + driver.with_name("driver.c").read_text()
    first, second = (text.find(f"{name}_scratch_obj") for name in ("global", "profile"))
    assert 0 <= first < second, f"the order of scratch memory is another {WHY}"


def test_the_language_has_what_is_printed() -> None:
    printers = Path(import_module("tapestry.codegen.kernel_printer").__file__).parent
    names = set(
        re.findall(r"\btl\.([a-z]\w+)\(", "".join(f.read_text() for f in printers.glob("*.py")))
    )
    assert {"load", "store", "dot"} <= names
    language = import_module("triton.language")
    missing = sorted(name for name in names if not hasattr(language, name))
    assert not missing, f"tl has no {missing} {WHY}"
