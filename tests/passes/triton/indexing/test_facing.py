"""Elementwise kernels over two axes: where tensors lie differently, of any shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import triton
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.triton.cost.predicting import Prediction, predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

H200 = find_spec("h200")
EXTENTS = st.sampled_from([1, 3, 8, 17, 32, 45, 64])


def lowered(expression: Expression, device: str = "h200") -> ModuleOp:
    module = t.compile(expression, on="triton").lowered.clone()
    LoomToTriton(device=device).apply(Context(), module)
    return module


def axes(expression: Expression) -> list[str]:
    (kernel,) = (op for op in lowered(expression).walk() if isinstance(op, triton.KernelOp))
    return list(kernel.schedule.data.tile)


def predicted(expression: Expression) -> Prediction:
    (one,) = predictions(lowered(expression), H200)
    return one


def given_as(*shape: int, name: str = "x", dtype: str = "f32") -> Expression:
    return t.input(name, shape, dtype)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (given_as(512, 256).T, ["M", "N"]),
        (given_as(512, 256).T + given_as(256, 512, name="y"), ["M", "N"]),
        (t.transpose(given_as(8, 32, 28, 28), (0, 2, 3, 1)), ["M", "N"]),
        (given_as(512, 256) * 2.0, ["P"]),
        # Rows of heads change places, cells of a head stay side by side.
        (t.transpose(given_as(4, 128, 8, 64), (0, 2, 1, 3)), ["P"]),
        # Three channels beside each other are one piece of memory anyway.
        (t.transpose(given_as(64, 3, 4096), (0, 2, 1)), ["P"]),
        # What is turned is too small to matter.
        (given_as(256, 512) + given_as(512, 1, name="y").T, ["P"]),
        (given_as(16, 16).T, ["P"]),
    ],
)
def test_tiles_have_two_axes_where_tensors_lie_differently(
    expression: Expression, wanted: list[str]
) -> None:
    assert axes(expression) == wanted


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_transpose_moves_whole_sectors(dtype: str) -> None:
    one = predicted(given_as(8192, 8192, dtype=dtype).T)
    size = 2 * 8192 * 8192 * (4 if dtype == "f32" else 2)
    assert one.estimate.bytes == size
    assert one.estimate.bound == "memory"
    assert one.estimate.seconds < 1.15 * size / H200.memory.bandwidth
    # Threads exchange a tile of what they read.
    assert one.estimate.shared >= 64 * 64 * 2


@settings(deadline=None, max_examples=drawn(25))
@given(st.data())
def test_any_shape_gives_what_numpy_does(data: st.DataObject) -> None:
    shape = data.draw(st.lists(EXTENTS, min_size=2, max_size=4).filter(lambda s: np.prod(s) < 2e4))
    order = data.draw(st.permutations(range(len(shape))))
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    y = np.random.default_rng(1).normal(size=[shape[d] for d in order]).astype(np.float32)
    own, other = given_as(*shape), given_as(*y.shape, name="y")
    program = t.compile(t.transpose(own, order) * 2.0 + other, on="triton")
    check(program.lowered, {"x": x, "y": y}, np.transpose(x, order) * 2 + y)


@pytest.mark.parametrize("shards", [2, 3])
def test_shards_of_a_transpose_are_the_whole(shards: int) -> None:
    x = np.arange(70 * 45, dtype=np.float32).reshape(70, 45)
    program = t.compile(given_as(70, 45).T, on="triton").sharded(shards=shards)
    check(program.lowered, {"x": x}, x.T)


def check(module: ModuleOp, inputs: dict[str, np.ndarray], wanted: np.ndarray) -> None:
    result = TritonExecutor(device=Cpu(), tile=1024).run(module, inputs, NoWatch())
    (made,) = result.outputs
    np.testing.assert_allclose(made, wanted, rtol=1e-6)


def test_a_given_schedule_is_taken() -> None:
    module = t.compile(t.relu(given_as(64, 64).T), on="triton").lowered.clone()
    LoomToTriton(schedules=("relu: M = 16, N = 32, warps = 2",)).apply(Context(), module)
    (kernel,) = (op for op in module.walk() if isinstance(op, triton.KernelOp))
    assert kernel.constants == {"BLOCK_M": 16, "BLOCK_N": 32}
