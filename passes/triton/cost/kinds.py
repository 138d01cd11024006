"""Whether an operation is of some classes, looked up by its class.

    FREE = Kinds(arith.ConstantOp, triton.CombineOp)
    FREE[type(op)]              # isinstance(op, (arith.ConstantOp, triton.CombineOp))

Operations are abstract base classes, of which `isinstance` asks every one in turn: a model that
counts thousands of operations asks each class once.
"""

from __future__ import annotations


class Kinds(dict[type, bool]):
    """For each class whether it is one of some classes, or is derived from one."""

    def __init__(self, *kinds: type) -> None:
        super().__init__()
        self._kinds = kinds

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = issubclass(kind, self._kinds)
        return found
