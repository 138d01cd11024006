"""MLIR's own parser, which comes with `jaxlib`: StableHLO text or bytes as operations to walk.

    with_places = parse("func.func @main(...) ...", "model.stablehlo.mlir")

Everything of StableHLO that is known about its syntax, its types and its verification is there, in
the version that JAX uses. The bindings are imported when the first program is read.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from tapestry.diagnostics import Location, TapestryError, UsageError

_BYTECODE = b"ML\xefR"
"""How MLIR bytecode begins; StableHLO's portable artifacts are bytecode."""

_OPERATION = re.compile(rb'(?:^|[\s="])(?:stablehlo|chlo|vhlo)\.[a-z_]+|\bmhlo\.num_', re.MULTILINE)
"""An operation of StableHLO, or an attribute that JAX gives a module of it."""
_PLACE = re.compile(r'(?:loc\()?"?(?P<file>[^"]*)"?:(?P<line>\d+):(?P<column>\d+)')


_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|//[^\n]*+|->|[][(){}<>]', re.DOTALL)
"""Brackets; strings, comments and arrows are matched to be passed over."""

MAX_NESTING = 500
"""How deep brackets may nest."""


class MlirValue(Hashable, Protocol):
    """An operand, a result or an argument of a block."""

    @property
    def type(self) -> object: ...

    @property
    def location(self) -> object: ...


class MlirOperation(Protocol):
    """An operation, as far as it is read here; `operation` is the one behind a view of it."""

    @property
    def operation(self) -> MlirOperation: ...

    @property
    def name(self) -> str: ...

    @property
    def attributes(self) -> Mapping[str, Any]: ...

    @property
    def operands(self) -> Sequence[MlirValue]: ...

    @property
    def results(self) -> Sequence[MlirValue]: ...

    @property
    def regions(self) -> Sequence[Iterable[MlirBlock]]: ...

    @property
    def location(self) -> object: ...


class MlirBlock(Protocol):
    """A block of a region."""

    @property
    def arguments(self) -> Sequence[MlirValue]: ...

    @property
    def operations(self) -> Iterable[MlirOperation]: ...


def blocks_of(operation: MlirOperation, region: int = 0) -> list[MlirBlock]:
    """The blocks of a region of an operation."""
    return list(operation.regions[region])


class MlirModule(Protocol):
    """A parsed module."""

    @property
    def body(self) -> MlirBlock: ...


class StableHloError(TapestryError):
    """A StableHLO program that is damaged, or that says what cannot be imported."""

    kind = "stablehlo"


def is_stablehlo(source: str | bytes) -> bool:
    """Whether a file's contents are StableHLO: its bytecode, or text with an operation of it.

    >>> is_stablehlo("%1 = stablehlo.add %0, %0 : tensor<4xf32>")
    True
    >>> is_stablehlo("%1 = loom.constant 0.0 : !loom.tensor<[0] : [4], f32>  // no stablehlo")
    False
    """
    raw = source.encode() if isinstance(source, str) else source
    if raw.startswith(_BYTECODE):
        return True
    return b"!loom." not in raw and _OPERATION.search(_uncommented(raw)) is not None


def _uncommented(raw: bytes) -> bytes:
    return re.sub(rb"//[^\n]*", b"", raw) if b"//" in raw else raw


def mlir() -> Any:
    """The bindings' module of types, attributes and locations."""
    return import_module("jaxlib.mlir.ir")


def stablehlo_dialect() -> Any:
    """The bindings' module of StableHLO's attributes."""
    return import_module("jaxlib.mlir.dialects.stablehlo")


@cache
def _context() -> Any:
    """The MLIR context with the dialects that JAX exports; UsageError without jaxlib."""
    try:
        ir = mlir()
        dialects = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
        others = [import_module(f"jaxlib.mlir.dialects.{name}") for name in ("chlo", "sdy")]
        stablehlo = stablehlo_dialect()
    except ImportError as error:
        raise UsageError(
            f"StableHLO is read by MLIR's parser, which comes with JAX, and {error.name or error} "
            "is not installed",
            hint="pip install 'tapestry[jax]'",
        ) from None
    context = ir.Context()
    registry = ir.DialectRegistry()
    dialects.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    for dialect in others:
        dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def parse(source: str | bytes, name: str) -> MlirModule:
    """The verified module; StableHloError with the place in file `name` for what is none."""
    context = _context()
    ir = mlir()
    try:
        if isinstance(source, bytes) and source.startswith(_BYTECODE):
            return _deserialized(source, context)
        _check_nesting(source, name)
        return ir.Module.parse(source, context)
    except ir.MLIRError as error:
        found = error.error_diagnostics
        message = found[0].message if found else str(error).splitlines()[0]
        place = place_in(str(found[0].location), name) if found else None
        raise StableHloError(message, location=place or Location(name, 1, 1)) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise StableHloError(str(error), location=Location(name, 1, 1)) from None


def _deserialized(source: bytes, context: Any) -> MlirModule:
    """The module of a portable artifact; what is wrong is raised, not printed."""

    def quiet(_diagnostic: object) -> bool:
        return True

    handler = context.attach_diagnostic_handler(quiet)
    try:
        return stablehlo_dialect().deserialize_portable_artifact(context, source)
    finally:
        handler.detach()


def _check_nesting(source: str | bytes, name: str) -> None:
    """Refuse text so deeply nested that MLIR's parser would run out of its stack."""
    raw = source.encode() if isinstance(source, str) else source
    depth = 0
    for token in _BRACKETS.finditer(raw):
        match token[0]:
            case b"(" | b"[" | b"{" | b"<":
                depth += 1
            case b")" | b"]" | b"}" | b">":
                depth -= 1
            case _:
                continue
        if depth > MAX_NESTING:
            line = raw.count(b"\n", 0, token.start()) + 1
            column = token.start() - raw.rfind(b"\n", 0, token.start())
            raise StableHloError(
                f"brackets nest more than {MAX_NESTING} deep", location=Location(name, line, column)
            )


def place_in(text: str, name: str) -> Location | None:
    """A location that MLIR prints, where `-` is the text that was given, called `name`."""
    match = _PLACE.search(text)
    if match is None:
        return None
    file = name if match["file"] in ("-", "") else match["file"]
    return Location(file, int(match["line"]), int(match["column"]))
