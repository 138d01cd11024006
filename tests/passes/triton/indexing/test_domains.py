"""Loops of kernels over domains: what they leave out is outside, what they visit is masked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf

from tapestry.dialects import loom, triton
from tapestry.dialects.zspace import DomainAttr, PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.zspace import Domain, Partition, Range
from tests.amounts import drawn

_SUM = """
!x = !loom.tensor<[0, 0] : [20, 70], f32>
!y = !loom.tensor<[0] : [20], f32>
func.func @main(%x: !x) -> !y {
  %y = loom.operation @f over <[5, -10] : [25, 60]> [map, fold] by @add
         ins(%x : (d0, d1) -> (d0 - 5, d1 + 10)) outs((d0) -> (d0 - 5))
         domain(d0 + d1 >= 0)
         wrap (%c: f32) { loom.yield %c : f32 } : (!x) -> !y
  func.return %y : !y
}
"""

_PRODUCT = """
!a = !loom.tensor<[0, 0, 0] : [2, 20, 50], f32>
!b = !loom.tensor<[0, 0, 0] : [2, 50, 18], f32>
!y = !loom.tensor<[0, 0, 0] : [2, 20, 18], f32>
func.func @main(%a: !a, %b: !b) -> !y {
  %y = loom.operation @f over <[0, 0, 0, 0] : [2, 20, 18, 50]> [map, map, map, fold] by @add
         ins(%a : (d0, d1, d2, d3) -> (d0, d1, d3), %b : (d0, d1, d2, d3) -> (d0, d3, d2))
         outs((d0, d1, d2) -> (d0, d1, d2))
         domain(d0 >= 0)
         wrap (%p: f32, %q: f32) {
           %r = arith.mulf %p, %q : f32
           loom.yield %r : f32
         } : (!a, !b) -> !y
  func.return %y : !y
}
"""

_LAW = settings(max_examples=drawn(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def _domains(draw: st.DrawFn, rank: int) -> Domain:
    """Rows that mostly end or start the loop over the last dimension."""
    count = draw(st.integers(1, 2))
    rows = [
        [draw(st.sampled_from([0, 1, -1, 0, 2])) for _ in range(rank - 1)]
        + [draw(st.sampled_from([1, -1, 1, -1, 0, 3]))]
        for _ in range(count)
    ]
    return Domain.of(rows, [draw(st.integers(-20, 40)) for _ in rows])


def _inside(domain: Domain, box: Range) -> np.ndarray:
    grid = np.indices(box.shape) + np.reshape(box.start, (-1, *[1] * box.rank))
    values = np.tensordot(np.array(domain.rows.matrix), grid, 1)
    return (values + np.reshape(domain.rows.offset, (-1, *[1] * box.rank)) >= 0).all(0)


def _check(
    text: str, data: st.DataObject, inputs: dict[str, np.ndarray], terms: np.ndarray
) -> None:
    module = parse_text(text)
    op = next(op for op in module.walk() if isinstance(op, loom.OperationOp))
    domain, index = data.draw(_domains(op.index.rank)), op.index
    op.domain = DomainAttr(domain)
    if data.draw(st.booleans()):
        counts = [data.draw(st.integers(1, min(2, n))) for n in index.shape]
        op.shards = PartitionAttr(Partition.balanced(index, counts))
    verify_module(module)
    numerics = data.draw(st.sampled_from(["strict", "fast"]))
    (got,) = TritonExecutor(tile=16, numerics=numerics).run(module, inputs, NoWatch()).outputs
    want = np.where(_inside(domain, index), terms, 0).sum(-1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@_LAW
@given(data=st.data())
def test_folds_leave_out_only_what_is_outside(data: st.DataObject) -> None:
    x = np.random.default_rng(0).normal(size=(20, 70)).astype(np.float32)
    _check(_SUM, data, {"x": x}, x.astype(np.float64))


@_LAW
@given(data=st.data())
def test_products_leave_out_only_what_is_outside(data: st.DataObject) -> None:
    source = np.random.default_rng(1)
    a = source.normal(size=(2, 20, 50)).astype(np.float32)
    b = source.normal(size=(2, 50, 18)).astype(np.float32)
    terms = np.einsum("bik,bkj->bijk", a.astype(np.float64), b.astype(np.float64))
    _check(_PRODUCT, data, {"a": a, "b": b}, terms)


@pytest.mark.parametrize("rows", ["d1 >= d3", "d3 >= d2 + 3", "40 >= d3", "d1 >= d2"])
def test_cells_outside_do_not_matter(rows: str) -> None:
    """Infinite ones neither: strict kernels give what the naive schedule gives."""
    source = np.random.default_rng(2)
    a = source.integers(-4, 5, (2, 20, 50)).astype(np.float32)
    b = source.integers(-4, 5, (2, 50, 18)).astype(np.float32)
    a[:, 3, 45:] = b[1, 48] = np.inf
    a[0, 19, 19] = b[0, 2, 1] = np.nan
    module = parse_text(_PRODUCT.replace("domain(d0 >= 0)", f"domain({rows})"))
    verify_module(module)
    (got,) = TritonExecutor(tile=16).run(module, {"a": a, "b": b}, NoWatch()).outputs
    (want,) = ReferenceExecutor().run(module, {"a": a, "b": b}, NoWatch()).outputs
    np.testing.assert_array_equal(got, want)


def test_the_loop_ends_with_the_last_point_inside() -> None:
    """What lies beyond is not even loaded: its cells do not matter, NaN or not."""
    x = np.full((20, 70), np.nan, np.float32)
    x[:, :45] = 1
    text = _SUM.replace("domain(d0 + d1 >= 0)", "domain(d0 - d1 >= 0)")
    module = parse_text(text)
    (got,) = TritonExecutor(tile=16).run(module, {"x": x}, NoWatch()).outputs
    np.testing.assert_array_equal(got, np.arange(5, 25) + 11)
    module = parse_text(text)
    run_pipeline(module, "loom-to-triton{tile=16}")
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    assert loop.ub.owner.name == "arith.minsi"


def test_shards_outside_are_not_launched() -> None:
    module = parse_text(_SUM.replace("domain(d0 + d1 >= 0)", "domain(d0 - d1 >= 0)"))
    run_pipeline(module, "loom-shard{grid=2,7},loom-to-triton")
    (main,) = [op for op in module.walk() if isinstance(op, triton.LaunchOp) and op.shards]
    assert main.shards is not None
    # Of 2 x 7 shards, the first row ends at 14 and the second at 24: parts of 10 from -10 on.
    assert main.shards.get_shape() == (3 + 4, 4)
