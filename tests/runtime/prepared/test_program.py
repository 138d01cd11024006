"""Prepared programs give what the numpy executor gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.diagnostics import TapestryError
from tapestry.frontend import parse_text, run_pipeline
from tapestry.importers.building import ProgramBuilder
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.operations import prepared_operation
from tapestry.runtime.program import arguments
from tests.amounts import drawn
from tests.end_to_end.programs import Program, programs

_PIPELINES = ["weft-apply", "weft-apply,loom-simplify,loom-fuse", "default"]


@settings(max_examples=drawn(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), pipeline=st.sampled_from(_PIPELINES))
def test_any_program(program: Program, pipeline: str) -> None:
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    want = find_executor("numpy").run(module, program.inputs, NoWatch()).outputs
    given = [program.inputs[argument.name] for argument in arguments(module)]
    program.compare(PreparedProgram(module)(given), want)


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_what_counts_at_one_place_is_folded_there(padding: int, dtype: str) -> None:
    rows = 100_000  # comparing every point with every place would not end
    source = np.random.default_rng(0)
    ids = source.integers(0, 5, (30, 40))
    gradient = source.integers(-9, 9, (30, 40, 50)).astype({"f32": "f4", "f16": "f2"}[dtype])
    build = ProgramBuilder()
    given = [build.argument("g", gradient.shape, dtype), build.argument("ids", ids.shape, "i64")]
    parameters = {"rows": rows, "padding": padding}
    module = build.finish(build.apply("embedding_dense_backward", *given, parameters=parameters))
    run_pipeline(module, "weft-apply")
    (got,) = PreparedProgram(module)([gradient, ids])
    want = np.zeros((rows, 50), "f4")
    np.add.at(want, ids[ids != padding], gradient[ids != padding])
    np.testing.assert_array_equal(got, want.astype(gradient.dtype))


def test_large_states_are_merged_by_halves() -> None:
    """Each round merges half as many: a merge writes into memory of its own round's size."""
    build = ProgramBuilder()
    x = np.random.default_rng(0).integers(-9, 9, (13, 40_000)).astype("f4")
    found = build.apply("std", build.argument("x", x.shape, "f32"), parameters={"axis": [0]})
    module = build.finish(found)
    run_pipeline(module, "default")
    call = PreparedProgram(module)
    for _ in range(2):
        np.testing.assert_allclose(call([x])[0], x.std(axis=0, ddof=1), rtol=1e-5)


def test_layers_that_do_the_same_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[object] = []

    def prepare(op, *arguments):
        prepared.append(op)
        return prepared_operation(op, *arguments)

    monkeypatch.setattr("tapestry.runtime.prepared.program.prepared_operation", prepare)
    build = ProgramBuilder()
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(6, 6)).astype("f4") for _ in range(4)]
    y = build.argument("x", (3, 6), "f32")
    for number, weight in enumerate(weights):
        factor = build.argument(f"w{number}", weight.shape, "f32")
        (y,) = build.apply("relu", build.apply("matmul", y, factor)[0])
    module = build.finish([y])
    run_pipeline(module, "default")
    want = x = rng.normal(size=(3, 6)).astype("f4")
    call = PreparedProgram(module)
    assert len(prepared) == 1
    given = [weights[0], np.asfortranarray(weights[1]), weights[2][::-1], weights[3]]
    for weight in given:
        want = np.maximum(want @ weight, 0)
    np.testing.assert_allclose(call([x, *given])[0], want, rtol=1e-5)


def test_operations_of_one_value_are_not_those_of_two() -> None:
    """What is read twice is read once: so a square is no product of two, which is written alike."""
    product = """
      %NAME = loom.operation @mul over <[0] : [20]> [map]
        ins(%LEFT : (d0) -> (d0), %RIGHT : (d0) -> (d0)) outs((d0) -> (d0))
        wrap (%a: f32, %b: f32) {
          %c = arith.mulf %a, %b : f32
          loom.yield %c : f32
        } : (!t, !t) -> !t
    """
    lines = [("p", "x", "x"), ("q", "x", "y"), ("r", "p", "q"), ("s", "r", "r")]
    text = "!t = !loom.tensor<[0] : [20], f32>\nfunc.func @main(%x: !t, %y: !t) -> !t {"
    for name, left, right in lines:
        one = product.replace("NAME", name).replace("LEFT", left).replace("RIGHT", right)
        text += one
    module = parse_text(text + "func.return %s : !t }")
    x, y = np.arange(20, dtype="f4"), np.full(20, 3, "f4")
    for library in (None, Library(loops=Loops(1))):
        program = PreparedProgram(module, library)
        for _ in range(3):
            np.testing.assert_array_equal(program([x, y])[0], (x**3 * y) ** 2)


