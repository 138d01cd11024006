"""Programs in parts, of any size and on any number of threads, give what `reference` gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline
from tapestry.importers.expressions.nodes import Expression
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.looping import OFTEN, Loops
from tapestry.runtime.prepared.parts.alone import Alone
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.program import arguments
from tests.amounts import drawn
from tests.end_to_end.operations import random_program
from tests.end_to_end.programs import Program, programs
from tests.runtime.everywhere import in_parts_of

_PIPELINES = ["weft-apply", "weft-apply,loom-simplify,loom-fuse", "default"]


@settings(max_examples=drawn(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    program=programs(),
    pipeline=st.sampled_from(_PIPELINES),
    cache=st.integers(1, 4096),
    threads=st.integers(1, 3),
)
def test_any_program(program: Program, pipeline: str, cache: int, threads: int) -> None:
    want = program.naive()
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=threads, cache=cache)
    prepared = PreparedProgram(module, parts=parts)
    given = [program.inputs[argument.name] for argument in arguments(module)]
    for _ in range(2):  # the second time results are written into memory that the first one found
        program.compare(prepared(given), want)


@settings(max_examples=drawn(30), deadline=None, suppress_health_check=list(HealthCheck))
@example(147, 1)  # a fold whose maximum varies along its domain, of which no point counts
@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_any_program_of_raw_operations(seed: int, cache: int) -> None:
    program = random_program(seed)
    inputs, module = program.inputs(), parse_text(program.text)
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    for passes in ("", "loom-simplify,loom-fuse,loom-group"):
        run_pipeline(module, passes)
        for have, expected in zip(in_parts_of(module, inputs, cache), want, strict=True):
            assert have.dtype == expected.dtype
            np.testing.assert_array_equal(have, expected)


_TRIANGLE = """
!x = !loom.tensor<[0, 0] : [24, 24], f32>
!w = !loom.tensor<[0, 0] : [24, 8], f32>
func.func @main(%x: !x, %w: !w) -> !w {
  %y = loom.operation @below over <[0, 0, 0] : [24, 8, 24]> [map, map, fold] by @add
         ins(%x : (i, n, k) -> (i, k), %w : (i, n, k) -> (k, n)) outs((i, n) -> (i, n))
         domain(d0 - d2 >= 0)
         wrap (%a: f32, %b: f32) { %p = arith.mulf %a, %b : f32  loom.yield %p : f32 }
         : (!x, !w) -> !w
  func.return %y : !w
}
"""

_WINDOW = """
!x = !loom.tensor<[0] : [64], f32>
!y = !loom.tensor<[0] : [64], i64>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @place over <[0, 0] : [64, 64]> [map, fold] by @argmax
         ins(%x : (i, k) -> (k)) outs((i) -> (i)) domain(d0 - d1 >= 0, d1 - d0 + 9 >= 0)
         wrap (%a: f32) { %k = loom.index 1 : i64  loom.yield %a, %k : f32, i64 }
         unwrap (%a: f32, %k: i64) { loom.yield %k : i64 } : (!x) -> !y
  func.return %y : !y
}
"""


def _in_parts(
    text: str, inputs: list[np.ndarray], cache: int, threads: int, left: int = 0
) -> list[np.ndarray]:
    """The outputs, the second time, of a program all but some of which runs in parts."""
    module = parse_text(text)
    run_pipeline(module, "weft-apply")
    prepared = PreparedProgram(
        module, parts=partial(in_parts, small=0, threads=threads, cache=cache)
    )
    assert len(prepared.left) <= left
    prepared(inputs)
    return prepared(inputs)


def _reference(text: str, inputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    module = parse_text(text)
    run_pipeline(module, "weft-apply")
    names = [argument.name for argument in arguments(module)]
    named = dict(zip(names, inputs, strict=True))
    return find_executor("reference").run(module, named, NoWatch()).outputs


@pytest.mark.parametrize("cache", [1, 256, 1 << 20])
@pytest.mark.parametrize("wild", [0.0, np.inf, np.nan])
@pytest.mark.parametrize("row", ["d0 - d2", "d1 - d2", "d0 - d1", "d0 + d1 - d2"])
def test_points_outside_add_nothing_whatever_is_there(cache: int, wild: float, row: str) -> None:
    text = _TRIANGLE.replace("d0 - d2", row)
    random = np.random.default_rng(0)
    x, w = random.standard_normal((24, 24)), random.standard_normal((24, 8))
    w[20, 3] = w[5, 7] = wild
    inputs = [x.astype("f4"), w.astype("f4")]
    (want,) = _reference(text, inputs)
    mixed = row == "d0 + d1 - d2"  # which masks neither factor: that is the executor's
    (got,) = _in_parts(text, inputs, cache, 2, left=int(mixed))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cache", [1, 256, 4096, 1 << 20])
def test_parts_of_a_window_are_what_it_sees(cache: int) -> None:
    inputs = [np.random.default_rng(0).standard_normal(64).astype("f4")]
    (got,), (want,) = _in_parts(_WINDOW, inputs, cache, 2), _reference(_WINDOW, inputs)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("cache", [512, 4096, 1 << 20])
def test_causal_attention_computes_the_keys_that_rows_see(cache: int) -> None:
    shape = (1, 2, 32, 8)
    given = [tapestry.input(name, shape, "float32") for name in "qkv"]
    program = tapestry.compile(tapestry.scaled_dot_product_attention(*given, causal=True))
    arrays = [np.random.default_rng(n).standard_normal(shape).astype("f4") for n in range(3)]
    parts = partial(in_parts, small=0, threads=2, cache=cache)
    prepared = PreparedProgram(program.lowered, parts=parts)
    assert not prepared.left
    q, k, v = arrays
    scores = np.where(np.tri(32, dtype=bool), q @ k.mT / np.sqrt(8), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    for _ in range(2):
        np.testing.assert_allclose(prepared(arrays)[0], want, rtol=1e-4, atol=1e-5)


def test_the_executor_computes_what_is_large_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_text(_WINDOW)
    inputs = {"x": np.random.default_rng(0).standard_normal(64).astype("f4")}
    want = find_executor("numpy").run(module, inputs, NoWatch())
    taken: list[str] = []

    def always(op: loom.OperationOp) -> object:
        taken.append(op.label.data)
        return in_parts(op, small=0, threads=2, cache=64)

    monkeypatch.setattr("tapestry.runtime.prepared.parts.preparing.in_parts", always)
    got = find_executor("numpy").run(module, inputs, NoWatch())
    assert taken == ["place"]
    np.testing.assert_array_equal(got.outputs[0], want.outputs[0])
    assert [record.name for record in got.records] == [record.name for record in want.records]


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_not_copied_however_they_lie(order: str) -> None:
    x = tapestry.input("x", (2048, 1024), "float32")
    program = tapestry.compile(tapestry.exp(x * 2) + x)
    array = np.asarray(np.random.default_rng(0).random((2048, 1024), np.float32), order=order)
    for _ in range(2):
        got = program(array)
    tracemalloc.start()
    program(array)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(got, np.exp(array * 2) + array, rtol=1e-6)
    assert held < 1.1 * got.nbytes


@pytest.mark.parametrize("cache", [32, 64, 128])
def test_parts_keep_the_order_of_points_that_are_cut_along_the_last_dimension(cache: int) -> None:
    """Parts of few columns each, and of all rows, would be folded column by column."""
    x = "!loom.tensor<[0, 0] : [5, 4], i32>"
    text = f"""
    loom.monoid @affine zero [1 : i32, 0 : i32]
      merge (%a0: i32, %b0: i32, %a1: i32, %b1: i32) {{
        %a = arith.muli %a0, %a1 : i32
        %m = arith.muli %b0, %a1 : i32
        %b = arith.addi %m, %b1 : i32
        loom.yield %a, %b : i32, i32
      }}
    func.func @main(%x: {x}) -> !loom.tensor<[] : [], i32> {{
      %y = loom.operation @y over <[0, 0, 0] : [3, 2, 5]> [fold, fold, fold] by @affine
             ins(%x : (i, j, k) -> (k, i + j)) outs(() -> ())
             wrap (%a: i32) {{ loom.yield %a, %a : i32, i32 }}
             unwrap (%a: i32, %b: i32) {{ loom.yield %b : i32 }}
             : ({x}) -> !loom.tensor<[] : [], i32>
      func.return %y : !loom.tensor<[] : [], i32>
    }}"""
    module = parse_text(text)
    given = np.random.default_rng(0).integers(-3, 4, (5, 4)).astype(np.int32)
    (want,) = find_executor("reference").run(module, {"x": given}, NoWatch()).outputs
    parts = partial(in_parts, small=0, threads=1, cache=cache)
    assert np.array_equal(PreparedProgram(module, parts=parts)([given])[0], want)


def test_states_of_parts_may_lack_different_dimensions() -> None:
    """Parts that a domain covers have one state for all rows; others have one for each."""
    rows, points, beyond = 5000, 1 << 13, 6000
    module = parse_text(f"""
        !x = !loom.tensor<[0, 0] : [{points}, 64], f32>
        !y = !loom.tensor<[0] : [{rows}], i64>
        func.func @main(%x: !x) -> !y {{
          %y = loom.operation @place over <[0, 0, 0] : [{rows}, {points}, 64]> [map, fold, fold]
                 by @argmax ins(%x : (i, k, c) -> (k, c)) outs((i) -> (i))
                 domain(d0 - d1 + {beyond} >= 0)
                 wrap (%a: f32) {{ %k = loom.index 1 : i64  loom.yield %a, %k : f32, i64 }}
                 unwrap (%a: f32, %k: i64) {{ loom.yield %k : i64 }} : (!x) -> !y
          func.return %y : !y
        }}""")
    (op,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    x = np.random.default_rng(0).standard_normal((points, 64)).astype("f4")
    x[100, 3] = 50
    for cache in (1 << 12, 1 << 16):
        run = in_parts(op, small=0, threads=2, cache=cache)
        assert run is not None
        for _ in range(2):
            (found,) = run([x])
            np.testing.assert_array_equal(found, 100)


def _product(rows: str, columns: str, made: str, kind: str = "f32") -> loom.OperationOp:
    """The only operation of a program that multiplies stacks of matrices of such extents."""
    x, w, y = (f"!loom.tensor<[0, 0, 0] : {extents}, {kind}>" for extents in (rows, columns, made))
    module = parse_text(f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = weft.apply @matmul(%x, %w) : ({x}, {w}) -> {y}
  func.return %y : {y}
}}
""")
    run_pipeline(module, "default")
    (found,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    return found


def test_a_matrix_that_meets_a_vector_is_read_by_blas_as_it_lies() -> None:
    vector = _product("[1, 1, 2048]", "[1, 2048, 2048]", "[1, 1, 2048]")
    assert in_parts(vector) is None
    assert in_parts(vector, cache=1 << 20, threads=2) is not None
    # BLAS has no integers: NumPy would multiply them on one thread.
    numbers = _product("[1, 1, 2048]", "[1, 2048, 2048]", "[1, 1, 2048]", "i32")
    assert in_parts(numbers, threads=2) is not None


def test_many_matrices_that_meet_vectors_are_a_few_parts_for_each_thread() -> None:
    vectors = _product("[256, 1, 64]", "[256, 64, 1024]", "[256, 1, 1024]")
    run = in_parts(vectors, threads=2)
    assert isinstance(run, Mapped)
    assert len(run.tapes.kinds) == 8
    matrices = _product("[256, 2, 64]", "[256, 64, 1024]", "[256, 2, 1024]")
    run = in_parts(matrices, threads=2)
    assert isinstance(run, Mapped)
    assert len(run.tapes.kinds) == 8


def test_what_takes_many_calls_is_a_loop_though_it_is_of_few_points() -> None:
    """What folds, or walks: to call NumPy takes as long as thousands of operations."""
    if not native.is_ready():
        pytest.skip("nothing is compiled here")
    x = tapestry.input("x", (16, 16), "float32")
    array = np.random.default_rng(0).standard_normal((16, 16)).astype("f4")
    cases = (
        (tapestry.argmax(x, axis=1), array.argmax(1), True),
        (tapestry.cumsum(x, axis=1), array.cumsum(1), True),
        (tapestry.exp(x), np.exp(array), False),
        (tapestry.sum(x, axis=1), array.sum(1), True),
    )
    for expression, want, is_loop in cases:
        prepared = PreparedProgram(tapestry.compile(expression).lowered)
        kinds = {type(line.function) for line in prepared.run.script.lines}
        assert (Alone in kinds) == is_loop, expression
        for _ in range(2):
            np.testing.assert_allclose(prepared([array])[0], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "size", "is_shared"),
    [
        (tapestry.argmax, 1024, False),  # of most points one part is compared, and that is all
        (tapestry.argmax, 2000, True),  # more than a cache holds
        (tapestry.cumsum, 1024, True),
    ],
)
def test_threads_share_what_takes_longer_than_to_wake_them(
    function: Callable[..., Expression], size: int, *, is_shared: bool
) -> None:
    if not native.is_ready():
        pytest.skip("nothing is compiled here")
    x = tapestry.input("x", (size, size), "float32")
    module = tapestry.compile(function(x, axis=1)).lowered
    (found,) = (op for op in module.walk() if isinstance(op, loom.OperationOp))
    run = in_parts(found, threads=2, loops=Loops(OFTEN))
    assert isinstance(run, Mapped) == is_shared


