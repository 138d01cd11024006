"""What the host does around kernels: buffers, and launches over grids, shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolTable
from xdsl.utils.exceptions import VerifyException

from tapestry.dialects._triton_kernel import KernelOp
from tapestry.dialects._triton_types import PointerType, buffer_type


@dataclass(frozen=True)
class GridAxis:
    """A factor of the number of programs: `ceil(product of extents / block)`.

    An extent is a number, or names a pair of bounds `NAME_start, NAME_end` of the launch. Without
    a block there is one program for each point.
    """

    extents: tuple[int | str, ...]
    block: str | None = None

    def __str__(self) -> str:
        length = " * ".join(map(str, self.extents)) or "1"
        return length if self.block is None else f"{length} by {self.block}"


@irdl_attr_definition
class GridAttr(Data[tuple[GridAxis, ...]]):
    """How many programs a launch runs: `#triton.grid<[d0 * 4 by BLOCK_M, 32 by BLOCK_N]>`."""

    name = "triton.grid"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[GridAxis, ...]:
        with parser.in_angle_brackets():
            return tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: cls._parse_axis(parser)
                )
            )

    @staticmethod
    def _parse_axis(parser: AttrParser) -> GridAxis:
        def extent() -> int | str:
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            return parser.parse_identifier(" for an extent") if number is None else number

        extents = [extent()]
        while parser.parse_optional_punctuation("*"):
            extents.append(extent())
        named = parser.parse_optional_keyword("by")
        block = None if named is None else parser.parse_identifier(" for a block")
        return GridAxis(tuple(extents), block)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(map(str, self.data))}]")


@irdl_op_definition
class AllocateOp(IRDLOperation):
    """A new row-major buffer, filled with one value when `fill` is given.

    Example: `%state = triton.allocate fill 0.0 : f32 : memref<64xf32>`
    """

    name = "triton.allocate"

    fill = opt_prop_def(FloatAttr | IntegerAttr)
    result = result_def(MemRefType)

    assembly_format = "(`fill` $fill^)? attr-dict `:` type($result)"

    def __init__(self, kind: Attribute, fill: Attribute | None = None) -> None:
        super().__init__(properties={"fill": fill}, result_types=[kind])


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A row-major buffer of cells known beforehand: little-endian bytes, or an array of an `.npz`.

    `path` is relative to the folder that the host function is given.

    Example:

        %c = triton.constant bytes "0000803F00000040" : memref<2xf32>
        %w = triton.constant file "weights.npz" entry "w1" : memref<64x10xf32>
    """

    name = "triton.constant"

    data = opt_prop_def(StringAttr)
    path = opt_prop_def(StringAttr)
    entry = opt_prop_def(StringAttr)
    result = result_def(MemRefType)

    assembly_format = (
        "(`bytes` $data^)? (`file` $path^)? (`entry` $entry^)? attr-dict `:` type($result)"
    )

    def __init__(
        self,
        kind: Attribute,
        *,
        data: str | None = None,
        path: str | None = None,
        entry: str | None = None,
    ) -> None:
        texts = {"data": data, "path": path, "entry": entry}
        super().__init__(
            properties={n: None if text is None else StringAttr(text) for n, text in texts.items()},
            result_types=[kind],
        )

    def verify_(self) -> None:
        inside, outside = self.data is not None, self.path is not None and self.entry is not None
        if inside == outside or (self.path is None) != (self.entry is None):
            raise VerifyException("a constant has either bytes, or a file and an entry of it")


@irdl_op_definition
class AliasOp(IRDLOperation):
    """The same buffer under another shape.

    Example: `%flat = triton.alias %x : memref<2x6xf32> -> memref<12xf32>`
    """

    name = "triton.alias"

    source = operand_def(MemRefType)
    result = result_def(MemRefType)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, kind: Attribute) -> None:
        super().__init__(operands=[source], result_types=[kind])

    def verify_(self) -> None:
        old, new = buffer_type(self.source), buffer_type(self.result)
        same = old.element_type == new.element_type
        if not same or prod(old.get_shape()) != prod(new.get_shape()):
            raise VerifyException(f"{new} does not hold the cells of {old}")


@irdl_op_definition
class ExternalOp(IRDLOperation):
    """A function that the host is given by name, called once per row of `boxes`.

    A row holds, for each buffer and each of its dimensions, where the part that the call sees
    starts and ends. The first `inputs` buffers are read, the others written.

    Example:

        triton.external "sort"(%x, %y : memref<64x128xf32>, memref<64x128xf32>) inputs 1
          boxes dense<[[0, 64, 0, 128, 0, 64, 0, 128]]> : tensor<1x8xi64>
    """

    name = "triton.external"

    function = prop_def(StringAttr)
    buffers = var_operand_def(MemRefType)
    inputs = prop_def(IntegerAttr)
    boxes = prop_def(DenseIntOrFPElementsAttr)
    parameters = opt_prop_def(DictionaryAttr)
    bytes_read = prop_def(IntegerAttr)
    bytes_written = prop_def(IntegerAttr)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$function `(` ($buffers^ `:` type($buffers))? `)` `inputs` $inputs `boxes` $boxes "
        "(`parameters` $parameters^)? attr-dict"
    )

    def __init__(
        self,
        function: str,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        rows: Sequence[Sequence[int]],
        parameters: DictionaryAttr | None,
        *,
        bytes_read: int,
        bytes_written: int,
    ) -> None:
        super().__init__(
            operands=[[*ins, *outs]],
            properties={
                "function": StringAttr(function),
                "inputs": IntegerAttr(len(ins), i64),
                "boxes": _table(rows),
                "parameters": parameters,
                "bytes_read": IntegerAttr(bytes_read, i64),
                "bytes_written": IntegerAttr(bytes_written, i64),
            },
        )

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """Per call, the bounds of every dimension of every buffer."""
        return _rows(self.boxes)

    def verify_(self) -> None:
        width = 2 * sum(len(buffer_type(buffer).get_shape()) for buffer in self.buffers)
        if any(len(row) != width for row in self.rows):
            raise VerifyException(f"a row of boxes has {width} numbers")


