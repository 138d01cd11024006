"""Inputs of products that lie badly are copied with another axis last: the same numbers, faster."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.loom.relayout import always, apply_layouts
from tapestry.passes.triton.alternatives import layouts
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch, find_executor
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


def _shortcut(images: int, *, last: bool = False) -> Expression:
    """A layer, and two that take every other cell of what it makes, one of them as a shortcut."""
    side = 56
    x, first, wide, thin, out = (
        t.input(name, shape, "f16")
        for name, shape in {
            "x": (images, 64, side, side),
            "first": (64, 64, 3, 3),
            "wide": (128, 64, 3, 3),
            "thin": (128, 64, 1, 1),
            "out": (128, 128, 3, 3),
        }.items()
    )
    before = t.relu(t.conv2d(x, first, padding=[1, 1]))
    inner = t.relu(t.conv2d(before, wide, padding=[1, 1], stride=[2, 2]))
    sums = t.conv2d(inner, out, padding=[1, 1]) + t.conv2d(before, thin, stride=[2, 2])
    # A scan along the rows of what it makes would walk across memory.
    return t.relu(sums) + t.cumsum(before, axis=3)[:, :1, ::2, ::2] if last else t.relu(sums)


def _settled(program: Expression) -> tuple[ModuleOp, ModuleOp]:
    """A program before and after what is done for a device."""
    before = _loom(program)
    after = before.clone()
    LoomToTriton(device=DEVICE).settle(Context(), after)
    return before, after


def test_a_shortcut_leaves_its_group_where_both_read_what_lies_well() -> None:
    before, after = _settled(_shortcut(64))
    assert any(isinstance(op, loom.FusedOp) for op in before.walk())
    assert not any(isinstance(op, loom.FusedOp) for op in after.walk())
    first, *others = (op for op in _operations(after) if op.fold_dims)
    assert tensor_type(first.outs[0]).box.shape == (64, 56, 56, 64)
    # It is written once, as both read it: nothing but what comes in is copied.
    assert sum(first.outs[0] in op.ins for op in others) == 2
    copies = [op for op in _operations(after) if not op.fold_dims]
    assert all(isinstance(op.ins[0].owner, Block) for op in copies)


def test_what_others_read_badly_then_is_counted_as_copied() -> None:
    _, after = _settled(_shortcut(64, last=True))
    first = next(op for op in _operations(after) if op.fold_dims)
    assert tensor_type(first.outs[0]).box.shape == (64, 64, 56, 56)


def test_layers_give_the_same_however_they_lie() -> None:
    inputs = {
        name: np.random.default_rng(0).normal(size=shape).astype(np.float16) / 8
        for name, shape in {
            "x": (2, 64, 56, 56),
            "first": (64, 64, 3, 3),
            "wide": (128, 64, 3, 3),
            "thin": (128, 64, 1, 1),
            "out": (128, 128, 3, 3),
        }.items()
    }
    modules = _settled(_shortcut(2))
    found = [find_executor("numpy").run(one, inputs, NoWatch()).outputs[0] for one in modules]
    np.testing.assert_allclose(*found, rtol=2e-2, atol=2e-2)


def _pooled(images: int, *, besides: bool = False) -> Expression:
    """A layer, the largest of its windows, and a layer of those."""
    x, first, second = (
        t.input(name, shape, "f16")
        for name, shape in {
            "x": (images, 64, 28, 28),
            "first": (64, 64, 3, 3),
            "second": (64, 64, 3, 3),
        }.items()
    )
    before = t.relu(t.conv2d(x, first, padding=[1, 1]))
    pooled = t.max_pool2d(before, kernel=[3, 3], stride=[2, 2], padding=[1, 1])
    after = t.relu(t.conv2d(pooled, second, padding=[1, 1]))
    # A scan along the rows of what it pools would walk across memory.
    return after + t.cumsum(before, axis=3)[:, :, ::2, ::2] if besides else after


def test_windows_between_layers_pass_on_what_lies_well() -> None:
    _, after = _settled(_pooled(128))
    first, pool, second = (op for op in _operations(after) if op.fold_dims)
    assert tensor_type(first.outs[0]).box.shape == (128, 28, 28, 64)
    assert tensor_type(pool.outs[0]).box.shape == (128, 14, 14, 64)
    assert pool.ins == (first.outs[0],)
    assert second.in_reads[0].value is pool.outs[0]
    copies = [op for op in _operations(after) if not op.fold_dims]
    assert all(isinstance(op.ins[0].owner, Block) for op in copies)


def test_windows_stay_where_others_would_read_badly() -> None:
    _, after = _settled(_pooled(128, besides=True))
    first, pool, *_ = (op for op in _operations(after) if op.fold_dims)
    assert tensor_type(first.outs[0]).box.shape == (128, 64, 28, 28)
    assert tensor_type(pool.outs[0]).box.shape == (128, 64, 14, 14)


def test_windows_give_the_same_however_they_lie() -> None:
    random = np.random.default_rng(0)
    shapes = {"x": (3, 5, 9, 8), "first": (7, 5, 3, 3), "second": (3, 7, 2, 3)}
    inputs = {name: random.normal(size=shape) for name, shape in shapes.items()}

    def program(dtype: str) -> Expression:
        x, first, second = (t.input(name, shape, dtype) for name, shape in shapes.items())
        before = t.relu(t.conv2d(x, first, padding=[1, 1], dilation=[2, 1]))
        pooled = t.max_pool2d(before, kernel=[3, 2], stride=[2, 1], padding=[1, 0])
        return t.conv2d(pooled, second, stride=[1, 2], padding=[1, 0])

    wanted = t.compile(program("f64"), on="numpy").run(inputs).outputs[0]
    module = _loom(program("f32"))
    first, pool, second = _operations(module)
    apply_layouts(module, {second: [1, 1]}, always, lambda op: op is pool)
    module.verify()
    first, pool, _ = (op for op in _operations(module) if op.fold_dims)
    assert tensor_type(first.outs[0]).box.shape[-1] == 7
    assert pool.ins == (first.outs[0],)
    single = {name: value.astype(np.float32) for name, value in inputs.items()}
    result = TritonExecutor(device=Cpu(), tile=256).run(module, single, NoWatch())
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=1e-4)


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


def test_of_many_ways_inputs_are_turned_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as is best beside those before it, which may be as it is."""
    asked: list[tuple[int | None, ...]] = []
    taken = {(0, None, None): 5.0, (None, 0, None): 2.0, (None, 0, 0): 3.0, (None, 0, 1): 1.0}

    def seconds(
        _: object, __: object, axes: tuple[int | None, ...], ___: object, **____: bool
    ) -> float:
        asked.append(axes)
        return taken.get(axes, 9.0)

    monkeypatch.setattr(layouts.LayoutChooser, "_seconds", seconds)
    monkeypatch.setattr(layouts, "_MANY", 4)
    chooser = layouts.LayoutChooser(lambda *_: [])
    found = chooser._tried(ModuleOp([]), [[None, 0], [None, 0], [None, 0, 1]], frozenset(), 4.0)
    assert min(found, key=found.__getitem__) == (None, 0, 1)
    assert len(asked) == 4
