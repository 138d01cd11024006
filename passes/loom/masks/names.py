"""Names of values that assumptions are noted of, each that of one value alone.

%x_1 = loom.view %x ...;  ins(%x_1 ..., %x ...)  ->  %x2 = loom.view %x ...;  ins(%x2 ..., %x ...)

`finite(x)` would say nothing of an operation that reads two values of that name.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from xdsl.dialects.builtin import NameLoc
from xdsl.ir import BlockArgument, SSAValue


def tell_apart(values: Iterable[SSAValue]) -> bool:
    """Give values that share a name different ones; whether any has a new one.

    An argument that people give by its name keeps it, and any other where it can: programs are
    read by the names of their arguments.
    """
    named = dict.fromkeys(value for value in values if value.name_hint is not None)
    every = {value.name_hint for value in named}
    taken: set[str | None] = set()
    renamed = False
    for value in sorted(named, key=_order):
        if value.name_hint in taken and _order(value) > 0:
            others = (f"{value.name_hint}{number}" for number in count(2))
            value.name_hint = next(other for other in others if other not in taken | every)
            renamed = True
        taken.add(value.name_hint)
    return renamed


def _order(value: SSAValue) -> int:
    """Whose name comes first: 0 where it is what people give a value by.

    That of an argument with a location of its own is written there, whatever its hint is.
    """
    if not isinstance(value, BlockArgument):
        return 2
    return 1 if isinstance(value.location, NameLoc) else 0
