"""Typed parameters of templates: their declaration, defaults, and what an application gives.

    params:
      axis: {type: int, axis_of: x}                    # negatives count from the end
    axes: {type: "int[]", axis_of: x}                # several; a single one may be given as it is
    place: {type: int, axis_of: x, inserted: true}   # of x with one axis more: -1 is after the last
      approximate: {type: enum, values: [none, tanh], default: none}
      stride: {type: "int[2]", default: [1, 1]}      # one number stands for each of them

An application gives values, and `bind_parameters` checks them against the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from tapestry.diagnostics import Location
from tapestry.metakernels.dtypes import DTYPES
from tapestry.metakernels.equations import Equation, parse_equation
from tapestry.metakernels.errors import ParameterError, TemplateError, WeftError, nearest
from tapestry.metakernels.values import MAX_INTEGER, Value

Kind: TypeAlias = Literal["int", "int[]", "float", "bool", "enum", "dtype", "equation"]
ParameterValue: TypeAlias = int | float | bool | str | tuple[int, ...] | Equation

_KINDS: Final[tuple[Kind, ...]] = ("int", "int[]", "float", "bool", "enum", "dtype", "equation")
_LIST: Final = re.compile(r"int\[(\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a template; `length` fixes that of an `int[n]`."""

    name: str
    kind: Kind
    location: Location
    length: int | None = None
    values: tuple[str, ...] = ()
    axis_of: str | None = None
    default: ParameterValue | None = None
    inserted: bool = False

    @property
    def type_name(self) -> str:
        """The type as templates write it."""
        if self.kind == "enum":
            return f"one of {', '.join(self.values)}"
        return f"int[{self.length}]" if self.length is not None else self.kind

    def convert(self, value: object) -> ParameterValue:
        """`value` as a value of this parameter, or a ParameterError that says what it must be."""
        match self.kind:
            case "int" if _is_int(value):
                return _small(self.name, value)
            case "int[]" if self.axis_of is not None and _is_int(value):
                return self.convert((value,))
            case "int[]" if self.length is not None and _is_int(value):
                return self.convert((value,) * self.length)
            case "int[]" if isinstance(value, list | tuple):
                items = cast("Sequence[object]", value)
                if self.length in (None, len(items)) and all(map(_is_int, items)):
                    return tuple(_small(self.name, item) for item in items)
            case "float" if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
            case "bool" if isinstance(value, bool):
                return value
            case "enum" if isinstance(value, str) and value in self.values:
                return value
            case "dtype" if isinstance(value, str) and value in DTYPES:
                return value
            case "equation" if isinstance(value, str):
                return parse_equation(value)
            case _:
                pass
        raise ParameterError(
            f"parameter {self.name} is {_shown(cast(object, value))}; it must be {self.type_name}"
        )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _small(name: str, value: object) -> int:
    assert isinstance(value, int)
    if abs(value) > MAX_INTEGER:
        raise ParameterError(f"parameter {name} is {value}, which is beyond 2^62")
    return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return f"[{', '.join(map(_shown, items))}]"
    return str(value)


def parse_kind(text: str, location: Location) -> tuple[Kind, int | None]:
    """The kind and length that a type such as `int[2]` names."""
    found = _LIST.fullmatch(text)
    if found is not None:
        return "int[]", int(found[1])
    for kind in _KINDS:
        if text == kind:
            return kind, None
    raise TemplateError(
        f"unknown parameter type {text}", location=location, hint=nearest(text, (*_KINDS, "int[2]"))
    )


def bind_parameters(
    parameters: Sequence[Parameter], given: Mapping[str, object], ranks: Mapping[str, int]
) -> dict[str, Value]:
    """The value of every parameter: as given, or its default; axes are made non-negative.

    `ranks` are those of the inputs. Raises ParameterError for one that is missing, unknown, of the
    wrong type, or an axis out of range.
    """
    known = {parameter.name for parameter in parameters}
    for name in given:
        if name not in known:
            raise ParameterError(f"there is no parameter {name}", hint=nearest(name, known))
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.name in given:
            try:
                value = parameter.convert(given[parameter.name])
            except WeftError as error:
                raise error.placed(parameter.location) from None
        elif parameter.default is not None:
            value = parameter.default
        else:
            raise ParameterError(
                f"parameter {parameter.name} ({parameter.type_name}) is missing",
                location=parameter.location,
                hint=f"give it: {{{parameter.name} = ...}}",
            )
        if parameter.axis_of is not None:
            axes = cast("int | tuple[int, ...]", value)
            value = _axes(parameter, axes, ranks[parameter.axis_of])
        values[parameter.name] = value
    return values


def _axes(parameter: Parameter, value: int | tuple[int, ...], rank: int) -> int | tuple[int, ...]:
    if isinstance(value, tuple):
        rank += len(value) if parameter.inserted else 0
        axes = tuple(_axis(parameter, axis, rank) for axis in value)
        if len(set(axes)) < len(axes):
            raise ParameterError(
                f"parameter {parameter.name} lists an axis twice: {_shown(value)}",
                location=parameter.location,
                hint="negative axes count from the end",
            )
        return axes
    return _axis(parameter, value, rank + parameter.inserted)


def _axis(parameter: Parameter, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        fits = f"from {-rank} to {rank - 1}" if rank else "none, a scalar has no axes"
        raise ParameterError(
            f"parameter {parameter.name} is {axis}, and {parameter.axis_of} "
            f"{'then has' if parameter.inserted else 'has'} rank {rank}",
            location=parameter.location,
            hint=f"axes that fit: {fits}",
        )
    return axis % rank
