"""Groups are cut where the cost model takes several kernels for faster, and give the same."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriteWalker

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.passes.triton.alternatives.recutting import GAIN, CutOnce
from tapestry.passes.triton.cost.predicting import Prediction, predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.runtime.executor import NoWatch, find_executor


def chain(rows: int, side: int) -> ModuleOp:
    y = t.input("x", (rows, side), "f32")
    for name in "uvw":
        y = t.softmax(y @ t.input(name, (side, side), "f32"), axis=1)
    return t.compile(y, on="triton").lowered


def launches(module: ModuleOp, *, split: bool = True) -> list[Prediction]:
    lowered = module.clone()
    LoomToTriton(device="h200", split=split).apply(Context(), lowered)
    return predictions(lowered, find_spec("h200"))


def test_a_product_that_is_taken_again_is_stored() -> None:
    module = chain(512, 256)
    whole, pieces = launches(module, split=False), launches(module)
    assert len(pieces) > len(whole)
    taken = [sum(one.estimate.seconds for one in found) for found in (whole, pieces)]
    assert taken[1] * GAIN <= taken[0]
    assert sum(one.estimate.flops for one in pieces) < sum(one.estimate.flops for one in whole)


@pytest.mark.parametrize(
    "program",
    [
        t.scaled_dot_product_attention(*(t.input(n, (8, 2048, 64), "f32") for n in "qkv")),
        t.softmax(t.input("x", (64, 512), "f32"), axis=1),
    ],
    ids=["attention", "rows"],
)
def test_others_stay_one_kernel(program: t.Expression) -> None:
    assert len(launches(t.compile(program, on="triton").lowered)) == 1


def _sum_of_products(*depths: int, rows: int = 2048, dtype: str = "bf16") -> ModuleOp:
    """A sum of products of different depths, as the gradient to what several layers read is."""
    products = [
        t.input(f"x{n}", (rows, depth), dtype) @ t.input(f"w{n}", (depth, rows), dtype)
        for n, depth in enumerate(depths)
    ]
    total = products[0]
    for one in products[1:]:
        total = total + one
    return t.compile(total, on="triton").lowered


@pytest.mark.parametrize("depths", [(2048, 512, 512), (2048, 512, 512, 1024)])
def test_products_that_are_summed_are_cut_all_the_way(depths: tuple[int, ...]) -> None:
    """One after another: the first cut alone gains little where many are left together."""
    module = _sum_of_products(*depths)
    assert any(isinstance(op, loom.FusedOp) for op in module.walk())
    found = launches(module)
    assert len(found) == len(depths)
    assert not any(axis.startswith("C") for one in found for axis in one.schedule.tile)


def test_summed_products_give_the_same_apart() -> None:
    module = _sum_of_products(24, 8, 16, rows=20, dtype="f16")
    pieces = module.clone()
    for _ in range(2):
        PatternRewriteWalker(CutOnce(), apply_recursively=False).rewrite_module(pieces)
    assert not any(isinstance(op, loom.FusedOp) for op in pieces.walk())
    rng = np.random.default_rng(0)
    depths = {"0": 24, "1": 8, "2": 16}
    given = {
        name + n: rng.normal(size=(20, d) if name == "x" else (d, 20)).astype(np.float16)
        for n, d in depths.items()
        for name in "xw"
    }
    found = [
        find_executor("numpy").run(one, given, NoWatch()).outputs[0] for one in (module, pieces)
    ]
    np.testing.assert_array_equal(*found)


def test_a_group_with_a_schedule_stays() -> None:
    module = chain(512, 256)
    group = max(
        (op for op in module.walk() if isinstance(op, loom.FusedOp)),
        key=lambda op: len(list(op.members)),
    )
    tile = {"M": 64, "C": 64, "C1": 64, "K": 32, "N": 256}
    group.attributes[SCHEDULE] = ScheduleAttr(Schedule(tile, warps=8, stages=2))
    assert [one.schedule.tile for one in launches(module)].count(tile) == 1


def test_the_pieces_give_what_the_whole_gives() -> None:
    module = chain(32, 16)
    pieces = module.clone()
    PatternRewriteWalker(CutOnce(), apply_recursively=False).rewrite_module(pieces)
    count = [sum(isinstance(op, loom.FusedOp) for op in one.walk()) for one in (module, pieces)]
    assert str(pieces) != str(module), count
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=(32 if name == "x" else 16, 16)).astype("f4") for name in "xuvw"}
    found = [
        find_executor("triton").run(one, given, NoWatch()).outputs[0] for one in (module, pieces)
    ]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_what_few_programs_take_again_is_folded_in_parts_where_that_is_as_fast() -> None:
    """Scores of one query a head: stored, they would be a kernel more than the two of parts."""
    q, k, v = (
        t.input(n, (1, heads, rows, 128), "f16")
        for n, heads, rows in (("q", 32, 1), ("k", 8, 32768), ("v", 8, 32768))
    )
    module = t.compile(t.grouped_query_attention(q, k, v), on="triton").lowered
    partial, merge = launches(module)
    assert "C" in partial.schedule.tile
    assert partial.estimate.waves > merge.estimate.waves
