"""Norms, softmaxes and losses as one kernel: rows that are held, and rows that are read again."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tapestry
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_module, run_pipeline
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.triton.executor import TritonExecutor
from tests.end_to_end.rows import ROWS, drawn

KERNELS = {"mean_cross_entropy": 2}
"""How many kernels there are, where it is not one."""

HALF = [name for name in ROWS if name != "batch_norm"]
"""Programs that are written for 16 bits as well: the statistics of a batch are float32 there."""

TOLERANCE = {"f32": {"rtol": 1e-4, "atol": 2e-5}, "f16": {"rtol": 2e-3, "atol": 8e-3}}
"""A residual sum in 16 bits, of about 8, is off by 4e-3."""


def _grouped(name: str, rows: int, size: int, dtype: str) -> ModuleOp:
    module = parse_module(ROWS[name](rows, size, dtype))
    run_pipeline(module, "default")
    return module


def _exact(name: str, rows: int, size: int, inputs: dict[str, Array]) -> list[Array]:
    """What a program gives in float64."""
    module = parse_module(ROWS[name](rows, size, "f64"))
    run_pipeline(module, "weft-apply")
    wide = {k: a.astype("f8") if a.dtype.kind == "f" else a for k, a in inputs.items()}
    return list(find_executor("reference").run(module, wide, NoWatch()).outputs)


def _check(name: str, size: int, dtype: str, tile: int | None, rows: int = 5) -> None:
    module = _grouped(name, rows, size, dtype)
    inputs = drawn(module, size)
    result = TritonExecutor(tile=tile).run(module, inputs, NoWatch())
    for got, want in zip(result.outputs, _exact(name, rows, size, inputs), strict=True):
        np.testing.assert_allclose(got, want, **TOLERANCE[dtype])
    if size > 1:
        assert len(result.records) == KERNELS.get(name, 1)


@pytest.mark.parametrize("size", [1, 33])
@pytest.mark.parametrize("name", ROWS)
def test_a_row_in_one_block(name: str, size: int):
    _check(name, size, "f32", None)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_block_by_block(name: str):
    _check(name, 130, "f32", 16)


@pytest.mark.parametrize("name", HALF)
def test_half_precision(name: str):
    _check(name, 130, "f16", 16, rows=7)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("size", [7, 1000, 4097])
@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("tile", [128, None])
def test_odd_sizes(name: str, size: int, dtype: str, tile: int | None):
    _check(name, size, dtype, tile)


def _source(name: str, rows: int, size: int, dtype: str, tile: int = 2048) -> str:
    module = _grouped(name, rows, size, dtype)
    run_pipeline(module, f"loom-to-triton{{tile={tile}}}")
    return print_module(module).source


def test_a_row_that_fits_is_read_once():
    held, walked = (_source("softmax", 4096, size, "f16") for size in (16384, 16385))
    assert held.count("tl.load(x_ptr") == 1
    assert "for k_start" not in held
    assert walked.count("tl.load(x_ptr") == walked.count("for k_start") == 2


def test_a_cross_entropy_walks_its_logits_once():
    source = _source("cross_entropy", 4096, 128256, "f16")
    assert source.count("for k_start") == 1
    # The second load is of the target's logit.
    assert source.count("tl.load(x_ptr") == 2


def test_a_residual_sum_is_stored_where_it_is_used():
    source = _source("residual_norm", 4096, 4096, "f16")
    assert source.count("tl.load(x_ptr") == source.count("tl.load(r_ptr") == 1
    assert source.count("tl.store(") == 2


def test_short_rows_share_a_program_and_columns_lie_side_by_side():
    assert "BLOCK_M=16," in _source("softmax", 4096, 100, "f16")
    columns = _source("columns", 4096, 4096, "f16")
    assert "BLOCK_M=64," in columns
    assert "BLOCK_K=32," in columns


def test_what_only_some_parts_vary_along_are_columns():
    """Scores of a query are folded once, not again for each column of the values."""
    q, k, v = (
        tapestry.input(n, (2, m, 64), "float16") for n, m in (("q", 1), ("k", 512), ("v", 512))
    )
    attended = tapestry.scaled_dot_product_attention(q, k, v)
    source = tapestry.compile(attended, on="triton").kernels()
    assert "BLOCK_N" in source
    assert "weights_peak = tl.full([], " in source


def test_a_row_that_is_held_is_centred_before_it_is_squared():
    """No combiner of means and squares: a sum, and a sum of what is left of the mean."""
    x, w, b = (
        tapestry.input(n, s, "float16") for n, s in (("x", (64, 512)), ("w", (512,)), ("b", (512,)))
    )
    source = tapestry.compile(tapestry.layer_norm(x, w, b), on="triton").kernels()
    assert "tl.reduce(" not in source
    assert source.count("tl.sum(") == 2
    assert source.count("@triton.jit") == 1
