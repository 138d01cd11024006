"""Products whose domain masks both factors are products of matrices, with the same values."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tapestry.frontend import parse_text
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram

_TRIANGLES = "d0 - d2 >= 0, d2 - d1 >= 0"
_BAND = "d0 - d2 + 2 >= 0, d2 - d0 + 2 >= 0"
_RESULT = "d0 - d2 >= 0, d2 - d1 >= 0, d0 - d1 - 1 >= 0"
_DIAGONAL = "d0 - d2 >= 0, d2 - d0 >= 0"


def _program(domain: str, left: str, n: int) -> str:
    rank = left.count("d")
    shapes = [f"!loom.tensor<{[0] * r} : {[n] * r}, f32>" for r in (rank, 2)]
    return f"""
    func.func @main(%x: {shapes[0]}, %w: {shapes[1]}) -> {shapes[1]} {{
      %y = loom.operation @y over <[0, 0, 0] : [{n}, {n}, {n}]> [map, map, fold] by @add
             ins(%x : (d0, d1, d2) -> {left}, %w : (d0, d1, d2) -> (d2, d1))
             outs((d0, d1) -> (d0, d1)) domain({domain})
             wrap (%c: f32, %d: f32) {{ %p = arith.mulf %c, %d : f32 loom.yield %p : f32 }}
             : ({shapes[0]}, {shapes[1]}) -> {shapes[1]}
      func.return %y : {shapes[1]}
    }}
    """


def _numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f4")


@pytest.mark.parametrize("domain", [_TRIANGLES, _BAND, _RESULT, _DIAGONAL])
@pytest.mark.parametrize("left", ["(d0, d2)", "(d2)"])
@pytest.mark.parametrize("infinite", [None, (1, 4), (4, 1)])
def test_masked_factors(domain: str, left: str, infinite: tuple[int, int] | None) -> None:
    """An infinity counts where it counts, and nowhere else."""
    n = 7
    module = parse_text(_program(domain, left, n))
    arrays = {"x": _numbers(0, *[n] * left.count("d")), "w": _numbers(1, n, n)}
    if infinite is not None:
        arrays["w"][infinite] = np.inf
        arrays["x"].flat[3] = np.inf
    with np.errstate(all="ignore"):
        (want,) = find_executor("reference").run(module, arrays, NoWatch()).outputs
    (got,) = PreparedProgram(module)([*arrays.values()])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("left", ["(d0, d2)", "(d2)"])
@pytest.mark.parametrize("domain", [_TRIANGLES, _DIAGONAL])
def test_products_of_cells_are_not_held(domain: str, left: str) -> None:
    n = 150
    prepared = PreparedProgram(parse_text(_program(domain, left, n)))
    arrays = [_numbers(0, *[n] * left.count("d")), _numbers(1, n, n)]
    prepared(arrays)
    tracemalloc.start()
    prepared(arrays)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * n * n * 4


def test_what_runs_where_factors_are_not_finite_is_prepared_there() -> None:
    """Not before: that is a part for each row."""
    tracemalloc.start()
    prepared = PreparedProgram(parse_text(_program(_TRIANGLES, "(d0, d2)", 1000)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert prepared
    assert most < 60 << 20


def test_rows_too_long_for_a_part_are_the_executors_where_factors_are_not_finite() -> None:
    n = 2100
    kinds = [f"!loom.tensor<[0, 0] : [{a}, {b}], f32>" for a, b in ((2, n), (n, n))]
    module = parse_text(f"""
    func.func @main(%x: {kinds[0]}, %w: {kinds[1]}) -> {kinds[0]} {{
      %y = loom.operation @y over <[0, 0, 0] : [2, {n}, {n}]> [map, map, fold] by @add
             ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
             outs((d0, d1) -> (d0, d1)) domain(d1 - d2 >= 0)
             wrap (%c: f32, %d: f32) {{ %p = arith.mulf %c, %d : f32 loom.yield %p : f32 }}
             : ({kinds[0]}, {kinds[1]}) -> {kinds[0]}
      func.return %y : {kinds[0]}
    }}""")
    x, w = _numbers(0, 2, n), _numbers(1, n, n)
    prepared = PreparedProgram(module)
    np.testing.assert_array_equal(prepared([x, w])[0], x @ np.triu(w))
    x[0, 7] = np.inf  # which the first seven columns do not meet
    w[7, 9:] = 1
    with np.errstate(all="ignore"):
        want = x @ np.triu(w)
    want[0, :7] = x[0, :7] @ np.triu(w)[:7, :7]
    got = prepared([x, w])[0]
    np.testing.assert_array_equal(got[:, :7], want[:, :7])
    np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_array_equal(got[0, 9:], np.inf)
