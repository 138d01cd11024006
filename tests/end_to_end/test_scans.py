"""Scans on every executor: running states equal their definition, whole and under any shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, f32

from tapestry.algebra.dtypes import numpy_dtype, type_named
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, Array, NoWatch, find_executor
from tapestry.runtime.triton.executor import TritonExecutor
from tests.amounts import drawn

_ONE_PART = "wrap (%c: {element}) {{ loom.yield %c : {element} }}"

_BY_POSITION = """wrap (%c: f32) {
           %i = loom.index 1 : i64
           loom.yield %c, %i : f32, i64
         }"""

_LOGCUMSUMEXP = """wrap (%c: f32) {
           %one = arith.constant 1.0 : f32
           loom.yield %c, %one : f32, f32
         }
         unwrap (%m: f32, %s: f32) {
           %l = math.log %s : f32
           %r = arith.addf %m, %l : f32
           loom.yield %r : f32
         }"""

_TRIPLED = """wrap (%c: i32) {
           %three = arith.constant 3 : i32
           loom.yield %three, %c : i32, i32
         }
         unwrap (%a: i32, %b: i32) { loom.yield %b : i32 }"""

# x -> a x + b, composed: it does not commute.
_RECURRENCE = """loom.monoid @affine zero [1 : i32, 0 : i32]
    merge (%a: i32, %b: i32, %c: i32, %d: i32) {
  %ac = arith.muli %a, %c : i32
  %cb = arith.muli %c, %b : i32
  %e = arith.addi %cb, %d : i32
  loom.yield %ac, %e : i32, i32
}
"""


def _program(
    monoid: str, body: str, *, element: str = "f32", results: tuple[str, ...] = (), before: str = ""
) -> str:
    """A scan along the columns of a 5 x 23 tensor that starts at row 2, column 1."""
    outs = results or (element,)
    x = f"!loom.tensor<[2, 1] : [7, 24], {element}>"
    kinds = ", ".join(f"!loom.tensor<[2, 1] : [7, 24], {out}>" for out in outs)
    names = ", ".join(f"%y{n}" for n in range(len(outs)))
    return f"""{before}
func.func @main(%x: {x}) -> ({kinds}) {{
  {names} = loom.operation @scan over <[2, 1] : [7, 24]> [map, scan] by @{monoid}
         ins(%x : (d0, d1) -> (d0, d1)) outs({", ".join(["(d0, d1) -> (d0, d1)"] * len(outs))})
         {body.replace("{element}", element).replace("{{", "{").replace("}}", "}")}
         : ({x}) -> ({kinds})
  func.return {names} : {kinds}
}}"""


def _run(on: str, module: ModuleOp, x: Array) -> tuple[Array, ...]:
    verify_module(module)
    return find_executor(on).run(module, {"x": x}, NoWatch()).outputs


def _floats() -> Array:
    return np.random.default_rng(3).uniform(-1.5, 1.5, (5, 23)).astype("f4")


def _integers() -> Array:
    return np.random.default_rng(4).integers(-9, 10, (5, 23), dtype=np.int32)


def _recurrence(x: Array) -> Array:
    """state = 3 state + x, from 0."""
    state, states = np.zeros(5, np.int32), []
    for column in x.T:
        state = 3 * state + column
        states.append(state)
    return np.stack(states, axis=1)


_PIPELINES = [
    "",
    "loom-shard{grid=2,1}",
    "loom-shard{grid=1,4}",
    "loom-shard{grid=2,3}",
    "loom-shard{grid=2,3},loom-expand-shards",
    "loom-shard{grid=1,7},loom-expand-shards{arity=2}",
]


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("pipeline", _PIPELINES)
@pytest.mark.parametrize(
    ("monoid", "accumulate"),
    [
        ("add", np.cumsum),
        ("mul", np.cumprod),
        ("max", np.maximum.accumulate),
        ("min", np.minimum.accumulate),
    ],
)
def test_one_part(on: str, pipeline: str, monoid: str, accumulate: object) -> None:
    x = _floats()
    module = parse_text(_program(monoid, _ONE_PART))
    run_pipeline(module, pipeline)
    (got,) = _run(on, module, x)
    assert callable(accumulate)
    np.testing.assert_allclose(got, accumulate(x, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("pipeline", _PIPELINES)
def test_cummax_with_positions(on: str, pipeline: str) -> None:
    # Few values, so that there are ties; a NaN wins from where it stands.
    x = np.random.default_rng(5).integers(0, 4, (5, 23)).astype("f4")
    x[1, 4] = x[1, 9] = np.nan
    module = parse_text(_program("argmax", _BY_POSITION, results=("f32", "i64")))
    run_pipeline(module, pipeline)
    values, positions = _run(on, module, x)
    np.testing.assert_array_equal(values, np.maximum.accumulate(x, axis=1))
    first = [[1 + int(np.argmax(row[: n + 1])) for n in range(23)] for row in x]
    np.testing.assert_array_equal(positions, first)


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("pipeline", _PIPELINES)
def test_logcumsumexp(on: str, pipeline: str) -> None:
    x = _floats() * 40
    module = parse_text(_program("logsumexp", _LOGCUMSUMEXP))
    run_pipeline(module, pipeline)
    (got,) = _run(on, module, x)
    want = np.logaddexp.accumulate(x.astype("f8"), axis=1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("pipeline", _PIPELINES)
def test_monoid_that_does_not_commute(on: str, pipeline: str) -> None:
    module = parse_text(_program("affine", _TRIPLED, element="i32", before=_RECURRENCE))
    run_pipeline(module, pipeline)
    x = _integers()
    np.testing.assert_array_equal(_run(on, module, x)[0], _recurrence(x))


@pytest.mark.parametrize("on", EXECUTORS)
def test_neighbouring_maps_join_a_scan(on: str) -> None:
    text = """
