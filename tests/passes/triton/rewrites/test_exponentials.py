"""Exponentials of attention: fewer operations, and the same weights for all that scores can be."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tapestry as t
from tapestry.codegen.module_printer import print_module
from tapestry.frontend import run_pipeline

KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def _masked(kind: str) -> t.Expression:
    """Attention whose scores have a mask added, as a model's padding is."""
    q, k, v = (t.input(name, (2, 32, 16), kind) for name in "qkv")
    mask = t.input("mask", (32, 32), kind)
    scores = (q @ t.transpose(k, perm=[0, 2, 1])) * 0.25 + mask
    return t.softmax(scores) @ v


def _printed(program: t.Expression, numerics: str = "mixed") -> str:
    lowered = t.compile(program, on="triton").lowered.clone()
    run_pipeline(lowered, f"loom-to-triton{{numerics={numerics}}}")
    return print_module(lowered).source


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_that_are_masked_by_the_least_number_are_spread_evenly(kind: str) -> None:
    dtype = KINDS[kind]
    random = np.random.default_rng(0)
    given = {name: random.normal(size=(2, 32, 16)).astype(dtype) for name in "qkv"}
    mask = np.zeros((32, 32), np.float32)
    mask[:, 20:] = mask[5] = float(ml_dtypes.finfo(dtype).min)
    given["mask"] = mask.astype(dtype)
    wanted, got = (
        np.asarray(t.run(_masked(kind), on=on, **given)).astype(np.float32)
        for on in ("reference", "triton")
    )
    np.testing.assert_allclose(got, wanted, rtol=2e-2, atol=2e-2)
    even = given["v"].astype(np.float32).mean(axis=1)
    np.testing.assert_allclose(got[:, 5], even, rtol=2e-2, atol=2e-2)


def test_scores_that_may_be_as_large_as_floats_have_a_rate_of_their_own() -> None:
    assert "rate[:, None]" in _printed(_masked("bfloat16"))
    assert "rate" not in _printed(_masked("float16"))
    assert "tl.exp2(" not in _printed(_masked("bfloat16"), "strict")
