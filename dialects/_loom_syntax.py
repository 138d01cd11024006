"""Parsing and printing of the loom dialect's custom syntax.

Kept apart from `loom.py`, which shows each operation's syntax in its docstring. Bodies are parsed
in a scope of their own: they see no value from outside, and entering one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from tapestry.dialects._loom_reads import Fill, Read, fills_attr
from tapestry.dialects._loom_types import (
    IteratorsAttr,
    TensorType,
    parse_iterators,
    projections_attr,
    tensor_type,
)
from tapestry.dialects.zspace import (
    DomainAttr,
    PartitionAttr,
    RangeAttr,
    parse_domain,
    parse_partition,
    parse_projection,
    parse_range,
)
from tapestry.zspace import AffineMap, Projection, Range

if TYPE_CHECKING:
    from tapestry.dialects import loom

_T = TypeVar("_T")

SEGMENTS = "operandSegmentSizes"


def angle_range(parser: AttrParser) -> Range:
    """`<[0, 0] : [4, 8]>`."""
    with parser.in_angle_brackets():
        return parse_range(parser)


def parse_projected(parser: Parser) -> tuple[UnresolvedOperand, Projection]:
    """`%x : (d0, d1) -> (d1)`."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":", " before the projection")
    return operand, parse_projection(parser)


def parse_clipped(parser: Parser) -> tuple[Projection, Fill | None]:
    """`(d0, d1) -> (d1)` or `(d0, d1) -> (d1 - 1) clip 0.0 : f32`."""
    projection = parse_projection(parser)
    if parser.parse_optional_keyword("clip") is None:
        return projection, None
    position = parser.pos
    fill = parser.parse_attribute()
    if not isa(fill, Fill):
        parser.raise_error("a clip is to a number, such as 0.0 : f32", position, parser.pos)
    return projection, fill


def _parse_read(parser: Parser) -> tuple[UnresolvedOperand, tuple[Projection, Fill | None]]:
    """`%x : (d0, d1) -> (d1 - 1) clip 0.0 : f32`."""
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":", " before the projection")
    return operand, parse_clipped(parser)


def print_clipped(printer: Printer, projection: Projection, fill: Fill | None) -> None:
    printer.print_string(str(projection))
    if fill is not None:
        printer.print_string(" clip ")
        printer.print_attribute(fill)


def parse_types(
    parser: Parser, operands: Sequence[UnresolvedOperand], *, results: int | None = None
) -> tuple[Sequence[SSAValue], Sequence[Attribute]]:
    """`: (T, T) -> T`, or `: T -> T` with one operand; resolves the operands against it.

    With `results`, there must be that many result types.
    """
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    inputs = _type_list(parser)
    parser.parse_punctuation("->", " before the result types")
    outputs = _type_list(parser)
    if len(inputs) != len(operands):
        message = f"there are {len(operands)} operands, but {len(inputs)} operand types"
        parser.raise_error(message, position, parser.pos)
    if results is not None and len(outputs) != results:
        message = f"there are {len(outputs)} result types, but {results} results"
        parser.raise_error(message, position, parser.pos)
    return parser.resolve_operands(operands, inputs, position), outputs


def _type_list(parser: Parser) -> Sequence[Attribute]:
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if several is None else several


def print_types(printer: Printer, op: Operation) -> None:
    """` : (T, T) -> T`."""
    printer.print_string(" : ")
    printer.print_function_type([value.type for value in op.operands], op.result_types)


def print_attributes(printer: Printer, op: Operation, before: str = " ") -> None:
    """` {name = value}`: what nobody declared, which every operation keeps."""
    if op.attributes:
        printer.print_string(before)
        printer.print_attr_dict(op.attributes)


