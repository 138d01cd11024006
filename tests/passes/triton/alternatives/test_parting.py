"""Products that are summed beside each other are summed one after another where that is faster."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.frontend import verify_module
from tapestry.passes.triton.alternatives.taking import Alternatives
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.task import SCHEDULE

DEVICE = "h100"


def _gated(rows: int, width: int, out: int, *, norm: bool = False) -> ModuleOp:
    shapes = {"x": (rows, width), "g": (width,), "w": (width, out), "v": (width, out)}
    x, g, w, v = (t.input(name, shape, "bf16") for name, shape in shapes.items())
    h = t.rms_norm(x, g, eps=1e-6) if norm else x
    return t.compile(t.swiglu(h @ w, h @ v), on="triton").lowered


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def _ways() -> Alternatives:
    found = LoomToTriton(device=DEVICE).alternatives(Context())
    assert found is not None
    return found


def _seconds(module: ModuleOp) -> float:
    lowered = module.clone()
    LoomToTriton(device=DEVICE).settled.lower(Context(), lowered)
    return sum(one.estimate.seconds for one in predictions(lowered, find_spec(DEVICE)))


def test_large_products_are_summed_one_after_another() -> None:
    module = _gated(8192, 2048, 5632)
    assert len(_operations(module)) == 1
    whole = _seconds(module)
    _ways().part_products(module)
    verify_module(module)
    first, last = _operations(module)
    assert [len(op.state_types) for op in (first, last)] == [1, 1]
    assert str(tensor_type(first.outs[0]).element_type) == "bf16"
    assert _seconds(module) <= whole
    before = str(module)
    _ways().part_products(module)
    assert str(module) == before


def test_what_is_folded_for_each_row_is_folded_before_both() -> None:
    module = _gated(8192, 2048, 5632, norm=True)
    ways = _ways()
    ways.store_factors(module)
    ways.part_products(module)
    verify_module(module)
    *others, first, last = _operations(module)
    assert [len(op.state_types) for op in (first, last)] == [1, 1]
    assert any(op.index.rank == 2 and op.fold_dims for op in others)


@pytest.mark.parametrize("shape", [(16, 4096, 14336), (1, 512, 512), (128, 64, 128)])
def test_what_is_read_longer_than_it_is_multiplied_stays(shape: tuple[int, int, int]) -> None:
    module = _gated(*shape)
    before = str(module)
    _ways().part_products(module)
    assert str(module) == before


def test_a_fold_with_a_schedule_stays() -> None:
    module = _gated(8192, 2048, 5632)
    (whole,) = _operations(module)
    tile = {"M": 128, "N": 128, "K": 64}
    whole.attributes[SCHEDULE] = ScheduleAttr(Schedule(tile, warps=8, stages=3))
    _ways().part_products(module)
    assert len(_operations(module)) == 1
