"""Parsing and printing of `loom.fused`, whose docstring shows its syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from tapestry.dialects._loom_syntax import (
    angle_range,
    keyword_list,
    parse_body,
    parse_types,
    print_body,
)
from tapestry.dialects._loom_types import (
    projections_attr,
)
from tapestry.dialects.zspace import (
    PartitionAttr,
    RangeAttr,
    parse_partition,
    parse_projection,
)

if TYPE_CHECKING:
    from tapestry.dialects import loom


def parse_fused(cls: type[loom.FusedOp], parser: Parser) -> loom.FusedOp:
    """`@label over <range> aligned(...) shards <...> ins(%x) group (%a: T) { ... } : types`."""
    label = parser.parse_symbol_name()
    parser.parse_keyword("over")
    index = angle_range(parser)
    alignments = keyword_list(parser, "aligned", lambda: parse_projection(parser))
    shards = None
    if parser.parse_optional_keyword("shards") is not None:
        with parser.in_angle_brackets():
            shards = PartitionAttr(parse_partition(parser))
    ins = keyword_list(parser, "ins", parser.parse_unresolved_operand)
    parser.parse_keyword("group")
    body = parse_body(parser)
    attributes = parser.parse_optional_attr_dict()
    values, results = parse_types(parser, ins)
    properties: dict[str, Attribute] = {
        "label": label,
        "index_range": RangeAttr(index),
        "alignments": projections_attr(alignments),
    }
    if shards is not None:
        properties["shards"] = shards
    return cls.create(
        operands=values,
        result_types=results,
        properties=properties,
        attributes=attributes,
        regions=[body],
    )


def print_fused(op: loom.FusedOp, printer: Printer) -> None:
    """The inverse of `parse_fused`."""
    printer.print_string(" ")
    printer.print_symbol_name(op.label.data)
    printer.print_string(f" over <{op.index}>")
    with printer.indented(2):
        printer.print_string(f"\naligned({', '.join(str(a.data) for a in op.alignments)})")
        if op.partition is not None:
            printer.print_string(f"\nshards <{op.partition}>")
        if op.ins:
            printer.print_string("\nins(")
            printer.print_list(op.ins, printer.print_operand)
            printer.print_string(")")
        printer.print_string("\n")
        print_body(printer, "group", op.body)
        if op.attributes:
            printer.print_string("\n")
            printer.print_attr_dict(op.attributes)
        printer.print_string("\n: ")
        printer.print_function_type([value.type for value in op.operands], op.result_types)
