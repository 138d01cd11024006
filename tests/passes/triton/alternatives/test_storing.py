"""Factors that products would compute for each block are stored where that is faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter

import tapestry as t
from tapestry.devices import find_spec
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.dialects.triton import Schedule, ScheduleAttr
from tapestry.frontend import verify_module
from tapestry.passes.loom.ungroup import take_apart
from tapestry.passes.triton.alternatives.storing import (
    COMPUTED,
    GAIN,
    apply_stores,
    computed_factors,
)
from tapestry.passes.triton.cost.predicting import predictions
from tapestry.passes.triton.loom_to_triton import LoomToTriton
from tapestry.passes.triton.schedules.task import SCHEDULE
from tapestry.runtime.executor import NoWatch, find_executor
from tests.amounts import drawn

DEVICE = "h100"
KINDS = {"f16": np.float16, "f32": np.float32}


def _normalized(rows: int, columns: int, inner: int, dtype: str = "bf16") -> t.Expression:
    shapes = {"x": (rows, inner), "w": (columns, inner), "g": (inner,), "h": (inner,)}
    x, w, g, h = (t.input(name, shape, dtype) for name, shape in shapes.items())
    return t.layer_norm(x, g, h) @ w.T


def _loom(program: t.Expression) -> ModuleOp:
    return t.compile(program, on="triton").lowered


def _operations(module: ModuleOp) -> list[loom.OperationOp]:
    return [op for op in module.walk() if isinstance(op, loom.OperationOp)]


def _seconds(module: ModuleOp, *, store: bool) -> float:
    lowered = module.clone()
    LoomToTriton(device=DEVICE, store=store).apply(Context(), lowered)
    return sum(one.estimate.seconds for one in predictions(lowered, find_spec(DEVICE)))


def _stays(module: ModuleOp) -> bool:
    before = str(module)
    ways = LoomToTriton(device=DEVICE).alternatives(Context())
    assert ways is not None
    ways.store_factors(module)
    return str(module) == before


def test_a_normalization_is_stored_for_many_columns() -> None:
    module = _loom(_normalized(8192, 2304, 768))
    assert _seconds(module, store=True) < _seconds(module, store=False)
    assert not _stays(module)
    *_, stored, product = _operations(module)
    # It is stored as it is multiplied: rounded.
    assert str(tensor_type(stored.outs[0]).element_type) == "bf16"
    assert tensor_type(stored.outs[0]).box.shape == (8192, 768)
    assert [read.value is stored.outs[0] for read in product.in_reads].count(True) == 1
    assert len(product.in_reads) == 2
    assert _stays(module)


def test_what_several_products_read_is_stored_once() -> None:
    x = t.gelu(t.input("x", (8192, 768), "bf16"))
    weights = {"v": 2304, "w": 3072}
    products = [x @ t.input(name, (768, n), "bf16") for name, n in weights.items()]
    module = t.compile(tuple(products), on="triton").lowered
    apply_stores(module, dict.fromkeys(_operations(module), (0,)))
    stored, *readers = _operations(module)
    assert [stored.outs[0] in op.ins for op in readers] == [True, True]


def test_a_product_of_few_columns_reads_what_another_stores() -> None:
    """Alone it computes the factor, which takes less than storing it; as values beside queries."""
    x = t.gelu(t.input("x", (8192, 768), "bf16"))
    columns = {"few": 768, "many": 4096}
    few, many = (x @ t.input(name, (768, n), "bf16") for name, n in columns.items())
    ways = LoomToTriton(device="h200").alternatives(Context())
    assert ways is not None
    made: list[int] = []
    for program in ((few,), (few, many)):
        module = t.compile(program, on="triton").lowered
        ways.store_factors(module)
        made.append(len(_operations(module)))
        stored = [op for op in _operations(module) if not op.fold_dims]
        readers = [op for op in _operations(module) if op.fold_dims]
        assert all([one.outs[0] in op.ins for op in readers] == [True, True] for one in stored)
    assert made == [1, 3]


@pytest.mark.parametrize(
    "program",
    [
        t.gelu(t.input("x", (8192, 768), "bf16")) @ t.input("w", (768, 16), "bf16"),
        t.input("x", (4096, 512), "bf16") @ t.input("w", (512, 4096), "bf16"),
        t.conv2d(t.relu(t.input("x", (8, 64, 56, 56), "f16")), t.input("w", (64, 64, 3, 3), "f16")),
    ],
    ids=["few columns", "product", "windows"],
)
def test_others_stay(program: t.Expression) -> None:
    assert _stays(_loom(program))


def _gated(rows: int, width: int, out: int) -> ModuleOp:
    shapes = {"x": (rows, width), "g": (width,), "w": (width, out), "v": (width, out)}
    x, g, w, v = (t.input(name, shape, "bf16") for name, shape in shapes.items())
    h = t.rms_norm(x, g, eps=1e-6)
    return _loom(t.swiglu(h @ w, h @ v))


def test_a_norm_that_two_products_fold_besides_is_folded_once() -> None:
    """They were 945 us at best on an H100, the products alone 714 by cuBLAS."""
    module = _gated(2048, 4096, 14336)
    assert len(_operations(module)) == 1
    stored, whole = (_seconds(module, store=store) for store in (True, False))
    assert stored * GAIN <= whole
    assert not _stays(module)
    norm, factor, products = _operations(module)
    assert [op.index.shape for op in (norm, factor)] == [(2048, 4096)] * 2
    assert str(tensor_type(factor.outs[0]).element_type) == "bf16"
    # Both products read the one factor, and the sum of squares is divided by at the end.
    assert {factor.outs[0]} < {read.value for read in products.in_reads}
    assert len(products.in_reads) == 3
    assert [read.value for read in products.extra_reads] == [norm.outs[0]]
    assert _stays(module)


def _attended(heads: int, rows: int, width: int, dtype: str) -> ModuleOp:
    """Attention whose keys are computed, as rotated ones are."""
    shapes = {"q": (heads, rows, width), "x": (heads, rows, width), "v": (heads, rows, width)}
    q, x, v = (t.input(name, shape, dtype) for name, shape in shapes.items())
    return _loom(t.scaled_dot_product_attention(q, t.gelu(x), v, causal=True))


def test_keys_that_each_block_of_queries_would_compute_are_stored_in_front_of_the_group() -> None:
    module = _attended(64, 2048, 64, "bf16")
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    assert len(computed_factors(group)) == 1
    stored, whole = (_seconds(module, store=store) for store in (True, False))
    assert stored <= COMPUTED * whole
    assert not _stays(module)
    factor, scores, _ = _operations(module)
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    assert tensor_type(factor.outs[0]).box.shape == (64, 2048, 64)
    assert factor.outs[0] in group.ins
    # Only what stores it computes it.
    assert not any(op.name == "math.erf" for op in group.walk())
    assert len(scores.in_reads) == 2
    assert _stays(module)


def test_a_factor_lies_as_what_it_is_computed_of_for_all_that_read_it() -> None:
    """One is multiplied by heads first, the other by rows first: one map stores both factors."""
    x = t.gelu(t.input("x", (512, 8, 64), "bf16"))
    heads = t.einsum("rhd,hde->hre", x, t.input("v", (8, 64, 64), "bf16"))
    rows = t.einsum("rhd,hdf->rf", x, t.input("w", (8, 64, 256), "bf16"))
    module = t.compile((heads, rows), on="triton").lowered
    apply_stores(module, dict.fromkeys(_operations(module), (0,)))
    stored, *readers = _operations(module)
    assert tensor_type(stored.outs[0]).box.shape == (512, 8, 64)
    assert [stored.outs[0] in op.ins for op in readers] == [True, True]


def test_a_side_of_16_bits_is_stored_beside_one_that_is_computed_in_32() -> None:
    shapes = {"x": (256, 512), "y": (512, 256)}
    x, y = (t.input(name, shape, "bf16") for name, shape in shapes.items())
    module = _loom(t.gelu(x) @ t.exp(y.astype("f32")))
    (product,) = _operations(module)
    (factor,) = computed_factors(product)
    assert str(factor[0].type) == "bf16"


def test_a_factor_of_what_a_member_of_its_group_writes_stays() -> None:
    x, w, v = (t.input(name, (32, 32), "f16") for name in "xwv")
    module = _loom(t.exp(t.softmax(x @ w, axis=-1)) @ v)
    (group,) = (op for op in module.walk() if isinstance(op, loom.FusedOp))
    assert not computed_factors(group)
    take_apart(group, PatternRewriter(group))
    *_, product = _operations(module)
    assert len(computed_factors(product)) == 1


@pytest.mark.parametrize("dtype", sorted(KINDS))
def test_a_group_whose_factors_are_stored_gives_the_same(dtype: str) -> None:
    module = _attended(2, 24, 16, dtype)
    stored = module.clone()
    (group,) = (op for op in stored.walk() if isinstance(op, loom.FusedOp))
    apply_stores(stored, {group: (0,)})
    verify_module(stored)
    assert len(_operations(stored)) == len(_operations(module)) + 1
    random = np.random.default_rng(0)
    inputs = {name: random.normal(size=(2, 24, 16)).astype(KINDS[dtype]) for name in "qxv"}
    for where in ("triton", "numpy"):
        before, after = (
            find_executor(where).run(one, inputs, NoWatch()).outputs[0] for one in (module, stored)
        )
        np.testing.assert_array_equal(before, after)


def test_a_norm_of_few_rows_stays_with_its_products() -> None:
    assert _stays(_gated(16, 4096, 14336))


def test_without_a_device_nothing_is_stored() -> None:
    module = _loom(_normalized(8192, 2304, 768))
    before = str(module)
    LoomToTriton().settle(Context(), module)
    assert str(module) == before


def test_a_product_with_a_schedule_stays() -> None:
    module = _loom(_normalized(8192, 2304, 768))
    *_, product = _operations(module)
    tile = {"M": 128, "N": 128, "K": 64}
    product.attributes[SCHEDULE] = ScheduleAttr(Schedule(tile, warps=8, stages=3))
    assert _stays(module)


def test_what_is_no_plain_cell_at_every_point_stays() -> None:
    x, w = t.input("x", (9, 20), "f32"), t.input("w", (20, 7), "f32")
    *_, product = _operations(_loom(t.exp(x) @ w))
    assert len(computed_factors(product)) == 1
    # Of a matrix that is computed of two vectors, neither vector has as many cells.
    u, v = t.input("u", (9, 1), "f32"), t.input("v", (1, 20), "f32")
    *_, product = _operations(_loom(t.exp(u * v) @ w))
    assert not computed_factors(product)


@settings(deadline=None, max_examples=drawn(8))
@given(st.data())
def test_stored_factors_give_the_same(data: st.DataObject) -> None:
    rows, columns, inner = (data.draw(st.integers(2, 19)) for _ in range(3))
    dtype = data.draw(st.sampled_from(sorted(KINDS)))
    x, w = t.input("x", (rows, inner), dtype), t.input("w", (inner, columns), dtype)
    s = t.input("s", (rows, 1), dtype)
    left = t.relu(x * s) if data.draw(st.booleans()) else x
    right = t.exp(w) if data.draw(st.booleans()) else w
    module = _loom(left @ right)
    stored = module.clone()
    *_, product = _operations(stored)
    places = tuple(range(len(computed_factors(product))))
    assert len(places) == (left is not x) + (right is not w)
    apply_stores(stored, {product: places})
    verify_module(stored)
    assert len(_operations(stored)) == len(_operations(module)) + len(places)
    random = np.random.default_rng(0)
    shapes = {"x": (rows, inner), "w": (inner, columns), "s": (rows, 1)}
    inputs = {
        name: random.normal(size=shape).astype(KINDS[dtype]) for name, shape in shapes.items()
    }
    if left is x:
        del inputs["s"]
    for where in ("triton", "numpy"):
        before, after = (
            find_executor(where).run(one, inputs, NoWatch()).outputs[0] for one in (module, stored)
        )
        np.testing.assert_array_equal(before, after)
