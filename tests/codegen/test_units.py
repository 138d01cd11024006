"""What a kernel is compiled from: of a module, itself and what it calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tapestry as t
from tapestry.codegen.module_files import load_kernels, write_module
from tapestry.codegen.module_printer import PrintedModule, print_alone, print_module
from tapestry.codegen.units import unit_of
from tapestry.dialects import triton

MODULE = '''"""What it is for."""

import triton
import triton.language as tl

LIMIT: tl.constexpr = 3
UNUSED = {"a": 1}
triton.knob = LIMIT


# Said of `twice`.
@triton.jit
def twice(x):
    return x * LIMIT  # said inside


@triton.jit
def lonely(x):
    return x


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, twice(1.0))


def launch(x):
    kernel[(1,)](x, 16)
'''

UNIT = """import triton


import triton.language as tl


LIMIT: tl.constexpr = 3


triton.knob = LIMIT


@triton.jit
def twice(x):
    return x * LIMIT  # said inside


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, twice(1.0))
"""


def _printed(out: Any, device: str = "h200") -> tuple[PrintedModule, list[triton.LaunchOp]]:
    module = t.compile(out, pipeline="default").lowered.clone()
    t.run_pipeline(module, f'loom-to-triton{{device="{device}"}}')
    launches = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    return print_module(module), launches


def test_a_unit_is_a_kernel_and_what_it_calls() -> None:
    assert unit_of(MODULE, "kernel") == UNIT
    assert "tl.store" not in unit_of(MODULE, "lonely")


EDITED = {
    "what is always kept uses": "Z = 1\nA, B = Z, 2\nclass C:\n    z = Z\n",
    "a value is changed": "X = 1\nX += 2\nif X != 3:\n    raise AssertionError\n",
    "a name has two values": "X = 1\nY = X\nY = Y + 1\n",
    "a default is the module's": "Y = 2\n",
    "lines that Python does not end": 'S = "a\\x0cb\x0c\u2028"\n# \u2028\nY = 2\n',
}


@pytest.mark.parametrize("what", EDITED)
def test_a_unit_runs_where_its_module_does(what: str, tmp_path: Path) -> None:
    kernel = "def deco(f):\n    return f\n\n\n@deco\ndef kernel(x, Y=Y):\n    return x + Y\n"
    source = EDITED[what] if "Y" in EDITED[what] else EDITED[what] + "Y = 2\n"
    unit = unit_of(f"{source}\n\ndef other():\n    pass\n\n\n{kernel}", "kernel")
    module = load_kernels(write_module(unit, tmp_path))
    assert module.kernel(1) == 3
    assert not hasattr(module, "other")


def test_what_is_no_python_is_its_own_unit() -> None:
    assert unit_of("def broken(:\n", "broken") == "def broken(:\n\n"


def test_a_kernel_has_one_unit_whatever_is_around_it() -> None:
    x = t.input("x", (64, 512))
    (alone, _), (beside, _) = (
        _printed(t.softmax(x)),
        _printed((t.softmax(x), x @ t.input("w", (512, 512)))),
    )
    name = alone.kernels[0].name
    assert name in {spec.name for spec in beside.kernels}
    assert len(beside.kernels) > 1
    assert unit_of(alone.source, name) == unit_of(beside.source, name)
    units = [unit_of(beside.source, spec.name) for spec in beside.kernels]
    assert all(unit.count("BLOCK_") for unit in units)
    assert all("def launch" not in unit for unit in units)


def test_kernels_printed_alone_are_those_of_the_module() -> None:
    """With functions of their own, and helpers: a variance has a combiner, gelu calls tanh."""
    x, w = t.input("x", (64, 512)), t.input("w", (512, 256))
    printed, launches = _printed(t.gelu(t.layer_norm(x, x[0], x[1]) @ w, approximate="tanh"))
    module = launches[0].get_toplevel_object()
    assert module is not None
    kernels = [op for op in module.walk() if isinstance(op, triton.KernelOp)]
    assert len(kernels) > 1
    for kernel, spec in zip(kernels, printed.kernels, strict=True):
        own = [one for one in launches if one.kernel_name == kernel.sym_name.data]
        alone = print_alone(kernel, own)
        assert alone.kernels == (spec,)
        assert unit_of(alone.source, spec.name) == unit_of(printed.source, spec.name)
        assert replace(spec, name="other") != spec
