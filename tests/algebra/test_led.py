"""Which part of a state leads the others, read off a merge."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32, i64

from tapestry.algebra.led import Led, find_led
from tapestry.algebra.monoids import builtin_monoid, monoid_from
from tapestry.dialects import loom
from tapestry.frontend import parse_text


def _monoid(single: str, predicate: str, compared: str, chosen: str) -> loom.MonoidOp:
    text = f"""
    loom.monoid @one commutative zero [0 : i64, 0.0 : f32]
        merge (%p: i64, %a: f32, %q: i64, %b: f32) {{
      %most = arith.{single} %p, %q : i64
      %take = arith.cmpi {predicate}, {compared} : i64
      %value = arith.select %take, {chosen} : f32
      loom.yield %most, %value : i64, f32
    }}"""
    (found,) = [op for op in parse_text(text).walk() if isinstance(op, loom.MonoidOp)]
    return found


@pytest.mark.parametrize(
    ("single", "predicate", "compared", "chosen", "want"),
    [
        ("maxsi", "sge", "%q, %p", "%b, %a", Led(0, (0, 1), True, True)),
        ("maxsi", "sgt", "%q, %p", "%b, %a", Led(0, (0, 1), True, False)),
        ("maxsi", "sge", "%p, %q", "%a, %b", Led(0, (0, 1), True, False)),
        ("maxsi", "slt", "%q, %p", "%a, %b", Led(0, (0, 1), True, True)),
        ("minsi", "sle", "%q, %p", "%b, %a", Led(0, (0, 1), False, True)),
        ("minsi", "slt", "%q, %p", "%b, %a", Led(0, (0, 1), False, False)),
        ("minsi", "sge", "%q, %p", "%b, %a", None),  # goes with the largest
        ("maxsi", "uge", "%q, %p", "%b, %a", None),  # of another order
        ("maxsi", "sge", "%q, %q", "%b, %a", None),
        ("maxsi", "sge", "%q, %p", "%b, %b", None),
        ("addi", "sge", "%q, %p", "%b, %a", None),
    ],
)
def test_what_leads(
    single: str, predicate: str, compared: str, chosen: str, want: Led | None
) -> None:
    assert find_led(monoid_from(_monoid(single, predicate, compared, chosen))) == (
        () if want is None else (want,)
    )


def test_a_single_part_leads_nothing() -> None:
    for name, state in (("max", (i64,)), ("argmax", (f32, i64))):
        monoid = builtin_monoid(name, state)
        assert monoid is not None
        assert find_led(monoid) == ()


def test_folds_side_by_side_have_leaders_of_their_own() -> None:
    text = """
    loom.monoid @both zero [0 : i64, 0.0 : f32, 9 : i64, 0.0 : f32]
        merge (%p: i64, %a: f32, %s: i64, %c: f32, %q: i64, %b: f32, %t: i64, %d: f32) {
      %most = arith.maxsi %p, %q : i64
      %least = arith.minsi %s, %t : i64
      %later = arith.cmpi sge, %q, %p : i64
      %first = arith.cmpi slt, %t, %s : i64
      %one = arith.select %later, %b, %a : f32
      %other = arith.select %first, %d, %c : f32
      loom.yield %most, %one, %least, %other : i64, f32, i64, f32
    }"""
    (both,) = [op for op in parse_text(text).walk() if isinstance(op, loom.MonoidOp)]
    want = (Led(0, (0, 1), True, True), Led(2, (2, 3), False, False))
    assert find_led(monoid_from(both)) == want
