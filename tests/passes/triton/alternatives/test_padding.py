"""Products of too few neighbours fold zeros as well: the same numbers, read in whole vectors."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.codegen.module_printer import print_module
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.loom.pad_fold import apply_paddings, padded_axes
from tapestry.passes.triton.alternatives.padding import paddings
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

DEVICE = "h100"


def _loom(program: Expression) -> ModuleOp:
    return t.compile(program, on="triton").lowered


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def _lowered(module: ModuleOp, *, relayout: bool = True) -> ModuleOp:
    lowered = module.clone()
    LoomToTriton(device=DEVICE, relayout=relayout).apply(Context(), lowered)
    return lowered


def _seconds(lowered: ModuleOp) -> float:
    return sum(one.estimate.seconds for one in predictions(lowered, find_spec(DEVICE)))


def _pad(module: ModuleOp) -> None:
    ways = LoomToTriton(device=DEVICE).alternatives(Context())
    assert ways is not None
    ways.pad_folds(module)


def _first_layer(channels: int, dtype: str) -> Expression:
    """What an image goes through first: few channels, a large window."""
    x = t.input("x", (32, channels, 224, 224), dtype)
    w = t.input("w", (64, channels, 7, 7), dtype)
    return t.relu(t.conv2d(x, w, padding=[3, 3], stride=[2, 2]))


def test_three_channels_are_read_as_four() -> None:
    module = _loom(_first_layer(3, "f16"))
    lowered = _lowered(module)
    assert _seconds(lowered) * 1.2 < _seconds(_lowered(module, relayout=False))
    _pad(module)
    *copies, product = _operations(module)
    assert [op.label.data for op in copies] == ["copy", "copy"]
    shapes = [tensor_type(read.value).box.shape for read in product.in_reads]
    assert shapes == [(32, 224, 224, 4), (64, 7, 7, 4)]
    # Each place of a window has a mask of its own, and its four channels have the same.
    kernel = print_module(lowered).source.rpartition("@triton.jit")[2]
    assert "k_lanes // 4" in kernel
    assert "k % 4" not in kernel


def test_rows_of_an_odd_length_begin_at_whole_vectors() -> None:
    module = _loom(t.input("a", (8192, 1023), "f16") @ t.input("b", (1023, 4096), "f16"))
    _pad(module)
    *_, product = _operations(module)
    assert [tensor_type(r.value).box.shape[1] for r in product.in_reads] == [1024, 1024]


@pytest.mark.parametrize(
    "program",
    [
        _first_layer(4, "f16"),
        _first_layer(3, "f32"),
        t.input("a", (512, 512), "f16") @ t.input("b", (512, 512), "f16"),
        t.input("a", (64, 63), "f16") @ t.input("b", (63, 64), "f16"),
        t.sum(t.input("a", (4096, 1023), "f16"), axis=[1]),
    ],
    ids=["four channels", "cells of 4 bytes", "product", "small", "sum"],
)
def test_others_stay(program: Expression) -> None:
    module = _loom(program)
    before = str(module)
    _pad(module)
    assert str(module) == before


def test_what_has_a_schedule_stays() -> None:
    module = _loom(_first_layer(3, "f16"))
    (op,) = _operations(module)
    assert list(paddings(op))
    op.attributes["schedule"] = op.label
    assert not list(paddings(op))


@settings(deadline=None, max_examples=drawn(8))
@given(st.data())
def test_any_factor_may_have_zeros(data: st.DataObject) -> None:
    channels, out = data.draw(st.sampled_from([1, 3, 5])), data.draw(st.integers(1, 5))
    size = data.draw(st.integers(5, 7))
    kernel = data.draw(st.sampled_from([(1, 1), (2, 3), (3, 1)]))
    pairs = st.lists(st.integers(1, 2), min_size=2, max_size=2)
    options = {
        "stride": data.draw(pairs),
        "dilation": data.draw(pairs),
        "padding": [n - 1 for n in data.draw(pairs)],
    }
    shapes = {"x": (2, channels, size, size + 1), "w": (out, channels, *kernel)}
    random = np.random.default_rng(0)
    inputs = {name: random.normal(size=shape) for name, shape in shapes.items()}
    # What is not finite stays where it is: zeros are multiplied by zeros alone.
    inputs["x"][0, 0, 0, 0] = np.inf

    def program(dtype: str) -> Expression:
        x, w = (t.input(name, shape, dtype) for name, shape in shapes.items())
        return t.conv2d(x, w, **options)

    with np.errstate(invalid="ignore"):
        wanted = t.compile(program("f64"), on="numpy").run(inputs).outputs[0]
    module = _loom(program("f32"))
    *_, op = _operations(module)
    dims = [dim for dim in op.fold_dims if padded_axes(op, dim) is not None]
    if channels > 1:
        assert dims
    if dims:
        extent = op.index.shape[dims[0]] + data.draw(st.integers(1, 4))
        apply_paddings(module, {op: (dims[0], extent)})
        module.verify()
        assert len(_operations(module)) == 3
    single = {name: value.astype(np.float32) for name, value in inputs.items()}
    result = TritonExecutor(device=Cpu(), tile=256).run(module, single, NoWatch())
    scale = prod(kernel) * channels
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=1e-6 * scale)


@pytest.mark.parametrize(("channels", "dtype"), [(3, "f16"), (5, "f16"), (3, "f32")])
def test_halves_are_right(channels: int, dtype: str) -> None:
    x = t.input("x", (2, channels, 15, 18), dtype)
    w = t.input("w", (9, channels, 7, 7), dtype)
    module = _loom(t.relu(t.conv2d(x, w, padding=[3, 3], stride=[2, 2])))
    (op,) = _operations(module)
    (dim,) = (dim for dim in op.fold_dims if op.index.shape[dim] == channels)
    apply_paddings(module, {op: (dim, 8 if channels > 4 else 4)})
    random = np.random.default_rng(0)
    kind = {"f16": np.float16, "f32": np.float32}[dtype]
    inputs = {
        "x": random.normal(size=(2, channels, 15, 18)).astype(kind),
        "w": random.normal(size=(9, channels, 7, 7)).astype(kind),
    }
    found = TritonExecutor(device=Cpu(), tile=256).run(module, inputs, NoWatch()).outputs[0]
    exact = {name: value.astype(np.float64) for name, value in inputs.items()}
    y = t.conv2d(
        t.input("x", exact["x"].shape, "f64"),
        t.input("w", exact["w"].shape, "f64"),
        padding=[3, 3],
        stride=[2, 2],
    )
    wanted = t.compile(t.relu(y), on="numpy").run(exact).outputs[0]
    tolerance = 2e-3 if dtype == "f16" else 1e-5
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=20 * tolerance)
