"""Folds that walk their dimensions as the largest tensor lies: fewer sectors, the same numbers."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.ir import Operation

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.frontend import parse_module, parse_text
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.indexing.orders import dims_apart
from tapestry.passes.triton.kernels.mapfold import map_fold_of
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

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


def test_rows_of_a_scan_are_taken_as_they_are_written() -> None:
    """However the index is ordered, a tile has rows that are neighbours."""

    def seconds(maps: str, extents: str) -> float:
        module = parse_text(f"""
            !x = !loom.tensor<[0, 0, 0] : [64, 256, 64], f32>
            func.func @main(%x: !x) -> !x {{
              %y = loom.operation @running over <[0, 0, 0] : [{extents}, 256]> [map, map, scan]
                     by @add ins(%x : ({maps}, k) -> (i, k, j)) outs(({maps}, k) -> (i, k, j))
                     wrap (%c: f32) {{ loom.yield %c : f32 }} : (!x) -> !x
              func.return %y : !x
            }}""")
        LoomToTriton(device="h200", split=False).apply(Context(), module)
        (one,) = predictions(module, H200)
        return one.estimate.seconds

    assert seconds("j, i", "64, 64") == seconds("i, j", "64, 64")


@settings(deadline=None, max_examples=drawn(25))
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


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("shards", [1, 3])
def test_programs_of_one_channel_give_what_numpy_does(dtype: str, shards: int) -> None:
    """Of 1,155 points a program has some of one channel alone, and the last one of it fewer."""
    random = np.random.default_rng(0)
    kind = {"f16": np.float16, "f32": np.float32}[dtype]
    x, w = (random.normal(size=size).astype(kind) for size in ((2, 3, 33, 35), (3, 1, 3, 3)))
    made = t.conv2d(
        t.input("x", x.shape, dtype), t.input("w", w.shape, dtype), groups=3, padding=(1, 1)
    )
    program = t.compile(made, on="triton")
    apart = [dims_apart(map_fold_of(op)) for op in program.lowered.walk() if _folds(op)]
    assert apart == [frozenset((0, 1))]
    module = program.lowered if shards == 1 else program.sharded(shards=shards).lowered
    result = TritonExecutor(device=Cpu(), tile=256).run(module, {"x": x, "w": w}, NoWatch())
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    wanted = np.einsum("ncijkl,ckl->ncij", windows, w[:, 0].astype(np.float64))
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "out", "apart"),
    [
        ("(i, k)", "(k)", "(i)", ()),  # the same for all points
        ("(b, i, k)", "(b, k)", "(b, i)", (0,)),
        ("(i, b, k)", "(b, k)", "(i, b)", ()),  # points that lie side by side read others
        ("(a, b, i, k)", "(b, k)", "(a, b, i)", (0, 1)),
        ("(a, b, i, k)", "(a, b)", "(a, b, i)", ()),  # read once, whatever is folded
    ],
)
def test_what_is_apart(x: str, w: str, out: str, apart: tuple[int, ...]) -> None:
    dims = [*out.strip("()").split(", "), "k"]
    sizes = {"a": 3, "b": 4, "i": 2048, "k": 5}

    def tensor(axes: str) -> str:
        shape = [sizes[axis] for axis in axes.strip("()").split(", ")]
        return f"!loom.tensor<{[0] * len(shape)} : {shape}, f32>"

    kinds, every = ", ".join(["map"] * (len(dims) - 1) + ["fold"]), f"({', '.join(dims)})"
    (op,) = (
        op
        for op in parse_module(f"""
        func.func @main(%x: {tensor(x)}, %w: {tensor(w)}) -> {tensor(out)} {{
          %y = loom.operation @f over <{[0] * len(dims)} : {[sizes[d] for d in dims]}>
            [{kinds}] by @add
            ins(%x : {every} -> {x}, %w : {every} -> {w}) outs({out} -> {out})
            wrap (%a: f32, %b: f32) {{ %p = arith.maximumf %a, %b : f32  loom.yield %p : f32 }}
            : ({tensor(x)}, {tensor(w)}) -> {tensor(out)}
          func.return %y : {tensor(out)}
        }}
        """).walk()
        if _folds(op)
    )
    assert dims_apart(map_fold_of(op)) == frozenset(apart)


def _folds(op: Operation) -> TypeGuard[loom.OperationOp]:
    return isinstance(op, loom.OperationOp) and "fold" in map_fold_of(op).kinds
