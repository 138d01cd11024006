"""The merge of two states as scalar operations by name, for loops that fold by any monoid.

merging = merging_of(argmax)        # in `folds.halves`: its numbers, its cells, what it yields
emit = emitted(merging)             # the same as instructions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tapestry.algebra.computing import computed
from tapestry.algebra.named import Scalar
from tapestry.codegen.loops import kind_of
from tapestry.codegen.loops.cells import written
from tapestry.codegen.loops.graphs import Merge, Stays
from tapestry.codegen.loops.vectors import Value, Writer, register


@dataclass(frozen=True)
class Merging:
    """Slots are the parts of the one state, those of the other, numbers, and what cells make."""

    dtypes: tuple[np.dtype[Any], ...]
    numbers: tuple[tuple[float, np.dtype[Any]], ...]
    cells: tuple[tuple[Scalar, tuple[int, ...]], ...]
    ends: tuple[int, ...]

    @property
    def rounds(self) -> bool:
        """Whether it adds and multiplies floats only: the order of merges shows in what overflows.

        What takes exponents is made to be merged in any grouping.
        """
        return all(scalar.name in ("arith.addf", "arith.mulf") for scalar, _ in self.cells)


def compared_parts(merging: Merging) -> frozenset[int]:
    """The parts of a state that are 64-bit integers, and only compared with each other and chosen.

    What their order says is all that counts.
    """
    count = len(merging.dtypes)
    first = 2 * count + len(merging.numbers)

    def is_compared(part: int) -> bool:
        alike = {part, count + part}
        for slot, (scalar, ins) in enumerate(merging.cells, first):
            own = [one in alike for one in ins]
            if scalar.name == "arith.select" and own == [False, True, True]:
                alike.add(slot)
            elif any(own) and not (
                all(own) and scalar.name == "arith.cmpi" and scalar.predicate <= _SIGNED
            ):
                return False
        return all((end in alike) == (n == part) for n, end in enumerate(merging.ends))

    return frozenset(
        part for part in range(count) if merging.dtypes[part] == np.int64 and is_compared(part)
    )


_SIGNED = 5
"""The last predicate of `arith.cmpi` that is of equality, or of numbers with a sign."""


def staying(merging: Merging) -> Stays | None:
    """When a merge gives the first state, said by one part of both; None where that is not seen.

    Each part is chosen by the same condition, which holds if one of several does: those that look
    at one part alone are enough.
    """
    count = len(merging.dtypes)
    first = 2 * count + len(merging.numbers)
    made = dict(enumerate(merging.cells, first))
    conditions = set[int]()
    for part, end in enumerate(merging.ends):
        if end not in made:
            return None
        scalar, ins = made[end]
        if scalar.name != "arith.select" or ins[1:] != (part, count + part):
            return None
        conditions.add(ins[0])
    if len(conditions) != 1:
        return None

    parts = {slot: frozenset({slot % count} if slot < 2 * count else ()) for slot in range(first)}
    for slot, (_, ins) in made.items():
        parts[slot] = frozenset[int]().union(*(parts[one] for one in ins))
    left, enough, met = list(conditions), dict[int, list[int]](), set[int]()
    while left:
        slot = left.pop()
        if slot in met:
            continue
        met.add(slot)
        if slot in made and made[slot][0].name == "arith.ori":
            left += made[slot][1]
        elif len(parts[slot]) == 1:
            enough.setdefault(min(parts[slot]), []).append(slot)
    if not enough:
        return None
    part, wanted = min(enough.items())
    more = _more(merging, part, wanted)
    return None if more is None else Stays(part, more)


def _more(merging: Merging, part: int, wanted: Sequence[int]) -> str | None:
    """The comparison of parts with which the one stays: `ogt`, or the like.

    None where conditions, of which one has to hold, do not say exactly that the one part is more
    than the other, or less, and the other is not NaN. They only compare both parts, so that a few
    numbers say it for all.
    """
    count, dtype = len(merging.dtypes), merging.dtypes[part]
    made = dict(enumerate(merging.cells, 2 * count + len(merging.numbers)))

    def compares(slot: int) -> bool:
        if slot not in made:
            return slot in (part, count + part)
        scalar, ins = made[slot]
        is_condition = scalar.result == np.bool_ and scalar.name in _OF_CONDITIONS
        return is_condition and all(map(compares, ins))

    def value(slot: int, one: Any, other: Any) -> Any:
        if slot not in made:
            return one if slot == part else other
        scalar, ins = made[slot]
        return computed(scalar, *(value(own, one, other) for own in ins))

    def holds(one: Any, other: Any) -> bool:
        return any(bool(value(slot, one, other)) for slot in wanted)

    kind = kind_of(dtype)
    if kind is None or dtype == np.bool_ or not all(map(compares, wanted)):
        return None
    numbers = [dtype.type(number) for number in (-1, 0, 1, 2)]
    pairs = list(product(numbers, numbers))
    found = [holds(one, other) for one, other in pairs]
    if register(kind) in ("float", "double"):
        missing = dtype.type("nan")
        if any(holds(one, missing) for one in (*numbers, missing)):
            return None
        orders = {("ogt", "olt"): pairs}
    else:
        bits = f"u{dtype.itemsize}"
        unsigned = [(one.view(bits), other.view(bits)) for one, other in pairs]
        orders = {
            ("sgt", "slt"): pairs,
            ("ugt", "ult"): unsigned,
        }
    for (more, less), order in orders.items():
        if found == [one > other for one, other in order]:
            return more
        if found == [one < other for one, other in order]:
            return less
    return None


_OF_CONDITIONS = frozenset({"arith.cmpf", "arith.cmpi", "arith.andi", "arith.ori"})


def emitted(merging: Merging) -> Merge:
    """What writes a merge."""

    def merge(write: Writer, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        values = [*left, *right]
        for number, dtype in merging.numbers:
            kind = kind_of(dtype)
            assert kind is not None
            values.append(write.number(number, kind))
        for scalar, ins in merging.cells:
            values.append(written(scalar, write, [values[slot] for slot in ins]))
        return [write.widened(values[slot]) for slot in merging.ends]

    return merge
