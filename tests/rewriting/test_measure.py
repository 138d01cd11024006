"""Rules that end are told from those that may not; the weights and orders that show it are ones."""

import pytest

from tapestry.metakernels import load_library
from tapestry.rewriting import read_rules
from tapestry.rewriting.measure import find_measure, solve_weights
from tapestry.rewriting.terms import Term, larger

LIBRARY = load_library()

RULES = """
factor:
  match: {p: {op: mul, a: a, b: b}, q: {op: mul, a: a, b: c}, y: {op: add, a: p, b: q}}
  where: ["single_use(p)", "single_use(q)"]
  produce: {s: {op: add, a: b, b: c}, y: {op: mul, a: a, b: s}}
factor_shared:
  match: {p: {op: mul, a: a, b: b}, q: {op: mul, a: a, b: c}, y: {op: add, a: p, b: q}}
  produce: {s: {op: add, a: b, b: c}, y: {op: mul, a: a, b: s}}
twice:
  match: {t: {op: transpose, x: x, perm: $p}, y: {op: transpose, x: t, perm: $q}}
  produce: {y: {op: transpose, x: x, perm: "$p[$q]"}}
out:
  match: {n: {op: neg, x: x}, y: {op: sum, x: n, axis: $i}}
  where: ["single_use(n)"]
  produce: {s: {op: sum, x: x, axis: $i}, y: {op: neg, x: s}}
back:
  match: {s: {op: sum, x: x, axis: $i}, y: {op: neg, x: s}}
  where: ["single_use(s)"]
  produce: {n: {op: neg, x: x}, y: {op: sum, x: n, axis: $i}}
swap:
  match: {y: {op: add, a: a, b: b}}
  produce: {y: {op: add, a: b, b: a}}
grow:
  match: {y: {op: exp, x: x}}
  produce: {e: {op: exp, x: x}, y: {op: relu, x: e}}
parts:
  match: {y: {op: sigmoid, x: x}}
  produce:
    {n: {op: neg, x: x}, e: {op: exp, x: n}, s: {op: add, a: e, b: 1}, y: {op: div, a: 1, b: s}}
whole:
  match:
    {n: {op: neg, x: x}, e: {op: exp, x: n}, s: {op: add, a: e, b: 1}, y: {op: div, a: 1, b: s}}
  where: ["single_use(n)", "single_use(e)", "single_use(s)"]
  produce: {y: {op: sigmoid, x: x}}
"""


def test_how_rules_end() -> None:
    measure = find_measure(read_rules(RULES, "r.yaml", LIBRARY))
    assert measure.endings == {
        "factor": "shrinks",
        "factor_shared": "one pass",  # what else uses the products keeps them
        "twice": "unwinds",
        "out": "unwinds",
        "back": "one pass",  # undoes what another rule does
        "swap": "one pass",
        "grow": "one pass",
        "parts": "shrinks",
        "whole": "one pass",
    }
    weights = measure.weights
    assert all(weight >= 1 for weight in weights.values())
    assert weights["sigmoid"] > weights["neg"] + weights["exp"] + weights["add"] + weights["div"]


def test_order_of_rules_decides() -> None:
    rules = read_rules(RULES, "r.yaml", LIBRARY)
    endings = find_measure(rules[::-1]).endings
    assert (endings["whole"], endings["parts"]) == ("shrinks", "one pass")
    assert (endings["back"], endings["out"]) == ("unwinds", "one pass")


@pytest.mark.parametrize(
    ("one", "other", "is_larger"),
    [
        (("f", "x"), "x", True),
        (("f", "x"), "y", False),
        ("x", "x", False),
        (("f", ("g", "x")), ("g", ("f", "x")), True),
        (("f", "x", "y"), ("f", "y", "x"), False),
        (("f", ("g", "x"), "y"), ("f", "x", "y"), True),
        (("f", "x"), ("f", "x", "x"), False),
        (("f", "x"), ("g", "x", "x"), True),
    ],
)
def test_path_order(one: Term, other: Term, *, is_larger: bool) -> None:
    assert any(True for _ in larger(one, other, frozenset())) == is_larger


def test_weights_solve_what_they_are_asked() -> None:
    changes = [({"a": 1}, {"b": 2, "c": 1}), ({"b": 1}, {"c": 3})]
    weights = solve_weights(changes)
    assert weights is not None
    assert weights["a"] > 2 * weights["b"] + weights["c"]
    assert weights["b"] > 3 * weights["c"]
    assert solve_weights([*changes, ({"c": 1}, {"a": 1})]) is None
    assert solve_weights([({}, {})]) is None


def test_what_is_too_large_to_order_is_applied_once() -> None:
    doubled = ", ".join(f"s{n}: {{op: add, a: s{n - 1}, b: s{n - 1}}}" for n in range(1, 40))
    text = f"""
big:
  match: {{s0: {{op: neg, x: x}}, {doubled}}}
  produce: {{s39: {{op: neg, x: s38}}}}
"""
    (rule,) = read_rules(text, "r.yaml", LIBRARY)
    assert find_measure([rule]).endings == {"big": "shrinks"}
    (kept,) = read_rules(text.replace("op: neg, x: s38", "op: add, a: s38, b: x"), "r", LIBRARY)
    assert find_measure([kept]).endings == {"big": "one pass"}
