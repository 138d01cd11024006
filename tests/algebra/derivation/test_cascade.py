"""Derived folds give what their definitions give, for any split, for huge and for masked cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Block, SSAValue

from tapestry.algebra.derivation.cascade import derive
from tapestry.algebra.derivation.model import LN2, Derivation, Fold, NotDerivableError, mean_of
from tapestry.algebra.derivation.polynomials import Polynomial, constant, exp, symbol
from tapestry.algebra.derivation.writer import Writer
from tapestry.algebra.derivation.writing import Finish, merging, point
from tapestry.algebra.laws import broken_laws
from tapestry.algebra.monoids import monoid_from
from tapestry.dialects import loom
from tapestry.runtime.arrays.mapfold import merged, zero_state
from tapestry.runtime.arrays.scalar import evaluate
from tapestry.runtime.executor import Array

x, z, v, m, total, log_l, ln2 = map(symbol, ["x", "z", "v", "m", "l", "log l", LN2])
mean, mean_z = symbol(mean_of("s")), symbol(mean_of("t"))
LARGEST = Fold("m", "max", x)
SOFTMAX = (LARGEST, Fold("l", "add", exp(x - m)))
SUM, SUM_Z = Fold("s", "add", x), Fold("t", "add", z)
SQUARES = Fold("q", "add", (exp(x - m) / total - symbol("t")) ** 2)
SPREAD = Fold("q", "add", exp(x - m) / total * (z - symbol("t")) ** 2)


def _softmax(x: Array) -> Array:
    return np.exp(_log_softmax(x))


def _log_softmax(x: Array) -> Array:
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


@dataclass(frozen=True)
class Case:
    """Folds, how many parts their state has, and the value of the last by its definition."""

    label: str
    folds: Sequence[Fold]
    parts: int
    value: Callable[[Array, Array, Array], Array]
    finished: Mapping[str, Callable[[Callable[[str], float]], float]] = field(
        default_factory=dict[str, Callable[[Callable[[str], float]], float]]
    )
    separate: bool = False


CASES = [
    Case("sum exp", SOFTMAX, 2, lambda x, _z, _v: np.exp(x - x.max()).sum()),
    Case(
        "attention",
        [*SOFTMAX, Fold("o", "add", exp(x - m) / total * v)],
        3,
        lambda x, _z, v: _softmax(x) @ v,
    ),
    Case(
        "exp2",
        [LARGEST, Fold("o", "add", exp((x - m) * 3 * ln2) * v)],
        2,
        lambda x, _z, v: np.exp2(3 * (x - x.max())) @ v,
    ),
    Case(
        "smallest",
        [Fold("m", "min", x), Fold("o", "add", exp(m * 2 - x * 2 + z) * v)],
        2,
        lambda x, z, v: (np.exp(2 * (x.min() - x)) * np.exp(z)) @ v,
    ),
    Case(
        "sink",
        [LARGEST, Fold("o", "add", exp(x - symbol("larger")) * v)],
        2,
        lambda x, _z, v: np.exp(x - np.maximum(x.max(), 1)) @ v,
        finished={"larger": lambda result: np.maximum(result("m"), 1)},
    ),
    Case(
        "entropy",
        [*SOFTMAX, Fold("h", "add", exp(x - m) / total * (x - m - log_l))],
        3,
        lambda x, _z, _v: _softmax(x) @ _log_softmax(x),
        finished={"log l": lambda result: np.log(result("l"))},
    ),
    Case(
        "cross entropy",
        [*SOFTMAX, Fold("c", "add", v * (x - m - log_l))],
        4,
        lambda x, _z, v: v @ _log_softmax(x),
        finished={"log l": lambda result: np.log(result("l"))},
        separate=True,
    ),
    Case(
        "mean square less squared mean",
        [SUM, Fold("q", "add", (z - mean) ** 2)],
        4,
        lambda x, z, _v: ((z - x.mean()) ** 2).sum(),
        separate=True,
    ),
    Case(
        "variance",
        [SUM, Fold("q", "add", (x - mean) ** 2)],
        3,
        lambda x, _z, _v: ((x - x.mean()) ** 2).sum(),
    ),
    Case(
        "covariance",
        [SUM, SUM_Z, Fold("q", "add", (x - mean) * (z - mean_z))],
        4,
        lambda x, z, _v: (x - x.mean()) @ (z - z.mean()),
    ),
    Case(
        "third moment",
        [SUM, Fold("q", "add", (x - mean) ** 3)],
        4,
        lambda x, _z, _v: ((x - x.mean()) ** 3).sum(),
    ),
    Case(
        "weighted deviation",
        [SUM, Fold("q", "add", (x - mean) * v)],
        4,
        lambda x, _z, v: (x - x.mean()) @ v,
    ),
    Case(
        "scaled by a result",
        [LARGEST, Fold("q", "add", x * m)],
        2,
        lambda x, _z, _v: x.sum() * x.max(),
    ),
    Case(
        "largest deviation",
        [SUM, Fold("q", "max", x + v - mean)],
        3,
        lambda x, _z, v: (x + v - x.mean()).max(),
    ),
]
STABLE = [case for case in CASES if case.label != "smallest" and not case.separate]


class Pass:
    """A derivation as executors run it, in float64 or float32."""

    def __init__(self, case: Case, kind: type = np.float64, *, may_be_empty: bool = False) -> None:
        self.case = case
        self.derivation = derive(
            case.folds,
            {"x", "z", "v"},
            finished=case.finished.keys(),
            may_be_empty=may_be_empty,
            separate=case.separate,
        )
        self.kind = f64 if kind is np.float64 else f32
        kinds = {part.name: self.kind for part in self.derivation.parts}
        self.definition = merging(self.derivation, "derived", kinds)
        self.monoid = monoid_from(self.definition)
        self.may_be_empty = may_be_empty

    def points(self, x: Array, z: Array, v: Array) -> list[Array]:
        block = Block(arg_types=[self.kind] * 3)
        cells: dict[str, SSAValue] = dict(zip("xzv", block.args, strict=True))
        block.add_op(
            loom.YieldOp(*point(self.derivation, Writer(block, self.kind), cells.__getitem__))
        )
        found = evaluate(block, [x, z, v], _nowhere)
        return [np.broadcast_to(part, x.shape) for part in found]

    def fold(self, points: Sequence[Array]) -> list[Array]:
        state = zero_state(self.monoid, ())
        for at in range(len(points[0])):
            state = self.merge(state, [part[at] for part in points])
        return state

    def merge(self, a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
        return merged(self.monoid, a, b)

    def value(self, state: Sequence[Array]) -> float:
        return self.result(state, self.case.folds[-1].name)

    def result(self, state: Sequence[Array], name: str) -> float:
        block = Block(arg_types=[self.kind] * len(state))
        writer = Writer(block, self.kind)

        def other(name: str) -> SSAValue:
            return writer.number(self.case.finished[name](lambda n: self.result(state, n)))

        finish = Finish(self.derivation, writer, block.args, other, may_be_empty=self.may_be_empty)
        block.add_op(loom.YieldOp(finish(name)))
        return float(evaluate(block, list(state), _nowhere)[0])


def _nowhere(dim: int) -> Array:
    raise AssertionError(dim)


def _cells(count: int, seed: int, scale: float = 1.0, far: float = 0.0) -> list[Array]:
    random = np.random.default_rng(seed)
    x, z, v = random.standard_normal((3, count))
    return [scale * x + far, z, v]


by_label = pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)


@by_label
def test_a_fold_of_the_derived_state_is_the_definition(case: Case):
    run = Pass(case)
    assert len(run.derivation.parts) == case.parts
    cells = _cells(9, 1)
    assert run.value(run.fold(run.points(*cells))) == pytest.approx(case.value(*cells), rel=1e-12)


@by_label
@given(cuts=st.sets(st.integers(0, 12)), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_any_shards_equal_the_whole(case: Case, cuts: set[int], seed: int):
    run = Pass(case)
    cells = _cells(12, seed)
    points = run.points(*cells)
    ends = sorted({0, 12, *cuts})
    states = [run.fold([part[a:b] for part in points]) for a, b in pairwise(ends)]
    states.append(zero_state(run.monoid, ()))
    order = np.random.default_rng(seed)
    while len(states) > 1:
        a, b = (states.pop(order.integers(len(states))) for _ in range(2))
        states.append(run.merge(a, b))
    assert run.value(states[0]) == pytest.approx(case.value(*cells), rel=1e-9, abs=1e-12)


@by_label
def test_the_zero_is_the_identity_and_merges_associate(case: Case):
    run = Pass(case, np.float32)
    assert not broken_laws(run.definition)
    points = run.points(*(np.asarray(c, np.float32) for c in _cells(5, 3)))
    state, zero = run.fold(points), zero_state(run.monoid, ())
    for both in (run.merge(state, zero), run.merge(zero, state)):
        assert [part.item() for part in both] == [part.item() for part in state]


@pytest.mark.parametrize("case", STABLE, ids=lambda case: case.label)
@pytest.mark.parametrize(("scale", "far"), [(300.0, 0.0), (1.0, 5000.0), (1.0, -5000.0)])
def test_huge_cells_in_float32(case: Case, scale: float, far: float):
    """No more is lost than rounding the cells themselves loses."""
    run = Pass(case, np.float32)
    cells = [np.asarray(c, np.float32) for c in _cells(400, 5, scale, far)]
    exact = case.value(*(c.astype(np.float64) for c in cells))
    got = run.value(run.fold(run.points(*cells)))
    assert np.isfinite(got)
    lost = 1e-6 * np.abs(cells[0]).max() * (scale**2 if case.label == "third moment" else scale)
    assert got == pytest.approx(exact, rel=1e-4, abs=400 * float(lost))


MASKING = [case for case in CASES if case.label in ("sum exp", "attention")]


@pytest.mark.parametrize("case", MASKING, ids=lambda case: case.label)
@pytest.mark.parametrize("low", [-200.0, 0.0, 200.0])
def test_a_wholly_masked_shard_changes_nothing(case: Case, low: float):
    run = Pass(case)
    cells = _cells(8, 7)
    cells[0] += low
    whole = run.fold(run.points(*cells))
    masked = run.fold(run.points(np.full(4, -np.inf), *_cells(4, 8)[1:]))
    for both in (run.merge(whole, masked), run.merge(masked, whole)):
        assert run.value(both) == pytest.approx(case.value(*cells), rel=1e-12)


@pytest.mark.parametrize("case", MASKING, ids=lambda case: case.label)
def test_what_is_masked_everywhere_is_nan_as_it_is_written(case: Case):
    run = Pass(case)
    state = run.fold(run.points(np.full(4, -np.inf), *_cells(4, 8)[1:]))
    assert np.isnan(run.result(state, "l"))
    assert np.isnan(run.value(state))


def test_a_sum_over_no_points_is_zero():
    run = Pass(CASES[0], may_be_empty=True)
    assert run.derivation.count is not None
    assert run.value(zero_state(run.monoid, ())) == 0
    masked = run.fold(run.points(np.full(4, -np.inf), *_cells(4, 8)[1:]))
    assert np.isnan(run.value(masked))


def test_infinities_and_nan_reach_the_result():
    run = Pass(CASES[1])
    for bad in (np.inf, np.nan):
        cells = _cells(4, 9)
        cells[0][2] = bad
        assert np.isnan(run.value(run.fold(run.points(*cells))))


@pytest.mark.parametrize(
    ("folds", "why"),
    [
        ([LARGEST, Fold("q", "add", exp(x * m))], "mixes cells with m"),
        ([LARGEST, Fold("q", "add", exp(x - m * 2))], "would overflow"),
        ([LARGEST, Fold("q", "add", exp(z - m))], "would overflow"),
        ([SUM, Fold("q", "add", exp(x - symbol("g")))], "would overflow"),
        ([LARGEST, Fold("q", "add", exp(m - x))], "does not vanish"),
        ([LARGEST, Fold("q", "add", (x - m) ** 2)], "does not vanish"),
        ([LARGEST, Fold("q", "add", exp((x - m) * symbol("c")))], "does not vanish"),
        ([LARGEST, Fold("q", "add", exp((x - m) ** 2))], "mixes both"),
        ([SUM, Fold("q", "add", exp(x - mean))], "a mean does not bound"),
        ([SUM, Fold("q", "add", (z - mean) ** 2)], "may cancel"),
        ([SUM, Fold("q", "add", (x - symbol("s")) ** 2)], "may cancel"),
        ([LARGEST, Fold("q", "add", (x - m) * v)], "sums of v and v\\*x apart.*does not vanish"),
        ([SUM, Fold("q", "add", (z - symbol("c")) * mean)], "put together with c and mean s"),
        ([SUM, Fold("q", "add", (z - mean) * v)], "put together with mean s, may cancel"),
        ([*SOFTMAX, Fold("t", "add", exp(x - m) / total), SQUARES], "separate=true"),
        ([*SOFTMAX, Fold("t", "add", exp(x - m) / total * z), SPREAD], "may cancel"),
        ([SUM, Fold("q", "add", (x - mean) ** 9)], "too many"),
        ([SUM, Fold("q", "max", (x - mean) ** 2)], "does not part"),
        ([SUM, Fold("q", "mul", x - mean)], "folds by mul"),
    ],
)
def test_refused(folds: Sequence[Fold], why: str):
    with pytest.raises(NotDerivableError, match=why):
        derive(folds, {"x", "z", "v"}, finished={"g"})


RELATIVE = {"variance", "covariance", "third moment", "weighted deviation", "largest deviation"}


@pytest.mark.parametrize("case", [c for c in CASES if c.label in RELATIVE], ids=lambda c: c.label)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("cut", [0, 3])
def test_what_is_relative_to_no_number_is_nan(case: Case, bad: float, cut: int):
    """Distances from a mean are NaN as soon as one cell is not finite, wherever it is merged."""
    run = Pass(case)
    cells = _cells(8, 4)
    cells[0][5] = bad
    points = run.points(*cells)
    parts = [run.fold([p[:cut] for p in points]), run.fold([p[cut:] for p in points])]
    with np.errstate(invalid="ignore"):
        assert np.isnan(case.value(*cells))
    assert np.isnan(run.value(run.merge(*parts)))


def test_a_sum_of_distances_is_zero_or_nan():
    case = Case(
        "scaled deviations", [SUM, Fold("q", "add", (x - mean) * mean)], 2, lambda x, _z, _v: x
    )
    run = Pass(case)
    cells = _cells(6, 2)
    assert run.value(run.fold(run.points(*cells))) == 0
    cells[0][2] = np.nan
    assert np.isnan(run.value(run.fold(run.points(*cells))))


def test_one_sum_is_one_part():
    again = Fold("k", "add", exp(x - m))
    found = derive(
        [*SOFTMAX, again, Fold("n", "add", constant(1)), Fold("c", "add", constant(1))], {"x"}
    )
    assert [part.name for part in found.parts] == ["m", "l", "n"]


def test_means_of_one_sum_under_two_names():
    again = [Fold("t", "add", x), Fold("q", "add", (x - mean_z) * v)]
    found = derive([SUM, *again, Fold("r", "add", (x - mean_z) ** 2)], {"x", "v"})
    assert {part.name for part in found.parts} == {"s", "q", "q1", "n", "r"}
    assert {centre.name: centre.parts for centre in found.centres}["mean t"] == ("s", "n")


def test_the_steps_say_how():
    found = derive([*SOFTMAX, Fold("o", "add", exp(x - m) / total * v)], {"x", "v"})
    assert found.steps[-2:] == (
        "o is the sum of v*exp(from m); from another centre it is [o]*exp(to m)",
        "o = [o]*l^-1",
    )


def _sympy(value: Polynomial):
    sympy = pytest.importorskip("sympy")
    total = sympy.Integer(0)
    for monomial, factor in value.terms:
        term = sympy.Rational(factor.numerator, factor.denominator)
        for name, power in monomial.powers:
            term *= sympy.Symbol(name) ** power
        total += term * (1 if monomial.exponent is None else sympy.exp(_sympy(monomial.exponent)))
    return total


@by_label
def test_sympy_agrees_that_moving_a_point_is_its_body_there(case: Case):
    """For one point, a part moved from its own centre to any other is its element there."""
    sympy = pytest.importorskip("sympy")
    found: Derivation = derive(
        case.folds, {"x", "z", "v"}, finished=case.finished.keys(), separate=case.separate
    )
    centres = {centre.name: centre for centre in found.centres}
    values = {part.symbol: part.point for part in found.parts}
    last = found.results[case.folds[-1].name].value
    for part in found.parts:
        if part.moved is not None:
            values[part.symbol] = part.moved.replaced({p.symbol: p.point for p in found.parts})
    near = {centre.distance: constant(0) for centre in centres.values()}
    near |= {centre.shift: symbol(centre.cell) - symbol(name) for name, centre in centres.items()}
    moved = last.replaced(values).replaced(near)
    body = case.folds[-1].body
    if case.folds[-1].monoid == "add":
        assert sympy.simplify(_sympy(moved) - _sympy(body)) == 0