def test_few_rows_of_a_table_are_read_by_a_loop() -> None:
    if not native.is_ready():
        pytest.skip("nothing is compiled here")
    table, ids = np.arange(64, dtype="f4").reshape(16, 4), np.array([3, 0, 15])
    given = tapestry.input("table", (16, 4)), tapestry.input("ids", (3,), "int64")
    rows = tapestry.embedding(*given)
    prepared = PreparedProgram(tapestry.compile(rows).lowered)
    np.testing.assert_array_equal(prepared([table, ids])[0], table[ids])
    assert Alone in {type(line.function) for line in prepared.run.script.lines}


@pytest.mark.parametrize("cache", [1 << 12, 1 << 14, 1 << 20])
@pytest.mark.parametrize("rows", [96, 100])  # parts of one length, or a shorter one at the end
def test_states_of_parts_are_merged_at_once(cache: int, rows: int) -> None:
    array = np.random.default_rng(0).standard_normal((rows, 70)).astype("f4")
    array[rows // 2, 3] = np.nan
    x = tapestry.input("x", array.shape, "float32")
    wants = {
        tapestry.max(x, axis=0): array.max(0),
        tapestry.argmax(x, axis=0): array.argmax(0),
        tapestry.sum(x): array.sum(),
        tapestry.logsumexp(x, axis=0): np.log(np.exp(array).sum(0)),
        tapestry.max(x): array.max(),
    }
    for expression, want in wants.items():
        for loops in (None, Loops(0)):
            parts = partial(in_parts, small=0, threads=2, cache=cache, loops=loops)
            prepared = PreparedProgram(tapestry.compile(expression).lowered, parts=parts)
            for _ in range(3):
                np.testing.assert_allclose(prepared([array])[0], want, rtol=1e-4, atol=1e-4)
