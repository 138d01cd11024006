"""Branches that are not sampled are named; those that are, are not."""

import numpy as np

from tapestry.frontend import parse_text
from tapestry.proving.covering import uncovered
from tapestry.proving.equality import compare_programs
from tapestry.proving.inputs import CLASSES, Draw, draw_inputs
from tests.proving.building import Program


def cells(body: str) -> str:
    p = Program(x=(4, 5))
    return p.returns(p.op((4, 5), "mm", ["x[d0, d1]"], body))


def missed(text: str) -> list[str]:
    drawn = draw_inputs(CLASSES["generic"], [(np.dtype(np.float32), (4, 5))], 0)
    return uncovered(parse_text(text), [drawn])


def test_both_outcomes_are_sampled():
    assert missed(cells("max(a, 0.0)")) == []
    assert missed(cells("where(a < 0.5, a, 0.0)")) == []


def test_names_the_outcome_that_never_matters():
    assert missed(cells("max(a, -3.0)")) == ["arith.maximumf in @t0 taking its second"]
    assert missed(cells("where(a < 5.0, a, 0.0)")) == ["arith.cmpf in @t0 being false"]
    # Taken, but in no cell that reaches the output.
    assert missed(cells("where(a < 0.0, 1.0, max(a, -1.0))")) == [
        "arith.maximumf in @t0 taking its second"
    ]


def test_ties_do_not_count():
    assert len(missed(cells("max(a, a)"))) == 2


def test_comparisons_of_coordinates_are_no_branches():
    assert missed(cells("where(i0 < 9, a, 0.0)")) == []


def test_a_verdict_says_so():
    verdict = compare_programs(parse_text(cells("max(a, -1000.0)")), parse_text(cells("a + 0.0")))
    assert verdict.answer == "certified"
    assert "not sampled, in the first: arith.maximumf in @t0 taking its second" in verdict.notes


def test_stability_is_told_apart():
    p = Program(x=(4, 5))
    e = p.op((4, 5), "mm", ["x[d0, d1]"], "exp(a)")
    s = p.op((4, 5), "mf", [f"{e}[d0, d1]"], "a", by="add")
    plain = p.returns(p.op((4, 5), "mm", [f"{e}[d0, d1]", f"{s}[d0]"], "a / b"))
    q = Program(x=(4, 5))
    m = q.op((4, 5), "mf", ["x[d0, d1]"], "a", by="max")
    e = q.op((4, 5), "mm", ["x[d0, d1]", f"{m}[d0]"], "exp(a - b)")
    s = q.op((4, 5), "mf", [f"{e}[d0, d1]"], "a", by="add")
    stable = q.returns(q.op((4, 5), "mm", [f"{e}[d0, d1]", f"{s}[d0]"], "a / b"))
    verdict = compare_programs(parse_text(stable), parse_text(plain))
    (note,) = [note for note in verdict.notes if note.startswith("stability")]
    assert "100% of the first's results are finite" in note
    assert "100% of the second's" not in note


GATHER = """
func.func @main(%x: !loom.tensor<[0] : [6], i64>, %t: !loom.tensor<[0] : [8], f32>)
    -> !loom.tensor<[0] : [6], f32> {
  %y = loom.operation @y over <[0] : [6]> [map]
    ins(%x : (d0) -> (d0), %t : (d0) -> (0) :> [8]) outs((d0) -> (d0))
    wrap (%c: i64, %b: !loom.block<[8], f32>) {
      %z = arith.constant 0 : i64
      %e = arith.constant 8 : i64
      %n = arith.cmpi slt, %c, %z : i64
      %p = arith.addi %c, %e : i64
      %i = arith.select %n, %p, %c : i64
      %v = loom.read %b[%i] : f32
      loom.yield %v : f32
    } : (!loom.tensor<[0] : [6], i64>, !loom.tensor<[0] : [8], f32>) -> !loom.tensor<[0] : [6], f32>
  func.return %y : !loom.tensor<[0] : [6], f32>
}
"""
"""Negative indices count from the end: without its guard, the body leaves the block."""


def integers(*numbers: int) -> list[Draw]:
    return [
        Draw(np.dtype(np.int64), np.asarray(numbers)),
        Draw(np.dtype(np.float32), np.arange(8) + 1),
    ]


def test_a_guard_that_cannot_be_forced_was_taken():
    module = parse_text(GATHER)
    assert uncovered(module, [integers(0, 1, 2, 3, 4, 7)]) == ["arith.cmpi in @y being true"]
    assert uncovered(module, [integers(-1, -2, -3, -4, -5, -8)]) == ["arith.cmpi in @y being false"]
    assert uncovered(module, [integers(-1, 1, 2, 3, 4, 7)]) == []


def test_inputs_that_a_program_does_not_take_sample_nothing():
    assert len(uncovered(parse_text(GATHER), [integers(0, 1, 2, 3, 4, 9)])) == 2


def test_guarded_programs_are_compared():
    other = GATHER.replace("addi %c, %e", "addi %e, %c")
    verdict = compare_programs(parse_text(GATHER), parse_text(other))
    assert verdict.answer in ("certified", "numeric")
    assert not verdict.notes  # indices of either sign are drawn


def test_programs_that_cannot_run_are_undecided():
    outside = GATHER.replace("constant 8 : i64", "constant 90 : i64").replace("slt", "sge")
    verdict = compare_programs(parse_text(GATHER), parse_text(outside))
    assert verdict.answer == "undecided"
    assert "is out of range" in str((verdict.reason, verdict.skipped))
