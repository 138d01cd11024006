"""Folds and scans of few points are split in parts on a device, where that is clearly faster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.importers.expressions.nodes import Expression
from tapestry.passes.loom.rebuilding.digits import Split
from tapestry.passes.loom.split_fold import Choice
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.runtime.executor import Array, NoWatch, find_executor


def _loom(program: Expression) -> ModuleOp:
    return t.compile(program, on="triton").lowered


def _times(module: ModuleOp, *, split: bool = True) -> list[float]:
    """What the kernels of a program in loom take on an H200."""
    lowered = module.clone()
    LoomToTriton(device="h200", split=split).apply(Context(), lowered)
    return [one.estimate.seconds for one in predictions(lowered, find_spec("h200"))]


def _decoding() -> Expression:
    q = t.input("q", (1, 32, 1, 128), "bf16")
    k, v = (t.input(name, (1, 32, 8192, 128), "bf16") for name in "kv")
    return t.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize(
    ("program", "gain"),
    [
        (t.input("x", (1 << 24,), "f32").sum(axis=0), 10),
        (t.input("x", (4, 1 << 20), "f32").max(axis=1), 5),
        (t.input("x", (4, 64, 128, 128), "f32").max(axis=(1, 2, 3)), 5),
        (t.input("x", (16, 8192), "bf16") @ t.input("w", (8192, 1024), "bf16"), 1.5),
        (_decoding(), 1.2),
    ],
    ids=["sum", "maxima", "maxima along short axes", "thin product", "decoding"],
)
def test_few_points_are_folded_in_parts(program: Expression, gain: float) -> None:
    module = _loom(program)
    whole, parts = _times(module, split=False), _times(module)
    assert (len(whole), len(parts)) == (1, 2)
    assert sum(parts) * gain <= sum(whole)


@pytest.mark.parametrize(
    "program",
    [
        t.input("x", (4096, 4096), "f32").sum(axis=1),
        t.input("x", (64, 300), "f32").sum(axis=1),
        t.softmax(t.input("x", (4, 1 << 16), "f32"), axis=-1),
        t.input("a", (512, 512), "bf16") @ t.input("b", (512, 512), "bf16"),
    ],
    ids=["enough programs", "short", "no fold from outside", "little to gain"],
)
def test_others_are_not(program: Expression) -> None:
    assert len(_times(_loom(program))) == 1


def test_a_schedule_is_for_the_whole_fold() -> None:
    module = _loom(t.input("x", (1 << 24,), "f32").sum(axis=0))
    (op,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    op.attributes[SCHEDULE] = ScheduleAttr(Schedule({"P": 1, "K": 2048}))
    assert len(_times(module)) == 1


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_parts_are_the_whole(dtype: str) -> None:
    module = _loom(t.input("x", (3, 1 << 18), dtype).sum(axis=1))
    ways = LoomToTriton(device="h200").alternatives(Context())
    assert ways is not None
    ways.split_folds(module)
    assert sum(isinstance(op, loom.OperationOp) for op in module.walk()) == 2
    x = np.random.default_rng(0).integers(-1000, 1000, (3, 1 << 18))
    given = {"x": x.astype("f4" if dtype == "f32" else "i8")}
    (got,) = find_executor("triton").run(module, given, NoWatch()).outputs
    np.testing.assert_array_equal(got.astype("i8"), x.sum(1))


def test_a_mean_is_divided_when_the_parts_of_both_sums_have_merged() -> None:
    """What one kernel folds, two do: parts of both sums, and both merges with what ends them."""
    x, w = (t.input(name, (1 << 16,), "f32") for name in "xw")
    module = _loom(x.sum(axis=0) / w.sum(axis=0))
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    assert len(group.members) == 2
    whole, parts = _times(module, split=False), _times(module)
    assert (len(whole), len(parts)) == (1, 2)
    assert sum(parts) * 1.5 <= sum(whole)
    ways = LoomToTriton(device="h200").alternatives(Context())
    assert ways is not None
    ways.split_folds(module)
    rng = np.random.default_rng(0)
    given = {name: rng.uniform(0.5, 1.5, 1 << 16).astype("f4") for name in "xw"}
    (got,) = find_executor("triton").run(module, given, NoWatch()).outputs
    wanted = given["x"].sum(dtype="f8") / given["w"].sum(dtype="f8")
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "gain"), [((1 << 24,), 40), ((8, 1 << 17), 2), ((1 << 16, 16), 1.5)]
)
def test_few_long_scans_are_scanned_in_parts(shape: tuple[int, ...], gain: float) -> None:
    axis = shape.index(max(shape))
    module = _loom(t.input("x", shape, "f32").cumsum(axis))
    whole, parts = _times(module, split=False), _times(module)
    assert (len(whole), len(parts)) == (1, 3)
    assert sum(parts) * gain <= sum(whole)


@pytest.mark.parametrize("shape", [(4096, 4096), (1, 2048), (1, 131101)])
def test_other_scans_are_whole(shape: tuple[int, ...]) -> None:
    """There are enough of them, they are short, or their points do not divide into parts."""
    assert len(_times(_loom(t.input("x", shape, "f32").cumsum(1)))) == 1


@pytest.mark.parametrize("function", [np.cumsum, np.maximum.accumulate])
def test_scanned_parts_are_the_whole(function: Callable[..., Array]) -> None:
    x = t.input("x", (3, 1 << 17), "i64")
    module = _loom(x.cumsum(1) if function is np.cumsum else t.cummax(x, axis=1))
    ways = LoomToTriton(device="h200").alternatives(Context())
    assert ways is not None
    ways.split_folds(module)
    scans = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    assert [op.scan_dim is None for op in scans] == [True, False, False]
    given = {"x": np.random.default_rng(0).integers(-1000, 1000, (3, 1 << 17))}
    got, *_ = find_executor("triton").run(module, given, NoWatch()).outputs
    np.testing.assert_array_equal(got, function(given["x"], axis=1))


@pytest.mark.parametrize("rows", [196, 197, 1024])
def test_sums_of_columns_fill_the_device(rows: int) -> None:
    """However rows divide, many programs read them, at near the bandwidth of memory."""
    module = _loom(t.input("x", (64, rows, 768), "f16").sum(axis=(0, 1)))
    least = 2 * 64 * rows * 768 / find_spec("h200").memory.bandwidth
    assert sum(_times(module)) < 2 * least + 5e-6


@pytest.mark.parametrize(
    ("shape", "parts", "split"),
    [
        ((64, 197), 16, Split(1, 4)),  # no number divides the longer one
        ((64, 196), 16, Split(1, 4)),
        ((4, 4096), 16, Split(2, 256)),
        ((197, 193), 16, None),
    ],
)
def test_a_dimension_is_split_that_has_parts(
    shape: tuple[int, int], parts: int, split: Split | None
) -> None:
    (op,) = (
        one
        for one in _loom(t.input("x", (*shape, 8), "f32").sum(axis=(0, 1))).walk()
        if isinstance(one, loom.OperationOp)
    )
    assert Choice(parts, 256).split(op) == split