!x = !loom.tensor<[0, 0] : [9, 4], f32>
func.func @main(%x: !x) -> !x {
  %e = loom.operation @double over <[0, 0] : [9, 4]> [map, map]
         ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { %r = arith.addf %a, %a : f32  loom.yield %r : f32 } : (!x) -> !x
  %y = loom.operation @sums over <[0, 0] : [9, 4]> [scan, map] by @add
         ins(%e : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
         wrap (%a: f32) { loom.yield %a : f32 } : (!x) -> !x
  %z = loom.operation @less over <[0, 0] : [9, 4]> [map, map]
         ins(%y : (d0, d1) -> (-d0 + 8, d1), %x : (d0, d1) -> (d0, d1))
         outs((d0, d1) -> (d0, d1))
         wrap (%a: f32, %b: f32) {
           %i = loom.index 0 : i64
           %f = arith.sitofp %i : i64 to f32
           %s = arith.subf %a, %b : f32
           %r = arith.addf %s, %f : f32
           loom.yield %r : f32
         } : (!x, !x) -> !x
  func.return %z : !x
}"""
    x = np.random.default_rng(6).integers(-9, 9, (9, 4)).astype("f4")
    module = parse_text(text)
    run_pipeline(module, "loom-fuse,loom-shard{grid=3,2}")
    assert str(module).count("loom.operation") == 1
    want = np.cumsum(2 * x, axis=0)[::-1] - x + np.arange(9)[:, None]
    np.testing.assert_array_equal(_run(on, module, x)[0], want)


@settings(max_examples=drawn(30), deadline=None)
@given(
    st.sampled_from(["reference", "numpy"]),
    st.sets(st.integers(2, 23), max_size=4),
    st.sets(st.integers(3, 6), max_size=2),
    st.sampled_from(["", ",loom-expand-shards", ",loom-expand-shards{arity=2}"]),
)
def test_any_shards_equal_the_whole(
    on: str, columns: set[int], rows: set[int], expand: str
) -> None:
    cuts = [[2, *sorted(rows), 7], [1, *sorted(columns), 24]]
    module = parse_text(_program("add", _ONE_PART, element="i32"))
    run_pipeline(module, f'loom-shard{{partition="grid {cuts}"}}{expand}')
    x = _integers()
    np.testing.assert_array_equal(_run(on, module, x)[0], np.cumsum(x, axis=1))


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("columns", [0, 1, 2])
def test_few_points(on: str, rows: int, columns: int) -> None:
    x = f"!loom.tensor<[0, 5] : [{rows}, {columns + 5}], f32>"
    module = parse_text(f"""func.func @main(%x: {x}) -> {x} {{
      %y = loom.operation @sums over <[0, 5] : [{rows}, {columns + 5}]> [map, scan] by @add
             ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
             wrap (%c: f32) {{ loom.yield %c : f32 }} : ({x}) -> {x}
      func.return %y : {x}
    }}""")
    value = np.arange(rows * columns, dtype="f4").reshape(rows, columns)
    np.testing.assert_array_equal(_run(on, module, value)[0], np.cumsum(value, axis=1))


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i8", "i1"])
@pytest.mark.parametrize("pipeline", ["", "loom-shard{grid=2,3}"])
def test_kernels_carry_from_block_to_block(element: str, pipeline: str) -> None:
    # Tiles of 16 cells: two blocks along the scan.
    module = parse_text(_program("add", _ONE_PART, element=element))
    x = _integers().astype(numpy_dtype(type_named(element) or f32)) // 2
    (want,) = _run("reference", module, x)
    run_pipeline(module, pipeline)
    (got,) = TritonExecutor(tile=16).run(module, {"x": x}, NoWatch()).outputs
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("pipeline", ["", "loom-shard{grid=1,2}"])
def test_kernels_keep_the_order_of_blocks(pipeline: str) -> None:
    module = parse_text(_program("affine", _TRIPLED, element="i32", before=_RECURRENCE))
    run_pipeline(module, pipeline)
    x = _integers()
    (got,) = TritonExecutor(tile=16).run(module, {"x": x}, NoWatch()).outputs
    np.testing.assert_array_equal(got, _recurrence(x))
