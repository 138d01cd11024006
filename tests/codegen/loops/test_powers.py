"""Powers, logarithms and hyperbolic functions are as near to the numbers as `powers` says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tapestry.codegen.loops import elementary, powers
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import Value
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

_ULPS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "exp2": (np.exp2, 1.5),
    "log2": (np.log2, 2.0),
    "log10": (np.log10, 2.0),
    "cbrt": (np.cbrt, 1.5),
    "sinh": (np.sinh, 3.0),
    "cosh": (np.cosh, 3.0),
    "asinh": (np.arcsinh, 2.5),
    "acosh": (np.arccosh, 2.5),
    "atanh": (np.arctanh, 2.5),
}


def _function(name: str) -> Callable[..., object]:
    return getattr(elementary if name == "exp2" else powers, name)


def _numbers(name: str, dtype: str) -> Array:
    random = np.random.default_rng(0)
    limit = np.log(np.finfo(dtype).max)
    near, far = near_and_far(dtype)
    match name:
        case "exp2":
            x = [near, random.uniform(-1.5 * limit, 1.44 * limit, 50_000)]
        case "sinh" | "cosh":
            ends = limit + random.uniform(-1, 0.69, 10_000)
            x = [near, random.uniform(-limit, limit, 50_000), random.uniform(-25, 25, 50_000), ends]
        case "log2" | "log10":
            x = [np.abs(near), np.abs(far), np.exp2(np.arange(-100, 100))]
        case "acosh":
            x = [1 + np.abs(near), 1 + np.abs(far)]
        case "atanh":
            x = [near[np.abs(near) < 1], random.uniform(-1, 1, 50_000)]
        case _:
            x = [near, far]
    return np.concatenate(x).astype(dtype)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="nothing is more exact here")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", _ULPS)
def test_errors(name: str, dtype: str) -> None:
    exact, most = _ULPS[name]
    x = _numbers(name, dtype)
    with np.errstate(all="ignore"):
        off = units_off(computed(_function(name), x), exact(x.astype(np.longdouble)))
    assert len(off) > len(x) / 2
    assert off.max() <= most


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", _ULPS)
def test_special_numbers(name: str, dtype: str) -> None:
    x = special(dtype)
    with np.errstate(all="ignore"):
        assert_same_kinds(computed(_function(name), x), _ULPS[name][0](x))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_logarithms_of_powers_of_two_are_exact(dtype: str) -> None:
    n = np.arange(np.finfo(dtype).minexp, np.finfo(dtype).maxexp).astype(dtype)
    np.testing.assert_array_equal(computed(powers.log2, np.exp2(n)), n)


@pytest.mark.parametrize(("dtype", "last"), [("f4", 11), ("f8", 23)])
def test_logarithms_of_powers_of_ten_are_exact(dtype: str, last: int) -> None:
    n = np.arange(last).astype(dtype)
    np.testing.assert_array_equal(computed(powers.log10, 10**n), n)


@pytest.mark.parametrize("name", [*_ULPS, "power"])
def test_functions_of_one_number_are_one_number(name: str) -> None:
    """What is stored of it is one cell, and no vector."""
    write = Function()
    given = [write.load("%p", "float", wide=False)] * (2 if name == "power" else 1)
    made = _function(name)(write, *given)
    assert isinstance(made, Value)
    assert not made.wide


def test_powers() -> None:
    random = np.random.default_rng(0)
    size, count = np.exp(random.uniform(-80, 80, 50_000)), 50_000
    x = [size * random.choice([-1, 1], count), 2.0 ** random.uniform(-0.1, 0.1, count)]
    y = [random.uniform(-3, 3, count), random.uniform(-800, 800, count)]
    base, exponent = (np.concatenate(one).astype("f4") for one in (x, y))
    exponent[::7] = np.round(exponent[::7])
    with np.errstate(all="ignore"):
        want = np.power(base.astype(np.longdouble), exponent.astype(np.longdouble))
        off = units_off(computed(powers.power, base, exponent), want)
    assert len(off) > count
    assert off.max() <= 1
    base, exponent = (one.ravel() for one in np.meshgrid(special("f4"), special("f4")))
    with np.errstate(all="ignore"):
        assert_same_kinds(computed(powers.power, base, exponent), np.power(base, exponent))
