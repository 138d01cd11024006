"""The arrays of `loom.constant`: cells from the program, or from a side file beside it.

A side file's path is relative to the file that the constant is written in (or to the working
directory, when the program came from no file). Only `.npz` files of plain arrays are read; nothing
is unpickled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.rewriter import Rewriter

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.algebra.functions import pairs_of
from tapestry.diagnostics import InvalidProgramError
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.locations import location_of
from tapestry.runtime.archives import UNREADABLE, entries, first_line, member
from tapestry.runtime.executor import Array


def constant_cells(op: loom.ConstantOp) -> Array:
    """The cells of a constant, read-only.

    InvalidProgramError for a side file that cannot be read, or that holds something else.
    """
    cells = op.cells
    return _side_file_cells(op) if cells is None else cells


def _side_file_cells(op: loom.ConstantOp) -> Array:
    value, kind = op.value, tensor_type(op.result)
    assert isinstance(value, loom.SideFileAttr)
    place = location_of(op)
    folder = Path(place.file).parent if place is not None else Path()
    path, entry = folder / value.path.data, value.entry.data
    wanted, shape = numpy_dtype(kind.element_type), kind.box.shape

    def fits(dtype: np.dtype[Any], have: tuple[int, ...]) -> None:
        pairs = dtype.kind == "c" and wanted.kind == "f" and have == shape[:-1]
        same = dtype.newbyteorder("=") == wanted or _raw(dtype, wanted)
        if pairs or (same and have == shape):
            return
        raise InvalidProgramError(
            f"{entry!r} of the side file {path} is {dtype} of shape {have}, but the constant is "
            f"{wanted} of shape {shape}",
            location=place,
        )

    try:
        _check_inside(path, folder)
        have = entries(path)
        if entry not in have:
            raise InvalidProgramError(
                f"the side file {path} has no array {entry!r}",
                location=place,
                hint=f"it has {', '.join(have) or 'nothing'}",
            )
        stored = member(path, entry, fits)
    except UNREADABLE as error:
        message = f"the side file {path} cannot be read: {first_line(error)}"
        raise InvalidProgramError(message, location=place) from None
    cells = np.asarray(stored, stored.dtype.newbyteorder("="))
    if _raw(cells.dtype, wanted):
        cells = cells.view(wanted)
    if cells.dtype.kind == "c" and wanted.kind == "f":
        cells = pairs_of(cells)  # which is what loom-split-complex asks for
    cells.flags.writeable = False
    return cells


def _raw(stored: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether what is stored is bytes of cells: .npz knows no types of ml_dtypes."""
    unknown = wanted.kind not in "biufc"
    return unknown and stored.kind in "Vu" and stored.itemsize == wanted.itemsize


def _check_inside(path: Path, folder: Path) -> None:
    """Raise ValueError for a file that links lead to from outside the program's folder."""
    found = path.resolve()
    if not found.is_relative_to(folder.resolve()):
        raise ValueError(f"it is a link out of the folder of the program, to {found}")


def as_arguments(function: func.FuncOp) -> list[Array]:
    """Make arguments of the constants that are in side files, after the others; their cells."""
    block = function.body.block
    given: list[Array] = []
    for op in list(block.ops):
        if isinstance(op, loom.ConstantOp) and isinstance(op.value, loom.SideFileAttr):
            given.append(constant_cells(op))
            argument = block.insert_arg(op.result.type, len(block.args))
            argument.name_hint = op.result.name_hint
            op.result.replace_all_uses_with(argument)
            Rewriter.erase_op(op)
    kinds = function.function_type
    taken = [argument.type for argument in block.args]
    function.properties["function_type"] = FunctionType.from_lists(taken, list(kinds.outputs))
    return given
