"""The compilers of tests of a GPU that stands in: one that is done at once, or the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapestry.codegen import climbing
from tapestry.runtime.triton import compiled
from tests.codegen.standing import compiled_at_once

COMPILE = compiled.compile_kernels


@pytest.fixture
def compiled_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled at once, and what was said in other tests is said again."""
    monkeypatch.setattr(climbing, "_said", set())
    monkeypatch.setattr(compiled, "compile_kernels", compiled_at_once)


@pytest.fixture
def compiler(compiled_apart: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are really compiled."""
    del compiled_apart  # first
    monkeypatch.setattr(compiled, "compile_kernels", COMPILE)
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "cache"))
