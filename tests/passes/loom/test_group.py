"""Grouping and ungrouping: a round trip, and the same values either way."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import _loom_group_rules, loom
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.passes.loom.grouping import one_kernel
from tapestry.runtime.executor import NoWatch, find_executor

# Layer norm's two folds read one tensor by equal rows: they share both dimensions.
_NORM = """
!x = !loom.tensor<[2, 0] : [7, 8], f32>
!m = !loom.tensor<[0] : [5], f32>
func.func @main(%x: !x) -> (!x, !m) {
  %a = loom.operation @mean over <[0, 0] : [5, 8]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0 + 2, d1)) outs((d0) -> (d0))
         wrap (%c: f32) {
           %n = arith.constant 0.125 : f32
           %r = arith.mulf %c, %n : f32
           loom.yield %r : f32
         } : (!x) -> !m
  %b = loom.operation @largest over <[2, 0] : [7, 8]> [map, fold] by @max
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0 - 2))
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !m
  %y = loom.operation @scale over <[2, 0] : [7, 8]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1), %a : (d0, d1) -> (d0 - 2), %b : (d0, d1) -> (d0 - 2))
         outs((d0, d1) -> (d0, d1))
         wrap (%c: f32, %p: f32, %q: f32) {
           %d = arith.subf %c, %p : f32
           %r = arith.mulf %d, %q : f32
           loom.yield %r : f32
         } : (!x, !m, !m) -> !x
  func.return %y, %b : !x, !m
}
"""

_ALL = "loom-group{ops=mean,largest,scale label=norm}"


def _module(pipeline: str) -> ModuleOp:
    module = parse_text(_NORM)
    run_pipeline(module, pipeline)
    verify_module(module)
    return module


def test_folds_of_one_tensor_share_their_dimensions() -> None:
    (group,) = [op for op in _module(_ALL).walk() if isinstance(op, loom.FusedOp)]
    assert str(group.index) == "[0, 0] : [5, 8]"
    assert group.dim_classes == ("shared", "cascade")
    assert [str(a.data) for a in group.alignments] == [
        "(d0, d1) -> (d0, d1)",
        "(d0, d1) -> (d0 + 2, d1)",
        "(d0, d1) -> (d0 + 2, d1)",
    ]
    assert len(group.outs) == 2


@pytest.mark.parametrize("shard", ["", "loom-shard{grid=5,1},"])
def test_round_trips(shard: str) -> None:
    ungrouped = _module(f"{shard}{_ALL},loom-ungroup")
    assert ungrouped.is_structurally_equivalent(_module(shard.rstrip(",")))
    grouped = _module(f"{shard}{_ALL}")
    again = _module(f"{shard}{_ALL},loom-ungroup,{_ALL}")
    assert again.is_structurally_equivalent(grouped)


@pytest.mark.parametrize("on", ["reference", "numpy"])
@pytest.mark.parametrize("pipeline", [_ALL, f"{_ALL},loom-shard{{shards=3}}", "loom-group"])
def test_values_stay(on: str, pipeline: str) -> None:
    x = np.random.default_rng(2).integers(-8, 9, (5, 8)).astype("f4")
    want = find_executor("reference").run(_module(""), {"x": x}, NoWatch()).outputs
    got = find_executor(on).run(_module(pipeline), {"x": x}, NoWatch()).outputs
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_second_grouping_changes_nothing() -> None:
    once, twice = _module("loom-group"), _module("loom-group,loom-group")
    assert twice.is_structurally_equivalent(once)


def test_what_members_read_of_each_other_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many dimensions are asked of, and however many folds."""
    (group,) = [op for op in _module(_ALL).walk() if isinstance(op, loom.FusedOp)]
    asked: list[object] = []
    plain = _loom_group_rules.inner_edges

    def counted(op: _loom_group_rules.Aligned) -> list[_loom_group_rules.Edge]:
        asked.append(op)
        return plain(op)

    monkeypatch.setattr(_loom_group_rules, "inner_edges", counted)
    monkeypatch.setattr(one_kernel, "inner_edges", counted)
    assert one_kernel.why_not_one_kernel(group, one_kernel.Limits()) is None
    assert len(asked) == 1
