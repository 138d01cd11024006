"""Sines and arcs are as near to the numbers as `trigonometry` says, over all of their range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tapestry.codegen.loops import trigonometry
from tapestry.codegen.loops.functions import Function
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tests.codegen.loops.computing import (
    assert_same_kinds,
    computed,
    near_and_far,
    special,
    units_off,
)

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_ULPS: dict[str, tuple[Callable[[Array], Array], dict[str, float]]] = {
    "sin": (np.sin, {"f4": 1.0, "f8": 2.5}),
    "cos": (np.cos, {"f4": 1.0, "f8": 2.5}),
    "tan": (np.tan, {"f4": 1.0, "f8": 4.5}),
    "atan": (np.arctan, {"f4": 1.0, "f8": 2.0}),
    "asin": (np.arcsin, {"f4": 1.0, "f8": 3.0}),
    "acos": (np.arccos, {"f4": 1.0, "f8": 3.0}),
}


def _numbers(name: str, dtype: str) -> Array:
    random = np.random.default_rng(0)
    near, far = near_and_far(dtype)
    if name in ("asin", "acos"):
        near = near[np.abs(near) < 1]
        ends = 1 - 2.0 ** random.uniform(-40, 0, 20_000)
        return np.concatenate([near, random.uniform(-1, 1, 50_000), ends, -ends]).astype(dtype)
    quarters = np.arange(-2000, 2000) * np.pi / 2
    return np.concatenate([near, far, random.uniform(-1e6, 1e6, 50_000), quarters]).astype(dtype)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing is more exact here")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", _ULPS)
def test_errors(name: str, dtype: str) -> None:
    exact, most = _ULPS[name]
    x = _numbers(name, dtype)
    off = units_off(computed(getattr(trigonometry, name), x), exact(x.astype(np.longdouble)))
    assert len(off) > len(x) / 2
    assert off.max() <= most[dtype]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", _ULPS)
def test_special_numbers(name: str, dtype: str) -> None:
    x = special(dtype)
    with np.errstate(all="ignore"):
        assert_same_kinds(computed(getattr(trigonometry, name), x), _ULPS[name][0](x))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing is more exact here")
@pytest.mark.parametrize(("dtype", "most"), [("f4", 1.0), ("f8", 3.0)])
def test_angles_of_points(dtype: str, most: float) -> None:
    random = np.random.default_rng(0)
    shape = (2, 50_000)
    far = np.exp(random.uniform(-30, 30, shape)) * random.choice([-1, 1], shape)
    y, x = np.concatenate([far, random.normal(0, 1, shape)], 1).astype(dtype)
    made = computed(trigonometry.atan2, y, x)
    want = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert units_off(made, want).max() <= most
    y, x = (one.ravel() for one in np.meshgrid(special(dtype), special(dtype)))
    assert_same_kinds(computed(trigonometry.atan2, y, x), np.arctan2(y, x))
    least = np.finfo(dtype).smallest_subnormal * np.arange(1, 6).astype(dtype)
    y, x = (one.ravel() for one in np.meshgrid(least, least))
    assert_same_kinds(computed(trigonometry.atan2, y, x), np.arctan2(y, x))


@pytest.mark.parametrize("name", [*_ULPS, "atan2"])
def test_functions_of_one_number_are_one_number(name: str) -> None:
    """What is stored of it is one cell, and no vector."""
    write = Function()
    given = [write.load("%p", "float", wide=False)] * (2 if name == "atan2" else 1)
    assert not getattr(trigonometry, name)(write, *given).wide
