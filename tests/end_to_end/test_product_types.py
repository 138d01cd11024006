"""Products of other numbers than float32 and 16-bit floats: by `tl.dot`, as exact as their type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context

import tapestry as t
from tapestry.codegen.aot import MAX_SHARED_BYTES, CompiledKernel, compile_kernels
from tapestry.codegen.module_files import write_module
from tapestry.codegen.module_printer import PrintedModule, print_module
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.loom_to_triton import LoomToTriton

RNG = np.random.default_rng(7)


def _printed(expression: Expression, device: str) -> PrintedModule:
    module = t.compile(expression, on="triton").lowered.clone()
    LoomToTriton(device=device).lower(Context(), module)
    return print_module(module)


def _compiled(expression: Expression, device: str, target: int) -> CompiledKernel:
    """The one kernel of a program, which fits, for a device."""
    printed = _printed(expression, device)
    path = write_module(printed.source)
    (kernel,) = compile_kernels(path, printed.kernels, targets=(target,))
    assert kernel.spills == 0
    return kernel


def _float64(m: int, n: int, k: int) -> Expression:
    x, w = t.input("x", (m, k), "float64"), t.input("w", (k, n), "float64")
    return t.relu(x @ w)


def _int8(m: int, n: int, k: int, turned: bool = False) -> Expression:
    x, w = t.input("x", (m, k), "int8"), t.input("w", (n, k) if turned else (k, n), "int8")
    wide = w.astype("int32")
    return x.astype("int32") @ (wide.T if turned else wide)


SIZES = ((64, 48, 96), (100, 30, 20), (17, 130, 70))


@pytest.mark.parametrize("sizes", SIZES)
def test_float64_keeps_its_digits(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    assert "tl.dot" in _printed(_float64(*sizes), "h200").source
    x, w = RNG.standard_normal((m, k)), RNG.standard_normal((k, n))
    found = np.asarray(t.compile(_float64(*sizes), on="triton")(x=x, w=w))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.maximum(x @ w, 0), rtol=1e-13, atol=1e-13)


def test_attention_of_float64_is_one_kernel_and_keeps_its_digits() -> None:
    q, k, v = (t.input(name, (2, 40, 16), "float64") for name in "qkv")
    made = t.softmax(q @ k.transpose(0, 2, 1) * 0.25, axis=-1) @ v
    printed = _printed(made, "h200")
    assert len(printed.kernels) == 1
    assert printed.source.count("tl.dot") == 2
    a, b, c = (RNG.standard_normal((2, 40, 16)) for _ in range(3))
    scores = np.exp(a @ b.transpose(0, 2, 1) * 0.25)
    want = scores / scores.sum(-1, keepdims=True) @ c
    found = np.asarray(t.compile(made, on="triton")(q=a, k=b, v=c))
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_what_is_widened_to_float64_is_summed_up_in_it(kind: str) -> None:
    x, w = t.input("x", (64, 300), kind), t.input("w", (300, 48), kind)
    given = {
        name: RNG.standard_normal(shape).astype(kind)
        for name, shape in (("x", (64, 300)), ("w", (300, 48)))
    }
    made = x.astype("float64") @ w.astype("float64")
    found = np.asarray(t.compile(made, on="triton")(**given))
    want = given["x"].astype(np.float64) @ given["w"].astype(np.float64)
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("narrow", ["q", "k", "v", "qkv"])
def test_attention_in_float64_of_halves_keeps_its_digits(narrow: str) -> None:
    kinds = {name: "float16" if name in narrow else "float64" for name in "qkv"}
    q, k, v = (t.input(name, (2, 40, 16), kinds[name]).astype("float64") for name in "qkv")
    made = t.softmax(q @ k.transpose(0, 2, 1) * 0.25, axis=-1) @ v
    given = {name: RNG.standard_normal((2, 40, 16)).astype(kinds[name]) for name in "qkv"}
    a, b, c = (given[name].astype(np.float64) for name in "qkv")
    scores = np.exp(a @ b.transpose(0, 2, 1) * 0.25)
    found = np.asarray(t.compile(made, on="triton")(**given))
    np.testing.assert_allclose(
        found, scores / scores.sum(-1, keepdims=True) @ c, rtol=1e-12, atol=1e-12
    )


def test_attention_in_float64_beside_halves_fits_without_a_device() -> None:
    q, k, v = (t.input(name, (2, 4, 512, 128), "float64") for name in "qkv")
    bias = t.input("bias", (2, 4, 512, 512), "float16").astype("float64")
    made = t.softmax(q @ k.transpose(0, 1, 3, 2) + bias, axis=-1) @ v
    assert _compiled(made, "none", 90).shared <= MAX_SHARED_BYTES[90]


@pytest.mark.parametrize("size", [512, 2048])
@pytest.mark.parametrize(("device", "target"), [("a100", 80), ("h200", 90)])
def test_tensor_cores_multiply_float64(device: str, target: int, size: int) -> None:
    kernel = _compiled(_float64(size, size, size), device, target)
    assert "mma.sync" in kernel.ptx
    assert ".f64.f64.f64.f64" in kernel.ptx
    assert "fma.rn.f64" not in kernel.ptx


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_int8_is_summed_up_exactly(sizes: tuple[int, int, int], turned: bool) -> None:
    m, n, k = sizes
    made = _int8(*sizes, turned=turned)
    assert "out_dtype=tl.int32" in _printed(made, "h200").source
    x, w = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    found = np.asarray(t.compile(made, on="triton")(x=x, w=w.T.copy() if turned else w))
    assert found.dtype == np.int32
    assert (found == x.astype(np.int32) @ w.astype(np.int32)).all()


def test_other_gpus_multiply_float64_without_them() -> None:
    kernel = _compiled(_float64(512, 512, 512), "a10", 86)
    assert "mma" not in kernel.ptx


def test_integers_of_a_triangle_are_a_product_as_well() -> None:
    """Zero times any integer is zero: what is outside may be multiplied."""
    x, w = t.input("x", (64, 64), "int8"), t.input("w", (64, 32), "int8")
    made = t.tril(x).astype("int32") @ w.astype("int32")
    assert "tl.dot" in _printed(made, "h200").source
    a, b = (RNG.integers(-128, 128, s).astype(np.int8) for s in ((64, 64), (64, 32)))
    found = np.asarray(t.compile(made, on="triton")(x=a, w=b))
    assert (found == np.tril(a).astype(np.int32) @ b.astype(np.int32)).all()


def test_so_are_the_most_and_the_least_of_them() -> None:
    x, w = np.full((16, 4096), -128, np.int8), np.full((4096, 16), -128, np.int8)
    found = np.asarray(t.compile(_int8(16, 16, 4096), on="triton")(x=x, w=w))
    assert (found == 4096 << 14).all()


@pytest.mark.parametrize(("device", "target"), [("a100", 80), ("h200", 90)])
def test_tensor_cores_multiply_int8(device: str, target: int) -> None:
    kernel = _compiled(_int8(2048, 2048, 2048, turned=True), device, target)
    assert ".s32.s8.s8" in kernel.ptx
    assert kernel.uses_wgmma == (target == 90)


@pytest.mark.parametrize(
    "make",
    [
        # The other factor has more bits.
        lambda: t.input("x", (32, 64), "int8").astype("int32") @ t.input("w", (64, 32), "int32"),
        lambda: (
            t.input("x", (32, 64), "uint8").astype("int32")
            @ t.input("w", (64, 32), "int8").astype("int32")
        ),
    ],
)
def test_other_products_of_integers_are_no_matrix_units(make: Callable[[], Expression]) -> None:
    assert "tl.dot" not in _printed(make(), "h200").source


def test_sums_of_32_bits_wrap() -> None:
    """Of 2^17 products of 2^14 each the sum is 2^31, one more than 32 bits have."""
    size = 1 << 17
    x = np.full((2, size), -128, np.int8)
    w = np.full((size, 2), -128, np.int8)
    found = np.asarray(t.compile(_int8(2, 2, size), on="triton")(x=x, w=w))
    assert (found == np.int32(-(1 << 31))).all()
