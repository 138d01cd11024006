"""Literals that stand for extents: `fold / 768.0` in a mean, `x * 0.125` for a head of 64.

A body cannot say "the extent of dimension 1", so programs write it as a number. Where extents get
smaller, that number has to follow them or they have to stay.
"""

from __future__ import annotations

from math import isclose, sqrt

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from tapestry.algebra.literals import float_attr
from tapestry.proving.sizes.structure import Structure


def pin_literals(structure: Structure) -> None:
    """Keep the extents that literals could stand for."""
    literals = {
        (literal_value(literal), closeness(literal.result.type))
        for plan in structure.plans
        for literal in plan.body.literals
    }
    told: dict[int, bool] = {}

    def is_told(extent: int) -> bool:
        if extent not in told:
            told[extent] = any(stands_for(value, extent, close) for value, close in literals)
        return told[extent]

    for space in structure.spaces():
        for dimension in space:
            if is_told(dimension.extent):
                structure.axes.pin(dimension.line)
    for plan in structure.plans:
        if is_told(plan.folds):
            for dimension in plan.folded:
                structure.axes.pin(dimension.line)


def literal_value(op: arith.ConstantOp) -> float:
    """The number that a constant is."""
    value = op.value
    if isinstance(value, FloatAttr):
        return float(value.value.data)
    assert isinstance(value, IntegerAttr)
    return float(value.value.data)


def closeness(kind: Attribute) -> float:
    """The relative error within which literals of a type, as they are printed, are one number."""
    if isinstance(kind, BFloat16Type):
        return 2.0**-8
    return 2.0**-11 if isinstance(kind, Float16Type) else 2.0**-19


def stands_for(value: float, extent: int, close: float) -> bool:
    """Whether a literal is n, 1 / n, sqrt(n), 1 / sqrt(n), n + 1, n - 1 or 1 / (n - 1).

    >>> [n for n in range(2, 100) if stands_for(0.125, n, 1e-6)]
    [7, 8, 9, 64]
    """
    if extent < 2 or value == 0:
        return False
    near = (extent - 1, extent, extent + 1)
    forms = (*near, *(1 / n for n in near), sqrt(extent), 1 / sqrt(extent))
    return any(isclose(abs(value), form, rel_tol=close) for form in forms)


def follow(literal: arith.ConstantOp, folded: int, now: int) -> Attribute | None:
    """What a literal becomes that is, or divides one by, how many cells its operation folds."""
    value, close = literal_value(literal), closeness(literal.result.type)
    attribute = literal.value
    if folded < 2 or folded == now or not isinstance(attribute, FloatAttr):
        return None
    if isclose(value, folded, rel_tol=close):
        return float_attr(now, attribute.type)
    if isclose(value, 1 / folded, rel_tol=close):
        return float_attr(1 / now, attribute.type)
    return None
