"""Pairs of programs that are equal over the reals, and pairs that are not, by family.

A family is a reference and named variants of it: `equal` ones compute the same, and `differ` ones
have a mistake that compilers make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """A program and its variants, as text."""

    name: str
    reference: str
    equal: Mapping[str, str] = field(default_factory=dict[str, str])
    differ: Mapping[str, str] = field(default_factory=dict[str, str])
