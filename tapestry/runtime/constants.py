"""The arrays of `loom.constant`: cells from the program, or from a side file beside it.

A side file's path is relative to the file that the constant is written in (or to the working
directory, when the program came from no file). Only `.npz` files of plain arrays are read; nothing
is unpickled.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

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
from tapestry.runtime.archives import UNREADABLE, first_line
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
    try:
        with np.load(path, allow_pickle=False) as archive:
            known = entry in archive.files
            member: object = archive[entry] if known else None
            have = ", ".join(archive.files) or "nothing"
    except UNREADABLE as error:
        message = f"the side file {path} cannot be read: {first_line(error)}"
        raise InvalidProgramError(message, location=location_of(op)) from None
    if not isinstance(member, np.ndarray):
        raise InvalidProgramError(
            f"the side file {path} has no array {entry!r}",
            location=location_of(op),
            hint=f"it has {have}",
        )
    dtype = numpy_dtype(kind.element_type)
    stored = cast(Array, member)
    cells = np.asarray(stored, stored.dtype.newbyteorder("="))
    raw = cells.dtype.kind in "Vu" and cells.dtype.itemsize == dtype.itemsize
    if raw and dtype.kind not in "biufc":
        cells = cells.view(dtype)  # .npz stores the types of ml_dtypes as raw bytes
    if cells.dtype.kind == "c" and dtype.kind == "f" and cells.ndim < kind.box.rank:
        cells = pairs_of(cells)  # which is what loom-split-complex asks for
    if cells.dtype != dtype or cells.shape != kind.box.shape:
        raise InvalidProgramError(
            f"{entry!r} of the side file {path} is {cells.dtype} of shape {cells.shape}, but the "
            f"constant is {dtype} of shape {kind.box.shape}",
            location=location_of(op),
        )
    cells.flags.writeable = False
    return cells


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
