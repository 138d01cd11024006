"""Operations whose operands and results are one value each, made in a third of the time.

    class CastOp(PlainOp):
        source = operand_def()
        result = result_def()

        def __init__(self, source: SSAValue, kind: Attribute) -> None:
            super().__init__(operands=[source], result_types=[kind])

What IRDL makes of arguments asks of each whether it is a value, several or none, and is most of
what it takes to make an operation. Choosing schedules makes many: of a block of a network 10,000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation


class PlainOp(IRDLOperation):
    """An operation without regions, successors, and operands or results that are many or none."""

    def __init__(
        self,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute | None] | None = None,
    ) -> None:
        given: Mapping[str, Attribute | None] = {} if properties is None else properties
        Operation.__init__(
            self,
            operands=operands,
            result_types=result_types,
            properties={name: value for name, value in given.items() if value is not None},
        )
