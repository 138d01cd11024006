"""Points that folds pass by: what is found is the same, wherever it is and however often."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute

import tapestry
from tapestry.algebra.monoids import builtin_monoid
from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import skipping
from tapestry.codegen.loops.skipping import VECTORS
from tapestry.codegen.loops.vectors import WIDTH
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.folds.halves import merging_of
from tapestry.runtime.prepared.loops.merging import Merging, staying

LOOKED_AT = VECTORS * WIDTH

compiled = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _orders(length: int, dtype: DTypeLike) -> dict[str, Array]:
    """Rows of which nothing, something or everything is the greatest so far."""
    rng = np.random.default_rng(length)
    numbers = rng.integers(-100, 100, (3, length)).astype(dtype)
    found = {
        "any": numbers,
        "rising": np.sort(numbers),
        "falling": np.sort(numbers)[:, ::-1].copy(),
        "all the same": np.zeros_like(numbers),
    }
    for place in (0, length // 2, length - 1):
        found[f"one at {place}"] = np.zeros_like(numbers)
        found[f"one at {place}"][:, place] = 1
    if numbers.dtype.kind == "f":
        missing = numbers.copy()
        missing[0, rng.integers(0, length, 3)] = np.nan
        missing[1, -1], missing[2] = np.nan, -np.inf
        found["missing"] = missing
        found["zeros of both signs"] = np.where(numbers < 0, -0.0, 0.0).astype(numbers.dtype)
    return found


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("length", [LOOKED_AT - 1, LOOKED_AT, 40 * LOOKED_AT + 77])
def test_the_first_of_the_greatest_wherever_it_is(dtype: DTypeLike, length: int) -> None:
    given = tapestry.input("x", (3, length), np.dtype(dtype).name)
    for name in ("argmax", "argmin"):
        for axis in (None, 1):
            program = tapestry.compile(getattr(np, name)(given, axis=axis))
            for order, x in _orders(length, dtype).items():
                want = getattr(np, name)(x, axis=axis)
                np.testing.assert_array_equal(program(x), want, err_msg=f"{name} {axis} {order}")


_RECORDS = """
!x = !loom.tensor<[0] : [30000], f32>
!p = !loom.tensor<[0] : [30000], i64>
!r = !loom.tensor<[] : [], f32>
!q = !loom.tensor<[] : [], i64>
loom.monoid @record commutative zero [-1.0e30 : f32, 0 : i64, 0.0 : f32]
  merge (%a: f32, %i: i64, %u: f32, %b: f32, %j: i64, %v: f32) {
    %greater = arith.cmpf ogt, %a, %b : f32
    %equal = arith.cmpf oeq, %a, %b : f32
    %later = arith.cmpi sge, %i, %j : i64
    %tie = arith.andi %equal, %later : i1
    %take = arith.ori %greater, %tie : i1
    %0 = arith.select %take, %a, %b : f32
    %1 = arith.select %take, %i, %j : i64
    %2 = arith.select %take, %u, %v : f32
    loom.yield %0, %1, %2 : f32, i64, f32
  }
