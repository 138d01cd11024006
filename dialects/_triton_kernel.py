"""`triton.kernel`: one Triton function, with the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._triton_schedule import Schedule, ScheduleAttr


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A Triton function.

    `schedule` has the sizes its tiles are made of (axis M is compile-time argument BLOCK_M of the
    printed function) and how it is compiled; `numerics` and `origins` say how it rounds and what it
    computes, for the comment above it. The module's docstring of `triton.py` has an example.
    """

    name = "triton.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    schedule = prop_def(ScheduleAttr)
    numerics = opt_prop_def(StringAttr)
    origins = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        body: Block,
        schedule: Schedule,
        origins: Sequence[str] = (),
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "schedule": ScheduleAttr(schedule),
                "origins": ArrayAttr([StringAttr(origin) for origin in origins]),
            },
            regions=[Region(body)],
        )

    @property
    def constants(self) -> dict[str, int]:
        """What it takes at compile time, by name: the sizes of blocks first."""
        return self.schedule.data.constants

    @property
    def warps(self) -> int:
        """How many warps run one program."""
        return self.schedule.data.warps

    @property
    def stages(self) -> int:
        """How many steps of a loop are in flight."""
        return self.schedule.data.stages

    @property
    def asserts(self) -> bool:
        """Whether it may stop the run: it must be compiled with assertions."""
        return any(op.name == "triton.assert" for op in self.body.walk())

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("schedule")
        schedule = ScheduleAttr.new(ScheduleAttr.parse_parameter(parser))
        says = parser.parse_optional_keyword("numerics")
        numerics = None if says is None else StringAttr(parser.parse_str_literal())
        origins = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_str_literal
        )
        region = parser.parse_region(arguments)
        properties: dict[str, Attribute] = {
            "sym_name": name,
            "schedule": schedule,
            "origins": ArrayAttr([StringAttr(origin) for origin in origins or ()]),
        }
        if numerics is not None:
            properties["numerics"] = numerics
        return cls.create(properties=properties, regions=[region])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") schedule ")
        self.schedule.print_parameter(printer)
        if self.numerics is not None:
            printer.print_string(" numerics ")
            printer.print_string_literal(self.numerics.data)
        printer.print_string(" [")
        printer.print_list(self.origins, lambda o: printer.print_string_literal(o.data))
        printer.print_string("] ")
        printer.print_region(self.body, print_entry_block_args=False)


def block_size(op: Operation, block: str) -> int:
    """The size that the kernel around `op` gives the named block (or another constant)."""
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    if kernel is None:
        raise VerifyException("it is only allowed in a triton.kernel")
    sizes = kernel.constants
    if block not in sizes:
        raise VerifyException(f"the kernel has no block named {block!r}")
    return sizes[block]
