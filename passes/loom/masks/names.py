"""Names of values that assumptions are noted of, each that of one value alone.

%x_1 = loom.view %x ...;  ins(%x_1 ..., %x ...)  ->  %x2 = loom.view %x ...;  ins(%x2 ..., %x ...)

`finite(x)` would say nothing of an operation that reads two values of that name; nor of one that
two become, of which each reads one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Block, BlockArgument, SSAValue


@dataclass(frozen=True)
class Names:
    """All names of a function's values, those that several have, and the arguments that keep one.

    An argument that people give by its name keeps it, and of others that share one the first:
    programs are read by the names of their arguments.
    """

    taken: set[str]
    shared: frozenset[str]
    kept: frozenset[SSAValue]

    @staticmethod
    def of(block: Block) -> Names:
        """Those of a function with a body."""
        values = [*block.args, *(result for op in block.ops for result in op.results)]
        names = Counter(value.name_hint for value in values if value.name_hint is not None)
        shared = frozenset(name for name, times in names.items() if times > 1)
        kept: dict[str | None, SSAValue] = {}
        for argument in sorted(block.args, key=_order):
            kept.setdefault(argument.name_hint, argument)
        given = (argument for argument in block.args if _order(argument) == 0)
        return Names(set(names), shared, frozenset((*kept.values(), *given)))

    def tell_apart(self, values: Iterable[SSAValue]) -> bool:
        """Give values that share their names ones of their own; whether any has a new one."""
        renamed = False
        for value in dict.fromkeys(values):
            name = value.name_hint
            if name is not None and name in self.shared and value not in self.kept:
                others = (f"{name}{number}" for number in count(2))
                value.name_hint = next(other for other in others if other not in self.taken)
                self.taken.add(value.name_hint)
                renamed = True
        return renamed


def _order(value: SSAValue) -> int:
    """Whose name comes first: 0 where it is what people give a value by.

    That of an argument with a location of its own is written there, whatever its hint is.
    """
    if not isinstance(value, BlockArgument):
        return 2
    return 1 if isinstance(value.location, NameLoc) else 0
