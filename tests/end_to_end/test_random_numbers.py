"""Random tensors: the same numbers under any partition on every executor, and well distributed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, NoWatch, find_executor

_PROGRAM = """
!x = !loom.tensor<[{start}] : [{end}], f32>
!b = !loom.tensor<[0] : [{n}], i1>
func.func @main(%seed: !loom.tensor<[] : [], i64>, %x: !x) -> (!x, !x, !b, !x) {{
  %u = weft.apply @uniform(%seed) {{shape = [{n}]}} : (!loom.tensor<[] : [], i64>) -> !x
  %z = weft.apply @normal(%seed) {{shape = [{n}]}} : (!loom.tensor<[] : [], i64>) -> !x
  %b = weft.apply @bernoulli(%seed) {{p = 0.25, shape = [{n}]}}
         : (!loom.tensor<[] : [], i64>) -> !b
  %d = weft.apply @dropout(%x, %seed) {{p = 0.25}} : (!x, !loom.tensor<[] : [], i64>) -> !x
  func.return %u, %z, %b, %d : !x, !x, !b, !x
}}
"""


def run(on: str, shards: int, *, n: int, seed: int = -3, start: int = 5) -> tuple[np.ndarray, ...]:
    module = parse_text(_PROGRAM.format(start=start, end=start + n, n=n))
    run_pipeline(module, f"weft-apply,loom-fuse,loom-shard{{shards={shards}}}")
    verify_module(module)
    inputs = {"seed": np.asarray(seed, np.int64), "x": np.ones(n, np.float32)}
    return find_executor(on).run(module, inputs, NoWatch()).outputs


@pytest.mark.parametrize("on", EXECUTORS)
@pytest.mark.parametrize("shards", [1, 6])
def test_the_same_numbers_everywhere(on: str, shards: int) -> None:
    uniform, normal, chosen, dropped = run(on, shards, n=96)
    expected = run("reference", 1, n=96)
    np.testing.assert_array_equal(uniform, expected[0])
    # log and cos differ in their last bits from library to library.
    np.testing.assert_allclose(normal, expected[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(chosen, expected[2])
    np.testing.assert_array_equal(dropped, expected[3])


def test_numbers_belong_to_cells_not_to_where_a_tensor_starts() -> None:
    for moved, here in zip(run("numpy", 3, n=50, start=-7), run("numpy", 2, n=50), strict=True):
        np.testing.assert_array_equal(moved, here)


def test_distributions() -> None:
    uniform, normal, chosen, dropped = run("numpy", 1, n=200_000, seed=11)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert abs(chosen.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / chosen.size)
    np.testing.assert_array_equal(dropped, np.where(chosen, 0, np.float32(1 / 0.75)))
    assert np.all(run("numpy", 1, n=1000, seed=12)[0] != uniform[:1000])
