"""Equations of sums of products, in Einstein's notation: `ij,jk->ik`.

    >>> parse_equation("ij,jk->ik")           # labels by number: those of the result come first
    (((0, 2), (2, 1)), (0, 1), (2,))
    >>> parse_equation("ba")                  # without `->`, labels that occur once, in order
    (((1, 0),), (0, 1), ())

A parameter of type `equation` is such a value: the labels of each operand, those of the result, and
those that are summed over.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, TypeAlias

from tapestry.metakernels.errors import EquationError

Labels: TypeAlias = tuple[int, ...]
Equation: TypeAlias = tuple[tuple[Labels, ...], Labels, Labels]

MAX_LENGTH: Final = 512
"""Characters of one equation."""

_FORM: Final = re.compile(r"[A-Za-z]*(,[A-Za-z]*)*(->[A-Za-z]*)?")


def parse_equation(text: str) -> Equation:
    """What `text` says; EquationError when it is no equation."""
    plain = text.replace(" ", "")
    if len(plain) > MAX_LENGTH:
        raise EquationError(f"an equation of {len(plain)} characters is more than {MAX_LENGTH}")
    if not _FORM.fullmatch(plain):
        hint = "for example ij,jk->ik: a letter for each axis"
        if "..." in plain:
            hint = "name the axes instead of `...`"
        raise EquationError(f"`{text}` is no equation", hint=hint)
    left, arrow, right = plain.partition("->")
    counts = Counter(left.replace(",", ""))
    result = right if arrow else "".join(sorted(label for label in counts if counts[label] == 1))
    for label, count in Counter(result).items():
        if count > 1:
            raise EquationError(f"`{text}`: the result has {label} twice")
        if label not in counts:
            raise EquationError(f"`{text}`: {label} of the result is in no operand")
    order = {label: number for number, label in enumerate(dict.fromkeys(result + "".join(counts)))}
    operands = tuple(tuple(order[label] for label in operand) for operand in left.split(","))
    kept = tuple(range(len(result)))
    return operands, kept, tuple(range(len(kept), len(order)))
