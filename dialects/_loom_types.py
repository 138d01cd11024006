"""The loom dialect's attributes and types: iterators, positioned tensors, lists of projections.

!loom.tensor<[0, 0] : [64, 32], f32>        a tensor on a range of cells
#loom.iterators<[map, map, fold]>           how each index dimension runs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import ELEMENT_TYPES, byte_size, is_element_type
from tapestry.dialects.zspace import ProjectionAttr, RangeAttr, parse_range
from tapestry.zspace import Projection, Range

Iterator = Literal["map", "fold", "scan"]


def parse_iterators(parser: AttrParser) -> tuple[Iterator, ...]:
    """`[map, map, fold]`."""
    return tuple(
        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _iterator(parser))
    )


def _iterator(parser: AttrParser) -> Iterator:
    start = parser.pos
    word = parser.parse_identifier(" for an iterator: map, fold or scan")
    if word == "map" or word == "fold" or word == "scan":
        return word
    message = f"unknown iterator {word!r}; an index dimension is map, fold or scan"
    parser.raise_error(message, start, parser.pos)


@irdl_attr_definition
class IteratorsAttr(Data[tuple[Iterator, ...]]):
    """How each index dimension runs: `#loom.iterators<[map, map, fold]>`."""

    name = "loom.iterators"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Iterator, ...]:
        with parser.in_angle_brackets():
            return parse_iterators(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(self.data)}]")


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """A tensor stored on a range of cells, which may start anywhere.

    `!loom.tensor<[0, 0] : [64, 32], f32>` holds 64 x 32 cells of f32. It is stored row-major, the
    cell at point `p` at index `p - start`.
    """

    name = "loom.tensor"

    range: RangeAttr = param_def()
    element_type: Attribute = param_def()

    @classmethod
    def of(cls, box: Range, element_type: Attribute) -> TensorType:
        """The type of a tensor with the cells of `box`."""
        return cls(RangeAttr(box), element_type)

    @property
    def box(self) -> Range:
        """The range of cells the tensor holds."""
        return self.range.data

    @property
    def byte_size(self) -> int:
        """Bytes its cells take when stored."""
        return self.box.size * byte_size(self.element_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            box = parse_range(parser)
            parser.parse_punctuation(",", " before the element type of a tensor")
            start = parser.pos
            element = parser.parse_type()
            if not is_element_type(element):
                parser.raise_error(_unknown_element(element), start, parser.pos)
        return (RangeAttr(box), element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.box))
            printer.print_string(", ")
            printer.print_attribute(self.element_type)

    def verify(self) -> None:
        if not is_element_type(self.element_type):
            raise VerifyException(_unknown_element(self.element_type))


def _unknown_element(element: Attribute) -> str:
    known = ", ".join(str(known) for known in ELEMENT_TYPES)
    return f"{element} is not an element type of a tensor; one of {known} is"


def tensor_type(value: SSAValue) -> TensorType:
    """The tensor type of `value`, which must be a tensor (verified operations guarantee it)."""
    assert isinstance(value.type, TensorType)
    return value.type


def projections_attr(projections: Iterable[Projection]) -> ArrayAttr[ProjectionAttr]:
    """The attribute that records projections."""
    return ArrayAttr([ProjectionAttr(p) for p in projections])
