"""Rules that hold for moderate numbers of one dtype, and not at its edges or beside another."""

import numpy as np
import pytest

from tapestry.metakernels import load_library
from tapestry.proving.edges import edge_inputs, edge_values
from tapestry.proving.rules import check_values
from tapestry.rewriting import Rule, RuleError, read_rules
from tapestry.rewriting.binding import Expansions
from tapestry.rewriting.obligations import check_types, telling

LIBRARY = load_library()

FALSE = """
bound:
  match: {y: {op: minimum, a: x, b: 1000000}}
  types: {x: {dtype: float}}
  where: ["same_type(x, y)"]
  produce: {y: x}
bound_of_rounded:
  match: {y: {op: minimum, a: x, b: 1000000}}
  types: {x: {dtype: float}}
  where: ["same_type(x, y)"]
  produce: {y: x}
  exact: false
bound_of_integers:
  match: {y: {op: minimum, a: x, b: 1000000}}
  types: {x: {dtype: int}}
  where: ["same_type(x, y)"]
  produce: {y: x}
clamped:
  match: {y: {op: clamp, x: x, min: -1000.0, max: 1000.0}}
  types: {x: {dtype: float}}
  produce: {y: x}
successor:
  match: {h: {op: add, a: x, b: 1}, y: {op: gt, a: h, b: x}}
  types: {x: {dtype: int}}
  where: ["same_type(x, h)"]
  produce: {y: {op: eq, a: x, b: x}}
successor_of_floats:
  match: {h: {op: add, a: x, b: 1}, y: {op: gt, a: h, b: x}}
  types: {x: {dtype: float}}
  where: ["same_type(x, h)"]
  produce: {y: {op: eq, a: x, b: x}}
least_integer:
  match: {a: {op: abs, x: x}, y: {op: relu, x: a}}
  types: {x: {dtype: int}}
  produce: {y: a}
cast_back:
  match: {h: {op: cast, x: x, dtype: f32}, y: {op: cast, x: h, dtype: i32}}
  types: {x: {dtype: i32}}
  produce: {y: x}
overflowing_order:
  match: {e: {op: exp, x: x}, y: {op: argmax, x: e, axis: $i, keepdim: $k}}
  types: {x: {dtype: float}}
  produce: {y: {op: argmax, x: x, axis: $i, keepdim: $k}}
nothing_times:
  match: {p: {op: mul, a: x, b: 0}, y: {op: add, a: p, b: w}}
  types: {x: {dtype: float}}
  where: ["same_type(w, y)"]
  produce: {y: w}
mixed_neg:
  match: {n: {op: neg, x: b}, y: {op: add, a: a, b: n}}
  where: ["single_use(n)"]
  produce: {y: {op: sub, a: a, b: b}}
mixed_neg_of_integers:
  match: {n: {op: neg, x: b}, y: {op: add, a: a, b: n}}
  types: {a: {dtype: i32}, b: {dtype: i8}}
  produce: {y: {op: sub, a: a, b: b}}
mixed_factor:
  match: {p: {op: mul, a: a, b: b}, q: {op: mul, a: a, b: c}, y: {op: add, a: p, b: q}}
  types: {b: {dtype: number}}
  where: ["single_use(p)", "single_use(q)", "same_type(p, q)", "same_type(b, c)"]
  produce: {s: {op: add, a: b, b: c}, y: {op: mul, a: a, b: s}}
  exact: false
divided_negs:
  match: {m: {op: neg, x: a}, n: {op: neg, x: b}, y: {op: div, a: m, b: n}}
  types: {a: {dtype: i8}, b: {dtype: i8}}
  produce: {y: {op: div, a: a, b: b}}
"""

TRUE = """
kept:
  match: {e: {op: exp, x: x}, y: {op: relu, x: e}}
  types: {x: {dtype: float}}
  produce: {y: e}
bound_of_doubled:
  match: {m: {op: minimum, a: x, b: 1000}, y: {op: add, a: m, b: m}}
  types: {x: {dtype: number}}
  where: ["same_type(x, m)"]
  produce: {y: {op: mul, a: m, b: 2}}
"""


def check(rule: Rule) -> int:
    return check_values(rule, check_types(rule, Expansions(LIBRARY)), LIBRARY).compared


@pytest.mark.parametrize("rule", read_rules(FALSE, "r.yaml", LIBRARY), ids=lambda rule: rule.name)
def test_refused(rule: Rule) -> None:
    with pytest.raises(RuleError, match="differ|not the same"):
        check(rule)


@pytest.mark.parametrize("rule", read_rules(TRUE, "r.yaml", LIBRARY), ids=lambda rule: rule.name)
def test_accepted(rule: Rule) -> None:
    assert check(rule) >= 6


def test_a_branch_at_a_number_has_to_be_sampled() -> None:
    text = """
hidden:
  match:
    s: {op: mul, a: x, b: 3}
    e: {op: eq, a: s, b: 12345}
    y: {op: where, condition: e, a: w, b: x}
  types: {x: {dtype: i32}, w: {dtype: i32}}
  where: ["same_type(s, x)", "same_type(w, x)", "same_type(y, x)"]
  produce: {y: x}
"""
    (rule,) = read_rules(text, "r.yaml", LIBRARY)
    with pytest.raises(RuleError, match="no inputs sample the branch at 12345 in @eq being true"):
        check(rule)


def test_places_have_mixed_dtypes() -> None:
    text = "r:\n  match: {y: {op: add, a: a, b: b}}\n  produce: {y: {op: add, a: b, b: a}}\n"
    (rule,) = read_rules(text, "r.yaml", LIBRARY)
    picked = telling(rule, check_types(rule, Expansions(LIBRARY)), 24, 512)
    found = [sample.combination(rule) for sample in picked]
    assert len(set(found)) == len(found) == 24
    assert {(t, t, t) for t in ("f32", "i32", "i8", "ui8", "bf16")} <= set(found)
    assert sum(len(set(names)) > 1 for names in found) >= 12


def test_edges_of_types() -> None:
    assert edge_values(np.dtype(np.uint8), ()).tolist() == list(range(256))
    floats = edge_values(np.dtype(np.float32), (5.5,))
    assert np.isnan(floats).any()
    assert np.isinf(floats).any()
    assert np.nextafter(np.float32(5.5), np.float32(6)) in floats
    rounds = list(edge_inputs([(np.dtype(np.float32), (40,))], (), moderate=True))
    assert all(np.isfinite(given[0]).all() for given in rounds)
