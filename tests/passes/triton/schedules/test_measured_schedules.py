"""Schedules that are kept with a program: given to its operations, on their device alone."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import triton
from tapestry.dialects.triton import Schedule
from tapestry.encoding import decode, encode
from tapestry.frontend import make_context, parse_text, verify_module
from tapestry.passes.triton.alternatives.alone import alone, canonical
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.measured import (
    MEASURED,
    give,
    keep_measured,
    labels,
    measured_of,
    operations,
    place_of,
)

TWICE = """
!x = !loom.tensor<[0] : [65536], f32>
func.func @main(%x: !x) -> !x {
  %a = loom.operation @first over <[0] : [65536]> [map]
         ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%v: f32) { %s = arith.addf %v, %v : f32  loom.yield %s : f32 } : (!x) -> !x
  %b = loom.operation @second over <[0] : [65536]> [map]
         ins(%a : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%u: f32) { %t = arith.addf %u, %u : f32  loom.yield %t : f32 } : (!x) -> !x
  %c = loom.operation @third over <[0] : [65536]> [map]
         ins(%b : (d0) -> (d0)) outs((d0) -> (d0))
         wrap (%w: f32) { %p = arith.mulf %w, %w : f32  loom.yield %p : f32 } : (!x) -> !x
  func.return %c : !x
}
"""
OWN = Schedule({"P": 512}, warps=8)


def program() -> ModuleOp:
    module = parse_text(TWICE, "twice.mlir")
    verify_module(module)
    return module


def place(module: ModuleOp) -> str:
    return place_of(canonical(alone(next(operations(module)))), 0)


def launched(module: ModuleOp, device: str = "h200") -> list[Schedule]:
    made = module.clone()
    LoomToTriton(device=device).apply(Context(), made)
    assert MEASURED not in made.attributes
    kernels = {op.sym_name.data: op for op in made.walk() if isinstance(op, triton.KernelOp)}
    launches = [op for op in made.walk() if isinstance(op, triton.LaunchOp)]
    return [kernels[op.kernel_name].schedule.data for op in launches]


def test_equal_operations_get_what_is_kept_for_them() -> None:
    module = program()
    first, second, third = launched(module)
    assert first == second != OWN
    keep_measured(module, "h200", {place(module): OWN})
    assert launched(module) == [OWN, OWN, third]


def test_other_devices_have_nothing_of_it() -> None:
    module = program()
    before = [launched(module, device) for device in ("h100", "a100", "none")]
    keep_measured(module, "h200", {place(module): OWN})
    assert [launched(module, device) for device in ("h100", "a100", "none")] == before
    assert measured_of(module, "h100") == {}


def test_a_schedule_that_is_given_stays() -> None:
    module = program()
    given = Schedule({"P": 4096}, warps=4)
    give(module, labels(module).index("second"), given)
    keep_measured(module, "h200", {place(module): OWN})
    assert launched(module)[:2] == [OWN, given]


def test_what_is_kept_takes_the_place_of_what_was() -> None:
    module = program()
    keep_measured(module, "h200", {place(module): OWN})
    keep_measured(module, "h100", {})
    assert MEASURED not in module.attributes


@pytest.mark.parametrize("way", ["text", "cache"])
def test_it_is_part_of_the_program(way: str) -> None:
    module = program()
    keep_measured(module, "h200", {place(module): OWN})
    data, cells = encode(module)
    again = decode(data, cells, make_context()) if way == "cache" else parse_text(str(module))
    assert measured_of(again, "h200") == {place(module): OWN}
    assert launched(again)[0] == OWN