def keyword_list(parser: Parser, keyword: str, element: Callable[[], _T]) -> list[_T]:
    """`keyword(element, ...)`, or nothing at all."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, element, f" in {keyword}")


def segments(*sizes: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, sizes)


def parse_body(parser: Parser) -> Region:
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
    outside = parser.ssa_values
    parser.ssa_values = {}
    try:
        return parser.parse_region(arguments)
    finally:
        parser.ssa_values = outside


def parse_bodies(parser: Parser) -> list[Region]:
    parser.parse_keyword("wrap")
    wrap = parse_body(parser)
    unwrap = Region()
    if parser.parse_optional_keyword("unwrap") is not None:
        unwrap = parse_body(parser)
    return [wrap, unwrap]


def print_body(printer: Printer, keyword: str, region: Region) -> None:
    block = region.first_block
    if block is None:
        return
    printer.print_string(f"{keyword} (")
    printer.print_list(block.args, printer.print_block_argument)
    printer.print_string(") ")
    printer.print_region(region, print_entry_block_args=False)


def print_bodies(printer: Printer, op: loom.BlockSignature) -> None:
    printer.print_string("\n")
    print_body(printer, "wrap", op.wrap)
    if op.unwrap.first_block is not None:
        printer.print_string("\n")
        print_body(printer, "unwrap", op.unwrap)


def parse_by(parser: Parser) -> SymbolRefAttr | None:
    if parser.parse_optional_keyword("by") is None:
        return None
    return SymbolRefAttr(parser.parse_symbol_name())


def print_fold(printer: Printer, op: loom.BlockSignature) -> None:
    printer.print_string(f" [{', '.join(op.kinds)}]")
    if op.monoid_name is not None:
        printer.print_string(" by ")
        printer.print_symbol_name(op.monoid_name)


def parse_inside(parser: Parser, rank: int) -> dict[str, Attribute]:
    """`domain(d0 - d1 >= 0, ...)`, or nothing at all."""
    if parser.parse_optional_keyword("domain") is None:
        return {}
    with parser.in_parens():
        return {"domain": DomainAttr(parse_domain(parser, [f"d{dim}" for dim in range(rank)]))}


def print_inside(printer: Printer, op: loom.BlockSignature) -> None:
    if op.inside is not None:
        printer.print_string(f"\ndomain({op.inside})")


def signature_properties(op: loom.BlockSignature) -> dict[str, Attribute]:
    """The properties that say an operation's map-fold, without its operands and range."""
    names = (
        "iterators",
        "monoid",
        "in_projections",
        "in_clips",
        "extra_projections",
        "extra_clips",
        "out_projections",
        "domain",
    )
    return {name: op.properties[name] for name in names if name in op.properties}


def signature(
    kinds: tuple[loom.Iterator, ...],
    monoid: SymbolRefAttr | None,
    ins: Sequence[tuple[Projection, Fill | None]],
    extras: Sequence[tuple[Projection, Fill | None]],
    outs: Sequence[Projection],
) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {
        "iterators": IteratorsAttr(kinds),
        "in_projections": projections_attr(p for p, _ in ins),
        "extra_projections": projections_attr(p for p, _ in extras),
        "out_projections": projections_attr(outs),
    }
    for name, reads in (("in_clips", ins), ("extra_clips", extras)):
        clips = fills_attr([fill for _, fill in reads])
        if clips is not None:
            properties[name] = clips
    if monoid is not None:
        properties["monoid"] = monoid
    return properties


def parse_operation(cls: type[loom.OperationOp], parser: Parser) -> loom.OperationOp:
    """`@label over <range> [kinds] by @monoid ins() extra() outs() domain() wrap ... : types`."""
    label = parser.parse_symbol_name()
    parser.parse_keyword("over")
    index = angle_range(parser)
    kinds = parse_iterators(parser)
    monoid = parse_by(parser)
    ins = keyword_list(parser, "ins", lambda: _parse_read(parser))
    extras = keyword_list(parser, "extra", lambda: _parse_read(parser))
    outs = keyword_list(parser, "outs", lambda: parse_projection(parser))
    domain = parse_inside(parser, len(kinds))
    shards = None
    if parser.parse_optional_keyword("shards") is not None:
        with parser.in_angle_brackets():
            shards = PartitionAttr(parse_partition(parser))
    regions = parse_bodies(parser)
    attributes = parser.parse_optional_attr_dict()
    values, results = parse_types(parser, [operand for operand, _ in (*ins, *extras)])
    properties = signature(kinds, monoid, [r for _, r in ins], [r for _, r in extras], outs)
    properties |= domain
    properties["label"] = label
    properties["index_range"] = RangeAttr(index)
    properties[SEGMENTS] = segments(len(ins), len(extras))
    if shards is not None:
        properties["shards"] = shards
    return cls.create(
        operands=values,
        result_types=results,
        properties=properties,
        attributes=attributes,
        regions=regions,
    )


