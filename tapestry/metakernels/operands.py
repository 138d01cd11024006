"""Which tensors an application gives for which inputs: single ones, lists, and optional ones.

    inputs: {tensors: {each: $i, ...}, bias: {optional: true, ...}}

    >>> from tapestry.metakernels import load_library
    >>> x, y = TensorSpec((2,), "f32"), TensorSpec((3,), "f32")
    >>> concat = load_library().get("concat")
    >>> [str(operand.tensor) for operand in arrange(concat, [[x, y]])]
    ['tensors[0]: [2] f32', 'tensors[1]: [3] f32']

A list is given as a sequence, an optional input that is left out as None (or not at all, at the
end). A template with one list takes tensors that are given one by one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tapestry.diagnostics import Location
from tapestry.metakernels.errors import LimitError, OperandError, WeftError
from tapestry.metakernels.expansion import Tensor, TensorSpec
from tapestry.metakernels.matching import Place
from tapestry.metakernels.templates import Input, Template
from tapestry.metakernels.values import MAX_ELEMENTS

Given: TypeAlias = TensorSpec | Sequence[TensorSpec] | None
"""What stands for one input."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that is given for an input; `place` is where in its list, if that is one."""

    entry: Input
    tensor: Tensor
    place: Place | None


def arrange(template: Template, given: Sequence[Given]) -> tuple[Operand, ...]:
    """The operands in order; OperandError when they are not what the inputs take."""
    operands: list[Operand] = []
    for entry, value in zip(template.inputs, _per_input(template, given), strict=True):
        if entry.each is not None:
            operands.extend(_list(template, entry, entry.each, value))
        elif isinstance(value, TensorSpec):
            operands.append(Operand(entry, Tensor(entry.name, value), None))
        elif value is not None and not (entry.optional and not value):
            raise OperandError(
                f"{entry.name} is one tensor, and a list of {len(value)} is given for it",
                location=template.location,
            )
        elif not entry.optional:
            raise OperandError(f"{entry.name} is not given", location=template.location)
    return tuple(operands)


def _per_input(template: Template, given: Sequence[Given]) -> Sequence[Given]:
    """What is given, one entry per input: a flat list is divided, and None is what is left out."""
    inputs = template.inputs
    lists = [number for number, entry in enumerate(inputs) if entry.each is not None]
    flat = [value for value in given if isinstance(value, TensorSpec)]
    if len(lists) == 1 and len(flat) == len(given) and len(given) >= len(inputs) - 1:
        first, after = lists[0], len(inputs) - 1 - lists[0]
        end = len(given) - after
        return [*flat[:first], flat[first:end], *flat[end:]]
    least = len(inputs)
    while least and inputs[least - 1].optional:
        least -= 1
    if not least <= len(given) <= len(inputs):
        names = ", ".join(map(_described, inputs))
        raise OperandError(
            f"{template.name} takes {len(inputs)} operands ({names}), and {len(given)} are given",
            location=template.location,
            hint="a list of tensors is written in brackets: [%a, %b]" if lists else None,
        )
    return [*given, *(None for _ in range(len(inputs) - len(given)))]


def misapplied(
    error: WeftError, template: Template, given: Sequence[Given], location: Location | None
) -> WeftError:
    """`error`, raised while `template` was applied to `given`, for who applied it at `location`."""
    where = f" (template at {error.location or template.location})"
    shown = ", ".join(map(_shown, given))
    return type(error)(
        f"@{template.name} does not apply to ({shown}): {error.message}{where}",
        location=location,
        hint=error.hint,
    )


_SHOWN = 8
"""Tensors of a list that a message shows."""


def _shown(given: Given) -> str:
    if given is None or isinstance(given, TensorSpec):
        return "[]" if given is None else str(given)
    tensors = [*map(str, given[:_SHOWN]), *(["..."] if len(given) > _SHOWN else [])]
    return f"[{', '.join(tensors)}]"


def _described(entry: Input) -> str:
    if entry.each is not None:
        return f"[{entry.name}...]"
    return f"{entry.name}?" if entry.optional else entry.name


def _list(template: Template, entry: Input, each: str, value: Given) -> list[Operand]:
    if value is None or isinstance(value, TensorSpec):
        raise OperandError(
            f"{entry.name} is a list of tensors",
            location=template.location,
            hint="a list of one is written [%a]",
        )
    if len(value) > MAX_ELEMENTS:
        raise LimitError(
            f"{entry.name} is a list of {len(value)} tensors, more than {MAX_ELEMENTS}",
            location=template.location,
        )
    return [
        Operand(entry, Tensor(entry.name, spec, position), Place(each, position, len(value)))
        for position, spec in enumerate(value)
    ]
