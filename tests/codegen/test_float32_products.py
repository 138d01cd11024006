"""Products of float32 in six of bfloat16: as close as is said, and right at every number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.codegen.test_aot import check_fits, compiled

GREATEST = np.finfo(np.float32).max


@dataclass
class Pretended(Cpu):
    """The interpreter, for which kernels are made as for a GPU."""

    model: str = "h100"


def run(expression, **inputs):
    program = tapestry.compile(expression)
    executor = TritonExecutor(device=Pretended(), tile=16)
    printed = executor.printed(program.lowered, Pretended())
    assert "dot_bf16x6(" in Path(printed.path).read_text()
    with np.errstate(all="ignore"):
        (found,) = executor.run(program.lowered, inputs, NoWatch()).outputs
    return found


def product(a, b):
    x, y = (tapestry.input(name, array.shape, "f32") for name, array in (("x", a), ("y", b)))
    return run(x @ y, x=a, y=b)


def first_bits(x):
    """What bfloat16 holds of float32 numbers, without rounding."""
    return (x.view(np.int32) & -65536).view(np.float32)


def matmul(side):
    return tapestry.compile(
        tapestry.input("x", (side, side), "f32") @ tapestry.input("y", (side, side), "f32")
    ).lowered


normal = st.floats(2.0**-60, 2.0**60, width=32) | st.floats(-(2.0**60), -(2.0**-60), width=32)


@given(normal, normal)
def test_the_parts_of_a_product_are_within_what_is_said(a, b):
    exact = float(a) * float(b)
    parts = []
    for number in (a, b):
        x = np.array([number], np.float32)
        first = first_bits(x)
        second = first_bits(x - first)
        rest = x - first - second
        assert first_bits(rest) == rest
        assert float(first[0]) + float(second[0]) + float(rest[0]) == number
        parts.append([float(part[0]) for part in (first, second, rest)])
    made = sum(parts[0][i] * parts[1][j] for i in range(3) for j in range(3 - i))
    assert abs(made - exact) <= 2.0**-20 * abs(exact)


@pytest.mark.parametrize("spread", [0, 30])
def test_products_are_close_to_those_of_float64(spread):
    rng = np.random.default_rng(0)
    a, b = (
        (rng.normal(size=(40, 40)) * 2.0 ** rng.uniform(-spread, spread, (40, 40))).astype("f4")
        for _ in range(2)
    )
    bound = 2.0**-20 * (np.abs(a.astype("f8")) @ np.abs(b.astype("f8")))
    assert np.all(np.abs(product(a, b) - a.astype("f8") @ b.astype("f8")) <= bound)


def test_infinities_nan_and_the_greatest_numbers_are_what_float32_makes_of_them():
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(32, 32)).astype("f4") for _ in range(2))
    a[0, 3], a[1, 3], a[2, 5], a[3, 7], a[4, 7] = np.inf, -np.inf, np.nan, GREATEST, -GREATEST
    b[3, 0], b[3, 1], b[3, 2] = 0.0, 1.0 - 2.0**-13, -(1.0 - 2.0**-13)
    b[9, 4], b[9, 5], b[7] = np.inf, np.nan, 1e-30
    with np.errstate(all="ignore"):
        wanted = a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(product(a, b), wanted, rtol=1e-4, atol=1e-4)


def test_rows_that_are_chosen_by_a_product_stay_as_they_are():
    table = np.full((16, 16), -GREATEST, np.float32)
    table[::2] = 1.0 / 3.0
    found = product(np.eye(16, dtype=np.float32)[::-1].copy(), table)
    np.testing.assert_array_equal(found, table[::-1])


def test_attention_is_close_to_that_of_float64():
    rng = np.random.default_rng(2)
    given = {name: rng.normal(size=(2, 24, 16)).astype("f4") for name in "qkv"}
    q, k, v = (tapestry.input(name, (2, 24, 16), "f32") for name in "qkv")
    found = run(tapestry.scaled_dot_product_attention(q, k, v, causal=True), **given)
    scores = given["q"].astype("f8") @ given["k"].astype("f8").swapaxes(1, 2) / 4
    weights = np.where(np.tri(24), np.exp(scores), 0)
    wanted = weights / weights.sum(-1, keepdims=True) @ given["v"]
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("numerics", ["strict", "mixed"])
def test_float32_is_multiplied_as_it_is_where_no_tensor_cores_are_known(numerics):
    module = matmul(64).clone()
    run_pipeline(module, f"loom-to-triton{{numerics={numerics}}}")
    assert 'input_precision="ieee"' in print_module(module).source


@pytest.mark.slow
def test_tensor_cores_multiply_float32(tmp_path):
    kernels = compiled(
        matmul(1024).clone(), 'loom-to-triton{device="h100"}', tmp_path, targets=(90, 80)
    )
    check_fits(kernels)
    assert kernels[0].uses_wgmma
    assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16" in kernels[1].ptx
