"""Parsing and printing of kernels, applications and merges; `loom.py` shows the syntax of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from tapestry.dialects._loom_reads import Fill
from tapestry.dialects._loom_syntax import (
    SEGMENTS,
    angle_range,
    keyword_list,
    parse_bodies,
    parse_by,
    parse_clipped,
    parse_inside,
    parse_types,
    print_attributes,
    print_bodies,
    print_clipped,
    print_fold,
    print_inside,
    print_types,
    segments,
    signature,
)
from tapestry.dialects._loom_types import parse_iterators, projections_attr
from tapestry.dialects.zspace import (
    RangeAttr,
    parse_projection,
)
from tapestry.zspace import Projection

if TYPE_CHECKING:
    from tapestry.dialects import loom


def parse_kernel(cls: type[loom.KernelOp], parser: Parser) -> loom.KernelOp:
    """`@name [kinds] by @monoid ins(...) extra(...) outs(...) parts(...) domain(...) wrap ...`."""
    name = parser.parse_symbol_name()
    kinds = parse_iterators(parser)
    monoid = parse_by(parser)
    ins = keyword_list(parser, "ins", lambda: parse_clipped(parser))
    extras = keyword_list(parser, "extra", lambda: parse_clipped(parser))
    outs = keyword_list(parser, "outs", lambda: parse_projection(parser))
    parts = keyword_list(parser, "parts", lambda: parse_projection(parser))
    domain = parse_inside(parser, len(kinds))
    regions = parse_bodies(parser)
    properties = signature(kinds, monoid, ins, extras, outs) | domain
    if parts:
        properties["part_projections"] = projections_attr(parts)
    return cls.create(
        properties={"sym_name": name, **properties},
        attributes=parser.parse_optional_attr_dict(),
        regions=regions,
    )


def print_kernel(op: loom.KernelOp, printer: Printer) -> None:
    """The inverse of `parse_kernel`."""
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    print_fold(printer, op)
    with printer.indented(2):
        _print_clips(printer, "ins", op.in_maps, op.in_fills)
        _print_clips(printer, "extra", op.extra_maps, op.extra_fills)
        if op.out_maps:
            printer.print_string(f"\nouts({', '.join(map(str, op.out_maps))})")
        if op.part_projections:
            parts = ", ".join(str(projection.data) for projection in op.part_projections)
            printer.print_string(f"\nparts({parts})")
        print_inside(printer, op)
        print_bodies(printer, op)
        print_attributes(printer, op, "\n")


def _print_clips(
    printer: Printer, keyword: str, maps: Sequence[Projection], fills: Sequence[Fill | None]
) -> None:
    if not maps:
        return
    printer.print_string(f"\n{keyword}(")
    for position, (projection, fill) in enumerate(zip(maps, fills, strict=True)):
        printer.print_string(", " if position else "")
        print_clipped(printer, projection, fill)
    printer.print_string(")")


def parse_application(cls: type[loom.ApplicationOp], parser: Parser) -> loom.ApplicationOp:
    """`@kernel over <range> [partial] (%x <selection>, ...) {attributes} : types`."""
    kernel = parser.parse_symbol_name()
    parser.parse_keyword("over")
    index = angle_range(parser)
    partial = parser.parse_optional_keyword("partial") is not None
    args = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: (parser.parse_unresolved_operand(), angle_range(parser))
    )
    attributes = parser.parse_optional_attr_dict()
    values, results = parse_types(parser, [operand for operand, _ in args])
    properties: dict[str, Attribute] = {
        "kernel": SymbolRefAttr(kernel),
        "index_range": RangeAttr(index),
        "selections": ArrayAttr([RangeAttr(selection) for _, selection in args]),
    }
    if partial:
        properties["partial"] = UnitAttr()
    return cls.create(
        operands=values, result_types=results, properties=properties, attributes=attributes
    )


def _print_dispatch(printer: Printer, op: loom.Dispatch) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(op.kernel_name)
    printer.print_string(f" over <{op.index}>")


def print_application(op: loom.ApplicationOp, printer: Printer) -> None:
    """The inverse of `parse_application`."""
    _print_dispatch(printer, op)
    printer.print_string(" partial (" if op.is_partial else " (")
    for position, (value, selection) in enumerate(zip(op.args, op.selections, strict=True)):
        printer.print_string(", " if position else "")
        printer.print_operand(value)
        printer.print_string(f" <{selection.data}>")
    printer.print_string(")")
    print_attributes(printer, op)
    print_types(printer, op)


def parse_merge(cls: type[loom.MergeOp], parser: Parser) -> loom.MergeOp:
    """`@kernel over <range> [partial] states(...) extra(...) : types`."""
    kernel = parser.parse_symbol_name()
    parser.parse_keyword("over")
    index = angle_range(parser)
    partial = parser.parse_optional_keyword("partial") is not None
    states = keyword_list(parser, "states", parser.parse_unresolved_operand)
    extras = keyword_list(parser, "extra", parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    values, results = parse_types(parser, [*states, *extras])
    properties: dict[str, Attribute] = {
        "kernel": SymbolRefAttr(kernel),
        "index_range": RangeAttr(index),
        SEGMENTS: segments(len(states), len(extras)),
    }
    if partial:
        properties["partial"] = UnitAttr()
    return cls.create(
        operands=values, result_types=results, properties=properties, attributes=attributes
    )


def print_merge(op: loom.MergeOp, printer: Printer) -> None:
    """The inverse of `parse_merge`."""
    _print_dispatch(printer, op)
    if op.is_partial:
        printer.print_string(" partial")
    for keyword, values in (("states", op.states), ("extra", op.extras)):
        if values:
            printer.print_string(f" {keyword}(")
            printer.print_list(values, printer.print_operand)
            printer.print_string(")")
    print_attributes(printer, op)
    print_types(printer, op)
