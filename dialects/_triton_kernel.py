"""`triton.kernel`: one Triton function, with the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    i64,
)
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A Triton function.

    `blocks` names the sizes its tiles are made of (powers of two; compile-time arguments of the
    printed function), `num_warps` and `num_stages` say how it is compiled, and `origins` says what
    it computes, for the comment above it. The module's docstring of `triton.py` has an example.
    """

    name = "triton.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    blocks = prop_def(DictionaryAttr)
    num_warps = prop_def(IntegerAttr)
    num_stages = prop_def(IntegerAttr)
    origins = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        body: Block,
        blocks: Mapping[str, int],
        *,
        num_warps: int = 4,
        num_stages: int = 2,
        origins: Sequence[str] = (),
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "blocks": DictionaryAttr(
                    {block: IntegerAttr(size, i64) for block, size in blocks.items()}
                ),
                "num_warps": IntegerAttr(num_warps, i64),
                "num_stages": IntegerAttr(num_stages, i64),
                "origins": ArrayAttr([StringAttr(origin) for origin in origins]),
            },
            regions=[Region(body)],
        )

    @property
    def block_sizes(self) -> dict[str, int]:
        """The size of each block by name."""
        sizes: dict[str, int] = {}
        for name, size in self.blocks.data.items():
            assert isinstance(size, IntegerAttr)
            sizes[name] = size.value.data
        return sizes

    @property
    def warps(self) -> int:
        """How many warps run one program."""
        return self.num_warps.value.data

    @property
    def stages(self) -> int:
        """How many steps of a loop are in flight."""
        return self.num_stages.value.data

    @property
    def asserts(self) -> bool:
        """Whether it may stop the run: it must be compiled with assertions."""
        return any(op.name == "triton.assert" for op in self.body.walk())

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("blocks")
        blocks = parser.parse_optional_attr_dict()
        parser.parse_keyword("warps")
        warps = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_keyword("stages")
        stages = parser.parse_integer(allow_boolean=False, allow_negative=False)
        origins = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_str_literal
        )
        region = parser.parse_region(arguments)
        return cls.create(
            properties={
                "sym_name": name,
                "blocks": DictionaryAttr(blocks),
                "num_warps": IntegerAttr(warps, i64),
                "num_stages": IntegerAttr(stages, i64),
                "origins": ArrayAttr([StringAttr(origin) for origin in origins or ()]),
            },
            regions=[region],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") blocks ")
        printer.print_attr_dict(self.blocks.data)
        printer.print_string(f" warps {self.warps} stages {self.stages} [")
        printer.print_list(self.origins, lambda o: printer.print_string_literal(o.data))
        printer.print_string("] ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        for name, value in self.blocks.data.items():
            if not isinstance(value, IntegerAttr):
                raise VerifyException(f"{name} = {value} is not a number")
            size = value.value.data
            if size < 1 or size & (size - 1):
                raise VerifyException(f"{name} = {size} is not a power of two")


def block_size(op: Operation, block: str) -> int:
    """The size that the kernel around `op` gives the named block."""
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    if kernel is None:
        raise VerifyException("it is only allowed in a triton.kernel")
    sizes = kernel.block_sizes
    if block not in sizes:
        raise VerifyException(f"the kernel has no block named {block!r}")
    return sizes[block]