def print_operation(op: loom.OperationOp, printer: Printer) -> None:
    """The inverse of `parse_operation`."""
    printer.print_string(" ")
    printer.print_symbol_name(op.label.data)
    printer.print_string(f" over <{op.index}>")
    print_fold(printer, op)
    with printer.indented(2):
        _print_reads(printer, "ins", op.in_reads)
        _print_reads(printer, "extra", op.extra_reads)
        printer.print_string(f"\nouts({', '.join(map(str, op.out_maps))})")
        print_inside(printer, op)
        if op.partition is not None:
            printer.print_string(f"\nshards <{op.partition}>")
        print_bodies(printer, op)
        print_attributes(printer, op, "\n")
        printer.print_string("\n: ")
        printer.print_function_type([value.type for value in op.operands], op.result_types)


def _print_reads(printer: Printer, keyword: str, reads: Sequence[Read]) -> None:
    if not reads:
        return
    printer.print_string(f"\n{keyword}(")
    for position, (value, projection, fill) in enumerate(reads):
        printer.print_string(", " if position else "")
        printer.print_operand(value)
        printer.print_string(" : ")
        print_clipped(printer, projection, fill)
    printer.print_string(")")


def parse_assemble(cls: type[loom.AssembleOp], parser: Parser) -> loom.AssembleOp:
    """`%a, %b at (d0) -> (2 * d0) : T, T -> T`."""
    parts = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, lambda: (parser.parse_unresolved_operand(), _parse_at(parser))
    )
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation("->", " before the result type")
    start = parser.pos
    result = parser.parse_type()
    if not isinstance(result, TensorType):
        parser.raise_error(f"an assembly is a tensor, not {result}", start, parser.pos)
    if len(types) != len(parts):
        message = f"there are {len(parts)} operands, but {len(types)} operand types"
        parser.raise_error(message, position, parser.pos)
    values = parser.resolve_operands([part for part, _ in parts], types, position)
    identity = AffineMap.identity(result.box.rank)
    made = cls(values, result, [identity if at is None else at.map for _, at in parts])
    made.attributes |= attributes
    return made


def _parse_at(parser: Parser) -> Projection | None:
    if parser.parse_optional_keyword("at") is None:
        return None
    start = parser.pos
    placement = parse_projection(parser)
    if not placement.is_unit:
        parser.raise_error("a part is placed cell by cell, without a box", start, parser.pos)
    return placement


def print_assemble(op: loom.AssembleOp, printer: Printer) -> None:
    """The inverse of `parse_assemble`."""
    identity = AffineMap.identity(tensor_type(op.result).box.rank)
    for position, (value, placement) in enumerate(zip(op.parts, op.placed, strict=True)):
        printer.print_string(", " if position else " ")
        printer.print_operand(value)
        if placement != identity:
            printer.print_string(f" at {placement}")
    if op.attributes:
        printer.print_string(" ")
        printer.print_attr_dict(op.attributes)
    printer.print_string(" : ")
    printer.print_list([value.type for value in op.parts], printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(op.result.type)


def parse_monoid(cls: type[loom.MonoidOp], parser: Parser) -> loom.MonoidOp:
    """`@name [commutative] zero [values] merge (arguments) { ... }`."""
    name = parser.parse_symbol_name()
    commutative = parser.parse_optional_keyword("commutative") is not None
    parser.parse_keyword("zero")
    zero = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_attribute)
    parser.parse_keyword("merge")
    op = cls(name.data, zero, parse_body(parser), commutative=commutative)
    op.attributes.update(parser.parse_optional_attr_dict())
    return op


def print_monoid(op: loom.MonoidOp, printer: Printer) -> None:
    """The inverse of `parse_monoid`."""
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    if op.is_commutative:
        printer.print_string(" commutative")
    printer.print_string(" zero [")
    printer.print_list(op.zero.data, printer.print_attribute)
    printer.print_string("] ")
    print_body(printer, "merge", op.merge)
    print_attributes(printer, op)
