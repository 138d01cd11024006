"""Folds that walk their dimensions as the largest tensor lies: fewer sectors, the same numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context

import tapestry as t
from tapestry.devices import find_spec
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor

H200 = find_spec("h200")


def l2_seconds(order: tuple[int, ...], axis: int | tuple[int, ...]) -> float:
    x = t.input("x", (64, 512, 512), "f32")
    module = t.compile(t.sum(t.transpose(x, order), axis=axis), on="triton").lowered.clone()
    LoomToTriton(device="h200", split=False).apply(Context(), module)
    (one,) = predictions(module, H200)
    return one.estimate.parts["l2"]


def test_points_are_taken_as_the_largest_tensor_lies() -> None:
    # Turned or not, each sector is read once; only what is written lies otherwise.
    assert l2_seconds((0, 2, 1), 0) < 1.2 * l2_seconds((0, 1, 2), 0)


def test_what_is_folded_is_taken_as_the_largest_tensor_lies() -> None:
    assert l2_seconds((2, 0, 1), (0, 2)) < 1.2 * l2_seconds((0, 1, 2), (1, 2))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_shape_gives_what_numpy_does(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 12), min_size=2, max_size=4))
    order = data.draw(st.permutations(range(len(shape))))
    axes = data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1))
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    turned = t.transpose(t.input("x", tuple(shape), "f32"), order)
    program = t.compile(t.sum(turned, axis=tuple(sorted(axes))), on="triton")
    for module in (program.lowered, program.sharded(shards=2).lowered):
        result = TritonExecutor(device=Cpu(), tile=64).run(module, {"x": x}, NoWatch())
        wanted = np.transpose(x, order).astype(np.float64).sum(axis=tuple(axes))
        np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=1e-5)
