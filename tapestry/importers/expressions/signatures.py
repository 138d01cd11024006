"""How the functions of metakernels take their arguments.

A signature is what the template says: its inputs, then its parameters. What has to be given after
something that may be left out has no place of its own there, and shows as given by name.

    >>> from tapestry.metakernels import load_library
    >>> arange, permute = load_library().get("arange"), load_library().get("permute")
    >>> str(signature_of(arange))
    "(start=0, *, stop, step=1, dtype='i64')"

Arguments are taken as NumPy, PyTorch and Python's `range` take theirs:

    >>> bind(arange, (5,), {})["stop"], bind(arange, (2, 5), {})["start"]
    (5, 2)
    >>> bind(permute, ("x", 1, 0), {})
    {'x': 'x', 'dims': [1, 0]}
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, Final, cast

import numpy as np

from tapestry.metakernels import Template

_OTHER_NAMES: Final = {"keepdims": "keepdim", "dim": "axis", "ddof": "correction"}
"""What NumPy and PyTorch call arguments of metakernels."""


def signature_of(template: Template) -> Signature:
    """The arguments of a template's function: its inputs, then its parameters."""
    arguments: list[Argument] = []
    kind, optional = Argument.POSITIONAL_OR_KEYWORD, False
    entries = [
        (entry.name, None if entry.optional else Argument.empty) for entry in template.inputs
    ]
    for parameter in template.parameters:
        default = Argument.empty if parameter.default is None else parameter.default
        entries.append((parameter.name, cast(Any, default)))
    for name, default in entries:
        if default is not Argument.empty:
            optional = True
        elif optional:
            kind = Argument.KEYWORD_ONLY
        arguments.append(Argument(name, kind, default=default))
    return Signature(arguments)


def bind(
    template: Template, given: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, Any]:
    """Every argument by its name in the template, defaults included.

    Raises a TypeError that says what is missing or too much.
    """
    signature = signature_of(template)
    named = _renamed(signature, named)
    given = _text_last(template, _one_list(template, given))
    given, named = _required_first(signature, given, named)
    bound = signature.bind(*given, **named)
    bound.apply_defaults()
    return bound.arguments


def _renamed(signature: Signature, named: Mapping[str, object]) -> dict[str, object]:
    """Arguments under the names of the template; an axis that is None is its default, all axes."""
    names = signature.parameters
    renamed = {
        (_OTHER_NAMES.get(name, name) if name not in names else name): value
        for name, value in named.items()
    }
    if renamed.get("axis", ...) is None and "axis" in names and names["axis"].default == ():
        del renamed["axis"]
    return renamed


def _one_list(template: Template, given: tuple[object, ...]) -> tuple[object, ...]:
    """`permute(x, 1, 0)` as `permute(x, [1, 0])`: numbers where a list is the last argument."""
    last = len(template.inputs) + len(template.parameters) - 1
    listed = bool(template.parameters) and template.parameters[-1].kind == "int[]"
    numbers = given[last:]
    if not listed or len(numbers) < 2 or not all(map(_is_whole, numbers)):
        return given
    return (*given[:last], list(numbers))


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer)


def _text_last(template: Template, given: tuple[object, ...]) -> tuple[object, ...]:
    """`einsum("ij,jk", x, y)` as `einsum([x, y], "ij,jk")`: no tensor is text."""
    lists = len(template.inputs) == 1 and template.inputs[0].each is not None
    if not lists or not given or not isinstance(given[0], str):
        return given
    text, *tensors = given
    alone = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    return (cast(object, tensors[0]) if alone else tensors, text)


def _required_first(
    signature: Signature, given: tuple[object, ...], named: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """`arange(5)` as `arange(stop=5)`, and `arange(2, 5)` as `arange(start=2, stop=5)`.

    Where something required has no place, arguments in order are what is required if they are as
    many, and else the first ones, as in Python's `range`.
    """
    arguments = signature.parameters.values()
    by_name = [one.name for one in arguments if one.kind is Argument.KEYWORD_ONLY]
    required = [
        one.name for one in arguments if one.default is Argument.empty and one.name not in named
    ]
    if not by_name or len(given) > len(signature.parameters):
        return given, named
    alone = len(given) == len(required) and not set(by_name).isdisjoint(required)
    names = required if alone else list(signature.parameters)
    ordered = dict(zip(names, given, strict=False))
    if twice := ordered.keys() & named.keys():
        raise TypeError(f"multiple values for argument {min(twice)!r}")
    return (), named | ordered


__all__ = ["bind", "signature_of"]