def _table(rows: Sequence[Sequence[int]]) -> DenseIntOrFPElementsAttr:
    """Rows of numbers of one length."""
    kind = TensorType(i64, [len(rows), len(rows[0]) if rows else 0])
    return DenseIntOrFPElementsAttr.from_list(kind, [n for row in rows for n in row])


def _rows(table: DenseIntOrFPElementsAttr) -> tuple[tuple[int, ...], ...]:
    count, width = table.get_shape()
    numbers = cast(DenseIntOrFPElementsAttr[IntegerType], table).get_values()
    return tuple(tuple(numbers[row * width : (row + 1) * width]) for row in range(count))


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel once per row of `shards`, in order, on one stream.

    A row holds, for each name in `bounds`, where the shard starts and ends along it; the kernel
    takes the buffers and then these numbers. Without bounds there is one row without numbers.
    `bytes_read` and `bytes_written` say what all its launches move.

    Example: see the docstring of `triton.py`.
    """

    name = "triton.launch"

    kernel = prop_def(SymbolRefAttr)
    buffers = var_operand_def(MemRefType)
    grid = prop_def(GridAttr)
    bounds = prop_def(ArrayAttr[StringAttr])
    shards = opt_prop_def(DenseIntOrFPElementsAttr)
    bytes_read = prop_def(IntegerAttr)
    bytes_written = prop_def(IntegerAttr)
    comment = opt_prop_def(StringAttr)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kernel `(` ($buffers^ `:` type($buffers))? `)` `grid` $grid `bounds` $bounds "
        "(`shards` $shards^)? attr-dict"
    )

    def __init__(
        self,
        kernel: str,
        buffers: Sequence[SSAValue],
        grid: Sequence[GridAxis],
        bounds: Sequence[str] = (),
        rows: Sequence[Sequence[int]] = ((),),
        *,
        bytes_read: int = 0,
        bytes_written: int = 0,
        comment: str | None = None,
    ) -> None:
        table = None
        if bounds:
            table = _table(rows)
        super().__init__(
            operands=[list(buffers)],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "grid": GridAttr(tuple(grid)),
                "bounds": ArrayAttr([StringAttr(name) for name in bounds]),
                "shards": table,
                "bytes_read": IntegerAttr(bytes_read, i64),
                "bytes_written": IntegerAttr(bytes_written, i64),
                "comment": None if comment is None else StringAttr(comment),
            },
        )

    @property
    def kernel_name(self) -> str:
        """The symbol of the kernel that runs."""
        return self.kernel.root_reference.data

    @property
    def bound_names(self) -> tuple[str, ...]:
        """What is bounded by each pair of numbers of a row."""
        return tuple(name.data for name in self.bounds)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The bounds of each launch."""
        if self.shards is None:
            return ((),)
        return _rows(self.shards)

    def verify_(self) -> None:
        if (self.shards is None) != (len(self.bounds) == 0):
            raise VerifyException("bounds and the shards that give them go together")
        if self.shards is not None:
            shape = self.shards.get_shape()
            if len(shape) != 2 or shape[1] != 2 * len(self.bounds):
                raise VerifyException(f"a shard needs {2 * len(self.bounds)} numbers")
        kernel = SymbolTable.lookup_symbol(self, self.kernel)
        if not isinstance(kernel, KernelOp):
            raise VerifyException(f"there is no triton.kernel @{self.kernel_name}")
        for axis in self.grid.data:
            named = [extent for extent in axis.extents if isinstance(extent, str)]
            if unknown := set(named) - set(self.bound_names):
                raise VerifyException(f"the grid uses {sorted(unknown)}, which has no bounds")
            if axis.block is not None and axis.block not in kernel.constants:
                raise VerifyException(f"the kernel has no block named {axis.block!r}")
        self._verify_arguments(kernel)

    def _verify_arguments(self, kernel: KernelOp) -> None:
        taken = [argument.type for argument in kernel.body.block.args]
        given: list[Attribute] = [
            PointerType(buffer_type(buffer).element_type) for buffer in self.buffers
        ]
        numbers = taken[len(given) :]
        if taken[: len(given)] != given or len(numbers) != 2 * len(self.bounds):
            raise VerifyException(
                f"@{self.kernel_name} takes ({', '.join(map(str, taken))}), but is given "
                f"({', '.join(map(str, given))}) and {2 * len(self.bounds)} bounds"
            )
