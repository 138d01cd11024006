"""A StableHLO function as a weft program: its operations in order, calls and regions inlined.

    program = Program(module, "model.stablehlo.mlir")
    outputs = program.run_function("main", arguments)

What an operation becomes is a *translation*, found by the operation's name (`translations`). What
all of its operands are known for is computed at once (`folding`), so loops with a counter that is
known run here, trip by trip, and leave their bodies behind.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tapestry.algebra.dtypes import name_of
from tapestry.dialects import loom
from tapestry.dialects.loom import TensorType
from tapestry.importers.building import ProgramBuilder, kind_of
from tapestry.importers.stablehlo import folding
from tapestry.importers.stablehlo.bindings import (
    MlirBlock,
    MlirOperation,
    MlirValue,
    StableHloError,
    blocks_of,
)
from tapestry.importers.stablehlo.boxes import coordinates, uncovered
from tapestry.importers.stablehlo.constants import cells_of
from tapestry.importers.stablehlo.locations import Locations
from tapestry.importers.stablehlo.types import spec_of
from tapestry.importers.stablehlo.values import Spec, Value, Written
from tapestry.locations import source_locations
from tapestry.zspace import AffineMap, Projection, ZSpaceError

MAX_DEPTH = 64
"""How deep calls and regions may nest."""

MAX_OPERATIONS = 200_000
"""How many operations a program may have, calls inlined and loops unrolled."""

Environment: TypeAlias = "dict[MlirValue, Value]"


@dataclass(frozen=True)
class Op:
    """One operation to translate: what it takes, what it has to make, and all it says itself."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Spec, ...]
    source: MlirOperation
    environment: Environment = field(repr=False)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Its attributes, as MLIR has them."""
        return self.source.attributes

    def has(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self.source.attributes

    def block(self, region: int) -> MlirBlock:
        """The one block of a region."""
        return blocks_of(self.source, region)[0]


Translation: TypeAlias = Callable[["Program", Op], Value | Sequence[Value]]
"""What an operation becomes: its results, from a program that it may add to."""


@dataclass(frozen=True)
class Source:
    """What a program is made of: functions and resources by name, and where they are written."""

    functions: Mapping[str, MlirOperation]
    resources: Mapping[str, bytes]
    locations: Locations
    bodies: dict[object, Region | None] = field(default_factory=dict[object, Region | None])
    """What functions compute for a cell, by what they take; None where it is more."""


Narrow: TypeAlias = Callable[[MlirOperation, tuple[Spec, ...]], tuple[Spec, ...]]


class Program:
    """A weft program under construction, and the module of functions that it is made of."""

    def __init__(
        self,
        module: Source,
        translations: Mapping[str, Translation],
    ) -> None:
        self.build = ProgramBuilder()
        self.place: LocationAttr = UNKNOWN_LOC
        """The location of the operation that is being translated."""
        self._module = module
        self._translations = translations
        self._tensors: dict[Value, SSAValue] = {}
        self._narrow: Narrow | None = None
        self._monoids = 0
        self._depth = 0
        self._count = 0

    def define_monoid(self, zero: Sequence[Attribute], merge: Region) -> str:
        """Define a monoid of the program's own; its name."""
        self._monoids += 1
        name = f"fold{self._monoids}"
        self.build.define(loom.MonoidOp(name, zero, merge, commutative=False), self.place)
        return name

    def nested(self, narrow: Narrow | None = None) -> Program:
        """An empty program over the same functions, for a region whose scalars are wanted.

        `narrow` says what stands for the results of an operation there.
        """
        made = Program(self._module, self._translations)
        made._narrow = narrow
        made.place = self.place
        made._depth = self._depth
        return made

    # What translations add.

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

    @property
    def bodies(self) -> dict[object, Region | None]:
        """What functions compute for a cell, as far as it is known (`cells`)."""
        return self._module.bodies

    def function(self, name: str) -> MlirOperation | None:
        """A function of the module."""
        return self._module.functions.get(name)

    # Walking.

    def run_function(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """The results of a function of the module on `arguments`, inlined."""
        function = self.function(name)
        if function is None:
            raise self.error(f"@{name} is called, but there is no such function")
        blocks = blocks_of(function)
        if len(blocks) != 1:
            raise self.error(f"@{name} has {len(blocks)} blocks; a function over tensors has one")
        return self.run_block(blocks[0], arguments, {})

    def run_block(
        self, block: MlirBlock, arguments: Sequence[Value], outside: Environment
    ) -> list[Value]:
        """What a block returns on `arguments`; `outside` has what is defined around it."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(
                f"calls and regions nest more than {MAX_DEPTH} deep",
                hint="a function that calls itself has no fixed size",
            )
        environment = {**outside, **dict(zip(block.arguments, arguments, strict=True))}
        caller = self.place
        try:
            for source in block.operations:
                operation = source.operation
                self.place = self._module.locations.convert(operation.location, caller)
                operands = tuple(self._operand(environment, one) for one in operation.operands)
                if operation.name in ("func.return", "stablehlo.return"):
                    return list(operands)
                with self._explained(operation):
                    results = self._run(operation, operands, environment)
                environment.update(zip(operation.results, results, strict=True))
        finally:
            self.place = caller
            self._depth -= 1
        raise self.error("a block ends without returning")

    def _operand(self, environment: Environment, value: MlirValue) -> Value:
        if value in environment:
            return environment[value]
        raise self.error("a region over scalars takes a value from around it that is computed")

    def _run(
        self, operation: MlirOperation, operands: tuple[Value, ...], environment: Environment
    ) -> list[Value]:
        self._count += 1
        if self._count > MAX_OPERATIONS:
            raise self.error(
                f"the program has more than {MAX_OPERATIONS} operations, calls inlined and loops "
                "unrolled"
            )
        specs = tuple(self.spec(result.type) for result in operation.results)
        if self._narrow is not None:
            specs = self._narrow(operation, specs)
        op = Op(operation.name, operands, specs, operation, environment)
        if op.name == "stablehlo.constant":
            return [self._constant_of(operation, specs[0])]
        folded = folding.fold(op.name, operands, specs, operation)
        if folded is not None:
            return folded
        translation = self._translations.get(op.name)
        if translation is None:
            takes = ", ".join(str(value.spec) for value in operands)
            gives = ", ".join(map(str, specs))
            raise self.error(
                f"{op.name} : ({takes}) -> ({gives}) is not supported", hint=_shown(operation)
            )
        made = translation(self, op)
        results = [made] if isinstance(made, Value) else list(made)
        got = tuple(value.spec for value in results)
        if got != specs:
            have, want = (", ".join(map(str, some)) for some in (got, specs))
            raise self.error(f"{op.name} was imported as ({have}), but makes ({want})")
        return results

    def _constant_of(self, operation: MlirOperation, spec: Spec) -> Value:
        try:
            return Value(spec, known=cells_of(operation, spec, self._module.resources))
        except ValueError as error:
            raise self.error(str(error)) from None

    def spec(self, kind: object) -> Spec:
        try:
            return spec_of(kind)
        except ValueError as error:
            raise self.error(str(error)) from None

    @contextmanager
    def _explained(self, operation: MlirOperation) -> Generator[None]:
        """Give what cannot be imported the operation's name and place."""
        try:
            yield
        except (folding.NotKnownError, ZSpaceError, OverflowError) as error:
            raise self.error(f"{operation.name}: {error}", hint=_shown(operation)) from None

    def error(self, message: str, *, hint: str | None = None) -> StableHloError:
        """An error at the place that is being translated."""
        places = source_locations(self.place)
        return StableHloError(message, location=places[0] if places else None, hint=hint)

    def kind(self, spec: Spec) -> TensorType:
        """The tensor type of loom for a spec."""
        return kind_of(spec.shape, spec.dtype)


def _shown(operation: MlirOperation) -> str:
    """The operation as it is written, without its regions."""
    line = str(operation).strip().splitlines()[0]
    return f"it is written {line}" if len(line) < _SHOWN else f"it begins {line[:_SHOWN]} ..."


_SHOWN = 160
