"""Folds over domains: points outside contribute the zero, on every executor, under any shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import loom
from tapestry.dialects.zspace import DomainAttr, PartitionAttr
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.runtime.executor import EXECUTORS, Array, NoWatch, find_executor
from tapestry.zspace import Domain, Partition, Range
from tests.amounts import drawn

# Each reads %x over [0, 0] : [6, 9] in index space [2, -4] : [8, 5] and folds d1.
_HEAD = """
!x = !loom.tensor<[0, 0] : [6, 9], {t}>
!y = !loom.tensor<[0] : [6], {t}>
func.func @main(%x: !x) -> {out} {{
  %y = loom.operation @f over <[2, -4] : [8, 5]> [map, {kind}] by @{monoid}
         ins(%x : (d0, d1) -> (d0 - 2, d1 + 4)) outs({write})
         domain(d0 + d1 >= 0)
"""
_TAIL = """ : (!x) -> {out}
  func.return %y : {out}
}}
"""
_PLAIN = "wrap (%c: {t}) {{ loom.yield %c : {t} }}"
_BODIES = {
    "add": _PLAIN,
    "max": _PLAIN,
    "mul": _PLAIN,
    "welford": """
         wrap (%c: {t}) {{
           %one = arith.constant 1.0 : {t}
           %zero = arith.constant 0.0 : {t}
           loom.yield %one, %c, %zero : {t}, {t}, {t}
         }}
         unwrap (%n: {t}, %mean: {t}, %q: {t}) {{
           %s = arith.addf %n, %mean : {t}
           %r = arith.addf %s, %q : {t}
           loom.yield %r : {t}
         }}""",
    "logsumexp": """
         wrap (%c: {t}) {{
           %one = arith.constant 1.0 : {t}
           loom.yield %c, %one : {t}, {t}
         }}
         unwrap (%m: {t}, %s: {t}) {{
           %e = math.log %s : {t}
           %r = arith.addf %m, %e : {t}
           loom.yield %r : {t}
         }}""",
    "argmax": """
         wrap (%c: {t}) {{
           %i = loom.index 1 : i64
           loom.yield %c, %i : {t}, i64
         }}
         unwrap (%m: {t}, %i: i64) {{
           %e = arith.sitofp %i : i64 to {t}
           loom.yield %e : {t}
         }}""",
}
_ON = EXECUTORS
_INDEX = Range((2, -4), (8, 5))


def folding(monoid: str, kind: str = "fold", element: str = "f32") -> str:
    scans = kind == "scan"
    values = {
        "t": element,
        "kind": kind,
        "monoid": monoid,
        "out": "!x" if scans else "!y",
        "write": "(d0, d1) -> (d0 - 2, d1 + 4)" if scans else "(d0) -> (d0 - 2)",
    }
    return (_HEAD + _BODIES[monoid] + _TAIL).format(**values)


def _product(domain: str, element: str = "f32") -> str:
    """A matrix product of 6 x 7 by 7 x 5 over a domain."""
    return f"""
