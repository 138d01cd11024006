"""Options that name several values: `x=[2, N],w=[N]` and `axis=1,keepdim=true,shape=[2, -1]`.

>>> named_lists("shapes", "x=[2, 3 * N],w=[]")
{'x': [2, '3 * N'], 'w': []}
>>> named_values("params", "axis=-1,keepdim=true,perm=[1, 0],p=0.5,approximate=tanh")
{'axis': -1, 'keepdim': True, 'perm': [1, 0], 'p': 0.5, 'approximate': 'tanh'}
"""

from __future__ import annotations

import re

from tapestry.diagnostics import UsageError

_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def named_lists(option: str, text: str) -> dict[str, list[int | str]]:
    """`name=[item, ...]` pairs; items that are no integers stay text."""
    lists: dict[str, list[int | str]] = {}
    for name, value in _pairs(option, text):
        if not (value.startswith("[") and value.endswith("]")):
            raise UsageError(f"--{option}: {name} is {value!r}", hint=f"a list: {name}=[2, N]")
        lists[name] = [_integer_or_text(item) for item in _split(value[1:-1])]
    return lists


def named_values(option: str, text: str | None) -> dict[str, object]:
    """`name=value` pairs: numbers, truth values, words, and lists of integers."""
    return {name: _value(value) for name, value in _pairs(option, text or "")}


def _value(text: str) -> object:
    if text.startswith("[") and text.endswith("]"):
        return [_value(item) for item in _split(text[1:-1])]
    if text in ("true", "false"):
        return text == "true"
    number = _integer_or_text(text)
    if isinstance(number, int):
        return number
    try:
        return float(text)
    except ValueError:
        return text


def _integer_or_text(text: str) -> int | str:
    return int(text) if _INTEGER.fullmatch(text) else text


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for part in _split(text):
        found = _NAME.match(part)
        if found is None:
            raise UsageError(f"--{option}: {part!r} is no `name=value`")
        if any(found[1] == name for name, _ in pairs):
            raise UsageError(f"--{option}: {found[1]} is given twice")
        pairs.append((found[1], part[found.end() :].strip()))
    return pairs


def _split(text: str) -> list[str]:
    """The parts between the commas that are in no brackets."""
    parts: list[str] = [""]
    depth = 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if text.strip() else []
