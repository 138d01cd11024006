"""Numbers less whole quarters of a turn, which need more digits of pi than a float64 has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tapestry.codegen.loops import Cell, Graph, angle_reduction
from tapestry.codegen.loops.functions import Function
from tapestry.codegen.loops.vectors import Value
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared.loops.loop import Loop

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
    "21170679821480865132823066470938446095505822317253594081284811174502841027019385211055596446229"
    "48954930381964428810975665933446128475648233786783165271201909145648566923460348610454326648213"
    "39360726024914127372458700660631558817488152092096282925409171536436789259036001133053054882046"
)
"""To 375 digits."""

_HARD = [
    6381956970095103.0 * 2.0**797,
    5.319372648326541e255,
    1.7976931348623157e308,
    2.0**30,
    2.0**30 * (1 - 2.0**-53),
    2.0**46,
    2.0**47 + 1,
    3.4028234663852886e38,
    1e22,
]
"""Numbers far from zero: the first is the float64 that is nearest to whole quarters, the second is
the next one that is near to them.
"""


def _turned(x: Array) -> list[Array]:
    """Quarters, of which the last two bits count, and rests."""

    def quarters(write: Function, values: list[Value]) -> Value:
        return angle_reduction.turned(write, values[0]).quarters

    def rest(write: Function, values: list[Value]) -> Value:
        return angle_reduction.turned(write, values[0]).rest

    cells = (Cell(quarters, (0,), "i64"), Cell(rest, (0,), "double"))
    return list(Loop(Graph(("double",), (), cells, (1, 2)), x.shape)([x]))


def test_numbers_that_are_near_to_whole_quarters() -> None:
    random = np.random.default_rng(0)
    whole = np.arange(1, 1000) * np.pi / 2
    x = np.array([*_HARD, *np.exp(random.uniform(0, 709, 2000)), *whole, 0.5, 1.0])
    for size, found, rest in zip(x, *_turned(x), strict=True):
        turn = Fraction(float(size)) / (_PI / 2)
        quarters = round(turn)
        # Where two are nearly as near, either is.
        if (int(found) - quarters) % 4:
            quarters += 1 if turn > quarters else -1
        assert (int(found) - quarters) % 4 == 0
        want = (turn - quarters) * (_PI / 2)
        assert abs(want) < _PI / 4 * Fraction(101, 100)
        assert abs(Fraction(float(rest)) - want) <= abs(want) * Fraction(1, 2**51)


def test_one_number_for_all_elements() -> None:
    """A number that no element has its own of is reduced as well, and NaN where there is none."""

    def rest(write: Function, values: list[Value]) -> Value:
        number = write.number(1e300, "double")
        return write.binary("fadd", angle_reduction.turned(write, number).rest, values[0])

    x = np.zeros(70)
    (made,) = Loop(Graph(("double",), (), (Cell(rest, (0,), "double"),), (1,)), x.shape)([x])
    np.testing.assert_array_equal(made, np.full(70, _turned(np.array([1e300]))[1]))
    assert np.isnan(_turned(np.array([np.inf, np.nan]))[1]).all()
