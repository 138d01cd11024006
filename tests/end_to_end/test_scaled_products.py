"""Products of rows that are scaled by their norms: one kernel sums the squares as it goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapestry as t
from tapestry.codegen.aot import compile_kernels
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

EPS = 1e-6


def _program(rows: int, width: int, columns: int, dtype: str) -> Any:
    """A norm and a gated layer, as LLaMA has them: two products of the same rows."""
    x, g = t.input("x", (rows, width), dtype), t.input("g", (width,), dtype)
    gate, up = (t.input(name, (width, columns), dtype) for name in ("gate", "up"))
    h = t.rms_norm(x, g, eps=EPS)
    return t.swiglu(h @ gate, h @ up)


def _exact(given: dict[str, Any]) -> Any:
    x, g, gate, up = (given[name].astype("f8") for name in ("x", "g", "gate", "up"))
    h = x / np.sqrt((x * x).mean(1, keepdims=True) + EPS) * g
    a = h @ gate
    return a / (1 + np.exp(-a)) * (h @ up)


SMALL, LARGE = (5, 40, 24), (70, 33, 300)


@pytest.mark.parametrize(
    ("on", "shape"),
    [(on, shape) for on in ("triton", "numpy") for shape in (SMALL, LARGE)]
    + [("reference", SMALL)],  # which goes point by point
)
def test_it_is_exact_and_one_kernel(on: str, shape: tuple[int, int, int]) -> None:
    rows, width, columns = shape
    module = t.compile(_program(rows, width, columns, "f32"), on="triton").lowered
    shown = module.clone()
    run_pipeline(shown, "loom-to-triton")
    assert len(print_module(shown).kernels) == 1
    random = np.random.default_rng(0)
    shapes = {"x": (rows, width), "g": (width,), "gate": (width, columns), "up": (width, columns)}
    given = {name: random.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    # Rows of any size have a norm.
    given["x"] *= np.logspace(-2, 6, rows, dtype="f4")[:, None]
    (got,) = find_executor(on).run(module, given, NoWatch()).outputs
    want = _exact(given)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize(("target", "device"), [(90, "h200"), (80, "a100")])
def test_matrix_units_multiply_it(target: int, device: str) -> None:
    module = t.compile(_program(2048, 1024, 4096, "bf16"), on="triton").lowered
    run_pipeline(module, f'loom-to-triton{{device="{device}"}}')
    printed = print_module(module)
    path = write_module(printed.source)
    # By the model the norm is a kernel of its own on an A100.
    kernels = compile_kernels(path, printed.kernels, targets=[target])
    assert not any(kernel.spills for kernel in kernels)
    assert kernels[-1].uses_wgmma == (target == 90)
