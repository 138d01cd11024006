"""Points that count by a key are found, and give what a walk of all of them gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

import tapestry as t
from tapestry.codegen.module_printer import print_module
from tapestry.devices import find_spec
from tapestry.dialects import loom, triton
from tapestry.dialects.triton import Schedule, ScheduleError
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.cost.matching import expected_matches
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.schedules.candidates import candidates
from tapestry.passes.triton.schedules.schedule import check
from tapestry.passes.triton.tasks import give, tasks
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

ADDED = """
  wrap (%key: i64, %x: f32) {{
    %row = loom.index 0 : i64
    %same = arith.cmpi eq, {sides} : i64
    %none = arith.constant {zero} : f32
    %chosen = arith.select %same, %x, %none : f32
    loom.yield %chosen : f32
  }}"""

COUNTED = """
  wrap (%key: i64) {
    %row = loom.index 0 : i64
    %two = arith.constant 2 : i64
    %half = arith.divsi %key, %two : i64
    %same = arith.cmpi eq, %half, %row : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0 : i64
    %chosen = arith.select %same, %one, %none : i64
    loom.yield %chosen : i64
  }"""

BOTH = """
  wrap (%key: i64, %other: i64, %x: f32) {
    %row = loom.index 0 : i64
    %column = loom.index 1 : i64
    %same = arith.cmpi eq, %key, %row : i64
    %alike = arith.cmpi eq, %column, %other : i64
    %counts = arith.andi %same, %alike : i1
    %none = arith.constant 0.0 : f32
    %chosen = arith.select %counts, %x, %none : f32
    loom.yield %chosen : f32
  }"""


def program(rows: int, columns: int, points: int, kind: str) -> ModuleOp:
    """Rows of a table that are added up by number, or the greatest of them, or how many."""
    keys, table = (
        f"!loom.tensor<[0] : [{points}], i64>",
        f"!loom.tensor<[0, 0] : [{points}, {columns}]",
    )
    wide = f"!loom.tensor<[0, 0] : [{rows}, {columns}], f32>"
    over = f"over <[0, 0, 0] : [{rows}, {columns}, {points}]> [map, map, fold]"
    ins = "ins(%i : (r, c, k) -> (k), %x : (r, c, k) -> (k, c)) outs((r, c) -> (r, c))"
    match kind:
        case "sum" | "max":
            monoid, zero = ("add", "0.0") if kind == "sum" else ("max", "0xFF800000")
            sides = "%key, %row" if kind == "sum" else "%row, %key"
            body = ADDED.format(zero=zero, sides=sides)
            return parse_text(f"""
func.func @main(%i: {keys}, %x: {table}, f32>) -> {wide} {{
  %y = loom.operation @y {over} by @{monoid} {ins} {body} : ({keys}, {table}, f32>) -> {wide}
  func.return %y : {wide}
}}""")
        case "inner":
            # Rows are in the middle, and start at 2; one of them is left out.
            ins = "ins(%i : (a, r, c, k) -> (k), %x : (a, r, c, k) -> (k, c))"
            made = f"!loom.tensor<[0, 2, 0] : [3, {rows + 2}, {columns}], f32>"
            return parse_text(f"""
func.func @main(%i: {keys}, %x: {table}, f32>) -> {made} {{
  %y = loom.operation @y
    over <[0, 2, 0, 0] : [3, {rows + 2}, {columns}, {points}]> [map, map, map, fold] by @add
    {ins} outs((a, r, c) -> (a, r, c)) {INNER} : ({keys}, {table}, f32>) -> {made}
  func.return %y : {made}
}}""")
        case "put":
            # The last of what is put in a row stays: a fold in order.
            tables = [
                t.input(name, (n, columns), "f32") for name, n in (("t", rows), ("x", points))
            ]
            where = t.input("i", (points,), "i64")
            return t.compile(t.index_put(tables[0], where, tables[1]), on="triton").lowered
        case "count":
            made = f"!loom.tensor<[0] : [{rows}], i64>"
            return parse_text(f"""
