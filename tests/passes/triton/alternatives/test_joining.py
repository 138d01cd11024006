"""Maps that read what a fold gives for each row are computed by its kernel."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.dialects.zspace import PartitionAttr
from tapestry.frontend import parse_text, verify_module
from tapestry.passes.triton.alternatives.joining import apply_joins
from tapestry.passes.triton.alternatives.splitting import Predict
from tapestry.passes.triton.alternatives.taking import Alternatives
from tapestry.passes.triton.cost.predicting import Prediction
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.zspace import Partition

DEVICE = "h100"


def _normalized(rows: int, inner: int, columns: int, dtype: str = "bf16") -> ModuleOp:
    shapes = {"x": (rows, inner), "w": (inner, columns), "g": (inner,), "h": (inner,)}
    x, w, g, h = (t.input(name, shape, dtype) for name, shape in shapes.items())
    return t.compile(t.layer_norm(x, g, h) @ w, on="triton").lowered


def _ways() -> Alternatives:
    found = LoomToTriton(device=DEVICE).alternatives(Context())
    assert found is not None
    return found


def _kernels(module: ModuleOp) -> list[loom.OperationOp | loom.FusedOp]:
    return [
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp | loom.FusedOp)
        and not isinstance(op.parent_op(), loom.FusedOp)
    ]


def test_a_stored_norm_is_of_the_kernel_of_its_statistics() -> None:
    module = _normalized(8192, 768, 3072)
    ways = _ways()
    ways.store_factors(module)
    apart = len(_kernels(module))
    ways.join_maps(module)
    verify_module(module)
    assert len(_kernels(module)) == apart - 1
    group, product = _kernels(module)
    assert isinstance(group, loom.FusedOp)
    assert isinstance(product, loom.OperationOp)
    assert group.outs[0] in product.ins
    before = str(module)
    ways.join_maps(module)
    assert str(module) == before


ROWS = """
!x = !loom.tensor<[0, 0] : [ROWS, 768], f16>
!r = !loom.tensor<[0] : [ROWS], f32>
func.func @main(%x: !x) -> (!x, !r) {
  %s = loom.operation @s over <[0, 0] : [ROWS, 768]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f16) { %b = arith.extf %a : f16 to f32  loom.yield %b : f32 } : (!x) -> !r
  BETWEEN
  %y = loom.operation @y over <[0, 0] : [ROWS, 768]> [map, map]
         ins(%x : (i, k) -> (i, k), %s : (i, k) -> (i), %t : (i, k) -> (i)) outs((i, k) -> (i, k))
         wrap (%a: f16, %b: f32, %c: f32) {
           %d = arith.extf %a : f16 to f32
           %e = arith.mulf %d, %b : f32
           %f = arith.addf %e, %c : f32
           %g = arith.truncf %f : f32 to f16
           loom.yield %g : f16
         } : (!x, !r, !r) -> !x
  func.return %y, %s : !x, !r
}
"""
FOLD = """
  %t = loom.operation @t over <[0, 0] : [ROWS, 768]> [map, fold] by @max
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f16) { %b = arith.extf %a : f16 to f32  loom.yield %b : f32 } : (!x) -> !r
"""


def _rows(between: str, rows: int) -> ModuleOp:
    return parse_text(ROWS.replace("BETWEEN", between).replace("ROWS", str(rows)))


def test_a_map_joins_the_last_fold_that_it_reads() -> None:
    module = _rows(FOLD, 8192)
    _ways().join_maps(module)
    verify_module(module)
    first, group = _kernels(module)
    assert isinstance(first, loom.OperationOp)
    assert isinstance(group, loom.FusedOp)
    assert [member.label.data for member in group.members] == ["t", "y"]
    assert first.outs[0] in group.ins


@pytest.mark.parametrize("where", ["reference", "triton"])
def test_joined_maps_give_the_same(where: str) -> None:
    module = _rows(FOLD, 24)
    joined = module.clone()
    _, fold, last = _kernels(joined)
    assert isinstance(last, loom.OperationOp)
    apply_joins(joined, {last: fold})
    verify_module(joined)
    assert len(_kernels(joined)) == 2
    given = {"x": np.random.default_rng(0).normal(size=(24, 768)).astype("f2")}
    pairs = (find_executor(where).run(one, given, NoWatch()).outputs for one in (module, joined))
    for one, other in zip(*pairs, strict=True):
        np.testing.assert_allclose(one.astype("f4"), other.astype("f4"), rtol=1e-3, atol=1e-3)


def test_what_is_read_of_other_rows_is_no_kernel_of_these() -> None:
    module = parse_text(TURNED)
    fold, last = _kernels(module)
    assert isinstance(last, loom.OperationOp)
    before = str(module)
    apply_joins(module, {last: fold})
    assert str(module) == before


TURNED = """
!x = !loom.tensor<[0, 0] : [8, 16], f32>
!r = !loom.tensor<[0] : [8], f32>
func.func @main(%x: !x) -> !x {
  %s = loom.operation @s over <[0, 0] : [8, 16]> [map, fold] by @add
         ins(%x : (i, k) -> (i, k)) outs((i) -> (i))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !r
  %y = loom.operation @y over <[0, 0] : [8, 16]> [map, map]
         ins(%x : (i, k) -> (i, k), %s : (i, k) -> (-i + 7)) outs((i, k) -> (i, k))
         wrap (%a: f32, %b: f32) { %c = arith.mulf %a, %b : f32  loom.yield %c : f32 }
         : (!x, !r) -> !x
  func.return %y : !x
}
"""


def _slower(own: Predict) -> Predict:
    """Predictions by which one kernel takes longer than several."""

    def predict(program: ModuleOp, chosen: bool, worth: float = inf) -> list[Prediction]:
        found = own(program, chosen, worth)
        return found * 9 if len(found) == 1 else found

    return predict


def test_what_has_a_schedule_or_shards_or_is_no_faster_stays() -> None:
    for change in ("schedule", "shards", "slower"):
        module = _rows(FOLD, 8192)
        _, fold, last = _kernels(module)
        if change == "schedule":
            fold.attributes["schedule"] = ScheduleAttr(Schedule({"P": 1, "K": 1024}))
        if change == "shards":
            assert isinstance(last, loom.OperationOp)
            last.shards = PartitionAttr(Partition.grid([[0, 4096, 8192], [0, 768]]))
        ways = _ways()
        if change == "slower":
            ways = replace(ways, predict=_slower(ways.predict))
        before = str(module)
        ways.join_maps(module)
        assert str(module) == before, change
