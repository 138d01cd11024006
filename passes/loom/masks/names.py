"""Names of values that assumptions are noted of, each that of one value alone.

%x_1 = loom.view %x ...;  ins(%x_1 ..., %x ...)  ->  %x2 = loom.view %x ...;  ins(%x2 ..., %x ...)

`finite(x)` would say nothing of an operation that reads two values of that name; nor of one that
two become, of which each reads one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects import func
from xdsl.dialects.builtin import NameLoc
from xdsl.ir import BlockArgument, SSAValue


@dataclass
class Names:
    """The names of a function's values of which something is noted, with whose they are."""

    _taken: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    @staticmethod
    def of(function: func.FuncOp) -> Names:
        """Those of a function's arguments, which people may give values by."""
        names = Names()
        names.tell_apart(function.body.blocks[0].args)
        return names

    def tell_apart(self, values: Iterable[SSAValue]) -> bool:
        """Give values whose names others have different ones; whether any has a new one.

        An argument that people give by its name keeps it, and any other where it can: programs are
        read by the names of their arguments.
        """
        named = dict.fromkeys(value for value in values if value.name_hint is not None)
        every = {value.name_hint for value in named}
        renamed = False
        for value in sorted(named, key=_order):
            assert value.name_hint is not None
            if self._is_anothers(value.name_hint, value) and _order(value) > 0:
                others = (f"{value.name_hint}{number}" for number in count(2))
                value.name_hint = next(
                    name for name in others if name not in every and name not in self._taken
                )
                renamed = True
            self._taken[value.name_hint] = value
        return renamed

    def _is_anothers(self, name: str, value: SSAValue) -> bool:
        """Whether another value has a name, and is still read: what took its place may have it."""
        other = self._taken.get(name, value)
        return other is not value and other.first_use is not None


def _order(value: SSAValue) -> int:
    """Whose name comes first: 0 where it is what people give a value by.

    That of an argument with a location of its own is written there, whatever its hint is.
    """
    if not isinstance(value, BlockArgument):
        return 2
    return 1 if isinstance(value.location, NameLoc) else 0