func.func @main(%i: {keys}) -> {made} {{
  %y = loom.operation @y over <[0, 0] : [{rows}, {points}]> [map, fold] by @add
    ins(%i : (r, k) -> (k)) outs((r) -> (r)) {COUNTED} : ({keys}) -> {made}
  func.return %y : {made}
}}""")
        case _:
            cells = f"!loom.tensor<[0] : [{points}], f32>"
            ins = "ins(%i : (r, c, k) -> (k), %j : (r, c, k) -> (k), %x : (r, c, k) -> (k))"
            return parse_text(f"""
func.func @main(%i: {keys}, %j: {keys}, %x: {cells}) -> {wide} {{
  %y = loom.operation @y {over} by @add {ins} outs((r, c) -> (r, c)) {BOTH}
    : ({keys}, {keys}, {cells}) -> {wide}
  func.return %y : {wide}
}}""")


INNER = """
  wrap (%key: i64, %x: f32) {
    %row = loom.index 1 : i64
    %same = arith.cmpi eq, %row, %key : i64
    %three = arith.constant 3 : i64
    %kept = arith.cmpi ne, %row, %three : i64
    %counts = arith.andi %same, %kept : i1
    %none = arith.constant 0.0 : f32
    %chosen = arith.select %counts, %x, %none : f32
    loom.yield %chosen : f32
  }"""

KINDS = ["sum", "max", "count", "both", "inner", "put"]


@settings(max_examples=drawn(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_matches_is_all_that_counts(data: st.DataObject) -> None:
    rows, columns, points = (data.draw(st.sampled_from([1, 3, 8, 20, 33])) for _ in range(3))
    kind = data.draw(st.sampled_from(KINDS))
    if kind == "put":
        points = max(points, 3)  # one point is put by a map
    module = program(rows, columns, points, kind)
    lowered = module.clone()
    sizes = (rows, points) if kind == "count" else (rows, columns, points)
    if kind == "inner":
        sizes = (3, *sizes)
    cut = data.draw(st.integers(-1, len(sizes) - 1))
    grid = [str(min(3, size) if axis == cut else 1) for axis, size in enumerate(sizes)]
    run_pipeline(lowered, f"loom-shard{{grid={','.join(grid)}}}")
    task = next(one for one in tasks(lowered) if one.kind == "fold")
    assert task.matches
    (op,) = (one for one in lowered.walk() if isinstance(one, loom.OperationOp))
    powers = st.sampled_from([1, 2, 4, 8, 16, 32, 64])
    tile = {axis: data.draw(powers) for axis in task.lengths}
    masks = data.draw(st.sampled_from(["always", "boundary"]))
    schedule = Schedule(tile, visits="matching", programs=data.draw(st.sampled_from([0, 2])))
    if task.has_full(tile):
        schedule = Schedule(tile, visits="matching", masks=masks)
    give(op, schedule)
    rng = np.random.default_rng(0)
    keys = {name: rng.integers(-2, max(rows, columns) + 2, points) for name in "ij"}
    tables = {"x": (points, columns), "t": (rows, columns)}
    inputs = {name: rng.integers(-9, 9, size).astype(np.float32) for name, size in tables.items()}
    inputs |= keys
    if kind == "both":
        inputs["x"] = inputs["x"][:, 0].copy()
    names = [argument.name_hint for argument in _main(module).args]
    inputs = {name: inputs[name] for name in names if name is not None}
    (wanted,) = ReferenceExecutor().run(module, inputs, NoWatch()).outputs
    (found,) = TritonExecutor().run(lowered, inputs, NoWatch()).outputs
    np.testing.assert_array_equal(found, wanted)


def _main(module: ModuleOp) -> Block:
    *_, function = module.body.block.ops
    return function.regions[0].block


@pytest.mark.parametrize(("rows", "visits"), [(50000, "matching"), (2, "all")])
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_points_are_looked_for_where_rows_are_many(kind: str, rows: int, visits: str) -> None:
    """Where these are few, most points count: all are walked."""
    module = program(rows, 64, 4096, kind)
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    assert ("visits = matching" in str(module)) == (visits == "matching")


@pytest.mark.parametrize("cells", [16, 64, 512])
def test_matches_are_expected_as_often_as_there_are_some(cells: int) -> None:
    """Of keys that all rows have equally often."""
    for kind in ("sum", "inner"):
        rows, columns, points = 100, 7, 4096
        module = program(rows, columns, points, kind)
        run_pipeline(
            module, f'loom-to-triton{{schedules="y: P = {cells}, K = 1024, visits = matching"}}'
        )
        (kernel,) = (one for one in module.walk() if isinstance(one, triton.KernelOp))
        (loop,) = (one for one in kernel.walk() if triton.MATCHES in one.attributes)
        assert isinstance(loop, scf.ForOp)
        expected = expected_matches(loop, kernel.constants)
        runs = 3 if kind == "inner" else 1
        total = runs * rows * columns
        seen = 0.0
        for start in range(0, total, cells):
            places = np.arange(start, start + cells) // columns
            single = places[0] // rows == places[-1] // rows or kind == "sum"
            seen += (places[-1] - places[0] + 1 if single else rows) / rows
        found = 1024 * seen / -(-total // cells)
        assert expected == pytest.approx(found, rel=0.15)


def test_looking_for_points_is_predicted_to_be_much_faster() -> None:
    seconds: list[float] = []
    for given_schedule in ("", "y: P = 64, K = 32"):
        module = program(50000, 256, 4096, "sum")
        text = f'schedules="{given_schedule}"' if given_schedule else ""
        run_pipeline(module, f'loom-to-triton{{device="h200" {text}}}')
        (one,) = predictions(module, find_spec("h200"))
        seconds.append(one.estimate.seconds)
    assert 50 * seconds[0] < seconds[1]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("arith.cmpi eq, %key, %row", "arith.cmpi sle, %key, %row"),  # many keys count
        ("constant 0.0", "constant 1.0"),  # and what does not count is no zero
    ],
)
def test_other_folds_have_nothing_to_look_for(wrong: str, right: str) -> None:
    text = str(program(8, 4, 16, "sum"))
    assert wrong.replace("0.0", "0.000000e+00") in text
    changed = text.replace(
        wrong.replace("0.0", "0.000000e+00"), right.replace("1.0", "1.000000e+00")
    )
    (task,) = tasks(parse_text(changed))
    assert not task.matches
    with pytest.raises(ScheduleError, match="@y has no points to find"):
        check(task, Schedule({"P": 8, "K": 16}, visits="matching"))
    assert {one.visits for one in candidates(task)} == {"all"}


def test_a_loop_over_what_matches_is_as_it_is() -> None:
    (task,) = tasks(program(8, 4, 16, "sum"))
    with pytest.raises(ScheduleError, match="segments = 1, unroll = 1, parts = 1"):
        check(task, Schedule({"P": 8, "K": 4}, visits="matching", unroll=2))
    assert any(one.visits == "matching" for one in candidates(task))


def test_the_gradient_of_an_embedding_looks_for_its_rows() -> None:
    ids, gradient = t.input("i", (600,), "i64"), t.input("g", (600, 24), "f16")
    out = t.embedding_dense_backward(gradient, ids, rows=5000)
    module = t.compile(out, on="triton").lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    assert "visits = matching" in str(module)


def test_a_group_gives_up_a_fold_of_which_points_are_looked_for() -> None:
    """One kernel of both folds would walk all points of each row again."""
    ids, gradient = t.input("i", (4096,), "i64"), t.input("g", (4096, 256), "f16")
    out = t.embedding_dense_backward(gradient, ids, rows=30000)
    module = t.compile(out.sum(axis=1), on="triton").lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    assert "visits = matching" in str(module)
    assert sum(one.estimate.seconds for one in predictions(module, find_spec("h200"))) < 1e-3


def test_padding_is_not_gone_to() -> None:
    ids, gradient = t.input("i", (600,), "i64"), t.input("g", (600, 24), "f16")
    out = t.embedding_dense_backward(gradient, ids, rows=5000, padding=7)
    module = t.compile(out, on="triton").lowered.clone()
    run_pipeline(module, 'loom-to-triton{device="h200"}')
    looked_at, _ = print_module(module).source.split("for match_number")
    assert "& (i != 7)" in looked_at