func.func @main(%x: !x, %y: !x, %p: !p) -> (!r, !q, !r) {
  %0:3 = loom.operation @last over <[0] : [30000]> [fold] by @record
           ins(%x : (d0) -> (d0), %p : (d0) -> (d0), %y : (d0) -> (d0))
           outs(() -> (), () -> (), () -> ())
           wrap (%a: f32, %i: i64, %u: f32) { loom.yield %a, %i, %u : f32, i64, f32 }
           : (!x, !p, !x) -> (!r, !q, !r)
  func.return %0#0, %0#1, %0#2 : !r, !q, !r
}
"""


@compiled
def test_a_merge_of_ones_own_that_chooses_by_one_part() -> None:
    """The last of the greatest, and what goes with it."""
    module = parse_text(_RECORDS)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, 30000).astype(np.float32)
    y, places = rng.normal(size=30000).astype(np.float32), np.arange(30000)
    inputs = {"x": x, "y": y, "p": places}
    want = find_executor("reference").run(module, inputs, NoWatch()).outputs
    run_pipeline(module, "default")
    prepared = PreparedProgram(module)
    for _ in range(2):
        for have, expected in zip(prepared([x, y, places]), want, strict=True):
            np.testing.assert_array_equal(have, expected)
    last = int(np.flatnonzero(x == x.max())[-1])
    assert [one.item() for one in want] == [x.max(), last, y[last]]


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_values_that_are_wanted_too_are_written_for_all_points(dtype: str) -> None:
    """The loop that folds them writes them: it passes none by."""
    rng = np.random.default_rng(2)
    x = rng.normal(scale=9, size=(300, 5000)).astype(ml_dtypes.bfloat16 if "b" in dtype else dtype)
    given = tapestry.input("x", x.shape, dtype)
    twice = given + given
    program = tapestry.compile((np.argmax(twice, axis=1), twice))
    for _ in range(2):
        place, made = program(x)
        np.testing.assert_array_equal(made.astype("f4"), (x + x).astype("f4"))
        np.testing.assert_array_equal(place, (x + x).astype("f4").argmax(1))


@compiled
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_folded_by_loops(dtype: str, caplog: pytest.LogCaptureFixture) -> None:
    x = np.random.default_rng(3).normal(size=(300, 5000))
    x = x.astype(ml_dtypes.bfloat16 if "b" in dtype else dtype)
    program = tapestry.compile(tapestry.input("x", x.shape, dtype).argmax(axis=1))
    np.testing.assert_array_equal(program(x), x.astype("f4").argmax(1))
    assert "could not be compiled" not in caplog.text


@compiled
def test_loops_know_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[skipping.Best] = []
    of = skipping.Best.of
    monkeypatch.setattr(
        skipping.Best, "of", staticmethod(lambda *given: made.append(of(*given)) or made[-1])
    )
    x = np.random.default_rng(1).normal(size=(301, 5000)).astype("f4")
    found = tapestry.compile(tapestry.input("x", x.shape, "f32").argmax(axis=1))
    np.testing.assert_array_equal(found(x), x.argmax(1))
    assert made
    assert all(best is not None for best in made)


@pytest.mark.parametrize(
    ("name", "state", "more"),
    [
        ("argmax", (f32, i64), "ogt"),
        ("argmin", (f32, i64), "olt"),
        ("argmin", (i64, i64), "slt"),
        ("argmax", (i32, i32), "sgt"),
        ("add", (i64,), None),
        ("max", (i64,), None),
    ],
)
def test_parts_that_say_it(name: str, state: tuple[Attribute, ...], more: str | None) -> None:
    monoid = builtin_monoid(name, state)
    assert monoid is not None
    merging = merging_of(monoid)
    assert merging is not None
    found = staying(merging)
    assert (None if found is None else (found.part, found.more)) == (more and (0, more))


def _choosing(kind: DTypeLike, *condition: tuple[Scalar, tuple[int, ...]]) -> Merging:
    """A merge that keeps the first of two numbers, and what goes with it, on a condition."""
    number, place = np.dtype(kind), np.dtype(np.int64)
    last = 3 + len(condition)
    cells = [
        *condition,
        (Scalar("arith.select", (np.dtype(bool), number, number), number), (last, 0, 2)),
        (Scalar("arith.select", (np.dtype(bool), place, place), place), (last, 1, 3)),
    ]
    return Merging((number, place), (), tuple(cells), (last + 1, last + 2))


def _compared(kind: DTypeLike, predicate: int) -> Scalar:
    dtype = np.dtype(kind)
    name = "arith.cmpf" if dtype.kind == "f" else "arith.cmpi"
    return Scalar(name, (dtype, dtype), np.dtype(bool), predicate)


@pytest.mark.parametrize(
    ("kind", "predicate", "ins", "more"),
    [
        ("f4", 2, (0, 2), "ogt"),
        ("f4", 4, (2, 0), "ogt"),
        ("f8", 4, (0, 2), "olt"),
        ("f4", 3, (0, 2), None),  # as large: of two alike, both stay
        ("f4", 9, (0, 2), None),  # more, or one of them is no number
        ("i4", 4, (2, 0), "slt"),
        ("i4", 8, (0, 2), "ugt"),
        ("i1", 6, (0, 2), "ult"),
        ("i4", 1, (0, 2), None),
    ],
)
def test_comparisons_that_say_it(
    kind: DTypeLike, predicate: int, ins: tuple[int, ...], more: str | None
) -> None:
    found = staying(_choosing(kind, (_compared(kind, predicate), ins)))
    assert (found and found.more) == more


def _of_two(name: str, kind: DTypeLike) -> Scalar:
    dtype = np.dtype(kind)
    return Scalar(name, (dtype, dtype), dtype)


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (  # a - b < b - a
            "f8",
            (
                (_of_two("arith.subf", "f8"), (0, 2)),
                (_of_two("arith.subf", "f8"), (2, 0)),
                (_compared("f8", 4), (4, 5)),
            ),
        ),
        (  # as numbers without signs a > b, and a > b or a & b = b
            "i4",
            (
                (_compared("i4", 8), (0, 2)),
                (_compared("i4", 4), (0, 2)),
                (_of_two("arith.andi", "i4"), (0, 2)),
                (_compared("i4", 0), (6, 2)),
                (_of_two("arith.ori", "?"), (5, 7)),
                (_of_two("arith.andi", "?"), (4, 8)),
            ),
        ),
    ],
    ids=["difference", "bits"],
)
def test_what_is_computed_of_parts_says_nothing(
    kind: DTypeLike, condition: Sequence[tuple[Scalar, tuple[int, ...]]]
) -> None:
    """Not even where it is what a comparison is, for a few numbers."""
    assert staying(_choosing(kind, *condition)) is None


def _rotated(a: str, b: str) -> str:
    """Whether the bits of `%a`, turned by one place, are more than those of `%b`: another order."""
    return f"""
    %l{a} = arith.shli %{a}, %one : i32
    %h{a} = arith.shrui %{a}, %last : i32
    %r{a} = arith.ori %l{a}, %h{a} : i32
    %l{b} = arith.shli %{b}, %one : i32
    %h{b} = arith.shrui %{b}, %last : i32
    %r{b} = arith.ori %l{b}, %h{b} : i32
    %more = arith.cmpi ugt, %r{a}, %r{b} : i32"""


_TURNED = f"""
!x = !loom.tensor<[0] : [4096], i32>
!p = !loom.tensor<[0] : [4096], i64>
loom.monoid @turned commutative zero [0 : i32, 9223372036854775807 : i64]
  merge (%a: i32, %i: i64, %b: i32, %j: i64) {{
    %one = arith.constant 1 : i32
    %last = arith.constant 31 : i32
    %above = arith.cmpi ugt, %a, %b : i32
    %signed = arith.cmpi sgt, %a, %b : i32
    %both = arith.andi %a, %b : i32
    %within = arith.cmpi eq, %both, %b : i32
    %either = arith.ori %signed, %within : i1
    %enough = arith.andi %above, %either : i1
{_rotated("a", "b")}
    %placed = arith.cmpi eq, %i, %i : i64
    %also = arith.andi %more, %placed : i1
    %alike = arith.cmpi eq, %a, %b : i32
    %earlier = arith.cmpi sle, %i, %j : i64
    %tied = arith.andi %alike, %earlier : i1
    %beyond = arith.ori %enough, %also : i1
    %take = arith.ori %beyond, %tied : i1
    %0 = arith.select %take, %a, %b : i32
    %1 = arith.select %take, %i, %j : i64
    loom.yield %0, %1 : i32, i64
  }}
