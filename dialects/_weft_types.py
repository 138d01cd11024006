"""The type of a tensor whose sizes are not known yet.

    !weft.tensor<[N, 4, "2 * N"], f32>

A size is a number, a symbol, or text of an expression in symbols; symbols stand for nonnegative
integers. Such a tensor starts at zero. The pass `weft-bind` puts numbers in the place of symbols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import is_element_type
from tapestry.dialects.loom import TensorType
from tapestry.metakernels.errors import KindMismatchError, WeftError
from tapestry.metakernels.sizes import evaluate_size, parse_size, symbols_of
from tapestry.zspace import Range

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[0-9]+")


@irdl_attr_definition
class SymbolicTensorType(ParametrizedAttribute, TypeAttribute):
    """A tensor with symbolic sizes: `!weft.tensor<[N, "2 * N"], f32>`."""

    name = "weft.tensor"

    sizes: ArrayAttr[StringAttr] = param_def()
    element_type: Attribute = param_def()

    @classmethod
    def of(cls, sizes: Sequence[int | str], element_type: Attribute) -> SymbolicTensorType:
        """The type of a tensor with these sizes."""
        return cls(ArrayAttr(StringAttr(str(size)) for size in sizes), element_type)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of its sizes, in order."""
        names = (name for size in self.sizes for name in symbols_of(parse_size(size.data)))
        return tuple(dict.fromkeys(names))

    def bound(self, sizes: Mapping[str, int]) -> TensorType:
        """The type with numbers for its symbols; a WeftError when a size then is none."""
        shape = [evaluate_size(parse_size(size.data), sizes) for size in self.sizes]
        for text, size in zip(self.sizes, shape, strict=True):
            if size < 0:
                raise KindMismatchError(f"the size {text.data} is {size}, which is negative")
        return TensorType.of(Range.of(shape), self.element_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            sizes = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse_size(parser)
            )
            parser.parse_punctuation(",", " before the element type of a tensor")
            element = parser.parse_type()
        return (ArrayAttr(sizes), element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            with printer.in_square_brackets():
                printer.print_list(self.sizes, lambda size: printer.print_string(_written(size)))
            printer.print_string(", ")
            printer.print_attribute(self.element_type)

    def verify(self) -> None:
        if not is_element_type(self.element_type):
            raise VerifyException(f"{self.element_type} is not an element type of a tensor")
        for size in self.sizes:
            try:
                parse_size(size.data)
            except WeftError as error:
                raise VerifyException(error.message) from None


def _parse_size(parser: AttrParser) -> StringAttr:
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return StringAttr(str(number))
    word = parser.parse_optional_identifier()
    return StringAttr(parser.parse_str_literal() if word is None else word)


def _written(size: StringAttr) -> str:
    return size.data if _WORD.fullmatch(size.data) else str(size)
