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

from xdsl.ir import Region

from tapestry.importers.stablehlo import folding
from tapestry.importers.stablehlo.bindings import (
    MlirBlock,
    MlirOperation,
    MlirValue,
    blocks_of,
)
from tapestry.importers.stablehlo.constants import cells_of
from tapestry.importers.stablehlo.construction import Construction
from tapestry.importers.stablehlo.locations import Locations
from tapestry.importers.stablehlo.specs import spec_of
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import ZSpaceError

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


class Program(Construction):
    """A weft program under construction, and the module of functions that it is made of."""

    def __init__(self, module: Source, translations: Mapping[str, Translation]) -> None:
        super().__init__()
        self._module = module
        self._translations = translations
        self._narrow: Narrow | None = None
        self._depth = 0
        self._count = 0

    def nested(self, narrow: Narrow | None = None) -> Program:
        """An empty program over the same functions, for a region whose scalars are wanted.

        `narrow` says what stands for the results of an operation there.
        """
        made = Program(self._module, self._translations)
        made._narrow = narrow
        made.place = self.place
        made._depth = self._depth
        return made

    @property
    def is_narrowed(self) -> bool:
        """Whether operations stand here for what they do to one cell."""
        return self._narrow is not None

    @property
    def bodies(self) -> dict[object, Region | None]:
        """What functions compute for a cell, as far as it is known (`cells`)."""
        return self._module.bodies

    def function(self, name: str) -> MlirOperation | None:
        """A function of the module."""
        return self._module.functions.get(name)

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
                f"{op.name} : ({takes}) -> ({gives}) is not supported",
                hint=_EXPORTED if op.name.startswith("chlo.") else _shown(operation),
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
        except (ZSpaceError, OverflowError) as error:
            raise self.error(f"{operation.name}: {error}", hint=_shown(operation)) from None


def _shown(operation: MlirOperation) -> str:
    """The operation as it is written, without its regions."""
    line = str(operation).strip().splitlines()[0]
    return f"it is written {line}" if len(line) < _SHOWN else f"it begins {line[:_SHOWN]} ..."


_SHOWN = 160

_EXPORTED = "`jax.export.export(...)(...).mlir_module()` writes what it is computed of instead"