func.func @main(%x: !x, %p: !p) -> (!loom.tensor<[] : [], i32>, !loom.tensor<[] : [], i64>) {{
  %0:2 = loom.operation @most over <[0] : [4096]> [fold] by @turned
           ins(%x : (d0) -> (d0), %p : (d0) -> (d0)) outs(() -> (), () -> ())
           wrap (%a: i32, %i: i64) {{ loom.yield %a, %i : i32, i64 }}
           : (!x, !p) -> (!loom.tensor<[] : [], i32>, !loom.tensor<[] : [], i64>)
  func.return %0#0, %0#1 : !loom.tensor<[] : [], i32>, !loom.tensor<[] : [], i64>
}}
"""


def test_an_order_that_is_said_in_part_by_comparisons() -> None:
    """What one part says is true, and not all: the most of a chunk is the least in that order."""
    x = np.full(4096, -(2**31) + 1, np.int32)
    x[10], x[2000] = -(2**31) + 2, 5
    places = np.arange(4096)
    module = parse_text(_TURNED)
    want = find_executor("reference").run(module, {"x": x, "p": places}, NoWatch()).outputs
    prepared = PreparedProgram(module)
    for _ in range(2):
        assert [one.item() for one in prepared([x, places])] == [5, 2000]
    assert [one.item() for one in want] == [5, 2000]


@compiled
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "uint64", "float16"])
def test_rows_of_any_length(dtype: str) -> None:
    """Few numbers, so that many are alike, in rows of a few vectors, and of parts of one."""
    rng = np.random.default_rng(7)
    for length in (1, 31, 33, 127, 128, 160, 1023, 1056, 3000):
        x = rng.integers(0, 200, (40, length)).astype(dtype)
        for name in ("argmax", "argmin"):
            given = tapestry.input("x", x.shape, dtype)
            program = tapestry.compile(getattr(np, name)(given, axis=1))
            for _ in range(2):
                np.testing.assert_array_equal(program(x), getattr(np, name)(x, axis=1))
