"""Bodies of loom written by hand: a block under construction, and what it is made of.

body = Body([f32, f32])
body.region(body.add(arith.AddfOp(*body.arguments)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import AnyFloat, IntegerType, i1, i64
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tapestry.algebra.dtypes import body_type, is_integer, type_named
from tapestry.algebra.literals import number_attr
from tapestry.dialects import loom


def cell_type(dtype: str) -> Attribute:
    """What a body takes of a tensor's cells."""
    element = type_named(dtype)
    assert element is not None
    return body_type(element)


class Body:
    """A body under construction: its arguments, and operations on scalars."""

    def __init__(self, arguments: Sequence[Attribute]) -> None:
        self.block = Block(arg_types=arguments)

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """What the body takes."""
        return self.block.args

    def add(self, op: Operation) -> SSAValue:
        """Append an operation with one result."""
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: Any, kind: Attribute) -> SSAValue:
        """A constant."""
        number = number_attr(value.item() if hasattr(value, "item") else value, kind)
        if isinstance(number, ComplexNumberAttr):
            parts = [
                self.number(part, number.type.element_type)
                for part in (number.real.data, number.imag.data)
            ]
            return self.add(complex_dialect.CreateOp(parts[0], parts[1], number.type))
        return self.add(arith.ConstantOp(number))

    def index(self, dim: int) -> SSAValue:
        """The coordinate of the running point along a dimension."""
        return self.add(loom.IndexOp(dim))

    def affine(self, row: Sequence[int], offset: int, start: SSAValue | None = None) -> SSAValue:
        """`start + row . p + offset` at the running point p."""
        total = start
        for dim, coefficient in enumerate(row):
            if coefficient:
                term = self.index(dim)
                if coefficient != 1:
                    term = self.add(arith.MuliOp(term, self.number(coefficient, i64)))
                total = term if total is None else self.add(arith.AddiOp(total, term))
        if total is None:
            return self.number(offset, i64)
        return self.add(arith.AddiOp(total, self.number(offset, i64))) if offset else total

    def widened(self, value: SSAValue, *, unsigned: bool) -> SSAValue:
        """An integer as an i64."""
        kind = value.type
        if kind == i64:
            return value
        assert isinstance(kind, IntegerType)
        extend = arith.ExtUIOp if unsigned or kind == i1 else arith.ExtSIOp
        return self.add(extend(value, i64))

    def narrowed(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """An i64 as a number of another type."""
        if kind == i64:
            return value
        if is_integer(kind):
            return self.add(arith.TruncIOp(value, cast("IntegerType[int]", kind)))
        return self.add(arith.SIToFPOp(value, cast(AnyFloat, kind)))

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """Whether all conditions hold."""
        held = conditions[0] if conditions else self.number(1, i1)
        for condition in conditions[1:]:
            held = self.add(arith.AndIOp(held, condition))
        return held

    def inline(self, region: Region, values: Sequence[SSAValue]) -> list[SSAValue]:
        """What another body computes of `values`."""
        source = region.block
        mapped: dict[SSAValue, SSAValue] = dict(zip(source.args, values, strict=True))
        for op in source.ops:
            if isinstance(op, loom.YieldOp):
                return [mapped[value] for value in op.values]
            copy = op.clone(mapped)
            self.block.add_op(copy)
            mapped.update(zip(op.results, copy.results, strict=True))
        raise AssertionError("a body yields")

    def region(self, *results: SSAValue) -> Region:
        """The finished body."""
        self.block.add_op(loom.YieldOp(*results))
        return Region(self.block)
