"""Functions of loops are as near to the numbers as `elementary` says, over all of their range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import erf  # pyright: ignore[reportMissingTypeStubs]

from tapestry.codegen.loops import elementary
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tests.codegen.loops.computing import computed, units_off

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_ULPS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "exp": (np.exp, 1.5),
    "expm1": (np.expm1, 2.5),
    "tanh": (np.tanh, 3.0),
    "log": (np.log, 1.0),
    "log1p": (np.log1p, 2.0),
    "erf": (lambda x: erf(x.astype(np.float64)), 5.0),
}


def _computed(name: str, x: Array) -> Array:
    return computed(getattr(elementary, name), x)


@pytest.mark.parametrize(
    ("name", "dtype"),
    # Loops have no erf of float64.
    [(name, dtype) for name in _ULPS for dtype in ("f4", "f8") if (name, dtype) != ("erf", "f8")],
)
def test_errors(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    limit = np.log(np.finfo(dtype).max) if name != "erf" else 5.0
    x = np.concatenate([random.uniform(-limit, limit, 100_000), random.normal(0, 1, 100_000)])
    x = np.concatenate([x, random.normal(0, 1, 50_000) * 2.0 ** random.uniform(-60, 3, 50_000)])
    if name in ("log", "log1p"):
        x = np.concatenate([np.abs(x), np.exp(random.uniform(-limit, limit, 100_000))])
        x = np.append(x, -random.uniform(0, 1, 10_000)) if name == "log1p" else x
    x = x.astype(dtype)
    exact, most = _ULPS[name]
    with np.errstate(all="ignore"):
        off = units_off(_computed(name, x), exact(x.astype(np.longdouble)))
    assert off.max() <= most


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_least_numbers(dtype: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    x = np.array([least, -least, 3 * least, 0.0, -0.0], dtype)
    for name in ("expm1", "tanh", "log1p"):
        made = _computed(name, x)
        np.testing.assert_array_equal(made, x)
        np.testing.assert_array_equal(np.signbit(made), np.signbit(x))
    with np.errstate(all="ignore"):
        near = np.array([np.log(np.finfo(dtype).smallest_normal) - 5], dtype)
        np.testing.assert_allclose(_computed("exp", near), np.exp(near), rtol=1e-4)
    np.testing.assert_allclose(_computed("log", x[:1]), np.log(x[:1]), rtol=1e-6)
