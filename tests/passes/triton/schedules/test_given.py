"""Schedules that are given: to what has a kernel of its own, once, and nothing that is no schedule.

Text and legality are in `test_schedule.py`.
"""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from tapestry.diagnostics import InvalidProgramError, UsageError
from tapestry.dialects import loom
from tapestry.dialects.triton import Schedule
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.passes.triton.tasks import give

SOFTMAX = """
!a = !loom.tensor<[0, 0] : [100, 70], f32>
!b = !loom.tensor<[0, 0] : [70, 50], f32>
!y = !loom.tensor<[0, 0] : [100, 50], f32>
func.func @main(%a: !a, %b: !b) -> !y {
  %y = weft.apply @matmul(%a, %b) : (!a, !b) -> !y
  %z = weft.apply @softmax(%y) {axis = 1 : i64} : (!y) -> !y
  func.return %z : !y
}
"""

# All three are no kernel; the first two are one, and the last is another (lit: group_cut.mlir).
CUT = """
!q = !loom.tensor<[0, 0, 0] : [2, 64, 8], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 8, 64], f32>
!s = !loom.tensor<[0, 0, 0] : [2, 64, 64], f32>
!w = !loom.tensor<[0, 0, 0] : [2, 8, 4], f32>
!y = !loom.tensor<[0, 0] : [64, 4], f32>
func.func @main(%q: !q, %k: !k, %v: !q, %w: !w) -> !y {
  %s = weft.apply @matmul(%q, %k) : (!q, !k) -> !s
  %o = weft.apply @matmul(%s, %v) : (!s, !q) -> !q
  %y = loom.operation @y over <[0, 0, 0, 0] : [64, 4, 2, 8]> [map, map, fold, fold] by @add
         ins(%o : (i, e, h, d) -> (h, i, d), %w : (i, e, h, d) -> (h, d, e)) outs((i, e) -> (i, e))
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }
         : (!q, !w) -> !y
  func.return %y : !y
}
"""

COMPLEX = """
!x = !loom.tensor<[0, 0] : [16, 24], complex<f32>>
!s = !loom.tensor<[0] : [16], complex<f32>>
func.func @main(%x: !x) -> !x {
  %s = loom.operation @s over <[0, 0] : [16, 24]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i))
         wrap (%a: complex<f32>) { loom.yield %a : complex<f32> } : (!x) -> !s
  %y = loom.operation @y over <[0, 0] : [16, 24]> [map, map]
         ins(%x : (i, j) -> (i, j), %s : (i, j) -> (i)) outs((i, j) -> (i, j))
         wrap (%a: complex<f32>, %b: complex<f32>) {
           %c = complex.mul %a, %b : complex<f32>
           loom.yield %c : complex<f32>
         } : (!x, !s) -> !x
  func.return %y : !x
}
"""


def _made(text: str, pipeline: str = "default") -> ModuleOp:
    module = parse_text(text)
    run_pipeline(module, pipeline)
    return module


def _labelled(module: ModuleOp, label: str) -> loom.OperationOp | loom.FusedOp:
    return next(
        op
        for op in module.walk()
        if isinstance(op, loom.OperationOp | loom.FusedOp) and op.label.data == label
    )


def _lower(module: ModuleOp, *schedules: str, device: str = "none") -> str:
    given = ",".join(f'"{one}"' for one in schedules)
    run_pipeline(module, f'loom-to-triton{{schedules={given} device="{device}"}}')
    return str(module)


@pytest.mark.parametrize("device", ["none", "h200"])
@pytest.mark.parametrize("schedule", ["M = 16, K = 64", "Q = 1, K = 1"])
def test_a_member_of_one_kernel_has_no_schedule_of_its_own(schedule: str, device: str) -> None:
    with pytest.raises(InvalidProgramError, match="@z has a schedule.*of @z_peak_z_total_z") as bad:
        _lower(_made(SOFTMAX), f"z: {schedule}", device=device)
    assert bad.value.hint == "give the schedule to @z_peak_z_total_z"
    assert bad.value.location is not None


def test_nor_has_one_that_says_it_itself() -> None:
    module = _made(SOFTMAX)
    give(_labelled(module, "z_peak_z_total"), Schedule({"M": 16, "K": 64}))
    with pytest.raises(InvalidProgramError, match="@z_peak_z_total has a schedule"):
        run_pipeline(module, "loom-to-triton")


def test_its_group_has_one() -> None:
    text = _lower(_made(SOFTMAX), "z_peak_z_total_z: M = 16, K = 64")
    assert "schedule <M = 16, K = 64, warps = 4, stages = 2>" in text


def test_a_member_may_say_what_its_group_does() -> None:
    module, schedule = _made(SOFTMAX), Schedule({"M": 16, "K": 64})
    for label in ("z", "z_peak_z_total_z"):
        give(_labelled(module, label), schedule)
    run_pipeline(module, "loom-to-triton")
    assert f"schedule <{schedule}>" in str(module)


def test_members_that_become_kernels_have_their_own() -> None:
    grouped = "weft-apply,loom-group{ops=s,o,y}"
    text = _lower(
        _made(CUT, grouped), "o: M = 16, C = 16, K = 16, N = 16", "y: M = 32, N = 16, K = 16"
    )
    assert "schedule <M = 16, C = 16, K = 16, N = 16, warps = 4, stages = 2>" in text
    assert "schedule <M = 32, N = 16, K = 16, warps = 4, stages = 2>" in text
    with pytest.raises(InvalidProgramError, match="@s has a schedule.*of @o") as bad:
        _lower(_made(CUT, grouped), "s: M = 16, N = 16, K = 8")
    assert bad.value.hint == "give the schedule to @o"


def test_members_are_kernels_where_numbers_are_complex() -> None:
    assert "schedule <P = 4, K = 8," in _lower(_made(COMPLEX, "loom-group"), "s: P = 4, K = 8")
    with pytest.raises(InvalidProgramError, match="@s_y has a schedule, but is not one kernel: in"):
        _lower(_made(COMPLEX, "loom-group"), "s_y: M = 4, K = 8")


@pytest.mark.parametrize(
    ("held", "shown"),
    [(IntegerAttr(3, i64), "3 : i64"), (StringAttr("P = 4, K = 64"), '"P = 4, K = 64"')],
)
@pytest.mark.parametrize("label", ["y", "z", "z_peak_z_total_z"])
def test_what_is_no_schedule_is_an_error(held: Attribute, shown: str, label: str) -> None:
    module = _made(SOFTMAX)
    _labelled(module, label).attributes[SCHEDULE] = held
    with pytest.raises(InvalidProgramError) as bad:
        run_pipeline(module, "loom-to-triton")
    assert (
        bad.value.message
        == f"the attribute `schedule` of @{label} is {shown}, which is no schedule"
    )
    assert "#triton.schedule<" in (bad.value.hint or "")
    assert bad.value.location is not None


def test_one_operation_is_given_one_schedule() -> None:
    tiles = ("M = 16, N = 16, K = 16", "M = 32, N = 16, K = 16")
    with pytest.raises(UsageError, match="'y' is given several schedules"):
        _lower(_made(SOFTMAX), *(f"y: {tile}" for tile in tiles))
