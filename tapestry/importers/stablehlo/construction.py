"""What translations add to a weft program: applications, operations of loom, tensors when needed.

    y = made.apply("add", x, made.known(1, x.spec))

A value that is only known becomes a tensor where something takes it: a constant, an operation over
coordinates, or an assembly of what was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tapestry.algebra.dtypes import name_of
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.importers.building import ProgramBuilder, kind_of
from tapestry.importers.stablehlo.bindings import StableHloError
from tapestry.importers.stablehlo.boxes import coordinates, uncovered
from tapestry.importers.stablehlo.values import Spec, Value, Written
from tapestry.locations import source_locations
from tapestry.zspace import AffineMap, Projection


class Construction:
    """A weft program under construction."""

    def __init__(self) -> None:
        self.build = ProgramBuilder()
        self.place: LocationAttr = UNKNOWN_LOC
        """The location of the operation that is being translated."""
        self._tensors: dict[Value, SSAValue] = {}
        self._monoids = 0

    def tensor(self, value: Value) -> SSAValue:
        """The tensor of a value; known cells become a constant, once."""
        if value.tensor is not None:
            return value.tensor
        found = self._tensors.get(value)
        if found is None:
            found = self._tensors[value] = self._made(value)
        return found

    def _made(self, value: Value) -> SSAValue:
        if value.known is not None:
            return self._constant(value.known, value.spec)
        if value.affine is not None:
            op = coordinates(value.affine, self.kind(value.spec))
            return self.build.insert(op, self.place)[0]
        assert value.written is not None
        return self._assembled(value.spec, value.written)

    def _assembled(self, spec: Spec, written: Written) -> SSAValue:
        """One tensor of the patches, and of what they leave of the base."""
        boxes = [(start, patch.spec.shape) for start, patch in written.patches]
        parts = [(start, self.tensor(patch)) for start, patch in written.patches]
        for start, shape in uncovered(spec.shape, boxes):
            mapping = AffineMap.identity(spec.rank).translate(start)
            kind = self.kind(spec.of(shape=shape))
            view = loom.ViewOp(self.tensor(written.base), Projection.cells(mapping), kind)
            parts.append((start, self.build.insert(view, self.place)[0]))
        if len(parts) == 1 and parts[0][1].type == self.kind(spec):
            return parts[0][1]
        places = [AffineMap.identity(spec.rank).translate(start) for start, _ in parts]
        op = loom.AssembleOp([part for _, part in parts], self.kind(spec), places)
        return self.build.insert(op, self.place)[0]

    def _constant(self, cells: NDArray[Any], spec: Spec) -> SSAValue:
        if spec.size and not any(cells.strides):
            cells = cells.reshape(-1)[0]
        return self.build.constant(cells, spec.dtype, spec.shape, self.place)

    def known(self, cells: NDArray[Any] | float, spec: Spec) -> Value:
        """A value whose cells are known; one number stands for all."""
        array = np.broadcast_to(np.asarray(cells).astype(spec.numpy), spec.shape)
        return Value(spec, known=array)

    def apply(
        self,
        metakernel: str,
        *inputs: Value | Sequence[Value] | None,
        parameters: Mapping[str, object] | None = None,
    ) -> Value:
        """Apply a metakernel with one result."""
        return self.apply_all(metakernel, *inputs, parameters=parameters)[0]

    def apply_all(
        self,
        metakernel: str,
        *inputs: Value | Sequence[Value] | None,
        parameters: Mapping[str, object] | None = None,
    ) -> list[Value]:
        """Apply a metakernel; all of its results."""
        given = [self._given(value) for value in inputs]
        made = self.build.apply(metakernel, *given, parameters=parameters, location=self.place)
        return [self.value(result) for result in made]

    def _given(self, value: Value | Sequence[Value] | None) -> Any:
        if value is None or isinstance(value, Value):
            return None if value is None else self.tensor(value)
        return [self.tensor(one) for one in value]

    def insert(self, op: Operation) -> list[Value]:
        """Add an operation of loom; its results."""
        return [self.value(result) for result in self.build.insert(op, self.place)]

    def value(self, tensor: SSAValue) -> Value:
        """The value of a tensor of this program."""
        kind = tensor.type
        assert isinstance(kind, TensorType)
        return Value(Spec(kind.box.shape, name_of(kind.element_type)), tensor)

    def define_monoid(self, zero: Sequence[Attribute], merge: Region) -> str:
        """Define a monoid of the program's own; its name."""
        self._monoids += 1
        name = f"fold{self._monoids}"
        self.build.define(loom.MonoidOp(name, zero, merge, commutative=False), self.place)
        return name

    def error(self, message: str, *, hint: str | None = None) -> StableHloError:
        """An error at the place that is being translated."""
        places = source_locations(self.place)
        return StableHloError(message, location=places[0] if places else None, hint=hint)

    def kind(self, spec: Spec) -> TensorType:
        """The tensor type of loom for a spec."""
        return kind_of(spec.shape, spec.dtype)