def test_a_read_outside_says_where_it_is() -> None:
    text = """
    !i = !loom.tensor<[0] : [2], i64>
    !x = !loom.tensor<[0] : [4], f32>
    !y = !loom.tensor<[0] : [2], f32>
    func.func @main(%x: !x, %i: !i, %j: !i) -> (!y, !y) {
    """ + "".join(
        f"""
      %{name} = loom.operation @{name} over <[0] : [2]> [map]
        ins(%{places} : (d0) -> (d0), %x : (d0) -> (0) :> [4]) outs((d0) -> (d0))
        wrap (%at: i64, %cells: !loom.block<[4], f32>) {{
          %v = loom.read %cells[%at] : f32
          loom.yield %v : f32
        }} : (!i, !x) -> !y"""
        for name, places in (("a", "i"), ("b", "j"))
    )
    module = parse_text(f"{text}\n func.return %a, %b : !y, !y }}", "a.mlir")
    call = PreparedProgram(module)
    x, inside, outside = np.zeros(4, "f4"), np.array([0, 1]), np.array([0, 4])
    with pytest.raises(TapestryError, match=r"a\.mlir:10:"):
        call([x, outside, inside])
    with pytest.raises(TapestryError, match=r"a\.mlir:16:"):
        call([x, inside, outside])


@pytest.mark.parametrize(
    ("view", "writeable"),
    [("(d0, d1) -> (d1, d0)", True), ("(d0, d1) -> (d0 + d1, 0)", False)],
    ids=["turned", "windows"],
)
def test_a_view_is_written_over_where_its_cells_differ(view: str, *, writeable: bool) -> None:
    module = parse_text(
        f"""
    !x = !loom.tensor<[0, 0] : [300, 200], f32>
    !y = !loom.tensor<[0, 0] : [200, 100], f32>
    func.func @main(%x: !x) -> (!y, !y) {{
      %a = loom.operation @a over <[0, 0] : [300, 200]> [map, map]
        ins(%x : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
        wrap (%c: f32) {{ %v = math.exp %c : f32
          loom.yield %v : f32 }} : (!x) -> !x
      %y = loom.view %a : {view} : (!x) -> !y
      %z = loom.operation @z over <[0, 0] : [200, 100]> [map, map]
        ins(%y : (d0, d1) -> (d0, d1)) outs((d0, d1) -> (d0, d1))
        wrap (%c: f32) {{ %v = arith.negf %c : f32
          loom.yield %v : f32 }} : (!y) -> !y
      func.return %y, %z : !y, !y }}"""
    )
    x = np.random.default_rng(0).random((300, 200), "f4")
    want = find_executor("reference").run(module, {"x": x}, NoWatch()).outputs
    call = PreparedProgram(module)
    for _ in range(3):  # the first call is not as the later ones
        view_of, negative = call([x])
        assert view_of.flags.writeable == writeable
        np.testing.assert_allclose(view_of, want[0], rtol=1e-6)
        np.testing.assert_allclose(negative, want[1], rtol=1e-6)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_sums_of_columns_are_products_with_ones(turned: bool, dtype: str) -> None:
    multiplied: list[tuple[int, ...]] = []

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        multiplied.append((*a.shape, *b.shape))
        return np.matmul(a, b)

    build = ProgramBuilder()
    x = np.random.default_rng(0).integers(-9, 9, (1, 1300, 70)).astype(dtype)
    name = {"f4": "f32", "f8": "f64", "i4": "i32"}[dtype]
    given = build.argument("x", x.shape, name)
    module = build.finish(build.apply("sum", given, parameters={"axis": 2 if turned else 1}))
    run_pipeline(module, "default")
    (got,) = PreparedProgram(module, Library(multiply, loops=None))([x])
    np.testing.assert_array_equal(got.reshape(-1), x.sum(2 if turned else 1).reshape(-1))
    assert multiplied == ([] if turned or dtype == "i4" else [(1, 1300, 1300, 70)])


