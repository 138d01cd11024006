"""External kernels of whose outputs only the first places along the last axis are read.

    %sorted = loom.external @sort ...                               # rows of 32000
    %best = loom.view %sorted : (d0, d1) -> (d0, d1) : ... -> [4, 50]   # 50 of each are read

What is read follows from the projections of all that reads. A kernel that can compute the first
places alone (`tapestry.runtime.externals`) does so; memory for the others is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from tapestry.algebra.dtypes import numpy_dtype
from tapestry.dialects import loom
from tapestry.dialects.loom import tensor_type
from tapestry.runtime.executor import Array
from tapestry.runtime.externals import (
    Leading,
    Parameters,
    call_external,
    find_leading,
    parameters_of,
)
from tapestry.zspace import Range


@dataclass(frozen=True, eq=False)
class FirstPlaces:
    """Outputs of some shapes and dtypes, filled up to `count` along the last axis."""

    name: str
    leading: Leading
    parameters: Parameters
    count: int
    kinds: tuple[tuple[tuple[int, ...], np.dtype[np.generic]], ...]

    def __call__(self, operands: Sequence[Array]) -> list[Array]:
        """The outputs."""
        made = [np.empty(shape, dtype) for shape, dtype in self.kinds]
        first = [array[..., : self.count] for array in made]
        call_external(self.name, self._first, operands, first, self.parameters, None)
        return made

    def _first(self, arrays: Sequence[Array], parameters: Parameters) -> Sequence[Array]:
        return self.leading(arrays, parameters, self.count)


def first_places(op: Operation) -> FirstPlaces | None:
    """A kernel for the places that are read; None for what is no such kernel, or read whole."""
    if not isinstance(op, loom.ExternalOp) or op.partition is not None:
        return None
    leading = find_leading(op.callee.data)
    maps = (*op.in_maps, *op.out_maps)
    boxes = [tensor_type(value).box for value in (*op.operands, *op.results)]
    whole = all(p.apply_range(op.index) == box for p, box in zip(maps, boxes, strict=True))
    if leading is None or not whole or any(box.is_empty or not box.rank for box in boxes):
        return None
    counts = [_read_first(result) for result in op.results]
    extents = {tensor_type(result).box.shape[-1] for result in op.results}
    count = max((1, *counts))
    if len(extents) > 1 or count >= max(extents):
        return None
    types = [tensor_type(result) for result in op.results]
    kinds = tuple((kind.box.shape, numpy_dtype(kind.element_type)) for kind in types)
    return FirstPlaces(op.callee.data, leading, parameters_of(op), count, kinds)


def _read_first(value: SSAValue) -> int:
    """Up to which place along the last axis a tensor is read."""
    box = tensor_type(value).box
    read = 0
    for use in value.uses:
        part = _part(use.operation, use.index, box)
        read = max(read, part.end[-1] - box.start[-1] if part.size else 0)
    return read


def _part(user: Operation, number: int, box: Range) -> Range:
    """What an operation reads of an operand, all of it unless projections say less."""
    if isinstance(user, loom.ViewOp):
        return user.projection.data.apply_range(tensor_type(user.result).box)
    if isinstance(user, loom.OperationOp) and not user.index.is_empty:
        inputs = len(user.ins)
        maps = (*user.in_maps, *user.extra_maps)
        index = user.index if number < inputs else user.kept_range(user.index)
        return box.intersection(maps[number].apply_range(index)) or box
    return box
