"""What a step of a composite reads: inputs and earlier steps, one tensor or a list of them.

x            an input, or the result of a step
parts[1]     an element of a list; the position is an expression
stats.mean   one of several outputs of a step
[a, parts[0], rest...]                       a list, `...` splices another

>>> values = Values({"x": TensorSpec((2,), "f32")}, {"x": None})
>>> values.add("parts", {"parts.0": TensorSpec((1,), "f32")}, {"parts": 1})
>>> values.find("[x, parts[0]]", {}), values.find("parts", {})
(['x', 'parts.0'], ['parts.0'])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tapestry.metakernels.errors import (
    IndexOutOfRangeError,
    OperandError,
    ParseError,
    UnknownNameError,
    nearest,
)
from tapestry.metakernels.evaluation import Scope, evaluate
from tapestry.metakernels.expansion import TensorSpec
from tapestry.metakernels.parsing import parse_expression
from tapestry.metakernels.text import Text
from tapestry.metakernels.values import Names, integer

_ONE: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)\s*(?:\[(.*)\])?", re.DOTALL)


class Values:
    """The tensors known so far, by name; `counts` says how long lists are, None for one tensor.

    A name that counts 0 may also be an optional input that is left out: `absent`.
    """

    def __init__(self, specs: Mapping[str, TensorSpec], counts: Mapping[str, int | None]) -> None:
        self.specs = dict(specs)
        self.counts = dict(counts)
        self.absent: set[str] = set()

    def add(
        self, name: str, specs: Mapping[str, TensorSpec], counts: Mapping[str, int | None]
    ) -> None:
        """What the step `name` makes."""
        assert all(key == name or key.startswith(f"{name}.") for key in (*specs, *counts))
        self.specs |= specs
        self.counts |= counts

    def find(self, text: str | Text, names: Names) -> str | list[str] | None:
        """The names of what `text` refers to: of one tensor, of a list, or None for none."""
        source = Text.of(text)
        items = _items(source)
        if items is None:
            return self._one(source.text.strip(), source, names)
        return [name for item in items for name in self._several(item, source, names)]

    def _several(self, item: str, source: Text, names: Names) -> list[str]:
        spliced = item.endswith("...")
        found = self._one(item.removesuffix("...").strip(), source, names)
        if spliced != isinstance(found, list):
            hint = f"take one, {item}[0], or all, {item}..." if not spliced else None
            what = "a list" if not spliced else "one tensor"
            raise OperandError(f"{item} in a list is {what}", location=source.location, hint=hint)
        return found if isinstance(found, list) else [] if found is None else [found]

    def _one(self, item: str, source: Text, names: Names) -> str | list[str] | None:
        match = _matched(item, source)
        name, index = match[1], match[2]
        if name in self.absent and index is None:
            return None
        if name not in self.counts:
            raise _unknown(name, source, self.counts)
        count = self.counts[name]
        if index is None:
            return name if count is None else [f"{name}.{i}" for i in range(count)]
        if count is None:
            raise OperandError(
                f"{name} is one tensor and has no elements", location=source.location
            )
        value = evaluate(parse_expression(Text(index, source.location, exact=False)), Scope(names))
        position = integer(value, "the position in a list")
        if not 0 <= position < count:
            raise IndexOutOfRangeError(
                f"{name}[{position}]: it has {count} tensors, counted from 0",
                location=source.location,
            )
        return f"{name}.{position}"


def check_names(text: Text, known: Iterable[str]) -> None:
    """Raise unless all that a step reads is of the inputs and earlier steps that are `known`.

    Of a step with several outputs, which one is not looked at.
    """
    names, items = set(known), _items(text)
    plain = [text.text] if items is None else [item.removesuffix("...") for item in items]
    for item in plain:
        name = _matched(item.strip(), text)[1]
        if name.split(".")[0] not in names:
            raise _unknown(name, text, names)


def _items(source: Text) -> list[str] | None:
    """The items of a list of tensors, None of one tensor."""
    plain = source.text.strip()
    if not plain.startswith("["):
        return None
    if not plain.endswith("]"):
        raise ParseError(f"`{plain}` is no list of tensors", location=source.location)
    return _split(plain[1:-1])


def _matched(item: str, source: Text) -> re.Match[str]:
    match = _ONE.fullmatch(item)
    if match is None:
        raise ParseError(
            f"`{item}` names no tensor",
            location=source.location,
            hint="x, parts[0], stats.mean or [a, b]",
        )
    return match


def _unknown(name: str, source: Text, known: Iterable[str]) -> UnknownNameError:
    return UnknownNameError(
        f"{name} is no input and no earlier step",
        location=source.location,
        hint=nearest(name, known),
    )


def _split(text: str) -> list[str]:
    """The items between commas that are inside no brackets."""
    items: list[str] = []
    depth, start = 0, 0
    for place, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            items.append(text[start:place].strip())
            start = place + 1
    items.append(text[start:].strip())
    return items if text.strip() else []
