"""Statements as lines of Python: long ones are broken at the commas of their outermost call.

>>> for line in statement("acc = tl.dot(" + "a" * 50 + ", " + "b" * 50 + ")", 1):
...     print(line)
    acc = tl.dot(
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,
        bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,
    )

A loop carries several values on at once. As assignments of their own they are easier to read, where
there is an order in which none needs what another has overwritten:

>>> assignments({"m": "m_new", "l": "l * scale(m, m_new) + s"})
['l = l * scale(m, m_new) + s', 'm = m_new']
>>> assignments({"a": "b", "b": "a"})
['a, b = b, a']

What is added to a name is added in place; of floats, no sum is taken in another order:

>>> assignments({"acc": "acc + x * y"}), assignments({"acc": "acc + x - y"})
(['acc += x * y'], ['acc = acc + x - y'])
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from tapestry.codegen.vocabulary import INDENT, LONGEST_LINE, wrapped

_OPEN, _CLOSE = "([{", ")]}"


def statement(text: str, depth: int) -> list[str]:
    """A statement at an indentation, broken into lines where it is too long."""
    line = INDENT * depth + text
    if len(line) <= LONGEST_LINE:
        return [line]
    call = _last_call(text)
    if call is None or len(call[0]) > len(text) // 2:
        return _in_parentheses(text, depth)
    head, items = call
    return wrapped(head, items, ")", depth)


def assignments(values: Mapping[str, str]) -> list[str]:
    """What names become, all at once, as statements."""
    waiting = {name: value for name, value in values.items() if name != value}
    lines: list[str] = []
    while waiting:
        free = [name for name in waiting if not _needed(name, waiting)]
        if not free:
            break
        lines.append(_assignment(free[0], waiting.pop(free[0])))
    if waiting:
        lines.append(f"{', '.join(waiting)} = {', '.join(waiting.values())}")
    return lines


def _assignment(name: str, value: str) -> str:
    """A statement by which a name becomes a value."""
    start, sign, added = value.partition(" + ")
    if sign and start == name and _is_one_term(added):
        return f"{name} += {added}"
    return f"{name} = {value}"


def _is_one_term(text: str) -> bool:
    """Whether nothing outside of brackets binds less tightly than a product."""
    level, outside = 0, ""
    for mark in text:
        level += (mark in _OPEN) - (mark in _CLOSE)
        outside += mark if level == 0 else ""
    return set(outside.split()[1::2]) <= {"*", "/", "//", "%"}


def _needed(name: str, waiting: Mapping[str, str]) -> bool:
    """Whether another value that waits is computed of a name."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    return any(word.search(value) for other, value in waiting.items() if other != name)


def _last_call(text: str) -> tuple[str, list[str]] | None:
    """A text that ends with a call, as what is before its arguments, and these."""
    if not text.endswith(")"):
        return None
    level, commas, quoted = 0, list[int](), False
    for place in range(len(text) - 1, -1, -1):
        mark = text[place]
        quoted ^= mark == '"'
        if quoted:
            continue
        if mark in _CLOSE:
            level += 1
        elif mark in _OPEN:
            level -= 1
            if level == 0:
                if place == 0 or not (text[place - 1].isalnum() or text[place - 1] == "_"):
                    return None
                return text[: place + 1], _split(text[place + 1 : -1], commas, place + 1)
        elif mark == "," and level == 1:
            commas.append(place)
    return None


def _split(arguments: str, commas: list[int], start: int) -> list[str]:
    """The arguments of a call, between commas at some places of a text."""
    bounds = [-1, *(comma - start for comma in reversed(commas)), len(arguments)]
    return [arguments[low + 1 : high].strip() for low, high in pairwise(bounds)]


def _in_parentheses(text: str, depth: int) -> list[str]:
    """An assignment whose value is on a line of its own."""
    name, sign, value = text.partition(" = ")
    if not sign:
        return [INDENT * depth + text]
    start = INDENT * depth
    return [f"{start}{name} = (", f"{start}{INDENT}{value}", f"{start})"]
