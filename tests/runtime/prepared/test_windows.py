"""Programs that read through windows give what the reference executor gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter

from tapestry.algebra.monoids import accumulating_monoid_of
from tapestry.dialects import loom
from tapestry.frontend import run_pipeline
from tapestry.importers.building import ProgramBuilder
from tapestry.passes.loom.rebuilding.outputs import with_outputs
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.folds import unrolled
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.program import arguments

_DTYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8"}


def _program(
    name: str, arrays: Sequence[Array], dtype: str, pipeline: str, **parameters: object
) -> ModuleOp:
    build = ProgramBuilder()
    given = [build.argument(f"a{n}", one.shape, dtype) for n, one in enumerate(arrays)]
    module = build.finish(build.apply(name, *given, parameters=parameters))
    run_pipeline(module, pipeline)
    return module


def _check(module: ModuleOp, arrays: Sequence[Array]) -> None:
    """Whole numbers, whose sums are exact in any order."""
    named = {one.name: array for one, array in zip(arguments(module), arrays, strict=True)}
    want = find_executor("reference").run(module, named, NoWatch()).outputs
    got = PreparedProgram(module)(arrays)
    for have, expected in zip(got, want, strict=True):
        assert have.dtype == expected.dtype
        np.testing.assert_array_equal(have, expected)


def _numbers(shape: Sequence[int], dtype: str, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(_DTYPES[dtype])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("form", ["forward", "input", "weight", "transposed"])
def test_any_convolution(form: str, data: st.DataObject) -> None:
    axes = data.draw(st.integers(1, 3))
    small, step = st.integers(1, 3), st.integers(1, 3)
    batch, groups, inner, outer = (data.draw(small) for _ in range(4))
    kernel, dilation, stride = ([data.draw(step) for _ in range(axes)] for _ in range(3))
    padding = [data.draw(st.integers(0, 2)) for _ in range(axes)]
    least = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [
        data.draw(st.integers(max(1, n - 2 * p), n + 4))
        for n, p in zip(least, padding, strict=True)
    ]
    cells = [
        (n + 2 * p - span) // s + 1
        for n, p, span, s in zip(extents, padding, least, stride, strict=True)
    ]
    dtype = data.draw(st.sampled_from([*_DTYPES]))
    pipeline = data.draw(st.sampled_from(["weft-apply", "default"]))
    seed = data.draw(st.integers(0, 99))
    images = _numbers((batch, groups * inner, *extents), dtype, seed)
    weights = _numbers((groups * outer, inner, *kernel), dtype, seed + 1)
    gradient = _numbers((batch, groups * outer, *cells), dtype, seed + 2)
    common = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    match form:
        case "forward":
            arrays, name, more = [images, weights], f"conv{axes}d", {}
        case "input":
            arrays, name = [gradient, weights], f"conv{axes}d_backward_input"
            more = {"size": extents}
        case "weight":
            arrays, name = [gradient, images], f"conv{axes}d_backward_weight"
            more = {"size": kernel}
        case _:
            ends = zip(cells, stride, padding, least, strict=True)
            assume(all((n - 1) * s - 2 * p + span > 0 for n, s, p, span in ends))
            arrays, name, more = [gradient, weights], f"conv_transpose{axes}d", {}
    _check(_program(name, arrays, dtype, pipeline, **common, **more), arrays)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("name", ["max_pool2d_with_indices", "avg_pool2d"])
def test_any_pooling(name: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "_LEAST", 1)
    monkeypatch.setattr(unrolled, "_BLOCK", data.draw(st.sampled_from([1, 10, 1 << 14])))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(2)]
    stride = [data.draw(st.integers(1, 3)) for _ in range(2)]
    padding = [data.draw(st.integers(0, n // 2)) for n in kernel]
    shape = [data.draw(st.integers(1, 3)), *(data.draw(st.integers(n, 7)) for n in kernel)]
    images = _numbers(shape, "f32", data.draw(st.integers(0, 99)))
    if data.draw(st.booleans()):
        images.flat[0] = np.nan
    parameters = {"kernel": kernel, "stride": stride, "padding": padding}
    _check(_program(name, [images], "f32", "default", **parameters), [images])


def test_what_is_pooled_is_merged_in_order() -> None:
    """The first of equal cells, over more kept points than are computed at once."""
    images = np.zeros((3, 200, 90), "f4")
    images[1, ::3, ::2] = 1
    module = _program("max_pool2d_with_indices", [images], "f32", "default", kernel=[2, 2])
    prepared = PreparedProgram(module)
    largest, places = prepared([images])
    windows = images.reshape(3, 100, 2, 45, 2).transpose(0, 1, 3, 2, 4).reshape(3, 100, 45, 4)
    np.testing.assert_array_equal(largest, windows.max(-1))
    first = windows.argmax(-1)
    rows, columns = 2 * np.arange(100)[:, None], 2 * np.arange(45)
    np.testing.assert_array_equal(places, (rows + first // 2) * 90 + columns + first % 2)


def test_a_large_convolution_holds_no_windows() -> None:
    images, weights = np.ones((1, 8, 200, 200), "f4"), np.ones((8, 8, 5, 5), "f4")
    module = _program("conv2d", [images, weights], "f32", "default")
    prepared = PreparedProgram(module)
    tracemalloc.start()
    (got,) = prepared([images, weights])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(got, np.full((1, 8, 196, 196), 200, "f4"))
    assert most < 10 * images.nbytes  # windows have 25 times as many cells


@pytest.mark.parametrize("padding", [0, 1])
def test_a_window_of_many_is_one_loop(padding: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a domain leaves out what is read outside, where the fill adds nothing."""
    monkeypatch.setattr(unrolled, "_LEAST", 1)
    images = _numbers((2, 3, 9, 11), "f32", 0)
    images.flat[5] = np.nan
    name, loops = "max_pool2d_with_indices", Loops(1)
    module = _program(name, [images], "f32", "default", kernel=[3, 3], padding=[padding] * 2)
    (pool,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    rewriter = PatternRewriter(pool)
    values = with_outputs(pool, [0], "values", rewriter)
    monoid = accumulating_monoid_of(values)
    fold = unrolled.unrolled(values, monoid, 1, loops)
    plain = unrolled.unrolled(values, monoid, 1)
    assert fold is not None
    assert plain is not None
    if native.is_available():
        assert fold._looped is not None  # pyright: ignore[reportPrivateUsage,reportFunctionMemberAccess]
    np.testing.assert_array_equal(fold([images])[0], plain([images])[0])


@pytest.mark.parametrize("backward", [False, True])
def test_places_are_found_by_one_loop(backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those are of kept points and of a window's; also of arrays that lie backward."""
    monkeypatch.setattr(unrolled, "_LEAST", 1)
    images = _numbers((2, 3, 9, 11), "f32", 0)
    images.flat[5] = np.nan
    images.flat[40:60] = 1  # the first of those that are equal counts
    images = images[::-1, :, ::-1] if backward else images
    name, form = "max_pool2d_with_indices", {"kernel": [3, 2], "stride": [2, 3]}
    module = _program(name, [images], "f32", "default", **form)
    (pool,) = [op for op in module.walk() if isinstance(op, loom.OperationOp)]
    monoid = accumulating_monoid_of(pool)
    fold, plain = unrolled.unrolled(pool, monoid, 1, Loops(1)), unrolled.unrolled(pool, monoid, 1)
    assert fold is not None
    assert plain is not None
    if native.is_available():
        assert fold._looped is not None  # pyright: ignore[reportPrivateUsage,reportFunctionMemberAccess]
    for got, expected in zip(fold([images]), plain([images]), strict=True):
        np.testing.assert_array_equal(got, expected)