!a = !loom.tensor<[0, 0] : [6, 7], {element}>
!b = !loom.tensor<[0, 0] : [7, 5], {element}>
!y = !loom.tensor<[0, 0] : [6, 5], {element}>
func.func @main(%a: !a, %b: !b) -> !y {{
  %y = loom.operation @product over <[0, 0, 0] : [6, 5, 7]> [map, map, fold] by @add
         ins(%a : (d0, d1, d2) -> (d0, d2), %b : (d0, d1, d2) -> (d2, d1))
         outs((d0, d1) -> (d0, d1))
         domain({domain})
         wrap (%p: {element}, %q: {element}) {{
           %r = arith.mulf %p, %q : {element}
           loom.yield %r : {element}
         }} : (!a, !b) -> !y
  func.return %y : !y
}}
"""


def run(text: str | ModuleOp, on: str, inputs: dict[str, Array], pipeline: str = "") -> Array:
    module = parse_text(text) if isinstance(text, str) else text
    verify_module(module)
    if pipeline:
        run_pipeline(module, pipeline)
        verify_module(module)
    return find_executor(on).run(module, inputs, NoWatch()).outputs[0]


def operation_of(module: ModuleOp) -> loom.OperationOp:
    return next(op for op in module.walk() if isinstance(op, loom.OperationOp))


def inside(domain: Domain, box: Range) -> Array:
    flags = [domain.contains(point) for point in box.coords()]
    return np.array(flags, dtype=bool).reshape(box.shape)


def folded(monoid: str, x: Array, mask: Array) -> Array:
    """What a fold makes of the cells inside, row by row, with nothing but NumPy."""
    rows: list[float] = []
    for row, chosen in zip(x.astype(np.float64), mask, strict=True):
        cells = row[chosen]
        n = len(cells)
        if monoid == "add":
            rows.append(cells.sum())
        elif monoid == "mul":
            rows.append(cells.prod())
        elif monoid == "max":
            rows.append(cells.max(initial=-np.inf))
        elif monoid == "argmax":
            rows.append(np.flatnonzero(chosen)[cells.argmax()] - 4 if n else 2.0**63 - 1)
        elif monoid == "welford":
            rows.append(n + cells.mean() + n * cells.var() if n else 0.0)
        else:
            rows.append(np.log(np.exp(cells - 100).sum()) + 100 if n else -np.inf)
    return np.array(rows)


@st.composite
def domains(draw: st.DrawFn, rank: int) -> Domain:
    row = st.lists(st.sampled_from([0, 1, -1, 1, -1, 2]), min_size=rank, max_size=rank)
    matrix = draw(st.lists(row, min_size=1, max_size=2))
    offset = draw(st.lists(st.integers(-5, 9), min_size=len(matrix), max_size=len(matrix)))
    return Domain.of(matrix, offset)


@st.composite
def partitions(draw: st.DrawFn, box: Range) -> Partition:
    cuts: list[list[int]] = []
    for start, end in zip(box.start, box.end, strict=True):
        places = draw(st.sets(st.integers(start + 1, end - 1), max_size=2))
        cuts.append([start, *sorted(places), end])
    grid = Partition.grid(cuts)
    return draw(st.sampled_from((grid, Partition.explicit(grid.ranges()))))


_PIPELINES = ("", "loom-simplify", "loom-expand-shards", "loom-simplify,loom-expand-shards")
_LAW = settings(
    max_examples=drawn(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def agree(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-5, atol=2e-5)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("on", _ON)
@pytest.mark.parametrize("monoid", _BODIES)
@_LAW
@given(data=st.data())
def test_any_domain_under_any_partition(on: str, monoid: str, data: st.DataObject) -> None:
    module = parse_text(folding(monoid))
    op = operation_of(module)
    domain = data.draw(domains(2))
    op.domain = DomainAttr(domain)
    if data.draw(st.booleans()):
        op.shards = PartitionAttr(data.draw(partitions(op.index)))
    x = np.random.default_rng(data.draw(st.integers(0, 9))).normal(100, 1, (6, 9))
    x = (x / 50 if monoid == "mul" else x).astype(np.float32)
    got = run(module, on, {"x": x}, data.draw(st.sampled_from(_PIPELINES)))
    agree(got, folded(monoid, x, inside(domain, _INDEX)))


@pytest.mark.parametrize("on", _ON)
@_LAW
@given(data=st.data())
def test_products_over_any_domain(on: str, data: st.DataObject) -> None:
    module = parse_text(_product("d0 - d2 >= 0"))
    op = operation_of(module)
    domain = data.draw(domains(3))
    op.domain = DomainAttr(domain)
    if data.draw(st.booleans()):
        op.shards = PartitionAttr(data.draw(partitions(op.index)))
    source = np.random.default_rng(data.draw(st.integers(0, 9)))
    a = source.normal(size=(6, 7)).astype(np.float32)
    b = source.normal(size=(7, 5)).astype(np.float32)
    got = run(module, on, {"a": a, "b": b}, data.draw(st.sampled_from(_PIPELINES)))
    mask = inside(domain, Range.of((6, 5, 7)))
    agree(got, np.einsum("ik,kj,ijk->ij", a.astype("f8"), b.astype("f8"), mask))


@pytest.mark.parametrize("on", _ON)
@pytest.mark.parametrize("shards", ["", "loom-shard{grid=2,3}"])
def test_cells_outside_do_not_matter(on: str, shards: str) -> None:
    """Not even NaN and infinities."""
    x = np.full((6, 9), 1.0, np.float32)
    mask = inside(Domain.of([[1, 1]]), _INDEX)
    x[~mask] = np.where(np.arange((~mask).sum()) % 2, np.nan, np.inf)
    agree(run(folding("add"), on, {"x": x}, shards), mask.sum(1))


@pytest.mark.parametrize("on", _ON)
@pytest.mark.parametrize("monoid", ["add", "max"])
@pytest.mark.parametrize("shards", ["", "loom-shard{grid=2,3}", "loom-simplify"])
def test_scans_go_on_from_a_zero_outside(on: str, monoid: str, shards: str) -> None:
    x = np.random.default_rng(0).normal(size=(6, 9)).astype(np.float32)
    mask = inside(Domain.of([[1, 1]]), _INDEX)
    zero, along = (0, np.cumsum) if monoid == "add" else (-np.inf, np.maximum.accumulate)
    agree(run(folding(monoid, "scan"), on, {"x": x}, shards), along(np.where(mask, x, zero), 1))


@pytest.mark.parametrize("on", ["reference", "numpy"])
@pytest.mark.parametrize("domain", ["d0 - d2 >= 0", "d1 - d2 >= 0", "d0 - d1 >= 0"])
def test_factors_outside_do_not_matter(on: str, domain: str) -> None:
    """A masked zero times an infinity is no zero: such products are folded point by point."""
    a, b = np.ones((6, 7), np.float32), np.ones((7, 5), np.float32)
    a[:, 6] = b[5, :] = np.inf
    b[6, 2] = np.nan
    module = parse_text(_product(domain))
    within = operation_of(module).inside
    assert within is not None
    mask = inside(within, Range.of((6, 5, 7)))
    terms = np.einsum("ik,kj->ijk", a, b)
    agree(run(module, on, {"a": a, "b": b}), np.where(mask, terms, 0).sum(2))


def test_a_sliding_window_of_a_large_product_skips_what_is_outside() -> None:
    n = 1500
    text = _product("d0 - d2 >= 0, d2 - d0 + 2 >= 0")
    text = text.replace("6, 5, 7", f"{n}, 8, {n}").replace("6, 7", f"{n}, {n}")
    text = text.replace("7, 5", f"{n}, 8").replace("6, 5", f"{n}, 8")
    source = np.random.default_rng(0)
    a = source.normal(size=(n, n)).astype(np.float32)
    b = source.normal(size=(n, 8)).astype(np.float32)
    got = run(text, "numpy", {"a": a, "b": b}, "loom-shard{grid=30,1,30}")
    band = np.tril(np.triu(a.astype("f8"), -2))
    agree(got, band @ b.astype("f8"))