@pytest.mark.parametrize(
    ("dtype", "shape", "times"),
    [("f4", (2, 3, 2_000_000), 1), ("f4", (3_000_000, 2, 2), 1), ("f2", (3_000_000, 2, 2), 2)],
)
def test_products_are_cut_where_less_is_made_in_between(
    dtype: str, shape: tuple[int, int, int], times: int
) -> None:
    """Factors are read where they are, but for those that are widened, which parts bound."""
    multiplied: list[tuple[int, ...]] = []

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        multiplied.append((*a.shape, *b.shape))
        return np.matmul(a, b)

    rows, inner, columns = shape
    build, source = ProgramBuilder(), np.random.default_rng(0)
    x = source.integers(-3, 4, (rows, inner)).astype(dtype)
    w = source.integers(-3, 4, (inner, columns)).astype(dtype)
    name = {"f4": "f32", "f2": "f16"}[dtype]
    given = [build.argument(n, one.shape, name) for n, one in (("x", x), ("w", w))]
    module = build.finish(build.apply("matmul", *given))
    run_pipeline(module, "default")
    (got,) = PreparedProgram(module, Library(multiply))([x, w])
    np.testing.assert_array_equal(got, x @ w)
    assert len(multiplied) == times


@pytest.mark.parametrize("heads", [1, 3])
def test_a_product_of_which_a_triangle_counts(heads: int) -> None:
    """Scores under a causal mask: a product, zero where nothing counts, then unwrap."""
    module = parse_text(f"""
    func.func @main(%q: !loom.tensor<[0, 0, 0] : [{heads}, 8, 5], f32>,
                    %k: !loom.tensor<[0, 0, 0] : [{heads}, 9, 5], f32>)
        -> !loom.tensor<[0, 0, 0] : [{heads}, 8, 9], f32> {{
      %s = loom.operation @scores over <[0, 0, 0, 0] : [{heads}, 8, 9, 5]>
          [map, map, map, fold] by @add
          ins(%q : (d0, d1, d2, d3) -> (d0, d1, d3), %k : (d0, d1, d2, d3) -> (d0, d2, d3))
          outs((d0, d1, d2) -> (d0, d1, d2))
          domain(d1 - d2 >= 0)
          wrap (%a: f32, %b: f32) {{
            %p = arith.mulf %a, %b : f32
            loom.yield %p : f32
          }}
          unwrap (%v: f32) {{
            %one = arith.constant 1.0 : f32
            %r = arith.addf %v, %one : f32
            loom.yield %r : f32
          }}
          : (!loom.tensor<[0, 0, 0] : [{heads}, 8, 5], f32>,
             !loom.tensor<[0, 0, 0] : [{heads}, 9, 5], f32>)
            -> !loom.tensor<[0, 0, 0] : [{heads}, 8, 9], f32>
      func.return %s : !loom.tensor<[0, 0, 0] : [{heads}, 8, 9], f32>
    }}
    """)
    source = np.random.default_rng(0)
    q, k = (source.integers(-5, 6, (heads, n, 5)).astype("f4") for n in (8, 9))
    k[:, 8] = np.nan  # counts nowhere
    shapes: list[tuple[int, ...]] = []

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shapes.append(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
        return np.matmul(a, b)

    (got,) = PreparedProgram(module, Library(multiply))([q, k])
    want = np.where(np.tri(8, 9, dtype=bool), np.matmul(q, k.transpose(0, 2, 1)), 0) + 1
    np.testing.assert_array_equal(got, want)
    assert len(shapes) == 1


@pytest.mark.parametrize(
    ("program", "shape"),
    [
        (lambda x: tapestry.broadcast_to(x, (4, 0, 3)), (0, 3)),
        (lambda x: tapestry.transpose(tapestry.broadcast_to(x, (4, 0, 3)), perm=[2, 0, 1]), (0, 3)),
        (lambda x: tapestry.stack([x, x], axis=1), (0,)),
    ],
)
def test_what_is_repeated_of_nothing_has_its_shape(program, shape) -> None:
    made = program(tapestry.input("x", shape, "float32"))
    assert tapestry.compile(made)(np.zeros(shape, "f4")).shape == tuple(made.shape)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4)])
@pytest.mark.parametrize("name", ["argmax", "cumsum", "softmax", "sum"])
def test_programs_without_cells(name: str, shape: tuple[int, ...]) -> None:
    z = np.zeros(shape, np.float32)
    for axis in range(len(shape)):
        if name in ("argmax", "softmax") and not shape[axis]:
            continue
        made = tapestry.compile(getattr(tapestry, name)(tapestry.input("x", shape), axis=axis))
        for _ in range(3):
            kept = shape[:axis] + shape[axis + 1 :] if name in ("argmax", "sum") else shape
            np.testing.assert_array_equal(made(z), np.zeros(kept))
