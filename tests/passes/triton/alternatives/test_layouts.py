"""Inputs of products that lie badly are copied with another axis last: the same numbers, faster."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.loom.relayout import always, apply_layouts
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor

DEVICE = "h100"


def _loom(program: Expression) -> ModuleOp:
    return t.compile(program, on="triton").lowered


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def _seconds(module: ModuleOp, *, relayout: bool) -> float:
    lowered = module.clone()
    LoomToTriton(device=DEVICE, relayout=relayout).apply(Context(), lowered)
    return sum(one.estimate.seconds for one in predictions(lowered, find_spec(DEVICE)))


def _relayout(module: ModuleOp) -> None:
    ways = LoomToTriton(device=DEVICE).alternatives(Context())
    assert ways is not None
    ways.relayout_inputs(module)


def _convolution(shape: tuple[int, ...], weights: tuple[int, ...], dtype: str) -> Expression:
    x, w = t.input("x", shape, dtype), t.input("w", weights, dtype)
    return t.relu(t.conv2d(x, w, padding=[weights[2] // 2, weights[3] // 2]))


def test_windows_are_read_channel_by_channel() -> None:
    module = _loom(_convolution((32, 128, 28, 28), (256, 128, 3, 3), "f16"))
    assert _seconds(module, relayout=True) * 1.5 < _seconds(module, relayout=False)
    _relayout(module)
    *copies, product = _operations(module)
    assert [op.label.data for op in copies] == ["copy", "copy"]
    assert {read.value for read in product.in_reads} == {copy.outs[0] for copy in copies}


def test_layers_pass_on_what_lies_well() -> None:
    x, v, w = (
        t.input(name, shape, "f16")
        for name, shape in {"x": (8, 64, 56, 56), "v": (64, 64, 3, 3), "w": (64, 64, 3, 3)}.items()
    )
    inner = t.relu(t.conv2d(x, v, padding=[1, 1]))
    module = _loom(t.relu(t.conv2d(inner, w, padding=[1, 1]) + x))
    _relayout(module)
    *copies, first, second = _operations(module)
    assert {op.label.data for op in copies} == {"copy"}
    assert len(copies) == 3
    # What lies between them is written with the channels last, as it is read.
    assert second.in_reads[0].value is first.outs[0]
    assert tensor_type(first.outs[0]).box.shape == (8, 56, 56, 64)


@pytest.mark.parametrize(
    "program",
    [
        _convolution((32, 256, 28, 28), (256, 256, 1, 1), "f16"),
        _convolution((32, 3, 224, 224), (64, 3, 3, 3), "f16"),
        t.input("a", (512, 512), "f16") @ t.input("b", (512, 512), "f16"),
        t.input("a", (512, 512), "f16") @ t.input("b", (512, 512), "f16").T,
    ],
    ids=["1x1", "three channels", "product", "transposed"],
)
def test_others_stay(program: Expression) -> None:
    module = _loom(program)
    before = str(module)
    _relayout(module)
    assert str(module) == before


def test_without_a_device_nothing_is_copied() -> None:
    module = _loom(_convolution((32, 128, 28, 28), (256, 128, 3, 3), "f16"))
    before = str(module)
    LoomToTriton().settle(Context(), module)
    assert str(module) == before


@settings(deadline=None, max_examples=5)
@given(st.data())
def test_any_axis_may_come_last(data: st.DataObject) -> None:
    groups, size = data.draw(st.sampled_from([1, 1, 2])), data.draw(st.integers(4, 6))
    channels, out = (groups * data.draw(st.integers(1, 5)) for _ in range(2))
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pairs = st.lists(st.integers(1, 2), min_size=2, max_size=2)
    options = {
        "stride": data.draw(pairs),
        "dilation": data.draw(pairs),
        "padding": [n - 1 for n in data.draw(pairs)],
        "groups": groups,
    }
    computed = data.draw(st.booleans())
    shapes = {"x": (2, channels, size, size + 1), "w": (out, channels // groups, *kernel)}
    random = np.random.default_rng(0)
    inputs = {name: random.normal(size=shape) for name, shape in shapes.items()}

    def program(dtype: str) -> Expression:
        x, w = (t.input(name, shape, dtype) for name, shape in shapes.items())
        return t.conv2d(t.exp(x) if computed else x, w, **options)

    wanted = t.compile(program("f64"), on="numpy").run(inputs).outputs[0]
    module = _loom(program("f32"))
    *_, op = _operations(module)
    axes = [data.draw(st.sampled_from([None, 0, 1, 2, 3])) for _ in op.in_reads]
    apply_layouts(module, {op: axes}, always)
    single = {name: value.astype(np.float32) for name, value in inputs.items()}
    result = TritonExecutor(device=Cpu(), tile=256).run(module, single, NoWatch())
    scale = prod(kernel) * channels
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=1e-6 * scale)
