"""Forms of lines that random functions are made of, one a line, under the name of their kind.

    [unary x2]
    {x}.relu()
    -{x}

A kind is drawn as often as its number says, and then one of its forms.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_HEAD = re.compile(r"\[(\w+) x(\d+)\]")


class Form(NamedTuple):
    """A line with places in braces, and its kind."""

    kind: str
    text: str


def read_forms(name: str) -> list[list[Form]]:
    """The forms of each kind, as often as it is drawn, in a file beside this one."""
    found: list[list[Form]] = []
    for block in (Path(__file__).parent / name).read_text(encoding="utf-8").split("\n\n"):
        head, *lines = block.splitlines()
        matched = _HEAD.fullmatch(head)
        assert matched is not None, head
        kind, times = matched.groups()
        found += [[Form(kind, line) for line in lines]] * int(times)
    return found
