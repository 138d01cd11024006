"""Operations on constants mean on tiles what they mean to the reference executor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.agreement import Case, check, dtype_of

DIVISIONS = ["divsi", "remsi", "floordivsi", "ceildivsi"]


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_divisions_of_constants(kind):
    least = -(1 << (int(kind[1:]) - 1))
    pairs = [(-7, 2), (7, -2), (-7, -2), (7, 0), (least, -1), (least, 3)]
    cases = [
        Case(
            f"%x = arith.constant {x} : {kind} %y = arith.constant {y} : {kind} "
            f"%q = arith.{op} %x, %y : {kind} %v = arith.addi %q, %a : {kind}",
            kind,
        )
        for op in DIVISIONS
        for x, y in pairs
    ]
    cases += [
        Case(f"%x = arith.constant {least} : {kind} %v = arith.{op} %{x}, %{y} : {kind}", kind)
        for op in ("addi", "subi", "muli", "maxsi")
        for x, y in (("a", "x"), ("x", "a"), ("x", "x"))
    ]
    check([kind], [np.arange(-3, 4).astype(dtype_of(kind))], cases)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_floats_and_constants(kind):
    numbers = ("0.0", "-0.0", "0.5", "1.0", "-2.5")
    choose = f"%t = arith.constant 2.0 : {kind} %v = arith.select %u, %t, %x : {kind}"
    # A power of f64 is computed through logarithms of f64: its error grows with the exponent.
    ulps = 1000 if kind == "f64" else 8
    cases: list[Case] = []
    for x in numbers:
        one = f"%x = arith.constant {x} : {kind}"
        for y in numbers:
            two = f"{one} %y = arith.constant {y} : {kind}"
            for op in ("addf", "divf", "maximumf"):
                lines = f"%z = arith.{op} %x, %y : {kind} %v = arith.mulf %z, %a : {kind}"
                cases.append(Case(f"{two} {lines}", kind))
        cases += [
            Case(f"{one} %v = arith.addf %a, %x : {kind}", kind),
            Case(f"{one} %v = arith.divf %x, %a : {kind}", kind),
            Case(f"{one} %u = arith.cmpf uno, %a, %x : {kind} {choose}", kind),
            Case(f"{one} %u = arith.cmpf ult, %x, %x : {kind} {choose}", kind),
            Case(f"{one} %v = math.powf %a, %x : {kind}", kind, ulps=ulps),
            Case(f"{one} %v = math.powf %x, %a : {kind}", kind, ulps=ulps),
            Case(f"{one} %v = math.absf %x : {kind}", kind),
        ]
    values = [0.0, -0.0, 1.0, -1.5, 2.25, 100.0, np.inf, -np.inf, np.nan]
    check([kind], [np.array(values).astype(dtype_of(kind))], cases)
