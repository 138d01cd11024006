"""`loom.constant`: a tensor whose cells are written in the program, or in a file beside it.

    %half = loom.constant 0.5 : !loom.tensor<[0, 0] : [4, 4], f32>           // every cell
    %rows = loom.constant [[1, 2], [3, 4]] : !loom.tensor<[0, 0] : [2, 2], i32>
    %bits = loom.constant "0x0000803F00000040" : !loom.tensor<[0] : [2], f32>   // bytes
    %w    = loom.constant file "weights.npz" entry "w1" : !loom.tensor<[0, 0] : [64, 10], f32>

Cells are row-major. Small tensors print as numbers, others as bytes; one cell's bytes stand for
every cell, so a constant of 2^40 equal cells takes none of their memory. A side file is an `.npz`
whose path is relative to the program's file and stays in its folder; it is read when the program
runs.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import (
    AnyAttr,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects._checked import CheckedOperation
from tapestry.dialects._loom_numbers import Numbers, cells_of, numbers_of, parse_numbers
from tapestry.dialects._loom_types import TensorType
from tapestry.issues import Problem


@irdl_attr_definition
class DataAttr(Data[bytes]):
    """Cells as bytes, little-endian and row-major: `#loom.data<"0x0000803F">`."""

    name = "loom.data"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        with parser.in_angle_brackets():
            start = parser.pos
            return _bytes_of(parser.parse_str_literal(" of bytes"), parser, start)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(_hex(self.data))


@irdl_attr_definition
class SideFileAttr(ParametrizedAttribute):
    """An array of an `.npz` file: `#loom.side_file<"weights.npz", "w1">`."""

    name = "loom.side_file"

    path: StringAttr = param_def()
    entry: StringAttr = param_def()

    def verify(self) -> None:
        path = PurePosixPath(self.path.data)
        if path.is_absolute() or ".." in path.parts or "\\" in self.path.data:
            raise VerifyException(
                f'the side file "{self.path.data}" is outside the folder of the program; a path '
                "relative to it, without .., is not"
            )
        if path.suffix != ".npz":
            raise VerifyException(f'the side file "{self.path.data}" is not an .npz file')


def _hex(data: bytes) -> str:
    return f'"0x{data.hex().upper()}"'


def _bytes_of(text: str, parser: AttrParser, start: int) -> bytes:
    """The bytes that a string of hexadecimal digits stands for."""
    try:
        if not text.startswith("0x"):
            raise ValueError(text)
        return bytes.fromhex(text[2:])
    except ValueError:
        parser.raise_error('bytes are written "0x" and pairs of digits', start, parser.pos)


@irdl_op_definition
class ConstantOp(CheckedOperation):
    """A tensor of known cells (the module's docstring shows each form).

    `value` holds every cell, or one cell that all others equal, or names a side file.

    Example: `%c = loom.constant [1.0, 2.5] : !loom.tensor<[0] : [2], f32>`
    """

    name = "loom.constant"

    value = prop_def(AnyAttr())
    result = result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, value: DataAttr | SideFileAttr, result: TensorType) -> None:
        super().__init__(properties={"value": value}, result_types=[result])

    @classmethod
    def of(cls, array: npt.NDArray[Any], result: TensorType) -> ConstantOp:
        """The constant with the cells of an array, or with each cell equal to its one cell."""
        cells = np.asarray(array, numpy_dtype(result.element_type), order="C")
        return cls(DataAttr(_little_endian(cells).tobytes()), result)

    @property
    def cells(self) -> npt.NDArray[Any] | None:
        """The cells, read-only, in the tensor's shape; None for those of a side file."""
        if not isinstance(self.value, DataAttr):
            return None
        kind = self.result.type
        assert isinstance(kind, TensorType)
        flat = np.frombuffer(self.value.data, _stored(kind.element_type))
        flat = flat.astype(numpy_dtype(kind.element_type), copy=False)
        if len(flat) == 1:
            return np.broadcast_to(flat.reshape(()), kind.box.shape)
        return flat.reshape(kind.box.shape)

    @property
    def splat(self) -> npt.NDArray[Any] | None:
        """The one cell (of shape []) that every cell equals, where that can be seen; or None."""
        if not isinstance(self.value, DataAttr):
            return None
        kind = self.result.type
        assert isinstance(kind, TensorType)
        stored = _stored(kind.element_type)
        if len(self.value.data) != stored.itemsize:
            return None
        cell = np.frombuffer(self.value.data, stored).reshape(())
        return cell.astype(numpy_dtype(kind.element_type), copy=False)

    @property
    def hexadecimal(self) -> str:
        """The bytes of the cells, little-endian and row-major, as digits; "" of a side file."""
        return self.value.data.hex().upper() if isinstance(self.value, DataAttr) else ""

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        start = parser.pos
        value: Attribute | None = None
        written: Numbers = []
        if parser.parse_optional_keyword("file") is not None:
            value = _parse_side_file(parser, start)
        elif (text := parser.parse_optional_str_literal()) is not None:
            value = DataAttr(_bytes_of(text, parser, start))
        else:
            written = parse_numbers(parser)
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":", " before the type of a constant")
        kind = parser.parse_type()
        if value is None:
            if not isinstance(kind, TensorType):
                parser.raise_error("a constant is a !loom.tensor", start, end)
            try:
                value = DataAttr(_little_endian(cells_of(written, kind)).tobytes())
            except ValueError as error:
                parser.raise_error(str(error), start, end)
        return cls.create(properties={"value": value}, attributes=attributes, result_types=[kind])

    def print(self, printer: Printer) -> None:
        kind = self.result.type
        assert isinstance(kind, TensorType)
        printer.print_string(" ")
        match self.value:
            case SideFileAttr():
                printer.print_string("file ")
                printer.print_string_literal(self.value.path.data)
                printer.print_string(" entry ")
                printer.print_string_literal(self.value.entry.data)
            case DataAttr():
                splat = self.splat
                cells = splat if splat is not None else self.cells
                assert cells is not None
                numbers = numbers_of(cells, kind.element_type)
                printer.print_string(_hex(self.value.data) if numbers is None else numbers)
            case _:
                printer.print_attribute(self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(kind)

    @property
    def subject(self) -> str:
        return "the constant"

    def problems(self) -> list[Problem]:
        kind = self.result.type
        assert isinstance(kind, TensorType)
        match self.value:
            case SideFileAttr():
                return []
            case DataAttr():
                return _size_problems(self.value.data, kind)
            case _:
                message = f"{self.value} holds no cells; #loom.data and #loom.side_file do"
                return [Problem("constant-value", message)]


def _size_problems(data: bytes, kind: TensorType) -> list[Problem]:
    """The bytes are those of one cell or of all."""
    dtype = numpy_dtype(kind.element_type)
    cell, size = dtype.itemsize, dtype.itemsize * kind.box.size
    if len(data) not in (cell, size):
        message = (
            f"it has {len(data)} bytes, but <{kind.box}> of {kind.element_type} takes {size}, "
            f"or {cell} for one cell that all others equal"
        )
        return [Problem("constant-size", message, range=kind.box, bytes=len(data))]
    if dtype == np.bool_ and not set(data) <= {0, 1}:
        return [Problem("constant-value", "a cell of i1 is the byte 00 or 01")]
    return []


def _parse_side_file(parser: Parser, start: int) -> SideFileAttr:
    path = parser.parse_str_literal(" of a side file")
    parser.parse_keyword("entry")
    entry = parser.parse_str_literal(" of an array in it")
    try:
        return SideFileAttr(StringAttr(path), StringAttr(entry))
    except VerifyException as error:
        parser.raise_error(str(error), start, parser.pos)


def _stored(element: Attribute) -> np.dtype[Any]:
    """How a cell is stored: little-endian."""
    dtype = numpy_dtype(element)
    return dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype


def _little_endian(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return cells.astype(cells.dtype.newbyteorder("<")) if cells.dtype.kind in "iufc" else cells
