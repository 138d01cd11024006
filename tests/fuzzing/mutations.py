"""Seeded mutations of programs: of characters, of tokens, and of the values of attributes.

mutate(random.Random(7), text, pool)      # always the same mutant of `text`
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

TOKEN = re.compile(
    r"""//[^\n]*|"(?:[^"\\\n]|\\.)*"|[%@#!^][\w.$-]+|[A-Za-z_][\w.]*|\d+\.\d+(?:[eE][-+]?\d+)?"""
    r"""|\d+|->|:>|\s+|.""",
    re.VERBOSE | re.DOTALL,
)

_NUMBERS = ("0", "1", "2", "-1", "7", "64", "4294967296", "9223372036854775807")
_HUGE = ("9223372036854775808", "-9223372036854775809", "1" + "0" * 30, "9" * 5000)
_WORDS = ("f32", "f64", "bf16", "i1", "i4", "i32", "i64", "index", "map", "fold", "scan", "wrap")
_SIGNS = (*'<>[](){},:=-+*%@#!^"', "->", ":>", "\x00", "\u00e9", "\u2028", "\r")
_VALUES = (
    "unit",
    "false",
    "0 : i32",
    "-1 : i64",
    '"text"',
    "[]",
    "[[]]",
    "{}",
    "@gone",
    "@main",
    "f32",
    "1.0e300 : f16",
    "array<i32: 1, 0>",
    "array<i32: -1, 9>",
    "dense<1.0> : tensor<2xf32>",
    "#zspace.range<[0] : [4]>",
    "#zspace.range<[] : []>",
    "#zspace.projection<(d0) -> (d0)>",
    "#zspace.projection<() -> ()>",
    "#zspace.partition<grid [[0, 4]]>",
    "#loom.iterators<[map]>",
    "#loom.iterators<[]>",
    "[#zspace.projection<(d0, d1) -> (d1)>]",
    "!loom.tensor<[0] : [4], f32>",
)
_PAIR = re.compile(r"(?P<key>\b\w+) = (?P<value>[^,{}<>]+|#[\w.]+<[^<>]*>)")


def mutate(rng: random.Random, text: str, pool: Sequence[str]) -> str:
    """One to three mutations of `text`; `pool` holds tokens of other programs."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(_MUTATIONS)(rng, text, pool)
    return text


def _character(rng: random.Random, text: str, _: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    new = rng.choice(("", chr(rng.randrange(32, 127)), rng.choice(_SIGNS)))
    return text[:at] + new + text[at + rng.randint(0, 2) :]


def _token(rng: random.Random, text: str, pool: Sequence[str]) -> str:
    tokens = TOKEN.findall(text)
    if not tokens:
        return rng.choice(pool)
    at = rng.randrange(len(tokens))
    match rng.randrange(5):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, rng.choice(tokens))
        case 2:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = rng.choice(pool)
        case _:
            tokens[at] = rng.choice((*_NUMBERS, *_WORDS, *_SIGNS))
    return "".join(tokens)


def _number(rng: random.Random, text: str, _: Sequence[str]) -> str:
    numbers = list(re.finditer(r"\b\d+\b", text))
    if not numbers:
        return text
    found = rng.choice(numbers)
    near = str(int(found[0]) + rng.choice((-1, 1))) if len(found[0]) < 30 else "0"
    new = rng.choice((near, near, rng.choice(_NUMBERS), rng.choice(_HUGE)))
    return text[: found.start()] + new + text[found.end() :]


def _value(rng: random.Random, text: str, _: Sequence[str]) -> str:
    """Another value for a property or an attribute, or none."""
    pairs = list(_PAIR.finditer(text))
    if not pairs:
        return text
    found = rng.choice(pairs)
    start, end = found.span("value")
    if rng.random() < 0.2:
        return text[: found.start()] + text[end:].removeprefix(", ")
    return text[:start] + rng.choice(_VALUES) + text[end:]


def _lines(rng: random.Random, text: str, _: Sequence[str]) -> str:
    """A line left out, repeated, or moved."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    line = lines[rng.randrange(len(lines))]
    match rng.randrange(3):
        case 0:
            lines.remove(line)
        case 1:
            lines.insert(rng.randrange(len(lines)), line)
        case _:
            lines.remove(line)
            lines.insert(rng.randint(0, len(lines)), line)
    return "".join(lines)


_Mutation = Callable[[random.Random, str, Sequence[str]], str]
_MUTATIONS: tuple[_Mutation, ...] = (_character, _token, _token, _number, _value, _value, _lines)
