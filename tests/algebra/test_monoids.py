"""Built-in monoids: identity, associativity, ties and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.monoids import BUILTIN_MONOIDS, Monoid, builtin_monoid
from tapestry.runtime.arrays.mapfold import merged, zero_state
from tapestry.runtime.executor import Array

_FLOATS = st.sampled_from([-math.inf, -2.0, -1.0, 0.0, 1.0, 1.5, 3.0, math.inf, math.nan])
_NAMED = [(name, (kind,)) for name in BUILTIN_MONOIDS[:4] for kind in (f64, i32, i1)]
_NAMED += [(name, (kind,)) for name in ("and", "or") for kind in (i32, i1)]
_NAMED += [(name, (kind, i64)) for name in ("argmax", "argmin") for kind in (f64, i32, i1)]


def _states(state: tuple[Attribute, ...]) -> st.SearchStrategy[list[Array]]:
    parts: list[st.SearchStrategy[Array]] = []
    for kind in state:
        dtype = numpy_dtype(kind)
        if dtype == np.bool_:
            values: st.SearchStrategy[float | int | bool] = st.booleans()
        elif dtype.kind == "f":
            values = _FLOATS
        else:
            values = st.integers(-3, 3)
        parts.append(values.map(lambda v, dtype=dtype: np.asarray(v).astype(dtype)))
    return st.tuples(*parts).map(list)


def _same(a: list[Array], b: list[Array]) -> bool:
    return all(
        x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in zip(a, b, strict=True)
    )


def _builtin(name: str, state: tuple[Attribute, ...]) -> Monoid:
    monoid = builtin_monoid(name, state)
    assert monoid is not None
    return monoid


@pytest.mark.parametrize(("name", "state"), _NAMED)
def test_laws(name: str, state: tuple[Attribute, ...]) -> None:
    monoid = _builtin(name, state)
    zero = zero_state(monoid, ())

    @given(_states(state), _states(state), _states(state))
    def laws(a: list[Array], b: list[Array], c: list[Array]) -> None:
        assert _same(merged(monoid, zero, a), a)
        assert _same(merged(monoid, a, zero), a)
        left = merged(monoid, merged(monoid, a, b), c)
        assert _same(left, merged(monoid, a, merged(monoid, b, c)))
        assert _same(merged(monoid, a, b), merged(monoid, b, a))

    laws()


@pytest.mark.parametrize("kind", [f32, f64])
@pytest.mark.parametrize("cuts", [[0, 9], [0, 0, 1, 4, 9, 9], list(range(10))])
def test_statistics_merge_to_the_whole(kind: Attribute, cuts: list[int]) -> None:
    values = np.random.default_rng(0).normal(3, 2, 9)
    tolerance = 1e-5 if kind == f32 else 1e-13
    dtype = numpy_dtype(kind)

    def fold(name: str, wrapped: Callable[[float], tuple[float, ...]]) -> list[Array]:
        monoid = _builtin(name, (kind,) * len(wrapped(0.0)))
        total = zero_state(monoid, ())
        for low, high in pairwise(cuts):
            part = zero_state(monoid, ())
            for value in values[low:high]:
                part = merged(monoid, part, [dtype.type(x) for x in wrapped(value)])
            total = merged(monoid, total, part)
        return total

    largest, scaled = fold("logsumexp", lambda x: (x, 1.0))
    np.testing.assert_allclose(
        largest + np.log(scaled), np.log(np.exp(values).sum()), rtol=tolerance
    )
    count, mean, squares = fold("welford", lambda x: (1.0, x, 0.0))
    assert count == 9
    np.testing.assert_allclose([mean, squares / 9], [values.mean(), values.var()], rtol=tolerance)


def test_statistics_of_extreme_values() -> None:
    spread = _builtin("welford", (f32,) * 3)
    far = [np.float32(1), np.float32(1e30), np.float32(0)]
    assert _same(merged(spread, zero_state(spread, ()), far), far)
    total = _builtin("logsumexp", (f64, f64))
    largest, scaled = merged(
        total, [np.float64(1), np.float64(1)], [np.float64("inf"), np.float64(1)]
    )
    assert largest + np.log(scaled) == math.inf


def test_an_empty_logsumexp_is_minus_infinity() -> None:
    monoid = _builtin("logsumexp", (f64, f64))
    largest, scaled = merged(monoid, zero_state(monoid, ()), zero_state(monoid, ()))
    assert largest == -math.inf
    assert scaled == 0


@pytest.mark.parametrize(
    ("name", "values", "position"),
    [
        ("argmax", [1.0, 3.0, 3.0], 1),
        ("argmax", [1.0, math.nan, math.nan, 5.0], 1),
        ("argmin", [2.0, -1.0, -1.0], 1),
        ("argmin", [math.nan, -1.0], 0),
        ("argmax", [-math.inf, -math.inf], 0),
    ],
)
def test_extrema_take_the_first(name: str, values: list[float], position: int) -> None:
    monoid = _builtin(name, (f64, i64))
    for order in (range(len(values)), reversed(range(len(values)))):
        state = zero_state(monoid, ())
        for at in order:
            state = merged(monoid, state, [np.float64(values[at]), np.int64(at)])
        assert int(state[1]) == position


def test_maximum_propagates_nan() -> None:
    monoid = _builtin("max", (f32,))
    (largest,) = merged(monoid, [np.float32("nan")], [np.float32(1)])
    assert np.isnan(largest)


def test_primitive_is_seen_in_the_body() -> None:
    assert _builtin("add", (f32,)).primitive is arith.AddfOp
    assert _builtin("max", (i8,)).primitive is arith.MaxSIOp
    assert _builtin("argmax", (f32, i64)).primitive is None


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("and", (f32,)),
        ("welford", (i32,) * 3),
        ("logsumexp", (f32, f64)),
        ("add", (f32, f32)),
        ("argmax", (f32,)),
        ("sum", (f32,)),
        ("add", ()),
    ],
)
def test_what_does_not_exist(name: str, state: tuple[Attribute, ...]) -> None:
    assert builtin_monoid(name, state) is None
